"""The times of trials that count, one value per trial, before anything is summed up: its latency, and that of
eager beside it, its control (`controls`).

Percentiles of a trial's steps, and how far steps and processes scatter.

The four times of a GPU per case: means over trials, speedup of each, and what bounds the case.

Where the eager of a compiled trial comes from, its control: the same inputs, machine, build and run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from pandas import DataFrame, Series

from compilewatch.db.columns.case import CASE_KEYS
from compilewatch.db.columns.trial import TIMED
from compilewatch.db.errors import UnitError
from compilewatch.db.metrics.eligibility import passed_mask, positive, suspect_mask, wild_trials
from compilewatch.db.metrics.groups import Bools, Floats, Groups, equal_to, floats
from compilewatch.db.records.sample_blobs import percentile_ns
from compilewatch.db.records.sampling_facts import FEWEST_FOR_P99
from compilewatch.db.records.strategies import EAGER, settings_of_name
from compilewatch.db.records.trial import (
    CONTROL_TIMES,
    DEVICE_TIMES,
    SPEEDUP_COLUMNS,
    SourceKind,
    StrategyKind,
    Summary,
    TimingMethod,
    Trial,
)

_RUN_KEYS = ["machine_id", "build_id", "workload_id", "run_id"]
_SETTINGS = "settings_of_name"


class Control(StrEnum):
    """Where eager's value beside a compiled one comes from."""

    IN_PROCESS = "in_process"  # eager samples interleaved with the compiled ones
    SAME_RUN = "same_run"  # eager trials of the same run, in other processes
    NONE = "none"


def is_eager(trials: DataFrame) -> Bools:
    """One flag per row of a frame with column `strategy_kind`."""
    return equal_to(trials["strategy_kind"], StrategyKind.EAGER.value)


def with_same_run(
    trials: DataFrame, cases: Groups, own: Floats, values: Floats
) -> tuple[Floats, list[Control]]:
    """Eager's value for every compiled trial, and per case where it comes from.

    `own`: the trial's own control, NaN without one. `values`: the trial's value, NaN where it does not count.
    A case without any own control takes the mean of the eager trials of its run that had the same settings;
    eager trials get none.
    """
    eager = is_eager(trials)
    own = np.where(eager | np.isnan(values), np.nan, own)
    has_own = cases.sum(~np.isnan(own)) > 0
    wanting = ~(eager | np.isnan(values) | has_own[cases.codes])
    control = own
    if wanting.any():
        alike = trials[_RUN_KEYS].assign(**{_SETTINGS: _settings(trials)})
        runs = Groups.by(alike, [*_RUN_KEYS, _SETTINGS])
        eager_of_run = runs.mean(np.where(eager, values, np.nan))[runs.codes]
        control = np.where(wanting, eager_of_run, own)
    has_control = cases.sum(~np.isnan(control)) > 0
    origin = [
        Control.IN_PROCESS if mine else Control.SAME_RUN if some else Control.NONE
        for mine, some in zip(has_own.tolist(), has_control.tolist(), strict=True)
    ]
    return control, origin


def matched_control(control: Floats, own: Floats, ratio: Floats) -> Floats:
    """Per case the value of eager that a ratio is taken against: that many times its own.

    Where trials lack eager, the mean of eager alone is of other trials than the value beside it.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        agree = np.isnan(ratio) | np.isclose(control / own, ratio, rtol=1e-12, atol=0)
    return np.where(agree, control, own * ratio)


def _settings(trials: DataFrame) -> list[str]:
    """What eager beside a trial must share with it, which an imported result has in its strategy's name: the
    layout of its memory, other arguments. What was measured here has no such settings.
    """
    named = trials[["source_kind", "strategy_kind", "strategy"]]
    known = {each: _settings_of(*each) for each in named.drop_duplicates().itertuples(index=False, name=None)}
    return [known[each] for each in named.itertuples(index=False, name=None)]


def _settings_of(source: str, kind: str, strategy: str) -> str:
    if source == SourceKind.MEASURED:
        return ""
    if kind == StrategyKind.EAGER and strategy.partition("+")[0] != EAGER.name:
        return f"of {strategy}"  # an engine of its own, which earlier releases stored as eager
    return settings_of_name(strategy)


TIME_COLUMNS = (*DEVICE_TIMES, *CONTROL_TIMES)
HOST_BOUND = 1.10
"""Pipelined wall time over device time above which the host is the bottleneck: the device waits for it."""
# The most trusted first: where a case has trials of several, those of the first are its device times.
_METHODS = (TimingMethod.GATED, TimingMethod.CUPTI, TimingMethod.UNGATED, TimingMethod.HOST)


def without_mixing(trials: DataFrame, groups: Groups, timed: Bools) -> Bools:
    """`timed` without trials whose latency is that of ungated events in groups that have wall times too: one
    is not the other, so they share no mean. Where the latency is a wall time, such events are `device_ns`.
    """
    without_device_time = trials["device_ns"].isna().to_numpy()
    events = equal_to(trials["timing_method"], TimingMethod.UNGATED.value) & without_device_time
    if not events.any():
        return timed
    others: Bools = groups.sum(timed & ~events) > 0
    mixed: Bools = events & others[groups.codes]
    return timed & ~mixed


def trial_device_times(trials: DataFrame, groups: Groups, timed: Bools) -> dict[str, Floats]:
    """Per trial the columns `TIME_COLUMNS` and `SPEEDUP_COLUMNS`, NaN where unknown or not `timed`.

    Device times are those of one method in each group. A device speedup needs the same method on both sides.
    """
    values = {name: np.where(timed, positive(trials[name]), np.nan) for name in TIME_COLUMNS}
    if all(np.isnan(each).all() for each in values.values()):
        return values | dict.fromkeys(SPEEDUP_COLUMNS, np.full(len(trials), np.nan))
    method, ranks = _ranks(trials, "timing_method"), _ranks(trials, "control_timing_method")
    own = values["device_ns"]
    best = -groups.max(np.where(np.isnan(own), np.nan, -method.astype(np.float64)))
    foreign = method != best[groups.codes]
    values["device_ns"] = np.where(foreign, np.nan, own)
    values["control_device_ns"] = np.where(foreign | (ranks != method), np.nan, values["control_device_ns"])
    for name, speedup in zip(DEVICE_TIMES, SPEEDUP_COLUMNS, strict=True):
        values[speedup] = values[f"control_{name}"] / values[name]
    return values


def _ranks(trials: DataFrame, column: str) -> NDArray[np.int64]:
    ranks = np.full(len(trials), len(_METHODS), dtype=np.int64)
    for rank, method in enumerate(_METHODS):
        ranks[equal_to(trials[column], method.value)] = rank
    return ranks


def device_time_columns(
    trials: DataFrame, groups: Groups, times: dict[str, Floats], timed: Bools, eager: Bools
) -> dict[str, object]:
    """Columns of cases: `timing_method`, the means, `bound`. Eager is 1 by definition in every speedup.

    `times`: what `trial_device_times` says; `timed` and the rest as there; `eager` flags cases.
    """
    columns = {name: groups.mean(times[name]) for name in TIME_COLUMNS}
    for name, speedup in zip(DEVICE_TIMES, SPEEDUP_COLUMNS, strict=True):
        own, control, ratio = columns[name], f"control_{name}", groups.mean(times[speedup])
        columns[control] = matched_control(columns[control], own, ratio)
        columns[speedup] = np.where(eager & ~np.isnan(own), 1.0, ratio)
    ranks = np.where(timed, _ranks(trials, "timing_method").astype(np.float64), np.nan)
    has_device = groups.sum(~np.isnan(times["device_ns"])) > 0
    ranks[has_device[groups.codes] & np.isnan(times["device_ns"])] = np.nan
    best = -groups.max(-ranks)
    methods: list[str | None] = [*(method.value for method in _METHODS), None]
    names = [None if np.isnan(rank) else methods[int(rank)] for rank in best.tolist()]
    in_loop = groups.mean(np.where(np.isnan(times["device_ns"]), np.nan, loop_device_ns(trials)))
    wall = columns["wall_pipelined_ns"].tolist()
    bounds = [bound_of(*each) for each in zip(names, in_loop.tolist(), wall, strict=True)]
    return {"timing_method": names, **columns, "bound": bounds}


def loop_device_ns(trials: DataFrame, prefix: str = "") -> Floats:
    """Device time per trial to set beside its pipelined wall time, which knows no flush of the L2 cache:
    without one where that was taken. `prefix`: "control_" for eager's.
    """
    unflushed = positive(trials[f"{prefix}unflushed_ns"])
    return np.where(np.isnan(unflushed), positive(trials[f"{prefix}device_ns"]), unflushed)


def bound_of(method: object, device_ns: float | None, wall_pipelined_ns: float | None) -> str | None:
    """`host` where the pipelined wall time exceeds the device time by more than a tenth, else `device`; None
    where one of them is not known, or `method` let the device wait for the host. See `loop_device_ns`.
    """
    if method not in (TimingMethod.GATED, TimingMethod.CUPTI) or not device_ns or not wall_pipelined_ns:
        return None
    ratio = wall_pipelined_ns / device_ns
    return None if np.isnan(ratio) else "host" if ratio > HOST_BOUND else "device"


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


WORKLOAD_KEYS = ("machine_id", "build_id", "workload_id")


@dataclass(frozen=True, slots=True)
class TrialTimes:
    """Figures per trial, NaN where unknown or where the trial does not count; `control` is per group."""

    latency_ns: Floats
    control_ns: Floats
    compile_cost_ns: Floats
    others: dict[str, Floats]
    """By the names of `db.columns.trial.TIMED`: what a case has the mean of."""
    control: list[Control]
    pooled_eager_ns: Floats
    """Per group: geometric mean of the eager of every trial of the workload, whatever its strategy."""
    device: dict[str, Floats]
    """The columns of `db.metrics.trial_times.trial_device_times`."""
    timed: Bools
    """Whether any time of the trial counts."""
    wild: Bools
    """As `db.metrics.eligibility.wild_trials`."""

    @property
    def speedup(self) -> Floats:
        return self.control_ns / self.latency_ns


def trial_times(trials: DataFrame, groups: Groups, *, of: Sequence[str] = WORKLOAD_KEYS) -> TrialTimes:
    """`trials` as for `summarize_cases`; each of `groups` holds trials of one case, and of one value of `of`,
    among whose trials eager is pooled.
    """
    wild = wild_trials(trials)
    timed = without_mixing(trials, groups, passed_mask(trials) & ~suspect_mask(trials) & ~wild)
    latency = np.where(timed, positive(trials["latency_ns"]), np.nan)
    control, origin = with_same_run(trials, groups, positive(trials["control_latency_ns"]), latency)
    return TrialTimes(
        latency_ns=latency,
        control_ns=control,
        # eager compiles nothing: its first calls are the part that compile cost leaves out
        compile_cost_ns=np.where(timed & ~is_eager(trials), floats(trials["trial_compile_cost_ns"]), np.nan),
        others={name: np.where(timed, measured(trials, name), np.nan) for name in TIMED},
        control=origin,
        pooled_eager_ns=_pooled(trials, groups, np.where(is_eager(trials), latency, control), of),
        device=trial_device_times(trials, groups, timed),
        timed=timed & ~np.isnan(latency),
        wild=wild,
    )


POOLED_EAGER = "pooled_eager_ns"


def with_pooled_eager(trials: DataFrame) -> DataFrame:
    """`trials` of one side with the eager of each one's workload as a column: it stays the same number where
    some strategies are left out afterwards.
    """
    groups = Groups.by(trials, CASE_KEYS)
    pooled = trial_times(trials, groups).pooled_eager_ns
    return trials.assign(**{POOLED_EAGER: pooled[groups.codes]})


def _pooled(trials: DataFrame, groups: Groups, eager_ns: Floats, keys: Sequence[str]) -> Floats:
    """Per group the geometric mean of what is known of all trials with its `keys` that ran the newest code of
    these, or what is said of it.
    """
    if POOLED_EAGER in trials:
        stored: Floats = floats(trials[POOLED_EAGER])[groups.last_row(np.arange(len(trials)))]
        return stored
    whole = Groups.by(trials, list(keys))
    if trials["code_hash"].nunique() > 1:
        code = trials["code_hash"].astype("str").fillna("").to_numpy(dtype=object)
        moments = trials["started_at"].astype("datetime64[us, UTC]").to_numpy(dtype="datetime64[us]")
        newest = code[whole.last_row(~np.isnan(eager_ns), moments)][whole.codes]
        eager_ns = np.where(code == newest, eager_ns, np.nan)
    pooled: Floats = whole.mean(eager_ns)[whole.codes[groups.last_row(np.arange(len(trials)))]]
    return pooled


# What compiling cost one trial.
#
# Compile cost is the cold calls until steady, minus as many steady calls, of the compiled trial, minus the
# same of eager. Eager's part is already gone from a trial of ours: its first eager call, with the library
# and allocator set-up that any first call pays, ran earlier in the same process and is outside the compiled
# calls. Importing the compiler stack is a cold-start phase of its own and no part of it either.


def compile_cost_ns(until_steady_ns: Series, calls_until_steady: Series, latency_ns: Series) -> Series:
    """Per trial, missing where a part is. May be negative: noise of a trial that compiled nothing.

    The columns of those names of a trials frame, one value per trial. Of no calls nothing is taken off: some
    sources tell a cost without any, and no latency.
    """
    steady_ns = calls_until_steady * latency_ns
    return until_steady_ns - steady_ns.mask((calls_until_steady == 0).fillna(False), 0)
