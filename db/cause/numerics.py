"""How far a compiled result is from the exact one, in words."""

from __future__ import annotations

from compilewatch.db.records.evidence import LossPath
from compilewatch.db.records.trial import Numerics, NumericsStatus
from compilewatch.db.units import count, plural

_DIFFERENCES = "finite differences"
"""What random gradients were held to, as `reference`."""
_STEPS = {
    "bfloat16": ("bf16", 2.0**-8),
    "float16": ("fp16", 2.0**-11),
    "float32": ("fp32", 2.0**-24),
    "float64": ("fp64", 2.0**-53),
}
"""Short name and unit roundoff of a dtype: half the distance from 1 to the next larger number (IEEE 754)."""


def numerics_sentence(numerics: Numerics) -> str:
    """ "relative error 0.38 %, 3.8 x eager's, about one bf16 step", and what was not compared; empty without
    either, as where there is no float64 reference.

    Records of version 1 do not hold the size of the result: there the error is given as it is.
    """
    left_out = f"not compared: {', '.join(numerics.not_compared)}" if numerics.not_compared else ""
    if left_out and numerics.status is NumericsStatus.REPRODUCIBLE:
        left_out = f"{', '.join(numerics.not_compared or ())} not compared with eager"
    by_differences = (
        "gradients agree with finite differences of the loss"
        if numerics.reference == _DIFFERENCES and numerics.status is NumericsStatus.REPRODUCIBLE
        else ""
    )
    return ", ".join(filter(None, (_error_text(numerics), by_differences, left_out)))


def losses_sentence(path: LossPath) -> str:
    """Whether a compiled training goes as eager's does: "As eager's for 50 steps, within what 4 other seeds
    do.", or where it leaves it.
    """
    steps = plural(len(path.losses), "step")
    if path.left_at_step is None:
        return f"As eager's for {steps}, within what {count(path.seeds)} other seeds do."
    times = "" if path.times_band is None else f", {_two_digits(path.times_band)} times as far as other seeds"
    own, eager = path.losses[-1], path.control_losses[-1]
    ends = f"{_loss(own)} instead of {_loss(eager)}"
    at = f"step {count(path.left_at_step)} by {path.left_by}"
    return f"Leaves eager's at {at}{times}; loss {ends} after {steps}."


def _loss(value: float | None) -> str:
    return "no number" if value is None else f"{value:.6g}"


def _error_text(numerics: Numerics) -> str:
    error, eager, size = numerics.rmse_result, numerics.rmse_reference, numerics.rms_exact
    if error is None:
        return ""
    relative = error / size if size else None
    parts = [
        f"error (RMSE) {_two_digits(error)}" if relative is None else f"relative error {_share(relative)}"
    ]
    if eager:
        parts.append(f"{_two_digits(error / eager)} x eager's")
    if relative is not None and numerics.dtype in _STEPS:
        parts.append(_in_steps(relative, *_STEPS[numerics.dtype]))
    return ", ".join(parts)


def _share(value: float) -> str:
    return f"{_two_digits(value * 100)} %" if value >= 1e-4 else f"{value:.1e}"


def _two_digits(value: float) -> str:
    return f"{float(f'{value:.1e}'):,g}"


def _in_steps(relative: float, name: str, step: float) -> str:
    steps, noun = relative / step, f"{name} step"
    if steps < 0.5:
        return f"less than half a {noun}"
    return f"about one {noun}" if steps < 1.5 else f"about {_two_digits(round(steps))} {noun}s"
