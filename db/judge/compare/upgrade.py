"""Upgrade verdict: two builds, every matched case, every metric."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from pandas import DataFrame, array
from scipy import special

from db.columns.metrics import ASKED_METRICS, MEASURED_METRICS, SPEEDUPS
from db.judge.compare.advice import advice, trial_seconds
from db.judge.compare.asked import throughput_rows, with_test
from db.judge.compare.case_classes import canary_changes, case_bounds, class_numbers, run_changes
from db.judge.compare.code import same_code, with_hashes
from db.judge.compare.comparable import GPU_METHODS, MatchedCases, comparable_timing, match_cases
from db.judge.compare.contrast import contrast
from db.judge.compare.counts import Counted, count_rows
from db.judge.compare.judgement import MetricDecisions, Tested, enough_trials, examine_cases, judge_cases
from db.judge.compare.measured import (
    CODE_COLUMN,
    GPU_COLUMNS,
    PAST_COLUMNS,
    LogValues,
    columns_of,
    layout,
    log_values,
    past_layout,
    timed_apart,
)
from db.judge.compare.noise import Past, Shown
from db.judge.compare.noise_floor import NoiseFloor, floor_variations, known_cv
from db.judge.compare.rows import Context, Findings, counted_row, incomparable_row, measured_row, side_values
from db.judge.compare.sides import (
    Selection,
    as_selection,
    changed_components,
    describe_sides,
    in_time_order,
    split_sides,
)
from db.judge.compare.significance import FEWEST_DF
from db.judge.compare.who_moved import Moves
from db.judge.compare.whole import overall_verdict, sentences
from db.judge.policy import Policy
from db.judge.results import Comparison, GeomeanChange, LatencyChange, Row
from db.metrics.cases import case_values
from db.metrics.controls import is_eager
from db.metrics.eligibility import wild_trials
from db.metrics.geomean import matched_geomeans
from db.metrics.groups import Bools, Floats, Groups, Ints, equal_to, floats
from db.metrics.throughput import items_per_step
from db.records.trial import StrategyKind
from db.records.vocabulary import Bound, Metric

# By how much a metric changed over all matched cases together: one geometric mean with its interval.


def latency_change(tested: Tested, chosen: Bools, workload: Ints, confidence: float) -> LatencyChange | None:
    """Geometric mean of head / base over the `chosen` cases that have both; None where none has.

    Every case weighs as much as its change is sure: 1 / (its own variance + the variance between cases), as
    in a random-effects mean (DerSimonian & Laird 1986, Controlled Clinical Trials 7, 177-188). A case that
    nobody could judge moves little, and none counts for everything. Cases without a known variance weigh as
    the least sure one.

    `workload` numbers the workload of each case. The interval is Student's t over the cases' log ratios, with
    the variance of cluster sampling (Cameron & Miller 2015, J. Human Resources 50(2), 317-372, section
    II): the strategies of one workload move together and do not count as that many witnesses. Where the sides
    come from different runs, what a run shifts in all cases at once does not average out and is added
    (degrees of freedom by Satterthwaite 1946). No interval below `FEWEST_DF`
    degrees of freedom.
    """
    used = chosen & np.isfinite(tested.test.difference)
    x = tested.test.difference[used]
    if not len(x):
        return None
    share = _shares(x, np.square(tested.test.standard_error[used]))
    clusters = np.unique(workload[used], return_inverse=True)[1].reshape(-1)
    mean = float(np.sum(share * x))
    sums = np.bincount(clusters, share * (x - mean))
    half = math.nan
    if len(sums) >= 2:
        between = len(sums) / (len(sums) - 1) * float(np.sum(np.square(sums)))
        runs = (np.broadcast_to(each, used.shape)[used] for each in (tested.runs.variance, tested.runs.df))
        variance, run_df = runs
        shared = float(np.sum(share * tested.contrasts.run_scale[used] * variance))
        df = _satterthwaite(between, len(sums) - 1.0, shared, float(np.min(run_df)))
        if df >= FEWEST_DF:
            half = float(special.stdtrit(df, 0.5 + confidence / 2.0)) * math.sqrt(between + shared)
    return LatencyChange(
        cases=len(x),
        workloads=len(sums),
        change=math.expm1(mean),
        interval=(math.expm1(mean - half), math.expm1(mean + half)) if math.isfinite(half) else None,
    )


def _shares(x: Floats, variance: Floats) -> Floats:
    """The weight of each case, together 1."""
    known = np.isfinite(variance)
    if not known.any():
        return np.full(len(x), 1.0 / len(x))
    variance = np.where(known, variance, np.max(variance[known]))
    alone = 1.0 / variance
    mean = np.sum(alone * x) / np.sum(alone)
    excess = float(np.sum(alone * np.square(x - mean))) - (len(x) - 1)
    spread = float(np.sum(alone) - np.sum(np.square(alone)) / np.sum(alone))
    among = max(0.0, excess / spread) if spread > 0 else 0.0
    weight = 1.0 / (variance + among)
    shares: Floats = weight / np.sum(weight)
    return shares


def _satterthwaite(first: float, first_df: float, second: float, second_df: float) -> float:
    """Degrees of freedom of the sum of two variances; infinite `second_df` stands for a known one."""
    parts = first**2 / first_df + second**2 / second_df
    return (first + second) ** 2 / parts if parts > 0 else first_df


SIDES = ("base", "head")

CLOCK_MOVED = 0.01
"""From this relative change of the SM clock on, device time is given in cycles too."""

_CLOCKS = (Metric.LATENCY, Metric.DEVICE_TIME, Metric.ISSUE_TIME)
_PLANNED = (Metric.LATENCY, Metric.SPEEDUP)


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
) -> Comparison:
    """Judge `head` against `base`, metric by metric, over the cases that match.

    `trials` is a trials frame (`db.queries.trials.trials_frame`) holding both sides; a `str` side is a
    build id. `history` is a trials frame of the same series' other runs, and may be the same frame: compared
    trials are passed over; or what reads one once the cases are matched. With `machine_id` None the machine
    with most matched cases is taken; the others are named in `left_out`. `noise_floors` is asked for those
    of the machine where advice has no other noise to plan by. `asked` are further metrics, whose rows stand
    apart and decide nothing. Raises VerdictError when a side has
    no trial or a trial is on both sides.
    """
    policy = policy or Policy()
    base, head = as_selection(base), as_selection(head)
    sides = split_sides(trials, base, head)
    matched = match_cases(sides, policy, machine_id)
    summaries = _summaries(sides, matched)
    floors = cache(partial(noise_floors, matched.machine_id or ""))
    further = with_test(asked)
    past, eager_ns = _past(history, sides, matched, further), _eager_ns(matched, summaries)
    measured = _judge_measured(matched, past, policy, floors, eager_ns=eager_ns, further=further)
    base_side, head_side = with_hashes(describe_sides(sides, base, head), matched.trials, matched.case)
    same_build = set(base_side.build_ids) == set(head_side.build_ids)
    context = _context(matched, summaries, measured, policy, same_build=same_build)
    every_row = tuple(_rows(matched, context))
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
        geomean=_geomean(summaries, matched, measured, policy),
        rows=rows,
        asked=tuple(_asked_rows(matched, every_row, asked)),
        verdict=overall_verdict(rows, policy),
        changed_components=changed_components(base_side, head_side),
        canary_change=_relative(context.canaries.shown),
        host_canary_change=_relative(context.canaries.shown_host),
        timing=_gpu_methods(matched.trials),
        wild_trials=int(np.count_nonzero(wild_trials(matched.trials))),
        advice=advice(
            rows, matched.keys, trial_seconds(matched.trials, matched.case, len(matched.keys)), policy
        ),
        sentences=(),
        policy=policy,
    )
    return comparison.model_copy(update={"sentences": sentences(comparison)})


_Past = tuple[Past, LogValues]
"""Earlier trials of the compared cases, and their values."""


@dataclass(frozen=True)
class _Metric:
    tested: Tested
    decisions: MetricDecisions
    margin: Floats


@dataclass(frozen=True)
class _Measured:
    metrics: dict[Metric, _Metric]
    parts: Moves
    device_parts: Moves
    bounds: tuple[Bound | None, ...]
    cycles: Floats


def _judge_measured(
    matched: MatchedCases,
    past: _Past | None,
    policy: Policy,
    floors: Callable[[], Sequence[NoiseFloor]],
    *,
    eager_ns: Floats,
    further: Sequence[Metric],
) -> _Measured:
    """Test every measured metric over all matched cases but the canary's, and both parts of each speedup."""
    cases = len(matched.keys)
    bounds = case_bounds(matched.trials, matched.case, cases, policy)
    classes = class_numbers(bounds, [key.workload for key in matched.keys], matched.canary, policy)
    compared = layout(matched.trials, matched.case)
    sides = Groups(compared.case * 2 + compared.side, 2 * cases)
    values = log_values(matched.trials, sides, eager_ns, further)
    earlier = None if past is None else past[1]

    canary = np.array(matched.canary, dtype=np.bool_)
    clocks = {
        metric: contrast(compared.with_values(values.metrics[metric]), cases, policy) for metric in _CLOCKS
    }

    def shown(metric: Metric, number: int) -> Shown:
        return Shown(
            canaries=run_changes(clocks, metric, canary & (classes == number)),
            share=policy.run_ratio_share if metric in SPEEDUPS else float(metric is not Metric.PEAK_MEMORY),
            floor=lambda: known_cv(floors(), metric),
        )

    def test(x: Floats, before: Floats | None, metric: Metric) -> Tested:
        history = Past.empty() if past is None or before is None else past[0].with_values(before)
        return examine_cases(
            compared.with_values(x),
            history,
            cases,
            policy,
            classes,
            canary=canary,
            shown=partial(shown, metric),
        )

    def judge(tested: Tested, metric: Metric, families: int) -> _Metric:
        effect, margin = _thresholds(matched, metric, policy)
        decisions = judge_cases(
            tested,
            policy,
            minimum_effect=effect,
            margin=margin,
            families=families,
            counted=~canary,
            planned=metric in _PLANNED,
            floor_cv=lambda: floor_variations(floors(), metric, bounds),
        )
        return _Metric(tested, decisions, margin)

    tested = {
        metric: test(values.metrics[metric], None if earlier is None else earlier.metrics[metric], metric)
        for metric in (*MEASURED_METRICS, *further)
    }
    in_verdict = [each for metric, each in tested.items() if metric not in further]
    families = max(1, sum(bool(enough_trials(t, policy).any()) for t in in_verdict))

    def parts(eager: str, compiled: str, metric: Metric) -> Moves:
        both = []
        for name in (eager, compiled):
            part = test(getattr(values, name), None if earlier is None else getattr(earlier, name), metric)
            both.append((part, judge(part, Metric.LATENCY, 1).decisions))
        return Moves.of(*both)

    decided = {
        metric: judge(each, metric, 1 if metric in further else families) for metric, each in tested.items()
    }
    return _Measured(
        decided,
        parts=parts("eager", "compiled", Metric.LATENCY),
        device_parts=parts("eager_device", "compiled_device", Metric.DEVICE_TIME),
        bounds=bounds,
        cycles=_cycles(test(values.cycles, None, Metric.DEVICE_TIME), tested[Metric.DEVICE_TIME]),
    )


def _cycles(cycles: Tested, device: Tested) -> Floats:
    """Log change of device time in cycles; NaN where the SM clock is unknown or stood still."""
    clock = cycles.test.difference - device.test.difference
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(clock) >= np.log1p(CLOCK_MOVED), cycles.test.difference, np.nan)


def _relative(change: float | None) -> float | None:
    return None if change is None else math.expm1(change)


def _gpu_methods(trials: DataFrame) -> tuple[str, ...]:
    """How the trials on a GPU were timed; nothing of those on a CPU."""
    if "timing_method" not in trials:
        return ()
    return tuple(method for method in GPU_METHODS if equal_to(trials["timing_method"], method).any())


def _context(
    matched: MatchedCases,
    summaries: dict[str, DataFrame],
    measured: _Measured,
    policy: Policy,
    *,
    same_build: bool,
) -> Context:
    canaries = np.array(matched.canary, dtype=np.bool_)
    base, head = (summaries[side] for side in SIDES)
    of_base, of_head = _places(matched, base), _places(matched, head)
    metrics = measured.metrics
    on_gpu = ~equal_to(matched.trials["device"], "cpu") & matched.trials["device"].notna().to_numpy()
    return Context(
        keys=matched.keys,
        base=side_values(base, of_base),
        head=side_values(head, of_head),
        eager=is_eager(base)[of_base].tolist(),
        parts=measured.parts,
        device_parts=measured.device_parts,
        bounds=measured.bounds,
        canaries=canary_changes(
            {metric: metrics[metric].tested.test.difference for metric in _CLOCKS},
            canaries,
            [key.workload for key in matched.keys],
            policy,
            gpu=bool(on_gpu.any()),
        ),
        cycles=measured.cycles.tolist(),
        findings={
            metric: Findings.of(metric, each.tested, each.decisions, each.margin, policy.confidence)
            for metric, each in metrics.items()
        },
        timed_by_two=_timed_by_two(matched),
        same_build=same_build,
        same_code=same_code(matched.trials, matched.case, len(matched.keys)),
        policy=policy,
    )


def _eager_ns(matched: MatchedCases, summaries: dict[str, DataFrame]) -> Floats:
    """The pooled eager of each case's workload, of base and head in turn."""
    of_sides = [
        floats(summaries[side]["pooled_eager_ns"])[_places(matched, summaries[side])] for side in SIDES
    ]
    return np.stack(of_sides, axis=1).reshape(-1)


def _timed_by_two(matched: MatchedCases) -> dict[int, tuple[str, str]]:
    """By case: the methods of compiled and eager, where a trial took their device times by two."""
    apart = timed_apart(matched.trials)
    if not apart.any():
        return {}
    mixed = matched.trials[apart]
    methods = zip(mixed["timing_method"].tolist(), mixed["control_timing_method"].tolist(), strict=True)
    return dict(zip(matched.case[apart].tolist(), methods, strict=True))


def _thresholds(matched: MatchedCases, metric: Metric, policy: Policy) -> tuple[Floats, Floats]:
    """Minimum effect and margin of every case, overrides applied."""
    limits = [policy.for_case(key.workload, key.strategy, metric) for key in matched.keys]
    both = ([t.minimum_effect for t in limits], [t.unchanged_margin for t in limits])
    return np.array(both[0]), np.array(both[1])


def _past(
    history: DataFrame | Callable[[MatchedCases], DataFrame] | None,
    sides: DataFrame,
    matched: MatchedCases,
    further: Sequence[Metric],
) -> _Past | None:
    if history is None or not matched.keys:
        return None
    if callable(history):
        history = history(matched)
    earlier = equal_to(history["machine_id"], str(matched.machine_id)) & ~_compared(history, sides)
    # A history has sixty columns, of which the copy needs a fourth.
    wanted = (*PAST_COLUMNS, *GPU_COLUMNS, CODE_COLUMN, *columns_of(further))
    mine = history[[name for name in wanted if name in history]]
    numbers = {key.ids: i for i, key in enumerate(matched.keys)}
    ordered = in_time_order(mine if earlier.all() else mine[earlier])
    return past_layout(ordered, numbers, _timing(matched), further)


def _timing(matched: MatchedCases) -> list[str]:
    """The method of timing of every case: all its trials have one."""
    if "timing_method" not in matched.trials:
        return []
    methods = [""] * len(matched.keys)
    texts = matched.trials["timing_method"].astype("str").tolist()
    for case, method in zip(matched.case.tolist(), texts, strict=True):
        methods[case] = comparable_timing(method) or methods[case]
    return methods


def _compared(history: DataFrame, sides: DataFrame) -> Bools:
    """One flag per trial of `history`: whether it is among those of `sides`."""
    of_run, runs = history["run_id"].array.factorize()
    theirs = set(sides["run_id"].array.unique().tolist())
    compared: Bools = np.array([run in theirs for run in runs.tolist()], dtype=np.bool_)[of_run]
    places = np.flatnonzero(compared)
    ids = set(sides["trial_id"].tolist()) if len(places) else set()
    compared[places] = [each in ids for each in history["trial_id"].array.take(places).tolist()]
    return compared


def _summaries(sides: DataFrame, matched: MatchedCases) -> dict[str, DataFrame]:
    """Each side's cases on the machine, matched or not, summed up as everywhere else in the project."""
    on_machine = sides["machine_id"] == matched.machine_id
    # Of a matched case only what is compared: beside it there may be trials that were timed otherwise.
    compared = {key.ids for key in matched.keys}
    matching = set(matched.trials["trial_id"].tolist())
    ids = (sides[name].tolist() for name in ("workload_id", "strategy_id", "trial_id"))
    on_machine &= np.array(
        [(w, s) not in compared or trial in matching for w, s, trial in zip(*ids, strict=True)],
        dtype=np.bool_,
    )
    here = sides if on_machine.all() else sides[on_machine]
    names = np.array(SIDES, dtype=object)[here["side"].to_numpy(dtype=np.int64)]
    # As two builds of one frame: most of what a summary costs is the same for few rows and for many.
    values = case_values(here.assign(build_id=array(names, dtype="str")))
    # In the order of builds.
    heads_from = int(np.count_nonzero(equal_to(values["build_id"], SIDES[0])))
    return {SIDES[0]: values.iloc[:heads_from], SIDES[1]: values.iloc[heads_from:]}


def _places(matched: MatchedCases, summary: DataFrame) -> Ints:
    """Where every matched case stands in the summary of a side, in the order of its number."""
    cases = zip(summary["workload_id"].tolist(), summary["strategy_id"].tolist(), strict=True)
    places = {case: place for place, case in enumerate(cases)}
    return np.array([places[key.ids] for key in matched.keys], dtype=np.int64)


def _geomean(
    summaries: dict[str, DataFrame], matched: MatchedCases, measured: _Measured, policy: Policy
) -> GeomeanChange:
    means = matched_geomeans(summaries)
    base, head = means.sides["base"], means.sides["head"]
    cases = ~np.array(matched.canary, dtype=np.bool_)
    eager = np.array([key.strategy_kind == StrategyKind.EAGER.value for key in matched.keys], dtype=np.bool_)
    numbers = {key.workload_id: number for number, key in enumerate(matched.keys)}
    workload = np.array([numbers[key.workload_id] for key in matched.keys], dtype=np.int64)

    def over(chosen: Bools, metric: Metric = Metric.LATENCY) -> LatencyChange | None:
        tested = measured.metrics[metric].tested
        return latency_change(tested, cases & chosen, workload, policy.confidence)

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


def _rows(matched: MatchedCases, context: Context) -> Iterator[Row]:
    """Rows case by case, metrics in their order, the canary's left out."""
    counted: dict[int, list[Counted]] = {}
    for each in count_rows(matched.trials, matched.case, len(matched.keys)):
        counted.setdefault(each.case, []).append(each)
    by_metric = context.findings
    for case, is_canary in enumerate(matched.canary):
        if is_canary:
            continue
        for findings in by_metric.values():
            row = measured_row(context, case, findings, by_metric[Metric.SPEEDUP])
            if row is None and findings.metric is Metric.DEVICE_SPEEDUP and case in context.timed_by_two:
                row = incomparable_row(context, case, findings)
            if row is not None:
                yield row
        for each in counted.get(case, []):
            yield counted_row(context, each)


def _asked_rows(matched: MatchedCases, rows: Sequence[Row], asked: Sequence[Metric]) -> Iterator[Row]:
    yield from (row for row in rows if row.metric in asked and row.metric in ASKED_METRICS)
    if Metric.THROUGHPUT in asked:
        latencies = [row for row in rows if row.metric is Metric.LATENCY]
        items = items_per_step(matched.trials)
        of_case = dict(zip(matched.case.tolist(), items.tolist(), strict=True))
        numbers = {key.ids: number for number, key in enumerate(matched.keys)}
        yield from throughput_rows(latencies, np.array([of_case[numbers[row.case.ids]] for row in latencies]))
