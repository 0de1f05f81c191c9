"""How well a median is known from its own samples, without assuming how they are distributed."""

from __future__ import annotations

import math
import statistics

_TAILS = 40
"""The interval leaves out 1/40 on either side."""


def median_rank(n: int) -> int | None:
    """The rank r, from 1, for which [x_(r), x_(n+1-r)] of n sorted samples covers the median with at least
    95 %; None below 6 samples, where no interval does.

    Each sample lies below the median with probability 1/2, so the number that do is binomial (Conover,
    Practical Nonparametric Statistics, 3.2).
    """
    below, limit = 0, 2**n // _TAILS
    for rank in range(n // 2 + 1):
        below += math.comb(n, rank)
        if below > limit:
            return rank or None
    return None


def relative_half_width(samples_ns: list[int]) -> float | None:
    """Half the width of the median's 95 % interval over the median; None where there is no interval."""
    rank = median_rank(len(samples_ns))
    if rank is None:
        return None
    ordered = sorted(samples_ns)
    width = ordered[-rank] - ordered[rank - 1]
    return width / 2 / max(1.0, statistics.median(ordered))
