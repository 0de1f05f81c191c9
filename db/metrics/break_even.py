"""After how many steps compilation has paid for itself.

Break-even is the smallest number of steps N >= 1 with compile cost + N x compiled latency <= N x eager
latency, that is ceil(compile cost / (eager latency - compiled latency)). Where compiled is not faster the
answer is the value `Never`, with two edges decided as follows:

- Cost zero or negative and compiled not slower: 1, the first step already is not above eager's.
- Compiled slower: never, even where a negative cost makes the first few steps cheaper, because nothing is
  paid back that stays paid. So the inequality holds at every step from break-even on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from compilewatch.db.errors import UnitError

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
