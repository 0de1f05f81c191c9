"""A range of speedup for a model that was not compiled yet, from models that were, by what eager shows.

Ridge regression of log speedups, and the jackknife+ of Barber, Candes, Ramdas & Tibshirani 2021, Ann.
Statist. 49, 486-507, for its range: each known model is left out once, and tells how far it was missed. At
`ALPHA` a new model of their kind lies in the range in at least 1 - 2 `ALPHA` of all cases, and in about
1 - `ALPHA`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from compilewatch.db.metrics.groups import Floats
from compilewatch.db.records.sampling_facts import ProfileSide

ALPHA = 0.1
FEWEST = 9
"""Known models; fewer give no upper end at `ALPHA`."""
_RIDGE = 1.0
"""On columns of variance 1: weak beside ten models, and keeps a column that hardly varies from mattering."""


class Screened(NamedTuple):
    """Speedups: both ends and the middle of a range."""

    low: float
    middle: float
    high: float


def features(eager: ProfileSide, latency_ns: float, breaks: int) -> tuple[float, ...] | None:
    """What may tell how much compiling gains: the share of matrix products and convolutions, time by operator
    (log ns), the share in which the device is busy, graph breaks (log). None where nobody counted operators.
    """
    if not eager.operators:
        return None
    busy = 1.0 if eager.device_busy_fraction is None else eager.device_busy_fraction
    per_operator = math.log(latency_ns / eager.operators)
    return eager.matrix_fraction or 0.0, per_operator, busy, math.log1p(breaks)


def speedup_range(known: Floats, speedups: Floats, new: Floats) -> Screened | None:
    """The range for a model with the features `new` (k), from `known` (n x k) and their speedups (n). None
    with fewer than `FEWEST` known.
    """
    n = len(speedups)
    if n < FEWEST:
        return None
    logs = np.log(speedups)
    predicted, missed = np.empty(n), np.empty(n)
    for place in range(n):
        others = np.delete(known, place, axis=0), np.delete(logs, place)
        predicted[place] = _predicted(*others, new)
        missed[place] = abs(logs[place] - _predicted(*others, known[place]))
    low = np.sort(predicted - missed)[math.floor(ALPHA * (n + 1)) - 1]
    high = np.sort(predicted + missed)[math.ceil((1.0 - ALPHA) * (n + 1)) - 1]
    middle = _predicted(known, logs, new)
    return Screened(*(math.exp(each) for each in (low, min(max(middle, low), high), high)))


def _predicted(known: Floats, logs: Floats, new: Floats) -> float:
    mean, spread = known.mean(axis=0), known.std(axis=0)
    scaled = (known - mean) / np.where(spread > 0, spread, 1.0)
    ridge = scaled.T @ scaled + _RIDGE * np.eye(known.shape[1])
    slopes = np.linalg.solve(ridge, scaled.T @ (logs - logs.mean()))
    return float(logs.mean() + ((new - mean) / np.where(spread > 0, spread, 1.0)) @ slopes)
