"""Upgrade verdict: two builds, every matched case, every metric; all cases together; what to measure next.

Metrics that two builds are compared by where somebody asks: judged alike, no part of the verdict.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import scipy
from pandas import DataFrame

from compilewatch.db import units
from compilewatch.db.columns.metrics import METRICS, REQUESTED_METRICS, with_test
from compilewatch.db.judge.compare.comparable import GPU_METHODS, MatchedCases, with_hashes
from compilewatch.db.judge.compare.judge_sides import Judged, judge_sides
from compilewatch.db.judge.compare.sides import Selection, as_selection, changed_components, describe_sides
from compilewatch.db.judge.compare.whole import sentences
from compilewatch.db.judge.decide import Evidence, overall_verdict
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.results import (
    Advice,
    AdviceStep,
    CaseKey,
    Comparison,
    GeomeanChange,
    LatencyChange,
    Row,
)
from compilewatch.db.judge.sentences import whole_percent
from compilewatch.db.judge.significance import FEWEST_DF
from compilewatch.db.judge.statistics.noise_floor import NoiseFloor
from compilewatch.db.metrics.eligibility import wild_trials
from compilewatch.db.metrics.geomean import matched_geomeans
from compilewatch.db.metrics.groups import Bools, Floats, Groups, Ints, equal_to, floats
from compilewatch.db.metrics.throughput import items_per_step, per_second
from compilewatch.db.records.trial import StrategyKind
from compilewatch.db.records.vocabulary import Metric, Verdict


def throughput_rows(rows: Iterable[Row], items: Floats) -> Iterator[Row]:
    """The rows of latency as rows of throughput: the same test, the other way up. `items`: per row."""
    for row, each in zip(rows, items.tolist(), strict=True):
        values = (
            per_second(each, value) if isinstance(value, float) and value else None
            for value in (row.base, row.head)
        )
        base, head = values
        yield row.model_copy(
            update={
                "metric": Metric.THROUGHPUT,
                "unit": METRICS[Metric.THROUGHPUT].unit,
                "base": base,
                "head": head,
                "change": _inverse(row.change),
                "interval": None
                if row.interval is None
                else (_inverse(row.interval[1]), _inverse(row.interval[0])),
                "reason": f"Of latency: {row.reason}",
            }
        )


def _inverse(change: float | None) -> float | None:
    """The relative change of 1 / x."""
    return None if change is None else 1.0 / (1.0 + change) - 1.0


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


ADVISED = (Metric.LATENCY, Metric.SPEEDUP)
"""Metrics that advice plans trials for: compile cost and memory come with the same trials."""


def trial_seconds(trials: DataFrame, case: Ints, cases: int) -> Floats:
    """What one trial of each side of each case took together, by the stored trials; NaN where unknown.

    `trials` with column `side`; `case` the number of each trial's case. The median of each side is taken, and
    that of the other one where a side has no end stored.
    """
    waits = floats((trials["ended_at"] - trials["started_at"]).dt.total_seconds())
    side = trials["side"].to_numpy(dtype=np.int64)
    median = Groups(case * 2 + side, 2 * cases).present(waits).quantile(0.5).reshape(cases, 2)
    mirrored = np.where(np.isnan(median), median[:, ::-1], median)
    seconds: Floats = mirrored.sum(axis=1)
    return seconds


def advice(rows: Sequence[Row], keys: Sequence[CaseKey], seconds: Floats, policy: Policy) -> Advice | None:
    """None where nothing is open. `seconds`: as `trial_seconds`, in the order of `keys`."""
    open_rows = [row for row in rows if row.metric in ADVISED and row.verdict is Verdict.INCONCLUSIVE]
    if not open_rows:
        return None
    cost = {key.ids: each for key, each in zip(keys, seconds.tolist(), strict=True)}
    fewest = policy.minimum_trials
    below = [row for row in open_rows if row.more_trials and min(row.trials) + row.more_trials <= fewest]
    waiting = {row.case.ids for row in below}
    planned = [row for row in open_rows if row.more_trials and row.case.ids not in waiting]
    smallest, target = _step(below, cost), _step(planned, cost)
    unseen = len({row.case.ids for row in open_rows if row.unseen})
    return Advice(
        smallest=smallest,
        target=target,
        unseen=unseen,
        sentences=tuple(_sentences(smallest, target, unseen, policy)),
    )


def _step(rows: Iterable[Row], cost: dict[tuple[str, str], float]) -> AdviceStep | None:
    more: dict[tuple[str, str], int] = {}
    for row in rows:
        more[row.case.ids] = max(more.get(row.case.ids, 0), row.more_trials or 0)
    if not more:
        return None
    known = [cost[case] for case in more if math.isfinite(cost[case])]
    typical = float(np.median(known)) if known else math.nan
    seconds = sum(n * (cost[case] if math.isfinite(cost[case]) else typical) for case, n in more.items())
    return AdviceStep(
        cases=len(more),
        more_trials=max(more.values()),
        trials=2 * sum(more.values()),
        hours=seconds / 3600.0 if known else None,
    )


def _sentences(
    smallest: AdviceStep | None, target: AdviceStep | None, unseen: int, policy: Policy
) -> Iterable[str]:
    if smallest is not None:
        yield f"{_measure(smallest)} first: fewer than {policy.minimum_trials} a side are never judged."
    if target is not None:
        odds = f"{whole_percent(policy.advice_effect)} with {whole_percent(policy.advice_power)} power"
        yield f"{_measure(target)}{' then' if smallest else ''} to see a change of {odds}."
    if unseen:
        size = whole_percent(policy.advice_effect)
        wanted = f"it takes more than {units.plural(policy.advice_trials, 'trial')} a side"
        yield f"In {units.plural(unseen, 'case')} this clock cannot show {size}: {wanted}."


def _measure(step: AdviceStep) -> str:
    takes = "" if step.hours is None else f" (about {units.duration(step.hours * 3.6e12)})"
    more = units.plural(step.more_trials, "more trial")
    return f"Measure {more} a side of {units.plural(step.cases, 'case')}{takes}"


def compare_builds(
    trials: DataFrame,
    base: Selection | str,
    head: Selection | str,
    policy: Policy | None = None,
    *,
    history: DataFrame | Callable[[MatchedCases], DataFrame] | None = None,
    machine_id: str | None = None,
    noise_floors: Callable[[str], Sequence[NoiseFloor]] = lambda _machine_id: (),
    asked: Sequence[Metric] = (),
    until_decided: bool = False,
) -> Comparison:
    """Judge `head` against `base`, metric by metric, over the cases that match.

    `trials` is a trials frame (`db.queries.trials.trials_frame`) holding both sides; a `str` side is a
    build id. `history` is a trials frame of the same series' other runs, and may be the same frame: compared
    trials are passed over; or what reads one once the cases are matched. With `machine_id` None the machine
    with most matched cases is taken; the others are named in `left_out`. `noise_floors` is asked for those
    of the machine where advice has no other noise to plan by. `asked` are further metrics, whose rows stand
    apart and decide nothing. With `until_decided` trials of the head were added and judged as they
    came: each number of them has its part of every level (`db.judge.statistics.looks`). Raises VerdictError
    when a side has no trial or a trial is on both sides.
    """
    policy, further = policy or Policy(), with_test(asked)
    base, head = as_selection(base), as_selection(head)
    judged = judge_sides(
        trials,
        base,
        head,
        policy,
        history=history,
        machine_id=machine_id,
        noise_floors=noise_floors,
        further=further,
        until_decided=until_decided,
    )
    matched, canaries = judged.matched, judged.context.canaries
    base_side, head_side = with_hashes(describe_sides(judged.sides, base, head), matched.trials, matched.case)
    every_row = tuple(judged.rows())
    rows = tuple(row for row in every_row if row.metric not in further)
    cases = len(matched.keys) - sum(matched.canary)
    comparison = Comparison(
        base=base_side,
        head=head_side,
        machine_id=matched.machine_id,
        machine=matched.machine,
        matched=cases,
        total=cases + len(matched.left_out),
        left_out=matched.left_out,
        geomean=geomean_change(judged, policy),
        rows=rows,
        asked=tuple(_requested_rows(matched, every_row, asked)),
        verdict=overall_verdict(rows, policy),
        changed_components=changed_components(base_side, head_side),
        canary_change=_relative(canaries.shown),
        host_canary_change=_relative(canaries.shown_host),
        timing=_gpu_methods(matched.trials),
        wild_trials=int(np.count_nonzero(wild_trials(matched.trials))),
        advice=advice(
            rows, matched.keys, trial_seconds(matched.trials, matched.case, len(matched.keys)), policy
        ),
        sentences=(),
        policy=policy,
    )
    return comparison.model_copy(update={"sentences": sentences(comparison)})


def _relative(change: float | None) -> float | None:
    return None if change is None else math.expm1(change)


def _gpu_methods(trials: DataFrame) -> tuple[str, ...]:
    """How the trials on a GPU were timed; nothing of those on a CPU."""
    if "timing_method" not in trials:
        return ()
    return tuple(method for method in GPU_METHODS if equal_to(trials["timing_method"], method).any())


def _requested_rows(matched: MatchedCases, rows: Sequence[Row], asked: Sequence[Metric]) -> Iterator[Row]:
    yield from (row for row in rows if row.metric in asked and row.metric in REQUESTED_METRICS)
    if Metric.THROUGHPUT in asked:
        latencies = [row for row in rows if row.metric is Metric.LATENCY]
        items = items_per_step(matched.trials)
        of_case = dict(zip(matched.case.tolist(), items.tolist(), strict=True))
        numbers = {key.ids: number for number, key in enumerate(matched.keys)}
        yield from throughput_rows(latencies, np.array([of_case[numbers[row.case.ids]] for row in latencies]))
