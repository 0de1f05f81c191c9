"""The smallest change that a machine can show: from identical trials, repeated, and how far they differ."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from db.verdicts.significance import Z_LEVEL, Z_POWER

NOISE_SUITE = "noise"
NOISE_WORKLOAD = "encoder"
MIN_TRIALS = 3
TRIALS_A_SIDE = 5
"""How many trials a side a noise floor is told for where nothing else is said."""


@dataclass(frozen=True)
class NoiseFloor:
    """`change`: the smallest relative change that `TRIALS_A_SIDE` trials a side show, told by `trials`."""

    change: float
    trials: int


def noise_floor(latencies_ns: Sequence[float]) -> NoiseFloor | None:
    """From the median latency of each trial; None with fewer than `MIN_TRIALS` of them."""
    if len(latencies_ns) < MIN_TRIALS:
        return None
    return NoiseFloor(smallest_effect(variation(latencies_ns), TRIALS_A_SIDE), len(latencies_ns))


def variation(latencies_ns: Sequence[float]) -> float:
    """Run-to-run variation: the standard deviation of the logarithms."""
    return statistics.stdev(math.log(latency) for latency in latencies_ns)


def smallest_effect(cv: float, trials: int) -> float:
    """N = 2 (cv (2.81 + 1.645) / effect)^2 of `db.verdicts.significance.trials_needed`, for the effect."""
    return cv * (Z_LEVEL + Z_POWER) * math.sqrt(2 / trials)
