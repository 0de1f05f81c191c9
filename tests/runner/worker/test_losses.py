"""A compiled training beside eager's: twenty right pairs stay with it, a small planted error is found."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from compilewatch.runner.worker import losses
from compilewatch.runner.worker.step.loading import UnsupportedCaseError
from compilewatch.runner.worker.step.messages import Strategy, Workload
from compilewatch.runner.worker.timing.sampling import Deadline
from compilewatch.runner.workloads.built import Batch, Built, Stream

# Of torch itself, as it imports Inductor.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
_WIDTH = 32
_OPTIMIZERS: dict[str, Any] = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.05),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.02, momentum=0.9),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=1e-3),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=1e-3),
    "rmsprop": lambda parameters: torch.optim.RMSprop(parameters, lr=1e-3),
}
_MIDDLES: dict[str, Any] = {
    "mlp": lambda: [nn.Sequential(nn.Linear(_WIDTH, _WIDTH), nn.ReLU()) for _ in range(8)],
    "layer-norm": lambda: [nn.LayerNorm(_WIDTH), nn.GELU(), nn.Linear(_WIDTH, _WIDTH), nn.SiLU()],
    "batch-norm": lambda: [nn.BatchNorm1d(_WIDTH), nn.Tanh(), nn.Linear(_WIDTH, _WIDTH), nn.Sigmoid()],
    "dropout": lambda: [nn.Linear(_WIDTH, _WIDTH), nn.Dropout(0.3), nn.ReLU()],
    "attention": lambda: [nn.TransformerEncoderLayer(_WIDTH, 4, 64, dropout=0.0, batch_first=True)],
    "elu": lambda: [nn.Linear(_WIDTH, _WIDTH), nn.ELU()],
    "convolution": lambda: [
        *(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten()),
    ],
}
PAIRS = (
    *((middle, optimizer, False) for middle in _MIDDLES for optimizer in ("sgd", "adam")),
    *(("mlp", "rmsprop", False), ("convolution", "momentum", False), ("layer-norm", "momentum", True)),
    *(("attention", "adamw", True), ("convolution", "adam", True), ("batch-norm", "adamw", False)),
)


def build(middle: str = "mlp", optimizer: str = "sgd", mixed: bool = False) -> Built:
    """A classifier of random vectors, or of random images."""
    if middle == "convolution":
        inputs, layers = torch.randn(16, 1, 8, 8), _MIDDLES[middle]()
    else:
        shape = (16, 6, _WIDTH) if middle == "attention" else (16, _WIDTH)
        inputs, layers = torch.randn(shape), [nn.Linear(_WIDTH, _WIDTH), *_MIDDLES[middle]()]
    labels = torch.randint(10, (16, 6) if middle == "attention" else (16,))
    return Built(
        nn.Sequential(*layers, nn.Linear(_WIDTH, 10)),
        (inputs,),
        task="training",
        loss=lambda output: nn.functional.cross_entropy(output.flatten(0, -2), labels.flatten()),
        optimizer=_OPTIMIZERS[optimizer],
        autocast_dtype=torch.bfloat16 if mixed else None,
    )


def several_batches() -> Built:
    """A stream of three batches that are drawn once."""
    batches = [Batch((torch.randn(4, 8),), torch.randint(3, (4,))) for _ in range(3)]
    return Built(
        nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3)),
        batches[0].inputs,
        task="training",
        loss=nn.functional.cross_entropy,
        stream=Stream(lambda: batches),
    )


def forward_alone() -> Built:
    return Built(nn.Linear(4, 4), (torch.randn(2, 4),))


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compared(
    steps: int = 6,
    backend: str = "aot_eager",
    target: str = "build",
    deadline: Deadline | None = None,
    **kwargs: Any,
) -> dict[str, Any]:
    workload = Workload("mine", "training", "float32", f"{__name__}:{target}", kwargs=kwargs)
    strategy = Strategy("compile", backend=backend)
    spec = SimpleNamespace(workload=workload, strategy=strategy, artifacts="", seed=3)
    progress = SimpleNamespace(spec=spec, device=torch.device("cpu"), deadline=deadline or Deadline())
    return losses.compare(progress, steps)  # type: ignore[arg-type]


def off_by(error: float, operation: str = "relu", after: int = 0) -> Any:
    """A backend that makes results of `operation` so much too large, from the call after so many on."""
    calls = 0

    def backend(graph: torch.fx.GraphModule, _inputs: Any) -> Any:
        def wrong(value: torch.Tensor, **_: Any) -> torch.Tensor:
            right = getattr(torch, operation)(value)
            return right * (1 + error) if calls > after else right

        for node in graph.graph.nodes:
            if operation in f"{node.target}":
                node.target, node.kwargs = wrong, {}
        graph.recompile()

        def run(*args: Any) -> Any:
            nonlocal calls
            calls += 1
            return graph(*args)

        return run

    return backend


def test_a_right_training_stays_with_eager() -> None:
    found = compared(optimizer="adam")
    assert "left_at_step" not in found
    assert len(found["losses"]) == len(found["control_losses"]) == len(found["band"]) == 6
    assert found["seeds"] == 4
    # The same batch again and again is learned.
    assert found["losses"][-1] < found["losses"][0]
    # Of a training in float32 another rounding moves the loss by a few of its last digits.
    assert 0 < max(found["band"]) < 1e-4


@pytest.mark.parametrize("error", [1e-3, 1e-4])
def test_a_small_error_is_found_at_the_first_step(error: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(losses.compiling, "compile_arguments", lambda _: {"backend": off_by(error)})
    found = compared()
    assert found["left_at_step"] == 1
    assert found["left_by"] == "the loss" or found["left_by"].endswith((".weight", ".bias"))
    assert found["times_band"] > losses.FACTOR


def test_the_first_step_is_named_at_which_it_goes_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(losses.compiling, "compile_arguments", lambda _: {"backend": off_by(1e-2, after=3)})
    assert compared()["left_at_step"] == 4


def test_what_is_no_number_leaves_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = {"backend": off_by(math.nan)}
    monkeypatch.setattr(losses.compiling, "compile_arguments", lambda _: arguments)
    found = compared()
    assert (found["left_at_step"], found["times_band"], found["losses"][0]) == (1, None, None)


def test_dropout_is_held_to_what_other_draws_do() -> None:
    """Compiled draws other masks than eager, which moves the loss far more than rounding does."""
    found = compared(middle="dropout", backend="inductor", steps=3)
    assert "left_at_step" not in found
    assert max(found["band"]) > 1e-3
    assert abs(found["losses"][-1] - found["control_losses"][-1]) > 1e-4


def test_a_stream_gives_each_side_its_batches_in_turn() -> None:
    found = compared(target="several_batches", steps=7)
    assert "left_at_step" not in found
    assert len(set(found["losses"])) == 7


def test_what_is_no_training_has_no_losses() -> None:
    with pytest.raises(UnsupportedCaseError, match="Only a training"):
        compared(target="forward_alone")


def test_it_ends_before_the_deadline() -> None:
    assert len(compared(steps=500, deadline=Deadline(0.0))["losses"]) == 2


@pytest.mark.slow
@pytest.mark.parametrize(("middle", "optimizer", "mixed"), PAIRS)
def test_right_pairs_of_inductor_stay_with_eager(middle: str, optimizer: str, mixed: bool) -> None:
    assert len(PAIRS) == 20
    found = compared(50, "inductor", middle=middle, optimizer=optimizer, mixed=mixed)
    assert "left_at_step" not in found


@pytest.mark.slow
@pytest.mark.parametrize("error", [1e-3, 1e-4])
def test_a_lowering_that_is_slightly_off_is_found(
    error: float, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from torch._inductor.lowering import lowerings

    aten = torch.ops.aten
    right, times = lowerings[aten.relu.default], lowerings[aten.mul.Tensor]
    monkeypatch.setitem(lowerings, aten.relu.default, lambda value: times(right(value), 1 + error))
    # What was compiled with the right one is not found again.
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    found = compared(20, "inductor")
    assert found["left_at_step"] == 1
