"""Variants of a workload (eager, compiled) and the closure that is one step of each."""

from __future__ import annotations

import contextlib
import copy
import types
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import torch

from compilewatch.runner.worker.step.leaves import copy_of, with_inputs
from compilewatch.runner.worker.step.loading import WorkloadError
from compilewatch.runner.workloads.built import TRAINING, Batch, Built

Step = Callable[[], Any]
# A sixteenth of torch.amp.GradScaler's start, which overflows in the first steps of most models.
_LOSS_SCALE = 4096.0


@dataclass
class Variant:
    """One way of executing a workload: its model copy, what is called, its optimizer and one step of it."""

    built: Built
    call: Callable[..., Any]
    optimizer: torch.optim.Optimizer | None
    step: Step
    one_batch: Callable[[Batch], Any]
    """What `step` does, for one batch; `step` goes through all of a stream's."""

    @property
    def module(self) -> torch.nn.Module | None:
        """The model; None where a function is measured."""
        model = self.built.model_or_fn
        return model if isinstance(model, torch.nn.Module) else None


def grad_context(built: Built) -> AbstractContextManager[Any]:
    """Entered once around many steps, so that it is no part of a sample.

    `no_grad`, as PyTorch's own benchmarks use: under `inference_mode` the first of several regions gets a
    normal tensor and the second an inference tensor, and Dynamo compiles the same block twice.
    """
    needed = built.task == TRAINING or built.with_gradients
    return contextlib.nullcontext() if needed else torch.no_grad()


def tensors_of(value: Any) -> Iterator[torch.Tensor]:
    """Every tensor in an output: tensors, sequences, mappings and model outputs with attributes, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from tensors_of(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors_of(part)
    elif hasattr(value, "__dict__") and not isinstance(value, torch.nn.Module):
        yield from tensors_of(vars(value))


def default_loss(output: Any) -> torch.Tensor:
    """Mean of the squared first floating-point tensor of the output."""
    for tensor in tensors_of(output):
        if tensor.is_floating_point():
            return tensor.float().square().mean()
    raise WorkloadError(
        "The output of the training workload holds no floating-point tensor to take a loss of."
    )


def require_values(result: Any) -> None:
    """Raises WorkloadError where a step returned what has yet to run: then nothing of it was measured."""
    if isinstance(result, (Iterator, AsyncIterator, Awaitable)):
        raise WorkloadError(
            f"The step returns a {type(result).__name__}, of which nothing has run yet. "
            "Return its values: list(...) of a generator, asyncio.run(...) of a coroutine."
        )


def own_copy(built: Built) -> Built:
    """The same workload with a model of its own, equal weights included."""
    if isinstance(built.model_or_fn, torch.nn.Module):
        return replace(built, model_or_fn=copy.deepcopy(built.model_or_fn))
    return built


def input_tensors(built: Built) -> Iterator[torch.Tensor]:
    """Every tensor among the inputs."""
    return tensors_of([*built.inputs, *built.keywords.values()])


def own_inputs(built: Built) -> Built:
    """The same workload with copies of its inputs."""
    return with_inputs(built, copy_of)


def apart(built: Built) -> Built:
    """The same workload with inputs of its own, and with a model, or variables of a function, of its own."""
    function = built.model_or_fn
    copied = own_inputs(own_copy(built))
    if not isinstance(function, types.FunctionType) or not function.__closure__:
        return copied
    # Together, so that what refers to each other still does, as an optimizer to the weights of a model.
    contents = copy.deepcopy([cell.cell_contents for cell in function.__closure__])
    cells = tuple(map(types.CellType, contents))
    made = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, cells
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return replace(copied, model_or_fn=made)


def _autocast(built: Built) -> AbstractContextManager[Any]:
    if built.autocast_dtype is None:
        return contextlib.nullcontext()
    return torch.autocast(_device_type(built), dtype=built.autocast_dtype)


def _device_type(built: Built) -> str:
    return next((tensor.device.type for tensor in input_tensors(built)), "cpu")


def output_of(built: Built, call: Callable[..., Any], batch: Batch) -> Any:
    """The output of one forward pass, mixed precision included."""
    with _autocast(built):
        return call(*batch.inputs, **batch.keywords)


def loss_of(built: Built, call: Callable[..., Any], batch: Batch) -> torch.Tensor:
    """Loss of one forward pass; it stays outside what is compiled. Raises WorkloadError where it is not one
    number.
    """
    with _autocast(built):
        output = call(*batch.inputs, **batch.keywords)
        if built.loss is None:
            return default_loss(output)
        loss = built.loss(output) if built.stream is None else built.loss(output, batch.target)
    if not isinstance(loss, torch.Tensor):
        raise WorkloadError(f"The loss is of type {type(loss).__name__}: return a tensor with one number.")
    if loss.numel() != 1:
        raise WorkloadError(f"The loss has the shape {tuple(loss.shape)}: return its mean() or sum().")
    return loss


def make_variant(
    built: Built,
    call: Callable[..., Any] | None = None,
    compile_step: Callable[[Step], Step] | None = None,
    optimizer: torch.optim.Optimizer | None = None,
) -> Variant:
    """A variant that executes `call`, by default the workload itself.

    `compile_step` is applied to the optimizer's step of a workload that asks for a compiled one. A training
    workload makes an `optimizer` unless it is given.
    """
    target = built.model_or_fn if call is None else call
    if built.task == TRAINING:
        return _training_variant(built, target, compile_step, optimizer)

    def forward() -> Any:
        return target(*built.inputs)

    def forward_batch(batch: Batch) -> Any:
        return output_of(built, target, batch)

    # Of the smallest workloads a step takes microseconds, so the plain one has nothing around it.
    is_plain = built.stream is None and built.autocast_dtype is None and not built.keywords
    step = forward if is_plain else iteration(built, forward_batch)
    return Variant(built, target, None, step, forward_batch)


def iteration(built: Built, one: Callable[[Batch], Any]) -> Step:
    """One call of `one`, or one for each batch of the stream; returns the last result."""
    stream = built.stream
    if stream is None:
        batch = first_batch(built)
        return lambda: one(batch)

    def iterate() -> Any:
        result = None
        for batch in stream.batches():
            result = one(batch)
        return result

    return iterate


def first_batch(built: Built) -> Batch:
    """What a step begins with."""
    if built.stream is not None:
        return next(iter(built.stream.batches()))
    return Batch(built.inputs, None, built.keywords)


def _training_variant(
    built: Built,
    call: Callable[..., Any],
    compile_step: Callable[[Step], Step] | None,
    optimizer: torch.optim.Optimizer | None,
) -> Variant:
    model = built.model_or_fn
    if not isinstance(model, torch.nn.Module):
        raise WorkloadError("A training workload needs an nn.Module, not a function.")
    make = built.optimizer or (lambda parameters: torch.optim.SGD(parameters, lr=1e-3))
    optimizer = optimizer or make(model.parameters())
    # Before its step is taken, which a scheduler counts.
    scheduler = None if built.scheduler is None else built.scheduler(optimizer)
    update: Step = optimizer.step
    if built.compile_optimizer and compile_step is not None:
        update = compile_step(update)
    passes = built.accumulation_steps
    is_scaled = built.autocast_dtype is torch.float16
    # Its scale is set anew after every step: one that grows and backs off would make steps differ, and a step
    # that overflows is skipped, which is quick.
    scaler = torch.amp.GradScaler(_device_type(built), init_scale=_LOSS_SCALE) if is_scaled else None

    def train(batch: Batch) -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        for _ in range(passes):
            loss = loss_of(built, call, batch)
            share = loss if passes == 1 else loss / passes
            (share if scaler is None else scaler.scale(share)).backward()  # type: ignore[no-untyped-call]
        if scaler is None:
            update()
        else:
            scaler.step(optimizer)
            scaler.update(_LOSS_SCALE)
        if scheduler is not None:
            scheduler.step()
        return loss.detach()

    return Variant(built, call, optimizer, iteration(built, train), train)
