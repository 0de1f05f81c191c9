"""How far a variant of a model, in another precision or quantised, is from the same model in float32."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import torch

from compilewatch.runner.worker.internals.stance import as_written, force_eager
from compilewatch.runner.worker.numerics import seed_all
from compilewatch.runner.worker.progress import Progress
from compilewatch.runner.worker.step import loading
from compilewatch.runner.worker.step.steps import Variant, first_batch, grad_context, output_of, tensors_of
from compilewatch.runner.workloads.built import Built


def error_of(progress: Progress, subject: Variant) -> float | None:
    """How far the outputs of `subject` are from those of the same model and inputs in float32, by eager: the
    root mean square of the differences over that of the outputs. None where they cannot be compared.
    """
    spec = progress.spec
    workload = dataclasses.replace(spec.workload, variant=None, dtype="float32")
    seed_all(spec.seed)
    built = loading.build_workload(
        loading.import_builder(workload.target, workload.path), workload, progress.device
    )
    with grad_context(built), force_eager():
        seed_all(spec.seed)
        exact = _outputs(built, as_written(built.model_or_fn))
    with grad_context(subject.built):
        seed_all(spec.seed)
        own = _outputs(subject.built, subject.call)
    if not exact or [each.shape for each in exact] != [each.shape for each in own]:
        return None
    size = math.sqrt(sum(float(each.square().sum()) for each in exact))
    off = math.sqrt(sum(float((one - other).square().sum()) for one, other in zip(own, exact, strict=True)))
    relative = off / size if size else math.nan
    return relative if math.isfinite(relative) else None


def _outputs(built: Built, call: Callable[..., Any]) -> list[torch.Tensor]:
    """The floating-point tensors of one forward pass, as float64."""
    found = tensors_of(output_of(built, call, first_batch(built)))
    return [each.detach().double() for each in found if each.is_floating_point()]
