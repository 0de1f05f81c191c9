"""By how much a metric changed over all matched cases together: one geometric mean with its interval."""

from __future__ import annotations

import math

import numpy as np
import scipy

from compilewatch.db.judge.compare.judge_sides import Judged
from compilewatch.db.judge.decide import Evidence
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.results import GeomeanChange, LatencyChange
from compilewatch.db.judge.significance import FEWEST_DF
from compilewatch.db.metrics.geomean import matched_geomeans
from compilewatch.db.metrics.groups import Bools, Floats, Ints
from compilewatch.db.records.trial import StrategyKind
from compilewatch.db.records.vocabulary import Metric


def geomean_change(judged: Judged, policy: Policy) -> GeomeanChange:
    """Of the matched cases of both sides, their canaries left out."""
    matched = judged.matched
    means = matched_geomeans(judged.summaries)
    base, head = means.sides["base"], means.sides["head"]
    cases = ~np.array(matched.canary, dtype=np.bool_)
    eager = np.array([key.strategy_kind == StrategyKind.EAGER.value for key in matched.keys], dtype=np.bool_)
    numbers = {key.workload_id: number for number, key in enumerate(matched.keys)}
    workload = np.array([numbers[key.workload_id] for key in matched.keys], dtype=np.int64)

    def over(chosen: Bools, metric: Metric = Metric.LATENCY) -> LatencyChange | None:
        evidence = judged.metrics[metric].evidence
        return latency_change(evidence, cases & chosen, workload, policy.confidence)

    return GeomeanChange(
        base=base.matched,
        head=head.matched,
        naive_base=base.naive,
        naive_head=head.naive,
        cases=means.matched_cases,
        naive_base_cases=base.naive_cases,
        naive_head_cases=head.naive_cases,
        latency=over(cases),
        compiled_latency=over(~eager),
        eager_latency=over(eager),
        speedup=over(~eager, Metric.SPEEDUP),
        device_time=over(~eager, Metric.DEVICE_TIME),
    )


def latency_change(
    evidence: Evidence, chosen: Bools, workload: Ints, confidence: float
) -> LatencyChange | None:
    """Geometric mean of head / base over the `chosen` cases that have both; None where none has.

    Every case weighs as much as its change is sure: 1 / (its own variance + the variance between cases), as
    in a random-effects mean (DerSimonian & Laird 1986, Controlled Clinical Trials 7, 177-188). A case that
    nobody could judge moves little, and none counts for everything. Cases without a known variance weigh as
    the least sure one.

    `workload` numbers the workload of each case. The interval is Student's t over the cases' log ratios, with
    the variance of cluster sampling (Cameron & Miller 2015, J. Human Resources 50(2), 317-372, section
    II): the strategies of one workload move together and do not count as that many witnesses. It is at least
    the mean's own variance, 1 / the sum of the weights (Roever, Knapp & Friede 2015, BMC Medical Research
    Methodology 15:99): few cases agree by chance, and one sure case agrees with itself. Where the sides
    come from different runs, what a run shifts in all cases at once does not average out and is added
    (degrees of freedom by Satterthwaite 1946). No interval below `FEWEST_DF`
    degrees of freedom.
    """
    used = chosen & np.isfinite(evidence.test.difference)
    x = evidence.test.difference[used]
    if not len(x):
        return None
    share, own = _shares(x, np.square(evidence.test.standard_error[used]))
    clusters = np.unique(workload[used], return_inverse=True)[1].reshape(-1)
    mean = float(np.sum(share * x))
    sums = np.bincount(clusters, share * (x - mean))
    half = math.nan
    if len(sums) >= 2:
        between = max(own, len(sums) / (len(sums) - 1) * float(np.sum(np.square(sums))))
        shared = float(np.sum(share * evidence.run_scale[used] * evidence.run_variance[used]))
        df = _satterthwaite(between, len(sums) - 1.0, shared, float(np.min(evidence.run_df[used])))
        if df >= FEWEST_DF:
            half = float(scipy.special.stdtrit(df, 0.5 + confidence / 2.0)) * math.sqrt(between + shared)
    return LatencyChange(
        cases=len(x),
        workloads=len(sums),
        change=math.expm1(mean),
        interval=(math.expm1(mean - half), math.expm1(mean + half)) if math.isfinite(half) else None,
    )


def _shares(x: Floats, variance: Floats) -> tuple[Floats, float]:
    """The weight of each case, together 1, and the variance of their mean; 0 where no case's is known."""
    known = np.isfinite(variance)
    if not known.any():
        return np.full(len(x), 1.0 / len(x)), 0.0
    variance = np.where(known, variance, np.max(variance[known]))
    alone = 1.0 / variance
    mean = np.sum(alone * x) / np.sum(alone)
    excess = float(np.sum(alone * np.square(x - mean))) - (len(x) - 1)
    spread = float(np.sum(alone) - np.sum(np.square(alone)) / np.sum(alone))
    among = max(0.0, excess / spread) if spread > 0 else 0.0
    weight = 1.0 / (variance + among)
    total = float(np.sum(weight))
    shares: Floats = weight / total
    return shares, 1.0 / total


def _satterthwaite(first: float, first_df: float, second: float, second_df: float) -> float:
    """Degrees of freedom of the sum of two variances; infinite `second_df` stands for a known one."""
    parts = first**2 / first_df + second**2 / second_df
    return (first + second) ** 2 / parts if parts > 0 else first_df
