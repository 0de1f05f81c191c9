"""How close two tensors must be: the rule by which PyTorch's own benchmarks accept a compiled result, and a
gradient beside finite differences of the loss that it is said to be of.

The rule is `torch._dynamo.utils.same` (release 2.13), which is private and changes its arguments; the
equality of containers is taken care of by the caller. A step that draws random numbers has no other reference
than its gradient: eager draws others. From one seed compiled code draws the same ones every time, so that its
loss is a function of its weights, with one gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import torch

from compilewatch.runner.worker.step.leaves import pieces

_LOW_PRECISION = (torch.float16, torch.bfloat16)
_LOOSE_TOLERANCE = 4e-2
_SMALL_NUMEL = 1000
_HIGH_TOLERANCE = 2e-2
_TINY = 1e-6
_ROUNDINGS = 2.0


@dataclass(frozen=True)
class TensorComparison:
    """One result tensor against its reference, with the errors of both against float64."""

    passed: bool
    max_abs_error: float | None = None
    cosine_similarity: float | None = None
    rmse_reference: float | None = None
    rmse_result: float | None = None
    multiplier: float | None = None
    reason: str | None = None
    rms_exact: float | None = None
    dtype: str | None = None


def rmse(reference: torch.Tensor, result: torch.Tensor) -> float:
    """Root of the mean squared difference, in float64."""
    return _root_mean((_real(one) - _real(other)).square() for one, other in pieces(reference, result))


def _real(tensor: torch.Tensor) -> torch.Tensor:
    """In float64; of a complex one both parts."""
    return (torch.view_as_real(tensor) if tensor.is_complex() else tensor).double().flatten()


def _root_mean(squares: Iterable[torch.Tensor]) -> float:
    sums = [(float(each.sum()), each.numel()) for each in squares]
    return math.sqrt(sum(each for each, _ in sums) / max(1, sum(count for _, count in sums)))


def multiplier_for(reference: torch.Tensor, result: torch.Tensor, tolerance: float) -> float:
    """How many times the reference's own error a result may have: noise dominates small tensors and 1 x 1
    images, and low precision sums differ legitimately.
    """
    pointlike = reference.ndim == 4 and reference.shape[-1] == reference.shape[-2] == 1
    if reference.numel() < _SMALL_NUMEL or pointlike or tolerance >= _HIGH_TOLERANCE:
        return 3.0
    return 3.0 if result.dtype in _LOW_PRECISION else 2.0


def rounding_floor(result: torch.Tensor, exact: torch.Tensor) -> float:
    """An error that no result of this dtype can be blamed for: its unit roundoff, of a value as large as
    `exact` is (root mean square), times a small factor.

    Eager's own error says too little where it happens to round well: in bfloat16 a ResNet-50 was off by
    0.38 %, which is one rounding, and by 3.8 times eager's error. A sum accumulated in bfloat16 is off by
    several roundings.
    """
    if not result.is_floating_point():
        return 0.0
    return _ROUNDINGS * torch.finfo(result.dtype).eps / 2 * rms(exact)


def rms(value: torch.Tensor) -> float:
    """Root of the mean square, in float64."""
    return _root_mean(_real(each).square() for (each,) in pieces(value))


def finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _mismatch(reference: torch.Tensor, result: torch.Tensor) -> str | None:
    """What makes the two incomparable; integers and booleans must be equal."""
    if reference.shape != result.shape:
        return f"shape {tuple(result.shape)} instead of {tuple(reference.shape)}"
    if reference.dtype != result.dtype:
        return f"dtype {result.dtype} instead of {reference.dtype}"
    inexact = reference.is_floating_point() or reference.is_complex()
    return None if inexact or torch.equal(reference, result) else "integers differ"


def compare(
    reference: torch.Tensor,
    result: torch.Tensor,
    exact: torch.Tensor | None,
    *,
    tolerance: float,
    scale: float = 1.0,
) -> TensorComparison:
    """Whether `result` (compiled) stands for `reference` (eager), by their errors against `exact` (float64).

    `scale` is the size of what is compared: absolute errors are allowed up to `tolerance` times it. Integers
    must be equal, and NaN stands for NaN in the same place. Without `exact` the plain tolerance decides.
    """
    mismatch = _mismatch(reference, result)
    if mismatch is not None:
        return TensorComparison(False, reason=mismatch)
    if reference.numel() == 0 or not (reference.is_floating_point() or reference.is_complex()):
        return TensorComparison(True)
    largest, cosine = _measures(reference, result)
    absolute = tolerance * scale
    close = _are_close(reference, result, absolute, tolerance)
    if exact is None:
        reason = None if close else f"not within {tolerance:g} of eager"
        return TensorComparison(close, largest, cosine, reason=reason)
    reference_error, result_error = rmse(exact, reference), rmse(exact, result)
    comparison = TensorComparison(
        True,
        largest,
        cosine,
        finite(reference_error),
        finite(result_error),
        rms_exact=finite(rms(exact)),
        dtype=str(result.dtype).removeprefix("torch."),
    )
    if close:
        return comparison
    multiplier = multiplier_for(reference, result, tolerance)
    comparison = replace(comparison, multiplier=multiplier)
    of_eager, of_dtype = multiplier * reference_error + absolute / 10, rounding_floor(result, exact)
    # A comparison with NaN is false, so each stands alone.
    is_near = result_error <= of_eager or result_error <= of_dtype
    if is_near or _only_reference_is_nan(reference, result, exact):
        return comparison
    allowed = max(of_eager, of_dtype)
    by = f"{multiplier:g} times eager's" if allowed == of_eager else f"what {comparison.dtype} rounds"
    reason = f"RMSE against float64 is {result_error:.3g}, allowed is {allowed:.3g} ({by})"
    return replace(comparison, passed=False, reason=reason)


def _only_reference_is_nan(reference: torch.Tensor, result: torch.Tensor, exact: torch.Tensor) -> bool:
    """Whether the result is better than its reference: no NaN, and near float64."""
    if not reference.isnan().any() or exact.isnan().any() or result.isnan().any():
        return False
    return _are_close(exact.to(result.dtype), result, _LOOSE_TOLERANCE, _LOOSE_TOLERANCE)


def _are_close(one: torch.Tensor, other: torch.Tensor, absolute: float, relative: float) -> bool:
    pairs = pieces(one, other)
    return all(torch.allclose(a, b, atol=absolute, rtol=relative, equal_nan=True) for a, b in pairs)


def _measures(reference: torch.Tensor, result: torch.Tensor) -> tuple[float | None, float | None]:
    """Largest absolute difference and cosine similarity; None where not finite."""
    found = []
    for one, other in pieces(reference, result):
        a, b = _real(one), _real(other)
        found.append(torch.stack([(a - b).abs().max(), a @ b, a @ a, b @ b]))
    largest = float(torch.stack(found)[:, 0].max())
    product, *squares = torch.stack(found)[:, 1:].sum(0).tolist()
    lengths = [max(_TINY, math.sqrt(square)) for square in squares]
    return finite(largest), finite(product / lengths[0] / lengths[1])


_DIRECTIONS = 4
RUNS = 2 * _DIRECTIONS
"""Losses that are taken of one gradient."""
STEP = 1e-4
"""What a step is about to change the loss by, of the loss: float32 tells a thousandth of that apart."""


def error_of(
    parameter: torch.nn.Parameter,
    gradient: torch.Tensor,
    loss: Callable[[], float],
    step: float = STEP,
) -> float:
    """How far `gradient` is from that of `loss` by `parameter`, over its own size: root mean square over
    random directions, central differences. 0.01 or less where it is right, unless a corner lies within the
    step; infinite where a loss is not finite. The parameter is left as it was.
    """
    norm, size = gradient.double().norm().item(), abs(loss())
    if not norm or not size:
        return math.inf
    generator = torch.Generator().manual_seed(0)
    was, errors, expected = parameter.detach().clone(), 0.0, 0.0
    for _ in range(_DIRECTIONS):
        drawn = torch.randn(gradient.shape, generator=generator, dtype=torch.float32)
        # By (gradient, direction) about as large as the gradient's norm.
        moved = drawn.to(parameter.device, parameter.dtype) * (step * size / norm)
        found = 0.0
        for sign in (1, -1):
            with torch.no_grad():
                parameter.copy_(was + sign * moved)
            found += sign * loss() / 2
        predicted = torch.dot(gradient.double().flatten(), moved.double().flatten()).item()
        errors += (predicted - found) ** 2
        expected += predicted**2
    with torch.no_grad():
        parameter.copy_(was)
    error = math.sqrt(errors / expected) if expected else math.inf
    return error if math.isfinite(error) else math.inf
