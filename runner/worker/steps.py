"""Variants of a workload (eager, compiled) and the closure that is one step of each."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import torch

from runner.worker.loading import WorkloadError
from runner.workloads.built import TRAINING, Built

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

    @property
    def module(self) -> torch.nn.Module | None:
        model = self.built.model_or_fn
        return model if isinstance(model, torch.nn.Module) else None


def grad_context(task: str) -> AbstractContextManager[Any]:
    """Entered once around many steps, so that it is no part of a sample.

    `no_grad`, as PyTorch's own benchmarks use: under `inference_mode` the first of several regions gets a
    normal tensor and the second an inference tensor, and Dynamo compiles the same block twice.
    """
    return contextlib.nullcontext() if task == TRAINING else torch.no_grad()


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


def own_copy(built: Built) -> Built:
    """The same workload with a model of its own, equal weights included."""
    if isinstance(built.model_or_fn, torch.nn.Module):
        return replace(built, model_or_fn=copy.deepcopy(built.model_or_fn))
    return built


def _autocast(built: Built) -> AbstractContextManager[Any]:
    if built.autocast_dtype is None:
        return contextlib.nullcontext()
    return torch.autocast(_device_type(built), dtype=built.autocast_dtype)


def _device_type(built: Built) -> str:
    return next((value.device.type for value in built.inputs if isinstance(value, torch.Tensor)), "cpu")


def output_of(built: Built, call: Callable[..., Any]) -> Any:
    """The output of one forward pass, mixed precision included."""
    with _autocast(built):
        return call(*built.inputs)


def loss_of(built: Built, call: Callable[..., Any]) -> tuple[torch.Tensor, Any]:
    """Loss and output of one forward pass; the loss stays outside what is compiled."""
    with _autocast(built):
        output = call(*built.inputs)
        loss = (built.loss or default_loss)(output)
    return loss, output


def make_variant(
    built: Built,
    call: Callable[..., Any] | None = None,
    compile_step: Callable[[Step], Step] | None = None,
) -> Variant:
    """A variant that executes `call`, by default the workload itself.

    `compile_step` is applied to the optimizer's step of a workload that asks for a compiled one.
    """
    target = built.model_or_fn if call is None else call
    if built.task == TRAINING:
        return _training_variant(built, target, compile_step)

    def forward() -> Any:
        return target(*built.inputs)

    def forward_autocast() -> Any:
        with _autocast(built):
            return target(*built.inputs)

    return Variant(built, target, None, forward if built.autocast_dtype is None else forward_autocast)


def _training_variant(
    built: Built, call: Callable[..., Any], compile_step: Callable[[Step], Step] | None
) -> Variant:
    model = built.model_or_fn
    if not isinstance(model, torch.nn.Module):
        raise WorkloadError("A training workload needs an nn.Module, not a function.")
    make = built.optimizer or (lambda parameters: torch.optim.SGD(parameters, lr=1e-3))
    optimizer = make(model.parameters())
    update: Step = optimizer.step
    if built.compile_optimizer and compile_step is not None:
        update = compile_step(update)

    def train() -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss, _ = loss_of(built, call)
        loss.backward()  # type: ignore[no-untyped-call]
        update()
        return loss.detach()

    if built.autocast_dtype is torch.float16:
        return Variant(built, call, optimizer, _scaled(built, call, optimizer))
    return Variant(built, call, optimizer, train)


def _scaled(built: Built, call: Callable[..., Any], optimizer: torch.optim.Optimizer) -> Step:
    """A training step whose small float16 gradients are kept by a scaled loss.

    The scale is set anew after every step: one that grows and backs off would make steps differ, and a step
    that overflows is skipped, which is quick.
    """
    scaler = torch.amp.GradScaler(_device_type(built), init_scale=_LOSS_SCALE)

    def train() -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss, _ = loss_of(built, call)
        scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
        scaler.step(optimizer)
        scaler.update(_LOSS_SCALE)
        return loss.detach()

    return train
