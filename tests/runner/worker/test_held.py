"""What memory is held for: tensors saved for backward by hand, and a GPU's allocator, simulated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import nn

from compilewatch.db.records.evidence import Memory
from compilewatch.runner.worker.held_memory import Partitions, live_at_peak, saved_for_backward
from compilewatch.runner.worker.step.steps import make_variant
from compilewatch.runner.workloads.built import Built
from tests.runner.terminal import in_this_process

FILE = Path(__file__).name


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = (x @ self.weight).tanh()
        z = y.view(2, 16).exp()
        return z * y.view(2, 16)


def _place(text: str) -> str:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return f"{FILE}:{next(number for number, line in enumerate(lines, 1) if text in line)}"


def _held(tensor: str, text: str, size_bytes: int, count: int = 1) -> dict[str, object]:
    return {"tensor": tensor, "place": _place(text), "count": count, "size_bytes": size_bytes}


def test_what_eager_saves_is_counted_once_with_its_line_and_without_weights_and_inputs() -> None:
    """x and the weight, which the product saves, are held anyway; the view shares the storage of tanh."""
    built = Built(Model(), (torch.ones(4, 8),), "training", loss=lambda out: out.sum())
    found = saved_for_backward(make_variant(built), None)
    assert found == {
        "count": 2,
        "size_bytes": 256,
        "largest": [_held("4x8 float32", ".tanh()", 128), _held("2x16 float32", ".exp()", 128)],
    }
    Memory.model_validate({"saved": found})


def test_a_pass_begins_as_a_step_does_and_not_upon_gradients_of_the_one_before() -> None:
    variant = make_variant(Built(Model(), (torch.ones(4, 8),), "training", loss=lambda out: out.sum()))
    variant.step()
    assert variant.module is not None
    (weight,) = variant.module.parameters()
    before = weight.detach().clone()
    saved_for_backward(variant, None)
    assert weight.grad is not None
    loss = variant.built.loss(Model.forward(variant.module, torch.ones(4, 8)))
    (fresh,) = torch.autograd.grad(loss, weight)
    torch.testing.assert_close(weight.grad, fresh)
    assert torch.equal(weight, before)


def test_a_model_of_torchs_own_modules_names_theirs_and_equal_tensors_stand_together() -> None:
    built = Built(
        nn.Sequential(nn.Tanh(), nn.Tanh()), (torch.ones(3, requires_grad=True),), with_gradients=True
    )
    found = saved_for_backward(make_variant(built), None)
    assert found is not None
    (held,) = found["largest"]
    assert (held["tensor"], held["count"], held["size_bytes"]) == ("3 float32", 2, 24)
    assert held["place"].startswith("activation.py:")


def test_inference_saves_nothing() -> None:
    assert saved_for_backward(make_variant(Built(Model(), (torch.ones(4, 8),))), None) is None


def test_places_of_compiled_code_are_those_that_both_graphs_name() -> None:
    """As the partitioner leaves them: an input of the same size takes no line, `exp` is not taken by the
    backward graph.
    """
    forward, backward = torch.fx.Graph(), torch.fx.Graph()
    given = forward.placeholder("primals_1")
    nodes = [given, forward.call_function(torch.tanh, (given,)), forward.call_function(torch.exp, (given,))]
    for node in nodes:
        node.meta["val"] = torch.empty(4, 8, device="meta")
    nodes[1].meta["stack_trace"] = (
        f'  File "/home/me/model.py", line 12, in forward\n    y = f(x)\n'
        f'  File "{Path(torch.__file__).parent}/nn/functional.py", line 3, in f\n'
    )
    forward.output(tuple(nodes))
    for name in ("primals_1", "tanh"):
        backward.placeholder(name)
    backward.output(())
    partitions = Partitions()
    partitions.note(None, tuple(torch.fx.GraphModule({}, each) for each in (forward, backward)))
    assert [partitions.take("4x8 float32") for _ in range(2)] == ["model.py:12", None]


def _event(action: str, address: int, size: int = 0, line: int = 0) -> dict[str, object]:
    frames = [
        {"filename": f"{Path(torch.__file__).parent}/nn/functional.py", "line": 1, "name": "f"},
        {"filename": "/home/me/model.py", "line": line, "name": "forward"},
    ]
    return {"action": action, "addr": address, "size": size, "frames": frames}


def test_blocks_at_the_peak_of_a_simulated_allocator() -> None:
    """10, 10 + 30, 30, 30 + 5 bytes: the peak is 40. A block from before the history is freed unseen, and an
    address is used again.
    """
    events = [
        _event("free_requested", 9),
        _event("alloc", 1, 10, line=4),
        _event("alloc", 2, 30, line=5),
        _event("segment_alloc", 7, 1000),
        _event("free_requested", 1),
        _event("free_completed", 1),
        _event("alloc", 1, 5, line=6),
    ]
    assert live_at_peak(events) == [("model.py:4", 10), ("model.py:5", 30)]


MODEL = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(16, 16)

    def forward(self, x):
        for _ in range(4):
            x = torch.tanh(self.linear(x)).exp()
        return x

def build():
    return Model(), torch.ones(8, 16), lambda out: out.sum()
"""


@pytest.mark.slow
def test_a_smaller_budget_saves_less(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(MODEL, encoding="utf-8")
    budgets = ("--budget", "1", "--budget", "0")
    told = in_this_process("explain", "own:build", "--memory", *budgets, "--json", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    sides = json.loads(told.stdout)["sides"]
    saved = {name: side["memory"]["saved"] for name, side in sides.items()}
    assert list(saved) == ["eager", "budget 1", "budget 0"]
    # Of each turn the results of tanh and of exp, 512 bytes each; the last exp is saved too.
    assert (saved["eager"]["count"], saved["eager"]["size_bytes"]) == (8, 4096)
    assert {each["place"] for each in saved["budget 1"]["largest"]} == {"own.py:11"}
    assert saved["budget 0"]["size_bytes"] < saved["budget 1"]["size_bytes"]
    assert all(side["memory"]["peak_bytes"] and side["latency_ns"] for side in sides.values())


def test_budgets_and_workloads_that_are_none_are_refused(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(MODEL.replace(", lambda out: out.sum()", ""), encoding="utf-8")
    wrong = in_this_process("explain", "own:build", "--memory", "--budget", "1.5", cwd=tmp_path)
    assert (wrong.returncode, "A budget is from 0 to 1, not 1.5." in wrong.stderr) == (2, True)
    nothing = in_this_process("explain", "own:build", "--memory", cwd=tmp_path)
    assert (nothing.returncode, "saves nothing for a backward pass" in nothing.stderr) == (2, True)
