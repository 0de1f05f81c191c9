"""After how many steps compilation has paid for itself.

Break-even is the smallest number of steps N >= 1 with compile cost + N x compiled latency <= N x eager
latency, that is ceil(compile cost / (eager latency - compiled latency)). Where compiled is not faster the
answer is the value `Never`, with two edges decided as follows:

- Cost zero or negative and compiled not slower: 1, the first step already is not above eager's.
- Compiled slower: never, even where a negative cost makes the first few steps cheaper, because nothing is
  paid back that stays paid. So the inequality holds at every step from break-even on.

Break-even of many cases: columns from each case's compile cost and speedup, and the eager latency of its
workload, pooled over all processes: a compiled step takes that eager over the speedup.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from compilewatch.db.errors import UnitError
from compilewatch.db.metrics.groups import Bools, Floats, Quotients
from compilewatch.db.units import at_best, ratio, steps, two_digits

NANOSECONDS_PER_HOUR = 3_600_000_000_000
STEPS_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Never:
    """Compilation is not paid back, and why. Not a number: it can be neither added nor averaged."""

    reason: str

    def __str__(self) -> str:
        return "never"


NOT_FASTER = Never("its latency is not below eager's")
BEYOND_COUNTING = Never("the saving per step is too small to repay the compile cost in 2^63 steps")


def steps_to_break_even(
    compile_cost_ns: float | Fraction, compiled_ns: float | Fraction, eager_ns: float | Fraction
) -> int | Never:
    """The smallest N as defined above, exactly (rational arithmetic), or Never.

    Raises UnitError where a value is not finite or a latency is not positive.
    """
    for value in (compile_cost_ns, compiled_ns, eager_ns):
        if not math.isfinite(value):
            raise UnitError(f"{value} is no measurement.", "Leave out cases without compile cost or latency.")
    if compiled_ns <= 0 or eager_ns <= 0:
        raise UnitError("A latency must be above 0 ns.", "Measure the case again.")
    if eager_ns < compiled_ns or (eager_ns == compiled_ns and compile_cost_ns > 0):
        return NOT_FASTER
    if compile_cost_ns <= 0:
        return 1
    # In whole numbers: fractions would reduce every result between to its lowest terms.
    cost, of_cost = _whole_ratio(compile_cost_ns)
    eager, of_eager = _whole_ratio(eager_ns)
    compiled, of_compiled = _whole_ratio(compiled_ns)
    saved = eager * of_compiled - compiled * of_eager
    steps = -(-cost * of_eager * of_compiled // (of_cost * saved))  # rounded up
    return steps if steps <= STEPS_MAX else BEYOND_COUNTING


def _whole_ratio(value: float | Fraction) -> tuple[int, int]:
    return (value if isinstance(value, float) else Fraction(value)).as_integer_ratio()


def price(time: Fraction, price_per_hour: Decimal) -> Decimal:
    """What a device costs for `time`, in the currency of `price_per_hour`.

    Raises UnitError where the price is negative or not finite.
    """
    if not price_per_hour.is_finite() or price_per_hour < 0:
        raise UnitError(f"{price_per_hour} is no price per hour.", "Give a number of 0 or more.")
    return Decimal(time.numerator) / time.denominator * price_per_hour / NANOSECONDS_PER_HOUR


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
