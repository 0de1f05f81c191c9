"""What one trial's samples say, in five numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from db.errors import UnitError


@dataclass(frozen=True, slots=True)
class SampleSummary:
    """Quantiles of one trial's samples in nanoseconds, and how many there were."""

    n: int
    latency_ns: float
    p05_ns: float
    p95_ns: float
    p99_ns: float


def summarize_samples(samples_ns: Sequence[int]) -> SampleSummary | None:
    """Median, 5th, 95th and 99th percentile, interpolated linearly (Hyndman and Fan 1996, type 7).

    None where there are no samples. Raises UnitError for a negative sample.
    """
    if not len(samples_ns):
        return None
    samples = np.asarray(samples_ns, dtype=np.int64)
    if samples.min() < 0:
        raise UnitError(f"A sample of {samples.min()} ns is no time.", "Measure the trial again.")
    p05, p50, p95, p99 = (float(value) for value in np.quantile(samples, [0.05, 0.5, 0.95, 0.99]))
    return SampleSummary(n=len(samples), latency_ns=p50, p05_ns=p05, p95_ns=p95, p99_ns=p99)
