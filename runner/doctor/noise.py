"""How small a change this machine can show: identical eager trials, repeated, and how far they differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from db.errors import CompilewatchError
from db.verdicts.noise_floor import MIN_TRIALS, smallest_effect, variation
from db.verdicts.significance import trials_needed

TRIALS = 10
_ASKED_TRIALS = (3, 5, 10, 20)
_ASKED_EFFECTS = (0.02, 0.05, 0.10)


@dataclass(frozen=True)
class Noise:
    """`cv`: run-to-run variation, the standard deviation of the logarithms of the trials' latencies.

    `visible`: trials a side -> the smallest relative change they show; `needed`: relative change -> trials a
    side that show it.
    """

    trials: int
    cv: float
    visible: dict[int, float]
    needed: dict[float, int]


def noise_of(latencies_ns: Sequence[float]) -> Noise:
    """From the median latency of each trial. Raises CompilewatchError with fewer than MIN_TRIALS of them."""
    if len(latencies_ns) < MIN_TRIALS:
        raise CompilewatchError(
            f"Only {len(latencies_ns)} trials succeeded; noise needs at least {MIN_TRIALS}.",
            "See why with `compilewatch list runs` and `compilewatch show TRIAL`.",
        )
    cv = variation(latencies_ns)
    return Noise(
        trials=len(latencies_ns),
        cv=cv,
        visible={trials: smallest_effect(cv, trials) for trials in _ASKED_TRIALS},
        needed={effect: int(trials_needed(cv, effect)) for effect in _ASKED_EFFECTS},
    )
