"""How many times faster compiled is than eager: eager latency / compiled latency, above 1 is faster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from db.errors import UnitError
from db.metrics.groups import Bools, Groups
from db.metrics.intervals import RESAMPLES, Medians, Method, medians_over_trials
from db.metrics.quantities import Quantity, Unit


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its 95 % interval over `trials` trials; the ends are None where `method` is none."""

    value: float
    low: float | None
    high: float | None
    trials: int
    method: Method


def speedup(*, eager: Quantity, compiled: Quantity) -> float:
    """Raises UnitError for anything but two latencies above 0 of the same workload and machine."""
    if eager.unit is not Unit.NANOSECONDS or eager.value <= 0 or compiled.value <= 0:
        raise UnitError("A speedup needs two latencies above 0 ns.", "Measure the case again.")
    return float(eager / compiled)


def speedup_over_trials(
    eager_ns: Sequence[float], compiled_ns: Sequence[float], *, seed: int = 0, resamples: int = RESAMPLES
) -> Estimate:
    """The median of the trials' own speedups and its interval; entry i of both is trial i's latency.

    Raises UnitError where the lengths differ, there is no trial, or a latency is not positive and finite.
    """
    eager, compiled = np.asarray(eager_ns, dtype=np.float64), np.asarray(compiled_ns, dtype=np.float64)
    if eager.shape != compiled.shape or eager.ndim != 1 or not eager.size:
        raise UnitError(
            "A speedup needs one eager and one compiled latency per trial.", "Pair them by trial."
        )
    if not (np.isfinite([eager, compiled]).all() and min(eager.min(), compiled.min()) > 0):
        raise UnitError("A latency must be above 0 ns and finite.", "Leave out trials without one.")
    groups = Groups(np.zeros(len(eager), dtype=np.int64), 1)
    medians = medians_over_trials(groups, eager / compiled, log=True, seed=seed, resamples=resamples)
    low, high = (None if np.isnan(end[0]) else float(end[0]) for end in (medians.low, medians.high))
    return Estimate(float(medians.value[0]), low, high, len(eager), medians.method[0])


def speedup_columns(speedups: Medians, *, borrowed: Bools, reference: Bools) -> dict[str, object]:
    """Columns of many cases. Eager (`reference`) is 1 by definition; a `borrowed` control has no interval."""
    hidden = np.where(borrowed, np.nan, 1.0)
    methods = [each.value for each in speedups.method]
    return {
        "speedup": np.where(reference, 1.0, speedups.value),
        "speedup_low": np.where(reference, 1.0, speedups.low * hidden),
        "speedup_high": np.where(reference, 1.0, speedups.high * hidden),
        "interval_method": np.select(
            [reference, borrowed], [Method.REFERENCE.value, Method.NONE.value], methods
        ),
    }
