"""Percentiles of a process's steps, and how far steps and processes scatter."""

from __future__ import annotations

import numpy as np
from pandas import DataFrame

from db.metrics.eligibility import positive
from db.metrics.groups import Bools, Floats, Groups, floats

FEWEST_FOR_P99 = 100
"""Of fewer steps the 99th percentile is the largest of them, whatever it is."""


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
