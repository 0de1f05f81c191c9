"""What a builder may return, what it is given, and that both sides of a comparison get the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import nn

from compilewatch.runner.catalog.builtin import WORKLOADS
from compilewatch.runner.worker.step.loading import WorkloadError, build_workload, import_builder
from compilewatch.runner.worker.step.messages import Workload
from compilewatch.runner.worker.step.steps import make_variant, own_copy
from compilewatch.runner.workloads.built import Built
from tests.runner.measuring import build

CPU = torch.device("cpu")


def load(builder: Any, **workload: Any) -> Built:
    content = {"name": "any", "task": "inference", "dtype": "float32"} | workload
    return build_workload(builder, Workload(**content), CPU)


def load_named(name: str, **changes: Any) -> Built:
    return build(WORKLOADS[name], **changes)


class TwoInputs(nn.Module):
    def forward(
        self, ids: torch.Tensor, mask: torch.Tensor | None = None, scale: float = 2.0
    ) -> torch.Tensor:
        return ids * scale if mask is None else ids * mask * scale


def test_inputs_as_tuple_tensor_or_mapping() -> None:
    ids, mask = torch.ones(3), torch.zeros(3)
    assert len(load(lambda: (TwoInputs(), (ids, mask))).inputs) == 2
    assert len(load(lambda: (TwoInputs(), ids)).inputs) == 1
    by_name = load(lambda: (TwoInputs(), {"scale": 3.0, "ids": ids}))
    assert by_name.inputs[1:] == (None, 3.0)
    assert by_name.model_or_fn(*by_name.inputs).tolist() == [3.0, 3.0, 3.0]
    assert len(load(lambda: (TwoInputs(), {"mask": mask, "ids": ids})).inputs) == 2


def test_floating_point_is_cast_and_token_ids_are_not() -> None:
    def builder() -> Any:
        return nn.Linear(4, 4), (
            torch.randn(2, 4),
            torch.arange(3),
            [torch.randn(1)],
            {"mask": torch.ones(1)},
        )

    ready = load(builder, dtype="bfloat16")
    assert ready.model_or_fn.weight.dtype is torch.bfloat16
    x, ids, listed, named = ready.inputs
    assert (x.dtype, ids.dtype) == (torch.bfloat16, torch.int64)
    assert (listed[0].dtype, named["mask"].dtype) == (torch.bfloat16, torch.bfloat16)


def test_a_builder_that_declares_dtype_and_device_places_things_itself() -> None:
    def builder(device: torch.device, dtype: torch.dtype) -> Any:
        return nn.Linear(4, 4, device=device, dtype=torch.float32), torch.randn(2, 4, dtype=dtype)

    ready = load(builder, dtype="float64")
    assert ready.model_or_fn.weight.dtype is torch.float32
    assert ready.inputs[0].dtype is torch.float64


def test_moving_reaches_every_tensor() -> None:
    ready = build_workload(
        lambda: (nn.BatchNorm1d(4), (torch.randn(2, 4),)),
        Workload("", "inference", "float32"),
        torch.device("meta"),
    )
    assert {tensor.device.type for tensor in (*ready.model_or_fn.state_dict().values(), *ready.inputs)} == {
        "meta"
    }


def test_sixteen_bit_training_keeps_float32_weights_and_autocasts() -> None:
    ready = load(
        lambda: (nn.Linear(4, 4), torch.randn(2, 4), lambda y: y.sum()), task="training", dtype="bfloat16"
    )
    assert ready.model_or_fn.weight.dtype is torch.float32
    assert ready.autocast_dtype is torch.bfloat16


def test_the_mode_follows_the_task() -> None:
    def triple() -> Any:
        return nn.Dropout(), torch.ones(2), lambda y: y.sum()

    assert load(triple, task="training").model_or_fn.training
    assert not load(lambda: triple()[:2]).model_or_fn.training


def test_a_built_is_taken_as_it_is() -> None:
    whole = Built(torch.relu, (torch.ones(1),), task="function", tolerance=0.5)
    assert load(lambda **_: whole, batch_size=3, kwargs={"x": 1}) is whole


def sized(batch_size: int, width: int = 4) -> Any:
    return torch.relu, torch.randn(batch_size, width)


REFUSED = [
    (sized, {"batch_size": 2, "shape": {"widht": 4}}, "'widht', which sized has no parameter for"),
    (sized, {}, "sized needs 'batch_size', which the workload does not give"),
    (lambda: nn.Linear(1, 1), {}, "not Linear"),
    (lambda: (nn.Linear(1, 1),), {}, "returns \\(model or function, inputs\\)"),
    (lambda: (1, 2), {}, "returns \\(model or function, inputs\\)"),
    (lambda: (torch.relu, 5), {}, "not int"),
    (lambda: (nn.Linear(1, 1), torch.ones(1)), {"task": "training"}, "needs a loss"),
    (lambda: (torch.relu, torch.ones(1), torch.sum), {"task": "training"}, "needs an nn.Module"),
    (lambda: (nn.Linear(1, 1), torch.ones(1), torch.sum), {}, "the task is inference; set task to training"),
    (
        lambda: (nn.Linear(1, 1), torch.ones(1), lambda out, y: out),
        {"task": "training"},
        "loss gets the output alone",
    ),
    (
        lambda: Built(nn.Linear(1, 1), (torch.ones(1),), "training", loss=lambda out, y: out),
        {},
        "loss gets the output alone",
    ),
    (lambda: (TwoInputs(), {"idz": torch.ones(1)}), {}, "'idz' is no parameter"),
    (lambda: (TwoInputs(), {"mask": torch.ones(1)}), {}, "leave out a parameter"),
    (lambda: ((lambda x, *, mode: x), {"x": 1}), {}, "leave out a parameter"),
    (sized, {"batch_size": 2, "dtype": "float23"}, "'float23' is no dtype of torch"),
]


@pytest.mark.parametrize(("builder", "workload", "message"), REFUSED)
def test_what_a_builder_may_not_do(builder: Any, workload: dict[str, Any], message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        load(builder, **workload)


def test_a_function_that_is_not_there() -> None:
    with pytest.raises(WorkloadError, match=r"runner\.workloads\.cnn has no function biuld"):
        import_builder("compilewatch.runner.workloads.cnn:biuld")


@pytest.mark.parametrize("name", ["cnn", "encoder", "mlp-train", "unet"])
def test_eager_and_compiled_share_batch_dtype_and_layout(name: str) -> None:
    eager = load_named(name)
    compiled = own_copy(eager)
    assert all(mine is theirs for mine, theirs in zip(eager.inputs, compiled.inputs, strict=True))
    pairs = zip(
        eager.model_or_fn.state_dict().items(), compiled.model_or_fn.state_dict().items(), strict=True
    )
    for (key, mine), (other_key, theirs) in pairs:
        assert key == other_key
        assert mine is not theirs
        assert (mine.shape, mine.stride(), mine.dtype) == (theirs.shape, theirs.stride(), theirs.dtype)
        assert torch.equal(mine, theirs)
    assert compiled.model_or_fn.training == eager.model_or_fn.training


def test_the_cnn_is_channels_last_on_both_sides() -> None:
    ready = load_named("cnn")
    assert ready.inputs[0].is_contiguous(memory_format=torch.channels_last)
    convolution = own_copy(ready).model_or_fn[0]
    assert convolution.weight.is_contiguous(memory_format=torch.channels_last)


def test_one_seed_gives_equal_weights_and_inputs() -> None:
    torch.manual_seed(0)
    first = load_named("encoder")
    torch.manual_seed(0)
    second = load_named("encoder")
    assert torch.equal(first.inputs[0], second.inputs[0])
    assert torch.equal(make_variant(first).step(), make_variant(second).step())


@dataclass
class Pair:
    left: torch.Tensor
    right: torch.Tensor


def test_inputs_are_given_as_the_model_takes_them() -> None:
    x, y = torch.ones(2), torch.zeros(2)

    def keyword_only(x: Any, *, mode: str, scale: float = 1.0) -> Any:
        return x * scale if mode == "on" else x

    def variadic(first: Any, *rest: Any, **named: Any) -> Any:
        return first + sum(rest) + sum(named.values())

    def one(batch: Any, training: bool = False) -> Any:
        return batch

    def called(function: Any, inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        ready = load(lambda: (function, inputs))
        return ready.inputs, dict(ready.keywords)

    assert called(keyword_only, {"x": x, "mode": "on"}) == ((x,), {"mode": "on"})
    assert called(variadic, {"first": x, "rest": (y, y), "extra": y}) == ((x, y, y), {"extra": y})
    assert called(variadic, (x, y)) == ((x, y), {})
    assert called(one, {"ids": x, "mask": y}) == (({"ids": x, "mask": y},), {})
    ((pair,), keywords) = called(one, Pair(x, y))
    assert (type(pair), keywords) == (Pair, {})
    variant = make_variant(load(lambda: (keyword_only, {"x": x, "mode": "on", "scale": 3.0})))
    assert variant.step().tolist() == [3.0, 3.0]
