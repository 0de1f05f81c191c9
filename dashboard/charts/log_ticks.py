"""Where a logarithmic axis is labelled: at round numbers, which Vega leaves out as it thins its own."""

from __future__ import annotations

import math

_MOST = 10
_FEWEST = 3
# The first digits within each power of ten, the finest first.
_LEADS = ((1, 2, 3, 5, 7), (1, 2, 5), (1,))


def log_ticks(low: float, high: float) -> list[float]:
    """Ascending numbers from `low` to `high`, both above 0: 1, 2 and 5 times powers of ten where they are few
    enough, else fewer; within less than such a step evenly spaced ones.
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for leads in _LEADS[1:] if high >= 10 * low else _LEADS[:1]:
        found = [
            tick
            for exponent in range(first, last + 1)
            for lead in leads
            if low <= (tick := float(f"{lead}e{exponent}")) <= high
        ]
        if len(found) <= _MOST:
            return found if len(found) >= _FEWEST else _even(low, high)
    every = math.ceil((last - first + 1) / _MOST)
    return [tick for n in range(first, last + 1, every) if low <= (tick := float(f"1e{n}")) <= high]


def _even(low: float, high: float) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten, a handful of them."""
    exponent = math.floor(math.log10((high - low) / _FEWEST))
    steps = (lead * 10.0**exponent for lead in (5, 2, 1))
    step = next(step for step in steps if (high - low) / step >= _FEWEST)
    return [float(f"{n * step:.9g}") for n in range(math.ceil(low / step), math.floor(high / step) + 1)]
