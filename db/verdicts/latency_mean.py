"""By how much latency changed over all matched cases together: one geometric mean with its interval."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from db.metrics.groups import Bools, Ints
from db.verdicts.judgement import Tested
from db.verdicts.results import LatencyChange


def latency_change(tested: Tested, chosen: Bools, workload: Ints, confidence: float) -> LatencyChange | None:
    """Geometric mean of head / base latency over the `chosen` cases that have both; None where none has.

    `workload` numbers the workload of each case. The interval is Student's t over the cases' log ratios, with
    the variance of cluster sampling (Cameron & Miller 2015, J. Human Resources 50(2), 317-372, section
    II): the strategies of one workload move together and do not count as that many witnesses. Where the sides
    come from different runs, what a run shifts in all cases at once does not average out and is added
    (degrees of freedom by Satterthwaite 1946). No interval below two workloads.
    """
    used = chosen & np.isfinite(tested.test.difference)
    x = tested.test.difference[used]
    if not len(x):
        return None
    clusters = np.unique(workload[used], return_inverse=True)[1].reshape(-1)
    mean = float(np.mean(x))
    sums = np.bincount(clusters, x - mean)
    half = math.nan
    if len(sums) >= 2:
        between = len(sums) / (len(sums) - 1) * float(np.sum(np.square(sums))) / len(x) ** 2
        shared = float(np.mean(tested.contrasts.run_scale[used])) * tested.runs.variance
        df = _satterthwaite(between, len(sums) - 1.0, shared, tested.runs.df)
        half = float(special.stdtrit(df, 0.5 + confidence / 2.0)) * math.sqrt(between + shared)
    return LatencyChange(
        cases=len(x),
        workloads=len(sums),
        change=math.expm1(mean),
        interval=(math.expm1(mean - half), math.expm1(mean + half)) if math.isfinite(half) else None,
    )


def _satterthwaite(first: float, first_df: float, second: float, second_df: float) -> float:
    """Degrees of freedom of the sum of two variances; infinite `second_df` stands for a known one."""
    parts = first**2 / first_df + second**2 / second_df
    return (first + second) ** 2 / parts if parts > 0 else first_df
