"""Numbers as text, once for the command line, tables, tooltips and reports.

Three significant digits; numbers of a thousand and more stay whole. What is missing (`None`, NaN,
`pandas.NA`) or not finite is an en dash, never "nan" or "None". The exact value belongs in the tooltip.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import SupportsFloat, TypeVar

from compilewatch.db.errors import UnitError

MISSING = "\N{EN DASH}"
NEVER = "never"
MINUS = "\N{MINUS SIGN}"

_NANOSECONDS = (
    ("ns", 1),
    ("µs", 10**3),
    ("ms", 10**6),
    ("s", 10**9),
    ("min", 60 * 10**9),
    ("h", 3600 * 10**9),
)
_MILLIJOULES = (("mJ", 1), ("J", 10**3), ("kJ", 10**6))
_BYTES = (("B", 1), ("KiB", 2**10), ("MiB", 2**20), ("GiB", 2**30), ("TiB", 2**40))

_Value = TypeVar("_Value")


def _number(value: SupportsFloat | None) -> float | None:
    """`value` as a finite float, or None where it is missing; `pandas.NA` refuses `float()`."""
    if value is None:
        return None
    try:
        number = float(value)
    except (TypeError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _rounded(value: float) -> float:
    return float(f"{value:.2e}") if abs(value) < 1000 else float(round(value))


# Between these, three significant digits need neither an exponent nor a separator.
_PLAIN_FROM, _PLAIN_BELOW = 1e-4, 99.9


def significant(value: SupportsFloat | None) -> str:
    """Three significant digits with thousands separators: "0.0123", "1.83", "41.0", "12,400"."""
    number = _number(value)
    if number is None:
        return MISSING
    if _PLAIN_FROM <= abs(number) < _PLAIN_BELOW:
        # The same text, in a quarter of the time: most figures of a page.
        return f"{number:#.3g}" if number > 0 else f"{MINUS}{-number:#.3g}"
    rounded = _rounded(number)
    if rounded == 0:
        return "0"
    decimals = max(0, 2 - math.floor(math.log10(abs(rounded))))
    return _signed(f"{rounded:,.{decimals}f}")


def _signed(text: str) -> str:
    """A number in words with a real minus, which is as wide as the digits that stand below it."""
    return text.replace("-", MINUS)


def _scaled(value: SupportsFloat | None, scale: tuple[tuple[str, int], ...]) -> str:
    """`value` in the largest unit of `scale` in which it is at least 1 once rounded."""
    number = _number(value)
    if number is None:
        return MISSING
    unit, factor = next(
        ((unit, factor) for unit, factor in reversed(scale) if abs(number) >= factor), scale[0]
    )
    following = scale[scale.index((unit, factor)) + 1 :][:1]
    for next_unit, next_factor in following:
        if abs(_rounded(number / factor)) * factor >= next_factor:
            unit, factor, number = next_unit, next_factor, math.copysign(next_factor, number)
    if factor == 1 and number.is_integer():
        return f"{_signed(f'{number:,.0f}')} {unit}"
    return f"{significant(number / factor)} {unit}"


def duration(ns: SupportsFloat | None) -> str:
    """Nanoseconds in ns, µs, ms, s, min or h: "12.4 ms". Nothing at all is "0 s"."""
    return "0 s" if _number(ns) == 0 else _scaled(ns, _NANOSECONDS)


def size(bytes_: SupportsFloat | None) -> str:
    """Bytes in binary units: "1.15 GiB"."""
    return _scaled(bytes_, _BYTES)


def energy(joules: SupportsFloat | None) -> str:
    """Joules in mJ, J or kJ: "350 mJ". Nothing at all is "0 J"."""
    number = _number(joules)
    return "0 J" if number == 0 else _scaled(None if number is None else number * 1000, _MILLIJOULES)


def ratio(value: SupportsFloat | None) -> str:
    """A quotient of two like quantities: "1.83x"."""
    return MISSING if _number(value) is None else f"{significant(value)}x"


def percent(fraction: SupportsFloat | None, *, signed: bool = False) -> str:
    """A fraction in percent: 0.032 is "3.20 %"; `signed` writes "+3.20 %" for a change."""
    number = _number(fraction)
    if number is None:
        return MISSING
    sign = "+" if signed and number > 0 else ""
    return f"{sign}{significant(number * 100)} %"


def level(share: float) -> str:
    """A level that somebody chose, such as a confidence, with the decimals it was given: "95 %", "99.5 %"."""
    return f"{share * 100:.10g} %"


def count(value: SupportsFloat | None) -> str:
    """A whole number, exact: "12,400"."""
    return MISSING if _number(value) is None else _signed(f"{_whole(value):,}")


def capitalized(text: str) -> str:
    """With a large first letter; unlike `str.capitalize` the others stay: "GPU utilization"."""
    return text[:1].upper() + text[1:]


def words(name: str) -> str:
    """The name of a field or kind as people read it: "torch variant" of "torch_variant"."""
    return name.replace("_", " ")


def first_of(names: Sequence[str], most: int) -> str:
    """The first `most` of `names`, and how many more there are: "mlp, cnn and 3 more"."""
    more = f" and {count(len(names) - most)} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def plural(number: int, noun: str) -> str:
    """A number of regular things: "1 case", "1,200 cases", "2 processes", "2 strategies"."""
    return f"{count(number)} {noun if number == 1 else _several(noun)}"


def _several(noun: str) -> str:
    if noun.endswith("y") and noun[-2:-1] not in tuple("aeiou"):
        noun = f"{noun[:-1]}ie"
    return noun and noun + ("es" if noun.endswith(("s", "x", "ch")) else "s")


def _whole(value: SupportsFloat | None) -> int:
    return value if isinstance(value, int) else round(float(value or 0))


def steps(value: SupportsFloat | str | object | None) -> str:
    """A number of steps, or the value "never" (a string or a `db.metrics.break_even.Never`).

    A mean of few steps has three significant digits: "1.42 steps".
    """
    if str(value) == NEVER:
        return NEVER
    # Numbers first: whether a value supports float is a slow question.
    if not isinstance(value, int | float | SupportsFloat) or _number(value) is None:
        return MISSING
    number = float(value)
    is_mean = abs(number) < _PLAIN_BELOW and not number.is_integer()
    noun = "step" if not is_mean and _whole(value) == 1 else "steps"
    return f"{significant(number) if is_mean else count(value)} {noun}"


def at_best(low: SupportsFloat) -> str:
    """The low end of a break-even whose interval ends at never, to two digits: "at best after 6,300"."""
    return f"at best after {two_digits(low)}"


def two_digits(number: SupportsFloat) -> str:
    """A number of which no more than two digits are meant: "5,200"."""
    return _signed(f"{float(f'{float(number):.2g}'):,.0f}")


def rate(per_second: SupportsFloat | None, item: str | None = None) -> str:
    """Throughput: "985 sequences/s"; without an item "985 /s"."""
    return MISSING if _number(per_second) is None else f"{significant(per_second)} {_several(item or '')}/s"


def money(amount: SupportsFloat | None) -> str:
    """An amount to the cent, below one dollar with three significant digits: "$1,240.50", "$0.0123"."""
    number = _number(amount)
    if number is None:
        return MISSING
    sign = MINUS if number < 0 else ""
    magnitude = abs(number)
    return f"{sign}${significant(magnitude) if 0 < magnitude < 0.9995 else f'{magnitude:,.2f}'}"


def moment(value: datetime | None) -> str:
    """A point in time in UTC: "2026-11-20 18:00 UTC". Raises UnitError for one without a time zone."""
    # pandas.NaT is a datetime that differs from itself
    if value is None or value != value:  # noqa: PLR0124
        return MISSING
    if value.tzinfo is None:
        raise UnitError(f"The time {value.isoformat()} has no time zone.", "Give it one, for example UTC.")
    return f"{value.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


TWO_TRIALS = "n=2"
"""What stands for the interval of two trials: one degree of freedom gives none."""


def interval(
    low: _Value | None,
    high: _Value | None,
    formatter: Callable[[_Value], str],
    *,
    trials: SupportsFloat | None = None,
) -> str:
    """Both ends in the words of `formatter`: "1.70x to 1.96x"; one end missing reads "from" or "up to", and
    one that is wider than its value, the geometric mean of the ends, says so.

    Without an end, "n=2" where so many `trials` were all there were.
    """
    low_text = MISSING if low is None else formatter(low)
    high_text = MISSING if high is None else formatter(high)
    if low_text == high_text:
        return TWO_TRIALS if low_text == MISSING and _number(trials) == 2 else low_text
    if low_text == MISSING:
        return f"up to {high_text}"
    if high_text == MISSING:
        return f"from {low_text}"
    wide = " (wider than its value)" if _is_wider(low, high) else ""
    return f"{low_text} to {high_text}{wide}"


def _is_wider(low: object, high: object) -> bool:
    if not (isinstance(low, int | float) and isinstance(high, int | float)) or low <= 0:
        return False
    return high - low > math.sqrt(low * high)
