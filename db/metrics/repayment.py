"""Break-even of many cases: columns from each case's compile cost, latency and control latency."""

from __future__ import annotations

import math

from db.metrics.break_even import NOT_FASTER, STEPS_MAX, Never, steps_to_break_even
from db.metrics.groups import Bools, Floats
from db.metrics.intervals import Quotients
from db.units import duration

EAGER_IS_REFERENCE = "eager is the reference"
NO_LATENCY = "no trial with a latency"
NO_CONTROL = "no eager latency to compare with"
NO_COMPILE_COST = "no compile cost was measured"


def _unknown_reason(cost: float, compiled: float, control: float, *, eager: bool) -> str | None:
    if eager:
        return EAGER_IS_REFERENCE
    for value, reason in ((compiled, NO_LATENCY), (control, NO_CONTROL), (cost, NO_COMPILE_COST)):
        if math.isnan(value):
            return reason
    return None


def _never_reason(never: Never, compiled: float, control: float) -> str:
    """With the two medians that decide it: a speedup paired by trial may say otherwise beside them."""
    if never is not NOT_FASTER:
        return never.reason
    return f"its median latency, {duration(compiled)}, is not below eager's, {duration(control)}"


def _end(quotient: float) -> float:
    """An end of the interval in whole steps, at least 1; infinite stands for never."""
    return max(1.0, math.ceil(quotient)) if quotient < STEPS_MAX else math.inf


def _interval(steps: int | Never, low: float, high: float) -> tuple[str, float | None, float | None]:
    """Its kind and its ends, widened to hold `steps`; an end that is never is missing."""
    if math.isnan(low) or math.isnan(high):
        return "none", None, None
    estimate = math.inf if isinstance(steps, Never) else steps
    low, high = min(_end(low), estimate), max(_end(high), estimate)
    if math.isinf(low):
        return "never", None, None
    if math.isinf(high):
        return "open", low, None
    return "bounded", low, high


_COLUMNS = (
    "break_even",
    "break_even_reason",
    "break_even_steps",
    "break_even_interval",
    "break_even_low",
    "break_even_high",
    "break_even_time_ns",
)


def repayment_columns(
    compile_cost_ns: Floats, latency_ns: Floats, control_ns: Floats, *, eager: Bools, ends: Quotients
) -> dict[str, list[object]]:
    """One entry per case in every break-even column.

    The arrays are per case, NaN where unknown; `eager` flags the reference cases; `ends` are the interval's.
    """
    # Python's own numbers: exact rational arithmetic follows
    arrays = (compile_cost_ns, latency_ns, control_ns, eager, ends.low, ends.high)
    rows: list[tuple[object, ...]] = []
    for cost, compiled, control, reference, low, high in zip(*(a.tolist() for a in arrays), strict=True):
        unknown = _unknown_reason(cost, compiled, control, eager=reference)
        if unknown is not None:
            rows.append(("unknown", unknown, None, "none", None, None, None))
            continue
        steps = steps_to_break_even(cost, compiled, control)
        interval = _interval(steps, low, high)
        if isinstance(steps, Never):
            rows.append(("never", _never_reason(steps, compiled, control), None, *interval, None))
        else:
            rows.append(("steps", None, steps, *interval, cost + steps * compiled))
    return {name: [row[place] for row in rows] for place, name in enumerate(_COLUMNS)}
