"""Training steps beyond the plain one: mixed precision, activation checkpointing, a compiled optimizer."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from compilewatch.db.records.trial import NumericsStatus, Status, Task
from compilewatch.runner.catalog.builtin import WORKLOADS
from compilewatch.runner.worker.compiler.compiling import optimizer_compiler
from compilewatch.runner.worker.numerics import check
from compilewatch.runner.worker.step.loading import WorkloadError
from compilewatch.runner.worker.step.messages import Strategy
from compilewatch.runner.worker.step.state import State
from compilewatch.runner.worker.step.steps import make_variant, own_copy
from compilewatch.runner.workloads.built import TRAINING, Built
from tests.runner.measuring import build, compiled, measure

CPU = torch.device("cpu")


pytestmark = pytest.mark.usefixtures("fresh_dynamo")


def _load(name: str) -> Built:
    torch.manual_seed(0)
    definition = WORKLOADS[name]
    return build(definition, kwargs={**definition.kwargs, "layers": 1})


def _step(built: Built) -> tuple[torch.Tensor, list[torch.Tensor], int]:
    """Loss and gradients of one step, and the bytes that autograd kept for its backward pass."""
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = make_variant(built).step()
    gradients = [parameter.grad for parameter in built.model_or_fn.parameters()]  # type: ignore[attr-defined]
    return loss, gradients, sum(kept.values())


def test_checkpointing_computes_the_same_and_keeps_less():
    loss, gradients, kept = _step(_load("encoder-train"))
    other_loss, other_gradients, other_kept = _step(_load("encoder-train-checkpointing"))
    assert torch.equal(loss, other_loss)
    for one, other in zip(gradients, other_gradients, strict=True):
        torch.testing.assert_close(one, other)
    assert other_kept < kept / 2


def _faint(dtype: torch.dtype) -> Built:
    """A model whose gradients are too small for float16: 1e-8 / 16 at its output."""
    torch.manual_seed(0)
    return Built(
        nn.Linear(4, 4),
        (torch.ones(4, 4),),
        TRAINING,
        loss=lambda output: output.float().mean() * 1e-8,
        optimizer=lambda parameters: torch.optim.SGD(parameters, lr=1e6),
        autocast_dtype=dtype,
    )


def _moved(built: Built, step: Any) -> bool:
    weight = built.model_or_fn.weight  # type: ignore[attr-defined]
    before = weight.detach().clone()
    step()
    return not torch.equal(before, weight)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (lambda output: output.square(), r"The loss has the shape \(4, 2\): return its mean\(\) or sum\(\)."),
        (
            lambda output: float(output.detach().mean()),
            "The loss is of type float: return a tensor with one number.",
        ),
    ],
)
def test_a_loss_is_one_number(loss, message):
    built = Built(nn.Linear(2, 2), (torch.ones(4, 2),), "training", loss=loss)
    with pytest.raises(WorkloadError, match=message):
        make_variant(built).step()


def test_float16_keeps_gradients_that_are_lost_without_a_scaled_loss():
    built = _faint(torch.float16)
    variant = make_variant(built)
    assert _moved(built, variant.step)

    naive = _faint(torch.float16)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = naive.loss(naive.model_or_fn(*naive.inputs))  # type: ignore[misc]
    loss.backward()
    assert not naive.model_or_fn.weight.grad.any()  # type: ignore[attr-defined]


def test_every_float16_step_has_the_same_scale():
    """One that overflows is left out and lowers no later one's scale."""
    built = _faint(torch.float16)
    factor = [1e-8]
    built = Built(
        built.model_or_fn,
        built.inputs,
        TRAINING,
        loss=lambda output: output.float().mean() * factor[0],
        optimizer=built.optimizer,
        autocast_dtype=torch.float16,
    )
    step = make_variant(built).step
    for value, moves in ((1e-8, True), (1e9, False), (1e-8, True), (1e-8, True)):
        factor[0] = value
        assert _moved(built, step) == moves


def test_a_float16_optimizer_is_not_compiled():
    with pytest.raises(ValueError, match="GradScaler"):
        Built(nn.Linear(1, 1), (), TRAINING, autocast_dtype=torch.float16, compile_optimizer=True)


@pytest.mark.parametrize("name", ["encoder-train-fp16", "encoder-train-bf16", "encoder-train"])
def test_it_learns(name: str):
    step = make_variant(_load(name)).step
    losses = [float(step()) for _ in range(8)]
    assert losses[-1] < losses[0]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize("name", [name for name in WORKLOADS if name.startswith("encoder-train-")])
def test_it_is_compiled_and_its_gradients_are_those_of_eager(name: str):
    """Loss and every gradient against float64, after steps that moved the weights of both sides."""
    strategy = Strategy("compile", backend="aot_eager")
    built = _load(name)
    target = own_copy(built)
    states = (State(built), State(target))
    call = torch.compile(target.model_or_fn, backend="aot_eager", fullgraph=True)
    eager, other = make_variant(built), make_variant(target, call, optimizer_compiler(strategy))
    for _ in range(2):
        torch.testing.assert_close(eager.step(), other.step(), rtol=1e-2, atol=1e-2)
    graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    assert (graphs > 1) == built.compile_optimizer, "the optimizer is compiled where it is asked for"
    found, message = check(eager, other, states, 0)
    assert (found["status"], found["reference"]) == ("pass", "float64"), message


@pytest.mark.slow
def test_the_optimizer_is_one_more_graph_of_a_trial():
    sgd = measure("training", compiled("eager"), task=Task.TRAINING)
    more = measure("training_whole", compiled("eager"), task=Task.TRAINING)
    assert (sgd.status, more.status) == (Status.OK, Status.OK), more.failure
    assert (sgd.compiler.graphs or 0) < (more.compiler.graphs or 0)
    assert more.numerics.status is NumericsStatus.PASS
