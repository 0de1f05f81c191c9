"""Break-even of many cases: columns from each case's compile cost and speedup, and the eager latency of its
workload, pooled over all processes: a compiled step takes that eager over the speedup.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from compilewatch.db.metrics.break_even import NOT_FASTER, STEPS_MAX, Never, steps_to_break_even
from compilewatch.db.metrics.groups import Bools, Floats
from compilewatch.db.metrics.intervals import Quotients
from compilewatch.db.units import at_best, ratio, steps, two_digits

EAGER_IS_REFERENCE = "eager is the reference"
NO_LATENCY = "no trial with a latency"
NO_CONTROL = "no eager latency to compare with"
NO_COMPILE_COST = "no compile cost was measured"


def _unknown_reason(cost: float, latency: float, speedup: float, *, eager: bool) -> str | None:
    if eager:
        return EAGER_IS_REFERENCE
    for value, reason in ((latency, NO_LATENCY), (speedup, NO_CONTROL), (cost, NO_COMPILE_COST)):
        if math.isnan(value):
            return reason
    return None


def _never_reason(never: Never, speedup: float) -> str:
    return f"it is not faster than eager ({ratio(speedup)})" if never is NOT_FASTER else never.reason


def _end(quotient: float) -> float:
    """An end of the interval in whole steps, at least 1; infinite stands for never."""
    return max(1.0, math.ceil(quotient)) if quotient < STEPS_MAX else math.inf


def _interval(repaid: int | Never, low: float, high: float) -> tuple[str, float | None, float | None]:
    """Its kind and its ends, widened to hold `repaid`; an end that is never is missing."""
    if math.isnan(low) or math.isnan(high):
        return "none", None, None
    estimate = math.inf if isinstance(repaid, Never) else repaid
    low, high = min(_end(low), estimate), max(_end(high), estimate)
    if math.isinf(low):
        return "never", None, None
    if math.isinf(high):
        return "open", low, None
    return "bounded", low, high


def repaid_words(case: Mapping[Any, Any]) -> str:
    """Break-even of a case as doors say it: "46,493 steps", "never", "unknown", or where its interval holds
    both some number of steps and never, the least it can be: "at best after 6,300".

    `case` has the columns `break_even`, `break_even_steps`, `break_even_interval` and `break_even_low`.
    """
    if not is_shown(case):
        return at_best(case["break_even_low"])
    return steps(case["break_even_steps"]) if case["break_even"] == "steps" else str(case["break_even"])


def about_words(case: Mapping[Any, Any]) -> str:
    """The same with its 95 % interval in two digits, as a list of models says it: "about 5,200 [4,100,
    6,200]", "never", "unknown", and "not shown to pay" where the interval holds never as well.

    `case` has the column `break_even_high` too.
    """
    if not is_shown(case):
        return "not shown to pay"
    if case["break_even"] != "steps":
        return str(case["break_even"])
    ends = (case["break_even_low"], case["break_even_high"])
    bounded = f" [{', '.join(map(two_digits, ends))}]" if case["break_even_interval"] == "bounded" else ""
    return f"about {two_digits(case['break_even_steps'])}{bounded}"


def is_shown(case: Mapping[Any, Any]) -> bool:
    """Whether the interval of a case decides if it pays off."""
    return bool(case["break_even_interval"] != "open")


_COLUMNS = (
    *("break_even", "break_even_reason", "break_even_steps"),
    *("break_even_interval", "break_even_low", "break_even_high", "break_even_time_ns"),
)


NOT_SHOWN = "no difference shown"
FIRST_LOOK = "a first look: one trial decides nothing"
_OF_FIRST_LOOKS = ("unknown", FIRST_LOOK, None, "none", None, None, None)


def without_first_looks(columns: Mapping[str, Any], first_look: Bools) -> dict[str, list[Any]]:
    """The columns of `repayment_columns` where a case of one trial has no break-even."""
    hidden = [
        look and word != "unknown"
        for look, word in zip(first_look.tolist(), columns["break_even"], strict=True)
    ]
    return {
        name: [cell if hide else known for known, hide in zip(columns[name], hidden, strict=True)]
        for name, cell in zip(_COLUMNS, _OF_FIRST_LOOKS, strict=True)
    }


def repayment_columns(
    compile_cost_ns: Floats,
    latency_ns: Floats,
    eager_ns: Floats,
    speedup: Floats,
    *,
    eager: Bools,
    ends: Quotients,
) -> dict[str, list[object]]:
    """One entry per case in every break-even column.

    The arrays are per case, NaN where unknown: `latency_ns` of the case itself, `eager_ns` pooled over its
    workload. `eager` flags the reference cases; `ends` are the interval's.
    """
    # Python's own numbers: exact rational arithmetic follows
    arrays = (compile_cost_ns, latency_ns, eager_ns, speedup, eager, ends.low, ends.high)
    rows: list[tuple[object, ...]] = []
    for cost, latency, control, times, reference, low, high in zip(
        *(a.tolist() for a in arrays), strict=True
    ):
        unknown = _unknown_reason(cost, latency, times, eager=reference)
        if unknown is not None:
            rows.append(("unknown", unknown, None, "none", None, None, None))
            continue
        compiled = control / times
        repaid = steps_to_break_even(cost, compiled, control)
        interval = _interval(repaid, low, high)
        if isinstance(repaid, Never):
            rows.append(("never", _never_reason(repaid, times), None, *interval, None))
        else:
            rows.append(("steps", None, repaid, *interval, cost + repaid * compiled))
    return {name: [row[place] for row in rows] for place, name in enumerate(_COLUMNS)}
