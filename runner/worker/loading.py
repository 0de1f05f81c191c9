"""From a target's name to a `Built` workload on its device."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from typing import Any

import torch

from runner.workloads.built import FUNCTION, TRAINING, Built


class WorkloadError(Exception):
    """The builder is there and does not do what a builder does; the message says how."""


def import_builder(target: str, path: list[str]) -> Callable[..., Any]:
    """The function named "module:function", with the directories of `path` put first on `sys.path`.

    Raises ImportError or AttributeError as Python does.
    """
    sys.path[:0] = path
    module, _, function = target.partition(":")
    found = getattr(importlib.import_module(module), function)
    if not callable(found):
        raise WorkloadError(f"{target} is a {type(found).__name__}, not a function.")
    return found  # type: ignore[no-any-return]


def build(builder: Callable[..., Any], workload: dict[str, Any], device: torch.device) -> Built:
    """Call `builder` with what it declares of the workload's sizes, `device` and `dtype`.

    Options in `kwargs` are always passed, so that a misspelled one is an error and not a silent default.
    """
    dtype = getattr(torch, workload["dtype"], None)
    if not isinstance(dtype, torch.dtype):
        raise WorkloadError(f"{workload['dtype']!r} is no dtype of torch.")
    offered = {"batch_size": workload.get("batch_size"), **workload.get("shape", {})}
    offered |= {"device": device, "dtype": dtype}
    parameters = inspect.signature(builder).parameters.values()
    takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    names = {parameter.name for parameter in parameters}
    arguments = {name: value for name, value in offered.items() if takes_all or name in names}
    result = builder(**{**arguments, **workload.get("kwargs", {})})
    if isinstance(result, Built):
        return result
    return _from_pair(result, workload["task"], device, dtype)


def _from_pair(result: Any, task: str, device: torch.device, dtype: torch.dtype) -> Built:
    """The short form a user may return: the model or function, and its inputs."""
    if not (isinstance(result, tuple) and len(result) == 2 and callable(result[0])):
        raise WorkloadError(
            f"A builder returns (model or function, inputs) or a Built, not {type(result).__name__}."
        )
    model_or_fn, inputs = result
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    if isinstance(model_or_fn, torch.nn.Module):
        model_or_fn = model_or_fn.to(device=device, dtype=dtype)
        model_or_fn.train(task == TRAINING)
    elif task == TRAINING:
        raise WorkloadError("A training workload needs an nn.Module, not a function.")
    else:
        task = FUNCTION
    return Built(model_or_fn, tuple(_placed(value, device, dtype) for value in inputs), task)


def _placed(value: Any, device: torch.device, dtype: torch.dtype) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return value.to(device=device, dtype=dtype if value.is_floating_point() else value.dtype)
