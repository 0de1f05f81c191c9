"""The same loss? A compiled training beside eager's, step by step, from equal weights, batches and draws.

How far two right trainings drift apart is measured: eager trains again from other seeds, each with weights
that are moved by the rounding of their dtype and with random numbers of its own. What leaves eager further
than `FACTOR` times the farthest of them does more than round.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from compilewatch.runner.worker.compiler import compiling
from compilewatch.runner.worker.numerics import seed_all
from compilewatch.runner.worker.progress import Progress
from compilewatch.runner.worker.step import loading
from compilewatch.runner.worker.step.internals import as_written, force_eager
from compilewatch.runner.worker.step.steps import Variant, first_batch, make_variant
from compilewatch.runner.worker.tensor_comparison import finite
from compilewatch.runner.workloads.built import TRAINING, Batch, Built

SEEDS = 4
"""Eager trainings that say how far right ones drift apart."""
FACTOR = 30.0
"""Times the farthest of them. Of 20 right pairs none was further than 13, of convolutions."""
_APART = 1_000_003
"""Between the seeds of two trainings, which draw anew at each step."""
_TF32_EPS = 2.0**-10
# As `runner.worker.numerics` judges gradients: what is smaller beside the largest one is rounding noise, such
# as that of a bias before a batch norm. Of a sum over 4,600 positions it was 17 spacings of the largest.
_NEXT_TO_NOTHING = 1e-3
_CANCELLED = 100.0


@dataclass
class _Side:
    """A training of its own; each step draws from `seed` and its number."""

    variant: Variant
    seed: int
    is_eager: bool

    def step(self, batch: Batch, number: int) -> float:
        """The loss of one more step."""
        seed_all(self.seed + number)
        if self.is_eager:
            with force_eager():
                return float(self.variant.one_batch(batch))
        return float(self.variant.one_batch(batch))

    def weights(self) -> list[torch.Tensor]:
        assert self.variant.module is not None
        return [each.detach() for each in self.variant.module.parameters()]

    def gradients(self) -> list[torch.Tensor]:
        """Of the last step, dense; zeros where a weight has none."""
        assert self.variant.module is not None
        found = ((each, each.grad) for each in self.variant.module.parameters())
        return [torch.zeros_like(each) if grad is None else _dense(grad) for each, grad in found]


def compare(progress: Progress, steps: int) -> dict[str, Any]:
    """`LossPath` of the record: so many steps, or as many as the deadline leaves time for.

    Raises UnsupportedCaseError where the workload is no training.
    """
    spec = progress.spec
    builder = loading.import_builder(spec.workload.target, spec.workload.path)

    def built() -> Built:
        seed_all(spec.seed)
        one = loading.build_workload(builder, spec.workload, progress.device)
        if one.task != TRAINING or not isinstance(one.model_or_fn, torch.nn.Module):
            raise loading.UnsupportedCaseError("Only a training has losses to compare.")
        return replace(one, model_or_fn=as_written(one.model_or_fn))

    eager = _Side(make_variant(built()), spec.seed, is_eager=True)
    compiled = compiling.compiled_variant(built(), spec.strategy, Path(spec.artifacts), progress.device)
    own = _Side(compiled, spec.seed, is_eager=False)
    eps = _rounding(eager)
    # Compiled draws what eager draws only where it is told to.
    draws_as_eager = bool(spec.strategy.options.get("fallback_random"))
    others = []
    for number in range(1, SEEDS + 1):
        seed = spec.seed + (0 if draws_as_eager else number * _APART)
        others.append(_Side(make_variant(built()), seed, is_eager=True))
        _round_otherwise(others[-1], eps, number)
    return _Comparison(eager, own, others, eps).run(progress, steps)


def _rounding(eager: _Side) -> float:
    """The spacing of numbers around 1 in what the training computes in."""
    built, weights = eager.variant.built, eager.weights()
    dtypes = {each.dtype for each in weights if each.is_floating_point()} | {built.autocast_dtype}
    spacing = max(torch.finfo(each).eps for each in dtypes if each is not None)
    is_tf32 = weights[0].is_cuda and torch.get_float32_matmul_precision() != "highest"
    return max(spacing, _TF32_EPS) if is_tf32 else spacing


def _round_otherwise(side: _Side, eps: float, seed: int) -> None:
    """Move every weight up or down by the spacing of numbers at its size."""
    draws = torch.Generator().manual_seed(seed)
    for weight in side.weights():
        if weight.is_floating_point():
            signs = torch.randint(0, 2, weight.shape, generator=draws).mul_(2).sub_(1)
            weight.mul_(1 + eps * signs.to(weight.device))


@dataclass
class _Comparison:
    """How far compiled is from eager, and how far the farthest other seed has been until then."""

    eager: _Side
    own: _Side
    others: Sequence[_Side]
    eps: float

    def run(self, progress: Progress, steps: int) -> dict[str, Any]:
        assert self.eager.variant.module is not None
        weights = [name for name, _ in self.eager.variant.module.named_parameters()]
        names = ["the loss", *(f"the gradient of {name}" for name in weights), *weights]
        first = [each.clone() for each in self.eager.weights()]
        paths: dict[str, list[float | None]] = {"losses": [], "control_losses": [], "band": []}
        farthest = [0.0] * len(names)
        left: dict[str, Any] = {}
        longest_ns = 0
        for number, batch in enumerate(itertools.islice(self._batches(), steps), 1):
            if number > 2 and not progress.deadline.leaves(2 * longest_ns):
                break
            began = time.monotonic_ns()
            loss = self.eager.step(batch, number)
            own = self.own.step(batch, number)
            others = [each.step(batch, number) for each in self.others]
            for side, of_side in zip(self.others, others, strict=True):
                farthest = list(map(max, farthest, self._distances(side, of_side, loss)))
            limits = list(map(max, farthest, self._least(loss, first)))
            distances = self._distances(self.own, own, loss)
            paths["losses"].append(finite(own))
            paths["control_losses"].append(finite(loss))
            paths["band"].append(finite(limits[0]))
            # The first step compiles.
            longest_ns = max(longest_ns if number > 1 else 0, time.monotonic_ns() - began)
            if not left and math.isfinite(loss):
                left = _left(names, distances, limits, number)
        return {"seeds": len(self.others), **paths, **left}

    def _batches(self) -> Iterator[Batch]:
        """Those of one training, again and again; every side gets the same."""
        built = self.eager.variant.built
        while True:
            yield from [first_batch(built)] if built.stream is None else built.stream.batches()

    def _distances(self, side: _Side, loss: float, of_eager: float) -> list[float]:
        """Of the loss, each gradient and each weight from eager's, the latter two as Euclidean norms."""
        own, eager = ([*each.gradients(), *each.weights()] for each in (side, self.eager))
        pairs = zip(own, eager, strict=True)
        return [abs(loss - of_eager), *(_norm(one - other) for one, other in pairs)]

    def _least(self, loss: float, first: Sequence[torch.Tensor]) -> list[float]:
        """What rounding alone may do: a spacing of the numbers themselves, and of those of the largest
        gradient or update where one cancels to nothing.
        """
        weights, gradients = self.eager.weights(), self.eager.gradients()
        updates = [one - was for one, was in zip(weights, first, strict=True)]
        sizes = [abs(loss), *_sizes(gradients, gradients, _CANCELLED), *_sizes(weights, updates)]
        return [self.eps * each for each in (max(1.0, sizes[0]), *sizes[1:])]


def _sizes(
    tensors: Sequence[torch.Tensor], moved: Sequence[torch.Tensor], cancelled: float = 1.0
) -> list[float]:
    """The norm of each, at least what it would be with elements as large as those of the largest of `moved`.

    Of what is next to nothing beside that it is so many times as much: a sum that cancels is off by the
    rounding of all that it is a sum of.
    """
    largest = max((_norm(each) / each.numel() ** 0.5 for each in moved if each.numel()), default=0.0)
    sizes = []
    for each in tensors:
        own, as_large = _norm(each), largest * each.numel() ** 0.5
        sizes.append(max(own, as_large if own >= _NEXT_TO_NOTHING * as_large else cancelled * as_large))
    return sizes


def _dense(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().to_dense() if tensor.is_sparse else tensor.detach()


def _norm(tensor: torch.Tensor) -> float:
    return float(torch.linalg.vector_norm(tensor.float()))


def _left(
    names: Sequence[str], distances: Sequence[float], limits: Sequence[float], step: int
) -> dict[str, Any]:
    """Which of them is farthest beyond its limit, where one is; what is no number is beyond each."""
    times = [
        distance / limit if math.isfinite(distance) else math.inf
        for distance, limit in zip(distances, limits, strict=True)
    ]
    farthest = max(times)
    if farthest <= FACTOR:
        return {}
    return {"left_at_step": step, "left_by": names[times.index(farthest)], "times_band": finite(farthest)}
