"""From a target's name to a `Built` workload on its device, inside the measured process.

A builder is a function that returns the model or function and its inputs:

    (model, inputs)          inference, or a plain function of tensors
    (model, inputs, loss)    a training step; `loss(output)` returns a scalar tensor
    (model, loader, loss)    an epoch of a `torch.utils.data.DataLoader`; `loss(output, target)`, or no loss

or a `Built` for what these cannot say. It is called with the workload's `batch_size`, entries of `shape` and
`kwargs`, and, where it declares them, with `device` and `dtype`.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import inspect
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch.nn.parameter import is_lazy
from torch.utils.data import DataLoader

from compilewatch.runner.worker.step.leaves import mapped, with_inputs
from compilewatch.runner.worker.step.messages import Workload
from compilewatch.runner.workloads.built import TRAINING, Batch, Built, Stream
from compilewatch.runner.workloads.eight_bits import CONFIGURATIONS, EIGHT_BIT_TOLERANCE, quantise

# Of every epoch: eager and compiled go through the same batches.
_ORDER = 0
_KEYWORD_ONLY = inspect.Parameter.KEYWORD_ONLY
_POSITIONAL = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY)


class WorkloadError(Exception):
    """The builder is there and does not do what a builder does; the message says how."""


class UnsupportedCaseError(Exception):
    """The workload is sound, and this strategy can do nothing with it; the message says why."""


def import_builder(target: str, path: Iterable[str] = ()) -> Callable[..., Any]:
    """The function named "module:function", with the directories of `path` put first on `sys.path`.

    Raises ImportError as Python does, WorkloadError when the module has no such function.
    """
    sys.path[:0] = [entry for entry in path if entry not in sys.path]
    name, _, function = target.partition(":")
    builder: Callable[..., Any] | None = getattr(importlib.import_module(name), function, None)
    if not callable(builder):
        raise WorkloadError(f"{name} has no function {function}.")
    return builder


def exportable(built: Built, what: str) -> torch.nn.Module:
    """The model of `built`. Raises UnsupportedCaseError where `what` is not for such a workload."""
    model = built.model_or_fn
    if built.task == TRAINING or not isinstance(model, torch.nn.Module):
        raise UnsupportedCaseError(f"{what} needs an nn.Module in inference.")
    if built.stream is not None:
        raise UnsupportedCaseError(f"{what} is for one batch, and this workload goes through several.")
    return model


def build_workload(builder: Callable[..., Any], workload: Workload, device: torch.device) -> Built:
    """Call `builder` with the sizes of `workload`, and apply its dtype.

    `regions` named there take the place of the builder's own.
    Where the builder declares no `device`, model and inputs are moved there; where it declares no `dtype`,
    they are cast to it (floating point only; a 16-bit training step keeps float32 weights and runs under
    autocast instead). A model that is as a whole in train or in eval mode is put in that of the task.
    A variant is built in float32 and cast or quantised then.
    Raises WorkloadError, and UnsupportedCaseError for a variant that cannot be made; whatever the builder
    itself raises passes through.
    """
    dtype = getattr(torch, workload.dtype, None)
    if not isinstance(dtype, torch.dtype):
        raise WorkloadError(f"{workload.dtype!r} is no dtype of torch.")
    # Of a variant the builder draws what it draws in float32, so that both can be compared.
    drawn = dtype if workload.variant is None else torch.float32
    arguments = _arguments(builder, workload, {"device": device, "dtype": drawn})
    built = _built(builder(**arguments), workload, arguments, device, drawn)
    _initialise(built)
    if drawn is not dtype:
        built = _cast(built, dtype)
    built = _varied(built, workload.variant)
    return replace(built, regions=tuple(workload.regions)) if workload.regions else built


def _initialise(built: Built) -> None:
    """Give a lazy module its weights: before, it has none to copy, and each copy would draw its own."""
    model = built.model_or_fn
    if isinstance(model, torch.nn.Module) and any(map(is_lazy, (*model.parameters(), *model.buffers()))):
        with torch.no_grad():
            model(*built.inputs, **built.keywords)


def _built(
    returned: object,
    workload: Workload,
    arguments: Mapping[str, Any],
    device: torch.device,
    dtype: torch.dtype,
) -> Built:
    """What a builder that was given `arguments` returned, on `device` in `dtype`."""
    built = returned if isinstance(returned, Built) else _from_tuple(returned, workload, device, dtype)
    if built.loss is not None and built.stream is None and not _takes_one(built.loss):
        raise WorkloadError("The loss gets the output alone: bind its target, lambda out: loss(out, y).")
    if "dtype" not in arguments and built is not returned:
        built = _cast(built, dtype)
    return built if "device" in arguments else _changed(built, lambda tensor: tensor.to(device))


def _varied(built: Built, variant: str | None) -> Built:
    """`built` with its linear layers in 8 bits where the variant says so. Raises UnsupportedCaseError."""
    if variant not in CONFIGURATIONS:
        return built
    model = built.model_or_fn
    if built.task == TRAINING or not isinstance(model, torch.nn.Module):
        raise UnsupportedCaseError(f"{variant} is for a model in inference.")
    try:
        quantise(model, variant)
    except ImportError:
        raise UnsupportedCaseError(f"{variant} needs torchao, which is not installed.") from None
    except ValueError as error:
        raise UnsupportedCaseError(str(error)) from error
    return replace(built, tolerance=EIGHT_BIT_TOLERANCE if built.tolerance is None else built.tolerance)


def _arguments(
    builder: Callable[..., Any], workload: Workload, placement: Mapping[str, Any]
) -> dict[str, Any]:
    """What to call `builder` with.

    A size that it does not declare would be recorded and shown without being what was measured, so it is
    refused. Device and dtype can be applied afterwards.
    """
    sizes = {**workload.shape, **workload.kwargs}
    if workload.batch_size is not None:
        sizes["batch_size"] = workload.batch_size
    parameters = inspect.signature(builder).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return {**sizes, **placement}
    named = {p.name: p for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)}
    arguments = sizes | {name: value for name, value in placement.items() if name in named}
    for name in arguments:
        if name not in named:
            raise WorkloadError(
                f"The workload gives {name!r}, which {builder.__name__} has no parameter for."
            )
    for name, parameter in named.items():
        if parameter.default is parameter.empty and name not in arguments:
            raise WorkloadError(f"{builder.__name__} needs {name!r}, which the workload does not give.")
    return arguments


def _from_tuple(returned: object, workload: Workload, device: torch.device, dtype: torch.dtype) -> Built:
    if not isinstance(returned, tuple) or len(returned) not in (2, 3) or not callable(returned[0]):
        raise WorkloadError(
            "A builder returns (model or function, inputs), with a loss as third for a training step, "
            f"not {type(returned).__name__}."
        )
    model, inputs, *rest = returned
    loss = rest[0] if rest else None
    task = TRAINING if rest and workload.task_is_open else workload.task
    if task == TRAINING and not isinstance(model, torch.nn.Module):
        raise WorkloadError("A training step needs an nn.Module, not a function.")
    if task == TRAINING and not callable(loss):
        raise WorkloadError("A training step needs a loss: return (model, inputs, loss).")
    if task != TRAINING and rest:
        raise WorkloadError(f"A loss was returned, but the task is {task}; set task to training.")
    # One of which a part is in another mode than the rest, as frozen norms are, is as its builder wants it.
    if isinstance(model, torch.nn.Module) and len({each.training for each in model.modules()}) == 1:
        model.train(task == TRAINING)
    if isinstance(inputs, DataLoader):
        # Of mixed precision autocast takes care.
        cast = None if task == TRAINING and dtype.itemsize == 2 else dtype
        stream = Stream(batches=lambda: _batches(inputs, task == TRAINING, device, cast))
        first = next(iter(stream.batches()), None)
        if first is None:
            raise WorkloadError("The data loader has no batch.")
        return Built(*(model, first.inputs, task, loss), keywords=first.keywords, stream=stream)
    positional, keywords = _arguments_of(model, inputs)
    return Built(model_or_fn=model, inputs=positional, task=task, loss=loss, keywords=keywords)


def _batches(
    loader: DataLoader[Any], is_training: bool, device: torch.device, dtype: torch.dtype | None
) -> Iterator[Batch]:
    """One epoch of `loader`, in the same order every time. The last of several tensors of a batch is the
    target of a training, and a mapping is given by name.
    """
    state = torch.get_rng_state()
    for generator in (loader.generator, getattr(loader.sampler, "generator", None)):
        if generator is not None:
            generator.manual_seed(_ORDER)
    torch.manual_seed(_ORDER)
    items = iter(loader)
    first = list(itertools.islice(items, 1))
    torch.set_rng_state(state)
    for item in itertools.chain(first, items):
        moved = mapped(item, lambda tensor: _moved(tensor, device, dtype))
        if isinstance(moved, Mapping):
            yield Batch((), None, moved)
        elif isinstance(moved, (tuple, list)):
            *inputs, target = moved if is_training else (*moved, None)
            yield Batch(tuple(inputs), target)
        else:
            yield Batch((moved,))


def _moved(tensor: torch.Tensor, device: torch.device, dtype: torch.dtype | None) -> torch.Tensor:
    to = dtype if tensor.is_floating_point() else None
    return tensor.to(device=device, dtype=to, non_blocking=True)


def _takes_one(function: Callable[..., Any]) -> bool:
    """Whether it can be called with one argument, or does not tell."""
    with contextlib.suppress(ValueError):
        try:
            inspect.signature(function).bind(None)
        except TypeError:
            return False
    return True


def _arguments_of(model: Callable[..., Any], inputs: object) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Inputs as positional and keyword arguments: from a tuple or list, or a mapping by parameter name.
    Anything else is the one input, also a mapping that names no parameter of a model that takes one.
    """
    if isinstance(inputs, (tuple, list)) and not hasattr(inputs, "_fields"):
        return tuple(inputs), {}
    if inputs is None or isinstance(inputs, (int, float, str)):
        raise WorkloadError(f"Inputs are a tuple, a mapping or one tensor, not {type(inputs).__name__}.")
    if not isinstance(inputs, Mapping):
        return (inputs,), {}
    called = model.forward if isinstance(model, torch.nn.Module) else model
    parameters = inspect.signature(called).parameters
    takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    needs = [each for each in parameters.values() if each.kind in _POSITIONAL and each.default is each.empty]
    close = [each for each in inputs if difflib.get_close_matches(str(each), parameters, n=1)]
    if not takes_any and not close and len(needs) <= 1 <= len(parameters):
        return (inputs,), {}
    values, remaining = _by_position(parameters, dict(inputs))
    for name in remaining:
        if not takes_any and (name not in parameters or parameters[name].kind is not _KEYWORD_ONLY):
            raise WorkloadError(f"The input {name!r} is no parameter of the model.")
    needed = [
        name
        for name, each in parameters.items()
        if each.kind is _KEYWORD_ONLY and each.default is each.empty and name not in remaining
    ]
    if needed or any(value is inspect.Parameter.empty for value in values):
        raise WorkloadError("The inputs leave out a parameter of the model that has no default.")
    return tuple(values), remaining


def _by_position(
    parameters: Mapping[str, inspect.Parameter], remaining: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The values that are given by position, those of `*args` last, and what is left."""
    values: list[Any] = []
    for name, parameter in parameters.items():
        named = [
            each for each in remaining if each in parameters and parameters[each].kind is not _KEYWORD_ONLY
        ]
        if parameter.kind is parameter.VAR_POSITIONAL and name in remaining:
            values += remaining.pop(name)
        if not named or parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.POSITIONAL_ONLY):
            break
        values.append(remaining.pop(name, parameter.default))
    # A parameter without a default that comes after the last one given.
    rest = list(parameters.values())[len(values) :]
    left_out = [each for each in rest if each.kind in _POSITIONAL and each.default is each.empty]
    return values + [inspect.Parameter.empty for _ in left_out], remaining


def _cast(built: Built, dtype: torch.dtype) -> Built:
    if built.task == TRAINING and dtype.itemsize == 2:
        return replace(built, autocast_dtype=dtype)
    return _changed(built, lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor)


def _changed(built: Built, change: Callable[[torch.Tensor], torch.Tensor]) -> Built:
    """`built` with `change` applied to every parameter, buffer and input tensor."""

    if isinstance(built.model_or_fn, torch.nn.Module):
        built.model_or_fn._apply(change)  # type: ignore[no-untyped-call]
    return with_inputs(built, change)
