"""Percentiles of a trial's steps, and how far steps and processes scatter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pandas import DataFrame

from compilewatch.db.errors import UnitError
from compilewatch.db.metrics.eligibility import positive
from compilewatch.db.metrics.groups import Bools, Floats, Groups, floats
from compilewatch.db.records.sample_blobs import percentile_ns
from compilewatch.db.records.sampling_facts import FEWEST_FOR_P99
from compilewatch.db.records.trial import Summary, Trial


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


def latencies_ns(trial: Trial) -> tuple[float | None, float | None]:
    """Median latency of a trial and of eager beside it in nanoseconds, else as its source states them."""
    stated = trial.summary or Summary()
    own = percentile_ns(sorted(trial.latency_samples_ns), 0.5)
    eager = percentile_ns(sorted(trial.control_latency_samples_ns), 0.5)
    return stated.latency_ns if own is None else own, stated.control_latency_ns if eager is None else eager


def measured(trials: DataFrame, column: str) -> Floats:
    """The positive values of a column, NaN elsewhere and where too few steps make a p99."""
    values = positive(trials[column])
    if column != "latency_p99_ns":
        return values
    return np.where(floats(trials["samples"]) >= FEWEST_FOR_P99, values, np.nan)


def spread_columns(trials: DataFrame, groups: Groups, latency_ns: Floats, timed: Bools) -> dict[str, object]:
    """Of cases: the standard deviation of the medians of processes, of two at least, and the fewest steps."""
    known = groups.present(latency_ns)
    mean = np.bincount(known.codes, known.values, groups.count) / np.maximum(known.n, 1)
    squares = np.bincount(known.codes, (known.values - mean[known.codes]) ** 2, groups.count)
    with np.errstate(invalid="ignore", divide="ignore"):
        deviation = np.sqrt(squares / (known.n - 1))
    return {
        "latency_between_sd_ns": np.where(known.n > 1, deviation, np.nan),
        "samples": -groups.max(np.where(timed, -floats(trials["samples"]), np.nan)),
    }
