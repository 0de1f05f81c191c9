"""The rule by which PyTorch's own benchmarks accept a compiled result, for two tensors.

After `torch._dynamo.utils.same` (release 2.13), which is private and changes its arguments; the equality of
containers is taken care of by the caller.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

_LOW_PRECISION = (torch.float16, torch.bfloat16)
_LOOSE_TOLERANCE = 4e-2
_SMALL_NUMEL = 1000
_HIGH_TOLERANCE = 2e-2
_TINY = 1e-6


@dataclass(frozen=True)
class Comparison:
    """One result tensor against its reference, with the errors of both against float64."""

    passed: bool
    max_abs_error: float | None = None
    cosine_similarity: float | None = None
    rmse_reference: float | None = None
    rmse_result: float | None = None
    multiplier: float | None = None
    reason: str | None = None


def rmse(reference: torch.Tensor, result: torch.Tensor) -> float:
    """Root of the mean squared difference, in float64."""
    return float((reference.double() - result.double()).square().mean().sqrt())


def multiplier_for(reference: torch.Tensor, result: torch.Tensor, tolerance: float) -> float:
    """How many times the reference's own error a result may have: noise dominates small tensors and 1 x 1
    images, and low precision sums differ legitimately.
    """
    pointlike = reference.ndim == 4 and reference.shape[-1] == reference.shape[-2] == 1
    if reference.numel() < _SMALL_NUMEL or pointlike or tolerance >= _HIGH_TOLERANCE:
        return 3.0
    return 3.0 if result.dtype in _LOW_PRECISION else 2.0


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def compare(
    reference: torch.Tensor, result: torch.Tensor, exact: torch.Tensor | None, *, tolerance: float
) -> Comparison:
    """Whether `result` (compiled) stands for `reference` (eager), by their errors against `exact` (float64).

    Integers and booleans must be equal, and NaN stands for NaN in the same place. Without `exact` only the plain tolerance decides.
    """
    if reference.shape != result.shape:
        return Comparison(False, reason=f"shape {tuple(result.shape)} instead of {tuple(reference.shape)}")
    if reference.dtype != result.dtype:
        return Comparison(False, reason=f"dtype {result.dtype} instead of {reference.dtype}")
    if not reference.is_floating_point() and not reference.is_complex():
        equal = bool(torch.equal(reference, result))
        return Comparison(equal, reason=None if equal else "integers differ")
    if reference.numel() == 0:
        return Comparison(True)
    measured = _measures(reference, result)
    if torch.allclose(reference, result, atol=tolerance, rtol=tolerance, equal_nan=True):
        errors = (None, None) if exact is None else (_finite(rmse(exact, reference)), _finite(rmse(exact, result)))
        return Comparison(True, *measured, *errors)
    if exact is None:
        return Comparison(False, *measured, reason=f"not within {tolerance:g} of eager")
    return _against_float64(reference, result, exact, tolerance, measured)


def _against_float64(
    reference: torch.Tensor,
    result: torch.Tensor,
    exact: torch.Tensor,
    tolerance: float,
    measured: tuple[float | None, float | None],
) -> Comparison:
    reference_error, result_error = rmse(exact, reference), rmse(exact, result)
    multiplier = multiplier_for(reference, result, tolerance)
    passed = result_error <= multiplier * reference_error + tolerance / 10
    if not passed and reference.isnan().any() and not (exact.isnan().any() or result.isnan().any()):
        # Only eager is NaN: the result is better than its reference if it is near float64.
        loose = _LOOSE_TOLERANCE
        passed = torch.allclose(exact.to(result.dtype), result, atol=loose, rtol=loose)
    reason = None
    if not passed:
        reason = (
            f"RMSE against float64 is {result_error:.3g}, eager's is {reference_error:.3g}; "
            f"allowed are {multiplier:g} times that and {tolerance / 10:g}"
        )
    return Comparison(passed, *measured, _finite(reference_error), _finite(result_error), multiplier, reason)


def _measures(reference: torch.Tensor, result: torch.Tensor) -> tuple[float | None, float | None]:
    """Largest absolute difference and cosine similarity, None where NaN or infinity makes them meaningless."""
    a, b = reference.double().flatten(), result.double().flatten()
    if a.is_complex():
        a, b = torch.view_as_real(a).flatten(), torch.view_as_real(b).flatten()
    largest = float((a - b).abs().max())
    cosine = float(torch.nn.functional.cosine_similarity(a, b, dim=0, eps=_TINY))
    return _finite(largest), _finite(cosine)
