"""From trials to the log values that are tested: one per trial and metric.

What is counted, not timed: graph breaks, recompiles, and whether a case passes: by side, and in words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame

from compilewatch.db.columns.metrics import FURTHER_COLUMNS, FURTHER_METRICS, METRICS, is_counted
from compilewatch.db.columns.source_metrics import may_be_zero, metrics_among
from compilewatch.db.judge.compare.comparable import comparable_timing
from compilewatch.db.judge.decide import decide_count, decide_passes
from compilewatch.db.judge.sequence import occasions
from compilewatch.db.judge.statistics.contrast import Observations
from compilewatch.db.judge.statistics.noise import Past
from compilewatch.db.metrics.eligibility import failure_kinds, passed_mask, positive, timed_mask
from compilewatch.db.metrics.groups import Bools, Floats, Groups, Ints, equal_to, floats, numbered
from compilewatch.db.metrics.trial_times import is_eager, measured
from compilewatch.db.records.trial import NumericsStatus
from compilewatch.db.records.vocabulary import Metric, Verdict
from compilewatch.db.units import words

LOG_VALUE_COLUMNS = (
    *("strategy_kind", "status", "numerics_status", "suspect"),
    *("latency_ns", "control_latency_ns", "trial_compile_cost_ns", "peak_bytes"),
)
"""Of a trials frame, those that `log_values` looks at."""

GPU_COLUMNS = (
    *("device_ns", "issue_ns", "control_device_ns", "timing_method", "control_timing_method"),
    "sm_clock_mhz",
    *FURTHER_COLUMNS,
)
"""The same of what only trials on a GPU have; a frame may lack them."""


@dataclass(frozen=True)
class LogValues:
    """Natural logs, one entry per trial, NaN where the trial has no such value.

    `eager` and `compiled` are the two latencies of one compiled process: log speedup is their difference.
    `eager_device` and `compiled_device` are the same on the device alone, `cycles` is device time in cycles
    of the SM clock.
    """

    metrics: dict[Metric, Floats]
    eager: Floats
    compiled: Floats
    eager_device: Floats
    compiled_device: Floats
    cycles: Floats


def log_values(
    trials: DataFrame, groups: Groups, eager_ns: Floats | None = None, further: Sequence[Metric] = ()
) -> LogValues:
    """Log values of every trial of a trials frame that counts (see `db.metrics.eligibility`).

    Each of `groups` holds the trials that are one value: those of a case on one side, or in one run. A mean
    of logs is then the log of the value that is shown. `eager_ns` is the eager of each group's workload
    (`db.metrics.trial_times`), by default its own.

    Speedup, compile cost and break-even belong to compiled trials with eager measured in their own process.
    Where a group has a compile cost of zero or less, or a break-even that is never, there is no logarithm:
    NaN. A device speedup belongs to trials whose two device times were taken by one method. `further`:
    metrics beside those that every comparison has.
    """
    timed, compiled = timed_mask(trials), ~is_eager(trials)
    latency = np.where(timed, positive(trials["latency_ns"]), np.nan)
    control = np.where(timed & compiled, positive(trials["control_latency_ns"]), np.nan)
    cost = np.where(timed & compiled, floats(trials["trial_compile_cost_ns"]), np.nan)
    cost = np.where(groups.present(cost).positive[groups.codes], cost, np.nan)
    device, issue, control_device = (
        np.where(timed, _positive_or_none(trials, name), np.nan)
        for name in ("device_ns", "issue_ns", "control_device_ns")
    )
    control_device = np.where(compiled & ~timed_apart(trials), control_device, np.nan)
    metrics = {
        Metric.LATENCY: latency,
        Metric.SPEEDUP: control / latency,
        Metric.DEVICE_TIME: device,
        Metric.ISSUE_TIME: issue,
        Metric.DEVICE_SPEEDUP: control_device / device,
        Metric.COMPILE_COST: cost,
        Metric.PEAK_MEMORY: np.where(passed_mask(trials), positive(trials["peak_bytes"]), np.nan),
        **{
            metric: np.where(timed, _positive_or_none(trials, METRICS[metric].column), np.nan)
            for metric in (*FURTHER_METRICS, *further)
        },
    }
    logs = {metric: np.log(values) for metric, values in metrics.items()}
    steps = _log_steps(np.log(control), logs[Metric.SPEEDUP], logs[Metric.COMPILE_COST], groups, eager_ns)
    return LogValues(
        logs | {Metric.BREAK_EVEN: steps},
        eager=np.log(control),
        compiled=np.where(np.isnan(control), np.nan, np.log(latency)),
        eager_device=np.log(control_device),
        compiled_device=np.where(np.isnan(control_device), np.nan, np.log(device)),
        cycles=np.log(device * _positive_or_none(trials, "sm_clock_mhz")),
    )


@dataclass(frozen=True)
class WithoutRatio:
    """A metric of a case in which a trial has the value 0, to which there is no ratio: the mean of each side,
    and its trials. `tested`: by differences, in parts of the largest value; no time or size is 0, and one is
    not tested.
    """

    base: float
    head: float
    trials: tuple[int, int]
    tested: bool


def stated_values(
    trials: DataFrame, compared: Observations, metric: Metric
) -> tuple[Floats, dict[int, WithoutRatio]]:
    """Of a figure of the source's own what is tested, one entry per trial, and its cases without a ratio.

    Natural logs, NaN where a trial has no value. Where one has the value 0 every value of the case is stated
    in parts of the largest: what differs by a hundredth of it there differs by about as much in logs, so the
    noise of all cases is one. What is 0 throughout was not measured.
    """
    values = np.where(timed_mask(trials), floats(trials[METRICS[metric].column]), np.nan)
    values = np.where(np.isfinite(values), values, np.nan)
    cases = {}
    x = np.log(np.where(values > 0, values, np.nan))
    for case in np.unique(compared.case[values <= 0]).tolist():
        mine = (compared.case == case) & ~np.isnan(values)
        largest = float(np.abs(values[mine]).max())
        sides = [values[mine & (compared.side == side)] for side in (0, 1)]
        tested = may_be_zero(metric)
        x[compared.case == case] = values[compared.case == case] / largest if largest and tested else np.nan
        if largest and all(map(len, sides)):
            base, head = (float(side.mean()) for side in sides)
            cases[case] = WithoutRatio(base, head, (len(sides[0]), len(sides[1])), tested)
    return x, cases


def columns_of(metrics: Iterable[Metric]) -> tuple[str, ...]:
    """The columns of a trial that `log_values` needs for further metrics."""
    columns = [METRICS[metric].column for metric in metrics]
    return (*columns, "samples") if columns else ()


def _log_steps(
    control: Floats, speedup: Floats, cost: Floats, groups: Groups, eager_ns: Floats | None
) -> Floats:
    """Log break-even of each trial, all in logs, to first order around the means of its group.

    The steps of a group are cost / (eager - eager / speedup) of its means, which the mean of these gives.
    """

    def mean(x: Floats) -> Floats:
        present = groups.present(x)
        with np.errstate(invalid="ignore"):
            return np.bincount(present.codes, present.values, groups.count) / present.n

    with np.errstate(invalid="ignore", divide="ignore"):
        times = np.where((each := mean(speedup)) > 0, each, np.nan)
        eager = mean(control) if eager_ns is None else np.log(eager_ns)
        steps = mean(cost) - eager - np.log(-np.expm1(-times))
        own = cost - control - speedup / np.expm1(times)[groups.codes]
    return (steps - mean(own))[groups.codes] + own


def timed_apart(trials: DataFrame) -> Bools:
    """One flag per trial: the device times of eager and compiled were taken by two methods."""
    if "control_timing_method" not in trials:
        return np.zeros(len(trials), dtype=np.bool_)
    own, control = trials["timing_method"], trials["control_timing_method"]
    apart = own.notna() & control.notna() & (own.astype("str") != control.astype("str"))
    return apart.to_numpy(dtype=np.bool_)


def _positive_or_none(trials: DataFrame, name: str) -> Floats:
    """The positive values of a column that a frame may lack, NaN elsewhere."""
    return measured(trials, name) if name in trials else np.full(len(trials), np.nan)


def layout(trials: DataFrame, case: Ints) -> Observations:
    """Where each compared trial stands, ready to meet any of its values.

    `trials` in time order with column `side`; `case` the number of each one's case.
    """
    side, order = trials["side"].to_numpy(dtype=np.int64), np.arange(len(trials))
    return Observations(case, side, occasions(trials), order, np.full(len(trials), np.nan))


PAST_COLUMNS = (
    *("trial_id", "started_at", "machine_id", "workload_id", "strategy_id", "run_id", "build_id"),
    *LOG_VALUE_COLUMNS,
)
"""Of a trials frame, those that `past_layout` looks at."""


CODE_COLUMN = "code_hash"
"""What tells runs of one build with other code of one's own apart; a frame may lack it."""


def past_layout(
    past: DataFrame,
    cases: dict[tuple[str, str], int],
    timing: Sequence[str] = (),
    further: Sequence[Metric] = (),
) -> tuple[Past, LogValues]:
    """The same for earlier trials of the compared cases, and their values.

    `past`: trials of one machine in time order, none of them compared; `cases` numbers the pairs of workload
    and strategy ids, other trials are passed over, and so are those of a case that were not timed by its
    method, `timing[case]`.
    """
    of_workload, workloads = past["workload_id"].astype("str").factorize(use_na_sentinel=False)
    of_strategy, strategies = past["strategy_id"].astype("str").factorize(use_na_sentinel=False)
    numbers = [[cases.get((str(w), str(s)), -1) for s in strategies] for w in workloads]
    series = np.array(numbers, dtype=np.int64).reshape(len(workloads), len(strategies))[
        of_workload, of_strategy
    ]
    if len(timing) and "timing_method" in past:
        methods = past["timing_method"].astype("str").map(comparable_timing).to_numpy(dtype=object)
        series = np.where(methods == np.array(timing, dtype=object)[series], series, -1)
    known = series >= 0
    mine = past if known.all() else past[known]
    # Numbers in order of first appearance.
    run, build = (mine[name].astype("str").factorize()[0].astype(np.int64) for name in ("run_id", "build_id"))
    if CODE_COLUMN in mine:
        code, codes = mine[CODE_COLUMN].array.factorize(use_na_sentinel=False)
        build = build * len(codes) + code.astype(np.int64)
    keys = (series[known] * (run.max(initial=0) + 1) + run) * (build.max(initial=0) + 1) + build
    distinct, codes = numbered(keys)
    values = log_values(mine, Groups(codes, len(distinct)), further=further)
    return Past(series[known], run, build, np.full(len(mine), np.nan)), values


COUNTS = {
    metric: metric.value for metric in (Metric.GRAPH_BREAKS, Metric.RECOMPILES, Metric.COMPILES_AFTER_READY)
}


@dataclass(frozen=True)
class Counted:
    """One counted metric of one case. `base` and `head` are the counts, or words for the pass set."""

    case: int
    metric: Metric
    base: float | str
    head: float | str
    verdict: Verdict
    trials: tuple[int, int]
    suspected: bool
    reason: str


def count_rows(trials: DataFrame, case: Ints, cases: int) -> list[Counted]:
    """Graph breaks, recompiles, a source's counts and the pass set of every case, as far as both sides know.

    A case that ran on both sides has no row for its pass set where a side's numbers were never checked.

    `trials` has column `side`; `case` is the number of each trial's case.
    """
    cells = Groups(case * 2 + trials["side"].to_numpy(dtype=np.int64), 2 * cases)
    rows = []
    passed = passed_mask(trials)
    stated = {metric: metric for metric in metrics_among(trials.columns) if is_counted(metric)}
    for metric, column in (COUNTS | stated).items():
        counts = _known_by_cell(cells, np.where(passed, floats(trials[column]), np.nan))
        for number, (base, head) in enumerate(zip(counts[::2], counts[1::2], strict=True)):
            if base and head:
                rows.append(compare_counts(number, metric, base, head))
    outcomes = _outcomes(cells, passed, trials)
    for number, (before, now) in enumerate(zip(outcomes[::2], outcomes[1::2], strict=True)):
        is_decided = (before.known and now.known) or before.failed or now.failed
        if is_decided and before.trials and now.trials:
            rows.append(compare_outcomes(number, before, now))
    return rows


def _known_by_cell(cells: Groups, values: Floats) -> list[list[float]]:
    """Of each cell the values that are numbers, ascending."""
    present = cells.present(np.where(np.isfinite(values), values, np.nan))
    ascending, ends = present.values.tolist(), np.cumsum(present.n).tolist()
    return [ascending[start:end] for start, end in pairwise([0, *ends])]


def _outcomes(cells: Groups, passed: Bools, trials: DataFrame) -> list[CaseOutcome]:
    every = np.ones(len(trials), dtype=np.bool_)
    counts = [cells.sum(flags).astype(np.int64) for flags in (every, checked_mask(trials), ~passed)]
    kinds: list[list[Any]] = [[] for _ in range(cells.count)]
    failed = failure_kinds(trials).to_numpy(dtype=object)[~passed].tolist()
    for cell, kind in zip(cells.codes[~passed].tolist(), failed, strict=True):
        kinds[cell].append(kind)
    return [
        CaseOutcome(ran, checked, bad, _most_frequent(mine) if bad else "")
        for (ran, checked, bad), mine in zip(np.transpose(counts).tolist(), kinds, strict=True)
    ]


def checked_mask(trials: DataFrame) -> Bools:
    """One flag per trial: it ran, and somebody looked at its numbers. Imported results often say nothing."""
    status = trials["numerics_status"]
    return ~(status.isna().to_numpy() | equal_to(status, NumericsStatus.NOT_CHECKED.value))


def known(values: Floats, chosen: Bools | Sequence[int]) -> Floats:
    mine = values[chosen]
    return mine[np.isfinite(mine)]


def compare_counts(
    case: int, metric: Metric, base: Sequence[float] | Floats, head: Sequence[float] | Floats
) -> Counted:
    """By `decide_count`, of the ranges of both sides."""
    low, high = (float(min(base)), float(max(base))), (float(min(head)), float(max(head)))
    verdict = decide_count(low, high)
    reason = f"{_range(low)} to {_range(high)}, compared exactly."
    if verdict is Verdict.INCONCLUSIVE:
        both = f"{_range(low)} on the base side, {_range(high)} on the head"
        reason = f"The count varies between trials: {both}."
    return Counted(
        case=case,
        metric=metric,
        base=float(median(base)),
        head=float(median(head)),
        verdict=verdict,
        trials=(len(base), len(head)),
        suspected=verdict is Verdict.INCONCLUSIVE,
        reason=reason,
    )


def _range(ends: tuple[float, float]) -> str:
    return f"{ends[0]:.0f}" if ends[0] == ends[1] else f"{ends[0]:.0f} to {ends[1]:.0f}"


@dataclass(frozen=True)
class CaseOutcome:
    """How the trials of a case ended; `kind` is the most frequent kind of failure."""

    trials: int
    checked: int
    failed: int
    kind: str

    @property
    def known(self) -> bool:
        """Whether it can be said to pass or to fail."""
        return bool(self.checked or self.failed)

    @property
    def word(self) -> str:
        """How they ended, in the fewest words: "pass", "crash", "wrong_result in 1 of 3"."""
        if not self.failed:
            return "pass" if self.checked else "ran, numbers not checked"
        return self.kind if self.failed == self.trials else f"{self.kind} in {self.failed} of {self.trials}"


def outcome_of(passed: Bools, checked: Bools, kinds: NDArray[np.object_]) -> CaseOutcome:
    """`kinds`: the kinds of failure of the trials that failed."""
    return CaseOutcome(
        trials=len(passed),
        checked=int(np.count_nonzero(checked)),
        failed=int(np.count_nonzero(~passed)),
        kind=_most_frequent(kinds),
    )


def _most_frequent(kinds: Iterable[Any]) -> str:
    """Of the kinds of failure of some trials; the first among equals, empty where there is none."""
    counts = Counter("failed" if pd.isna(kind) else str(kind) for kind in kinds)
    return max(counts, key=counts.__getitem__, default="")


def compare_outcomes(case: int, base: CaseOutcome, head: CaseOutcome) -> Counted:
    """By `decide_passes`, of how the trials of both sides ended."""
    verdict = decide_passes((base.failed, base.trials), (head.failed, head.trials))
    return Counted(
        case=case,
        metric=Metric.NUMERICS,
        base=base.word,
        head=head.word,
        verdict=verdict,
        trials=(base.trials, head.trials),
        suspected=verdict is Verdict.INCONCLUSIVE,
        reason=_outcome_reason(verdict, base, head),
    )


def _outcome_reason(verdict: Verdict, base: CaseOutcome, head: CaseOutcome) -> str:
    if verdict is Verdict.UNCHANGED:
        return "Fails on both sides." if base.failed else "Passes on both sides."
    if verdict is Verdict.REGRESSED:
        before = "Passed" if base.checked else "Ran"
        return f"{before} on the base side, fails now: {words(head.word)}."
    if verdict is Verdict.IMPROVED:
        now = "passes" if head.checked else "runs"
        return f"Failed on the base side ({words(base.word)}), {now} now."
    return f"Fails in some trials only: base {words(base.word)}, head {words(head.word)}."
