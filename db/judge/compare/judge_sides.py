"""Both sides matched and summed up, every metric tested and judged: what rows are made of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from pandas import DataFrame, array

from compilewatch.db.columns.metrics import MEASURED_METRICS, SPEEDUPS, higher_is_better, is_counted
from compilewatch.db.columns.source_metrics import metrics_among
from compilewatch.db.judge.compare.comparable import MatchedCases, comparable_timing, match_cases, same_code
from compilewatch.db.judge.compare.measured import (
    CODE_COLUMN,
    GPU_COLUMNS,
    PAST_COLUMNS,
    Counted,
    LogValues,
    WithoutRatio,
    columns_of,
    count_rows,
    layout,
    log_values,
    past_layout,
    stated_values,
    timed_apart,
)
from compilewatch.db.judge.compare.rows import (
    Context,
    counted_row,
    findings_of,
    incomparable_row,
    measured_row,
    side_values,
)
from compilewatch.db.judge.compare.sides import Selection, in_time_order, split_sides
from compilewatch.db.judge.decide import Decision, Evidence, decide, enough_trials
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.results import Row
from compilewatch.db.judge.statistics.contrast import contrast
from compilewatch.db.judge.statistics.evidence import examine_cases
from compilewatch.db.judge.statistics.noise import Past, Shown
from compilewatch.db.judge.statistics.noise_floor import (
    NoiseFloor,
    canary_changes,
    case_bounds,
    class_numbers,
    floor_variations,
    known_cv,
    run_changes,
)
from compilewatch.db.judge.who_moved import Moves
from compilewatch.db.metrics.cases import case_values
from compilewatch.db.metrics.groups import Bools, Floats, Groups, Ints, equal_to, floats
from compilewatch.db.metrics.trial_times import is_eager
from compilewatch.db.records.vocabulary import Bound, Metric

SIDES = ("base", "head")

CLOCK_MOVED = 0.01
"""From this relative change of the SM clock on, device time is given in cycles too."""

_CLOCKS = (Metric.LATENCY, Metric.DEVICE_TIME, Metric.ISSUE_TIME)
_PLANNED = (Metric.LATENCY, Metric.SPEEDUP)


@dataclass(frozen=True)
class Judged:
    """The trials of both sides, their cases summed up by side, and every metric with its verdicts."""

    sides: DataFrame
    matched: MatchedCases
    summaries: dict[str, DataFrame]
    metrics: dict[Metric, Decided]
    context: Context

    def measured_rows(self, metrics: Collection[Metric]) -> Iterator[Row]:
        """Those of `metrics`, case by case, metrics in their order, the canary's left out."""
        for case, is_canary in enumerate(self.matched.canary):
            if not is_canary:
                yield from self._measured(case, metrics)

    def rows(self) -> Iterator[Row]:
        """Those of every metric, and what was counted, case by case."""
        matched = self.matched
        counted: dict[int, list[Counted]] = {}
        for each in count_rows(matched.trials, matched.case, len(matched.keys)):
            counted.setdefault(each.case, []).append(each)
        for case, is_canary in enumerate(matched.canary):
            if not is_canary:
                yield from self._measured(case, self.metrics)
                yield from (counted_row(self.context, each) for each in counted.get(case, []))

    def _measured(self, case: int, metrics: Collection[Metric]) -> Iterator[Row]:
        context = self.context
        for metric, findings in context.findings.items():
            if metric not in metrics:
                continue
            row = measured_row(context, findings[case])
            if row is None and metric is Metric.DEVICE_SPEEDUP and case in context.timed_by_two:
                row = incomparable_row(context, findings[case])
            if row is not None:
                yield row


def judge_sides(
    trials: DataFrame,
    base: Selection,
    head: Selection,
    policy: Policy,
    *,
    history: DataFrame | Callable[[MatchedCases], DataFrame] | None = None,
    machine_id: str | None = None,
    noise_floors: Callable[[str], Sequence[NoiseFloor]] = lambda _machine_id: (),
    further: Sequence[Metric] = (),
    until_decided: bool = False,
) -> Judged:
    """Arguments and errors of `db.judge.compare.upgrade.compare_builds`, with `further` metrics tested."""
    sides = split_sides(trials, base, head)
    matched = match_cases(sides, policy, machine_id)
    summaries = _summaries(sides, matched)
    floors = cache(partial(noise_floors, matched.machine_id or ""))
    past, eager_ns = _past(history, sides, matched, further), _eager_ns(matched, summaries)
    measured = _judge_measured(
        *(matched, past, policy, floors), eager_ns=eager_ns, further=further, until_decided=until_decided
    )
    builds = [set(sides["build_id"].array[sides["side"].array == side].unique()) for side in (0, 1)]
    context = _context(
        matched, summaries, measured, policy, same_build=builds[0] == builds[1], until_decided=until_decided
    )
    return Judged(sides, matched, summaries, measured.metrics, context)


_Past = tuple[Past, LogValues]
"""Earlier trials of the compared cases, and their values."""


@dataclass(frozen=True)
class Decided:
    """A metric decided, case by case, and by what evidence."""

    evidence: Evidence
    decision: Decision


@dataclass(frozen=True)
class _Measured:
    metrics: dict[Metric, Decided]
    parts: Moves
    device_parts: Moves
    bounds: tuple[Bound | None, ...]
    cycles: Floats
    without_ratio: dict[Metric, dict[int, WithoutRatio]]


def _judge_measured(
    matched: MatchedCases,
    past: _Past | None,
    policy: Policy,
    floors: Callable[[], Sequence[NoiseFloor]],
    *,
    eager_ns: Floats,
    further: Sequence[Metric],
    until_decided: bool,
) -> _Measured:
    """Test every measured metric over all matched cases but the canary's, and both parts of each speedup."""
    cases = len(matched.keys)
    bounds = case_bounds(matched.trials, matched.case, cases, policy)
    classes = class_numbers(bounds, [key.workload for key in matched.keys], matched.canary, policy)
    compared = layout(matched.trials, matched.case)
    sides = Groups(compared.case * 2 + compared.side, 2 * cases)
    stated = {
        metric: stated_values(matched.trials, compared, metric)
        for metric in metrics_among(matched.trials.columns)
        if not is_counted(metric)
    }
    values = log_values(matched.trials, sides, eager_ns, further)
    metrics = values.metrics | {metric: x for metric, (x, _) in stated.items()}
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

    def test(x: Floats, before: Floats | None, metric: Metric) -> Evidence:
        history = Past.empty() if past is None or before is None else past[0].with_values(before)
        return examine_cases(
            compared.with_values(x),
            history,
            cases,
            policy,
            classes,
            canary=canary,
            shown=partial(shown, metric),
            until_decided=until_decided,
        )

    def judge(evidence: Evidence, metric: Metric, families: int) -> Decided:
        effect, margin = _thresholds(matched, metric, policy)
        decision = decide(
            evidence,
            policy,
            minimum_effect=effect,
            margin=margin,
            families=families,
            counted=~canary,
            planned=metric in _PLANNED,
            floor_cv=lambda: floor_variations(floors(), metric, bounds),
            more_is_better=higher_is_better(metric),
        )
        return Decided(evidence, decision)

    tested = {
        metric: test(metrics[metric], None if earlier is None else earlier.metrics.get(metric), metric)
        for metric in (*MEASURED_METRICS, *stated, *further)
    }
    in_verdict = [each for metric, each in tested.items() if metric not in further]
    families = max(1, sum(bool(enough_trials(t, policy).any()) for t in in_verdict))

    def part(name: str, metric: Metric) -> tuple[Floats, Bools]:
        before = None if earlier is None else getattr(earlier, name)
        evidence = test(getattr(values, name), before, metric)
        return evidence.test.difference, judge(evidence, Metric.LATENCY, 1).decision.changed

    def parts(eager: str, compiled: str, metric: Metric) -> Moves:
        (of_eager, eager_moved), (of_compiled, compiled_moved) = part(eager, metric), part(compiled, metric)
        return Moves(of_eager, of_compiled, eager_moved, compiled_moved)

    # What is asked for besides has a level of its own, and shares it.
    shared = {True: max(1, len(further)), False: families}
    decided = {metric: judge(each, metric, shared[metric in further]) for metric, each in tested.items()}
    return _Measured(
        decided,
        parts=parts("eager", "compiled", Metric.LATENCY),
        device_parts=parts("eager_device", "compiled_device", Metric.DEVICE_TIME),
        bounds=bounds,
        cycles=_cycles(test(values.cycles, None, Metric.DEVICE_TIME), tested[Metric.DEVICE_TIME]),
        without_ratio={metric: cases for metric, (_, cases) in stated.items()},
    )


def _cycles(cycles: Evidence, device: Evidence) -> Floats:
    """Log change of device time in cycles; NaN where the SM clock is unknown or stood still."""
    clock = cycles.test.difference - device.test.difference
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(clock) >= np.log1p(CLOCK_MOVED), cycles.test.difference, np.nan)


def _context(
    matched: MatchedCases,
    summaries: dict[str, DataFrame],
    measured: _Measured,
    policy: Policy,
    *,
    same_build: bool,
    until_decided: bool,
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
            {metric: metrics[metric].evidence.test.difference for metric in _CLOCKS},
            canaries,
            [key.workload for key in matched.keys],
            policy,
            gpu=bool(on_gpu.any()),
        ),
        cycles=measured.cycles.tolist(),
        findings={
            metric: findings_of(metric, each.evidence, each.decision, policy.confidence)
            for metric, each in metrics.items()
        },
        timed_by_two=_timed_by_two(matched),
        without_ratio=measured.without_ratio,
        same_build=same_build,
        same_code=same_code(matched.trials, matched.case, len(matched.keys)),
        until_decided=until_decided,
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
