"""Trials summed up per case: one row per machine, build, workload and strategy.

What counts: a trial that failed, or whose numerics fail (a wrong result), counts as failed and in nothing
else. A trial that was cancelled is left out, and a case without any other. A suspect trial (throttled, shared
device) and a wild one (`db.metrics.eligibility`) count in memory and compiler facts, not in any time.

Eager's latency for a compiled trial is its control, interleaved in the same process. A result without one
(imported, or written without a control) is set against the eager trials of the same run, marked `same_run`
and given no interval, because eager's own spread would be missing from it.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame, Series
from pandas.api.extensions import ExtensionArray

from compilewatch.db.columns.case import CASE_COLUMNS, CASE_KEYS, MIXED
from compilewatch.db.columns.metrics import FURTHER_COLUMNS
from compilewatch.db.columns.trial import COUNTED, LABELS, SMALLEST
from compilewatch.db.metrics.break_even import repayment_columns, without_first_looks
from compilewatch.db.metrics.eligibility import (
    failure_kinds,
    passed_mask,
    positive,
    suspect_mask,
    without_cancelled,
)
from compilewatch.db.metrics.frames import empty_frame, typed_frame
from compilewatch.db.metrics.groups import (
    Bools,
    Floats,
    Groups,
    Means,
    Method,
    equal_to,
    floats,
    means_over_trials,
    no_quotients,
    repayment_intervals,
)
from compilewatch.db.metrics.throughput import items_per_step, throughput_columns
from compilewatch.db.metrics.trial_times import (
    TIME_COLUMNS,
    Control,
    TrialTimes,
    device_time_columns,
    is_eager,
    matched_control,
    spread_columns,
    trial_times,
    with_same_run,
)
from compilewatch.db.records.trial import SPEEDUP_COLUMNS, NumericsStatus, Status, StrategyKind


def _passed_peaks(trials: DataFrame, passed: Bools) -> Floats:
    """Bytes per trial, NaN where unknown or where the trial does not count."""
    return np.where(passed, positive(trials["peak_bytes"]), np.nan)


def _memory_columns(
    trials: DataFrame, groups: Groups, *, passed: Bools, reference: Bools
) -> dict[str, object]:
    """How much less memory compiled needs: eager peak / compiled peak, the mean of the trials' own; for eager
    (`reference`) 1. Both peaks are those of the warm iterations: the one with compilation is a column of the
    trial and has no eager counterpart.
    """
    peak = _passed_peaks(trials, passed)
    control, _ = with_same_run(trials, groups, positive(trials["control_peak_bytes"]), peak)
    peaks, ratio = groups.mean(peak), groups.mean(control / peak)
    return {
        "peak_bytes": peaks,
        "control_peak_bytes": matched_control(groups.mean(control), peaks, ratio),
        "memory_ratio": np.where(reference & ~np.isnan(peaks), 1.0, ratio),
    }


def _speedup_columns(speedups: Means, *, borrowed: Bools, reference: Bools) -> dict[str, object]:
    """How many times faster compiled is: eager latency / compiled latency. Eager (`reference`) is 1 by
    definition; a `borrowed` control has no interval.
    """
    hidden = np.where(borrowed, np.nan, 1.0)
    methods = [each.value for each in speedups.method]
    return {
        "speedup": np.where(reference, 1.0, speedups.value),
        "speedup_low": np.where(reference, 1.0, speedups.low * hidden),
        "speedup_high": np.where(reference, 1.0, speedups.high * hidden),
        "interval_method": np.select(
            [reference, borrowed], [Method.REFERENCE.value, Method.NONE.value], methods
        ),
    }


# worst first; a check that was not made says less than one that was
_NUMERICS_ORDER = [
    NumericsStatus.FAIL,
    NumericsStatus.EAGER_TWO_RUNS_DIFFER,
    NumericsStatus.DEGENERATE,
    NumericsStatus.PASS,
    NumericsStatus.REPRODUCIBLE,
    NumericsStatus.NOT_CHECKED,
]


def summarize_cases(trials: DataFrame) -> DataFrame:
    """One row per case, with the columns and types of `CASE_COLUMNS`, ordered by `CASE_KEYS`.

    `trials` has one row per trial with the columns of `db.queries.trials.trials_frame`, in any order. Labels
    are those of the case's newest trial. An unknown number is missing, never 0 or NaN. Raises KeyError where
    a column is absent from a frame with rows.

    A case that was measured under several conditions (settings of a suite), or whose own code changed, has
    the figures of the newest. One of a single trial is a first look and has no break-even; a point of a
    series has, among its others.
    """
    trials = like_newest(without_cancelled(trials))
    if trials.empty:
        return empty_frame(CASE_COLUMNS)
    groups = Groups.by(trials, CASE_KEYS)
    times = trial_times(trials, groups)
    columns = summary_columns(trials, groups, times)
    return typed_frame(
        columns | without_first_looks(columns, np.asarray(columns["first_look"])), CASE_COLUMNS
    )


def like_newest(trials: DataFrame) -> DataFrame:
    """Of each case the trials under the conditions of its newest one and of its code: others are not to be
    averaged with.
    """
    if trials.empty:
        return trials
    for name in ("conditions_id", "code_hash"):
        values = trials[name].astype("str").fillna("")
        if values.nunique() > 1:
            ordered = trials.assign(**{name: values}).sort_values(["started_at", "trial_id"], kind="stable")
            newest = ordered.groupby(CASE_KEYS)[name].transform("last")
            trials = trials[values == newest.reindex(trials.index)]
    return trials


VALUE_COLUMNS = (
    *(*CASE_KEYS, "workload", "strategy", "strategy_kind"),
    *("status", "failure_kind", "nothing_compiled"),
    *("latency_ns", "speedup", "compile_cost_ns", "peak_bytes", "pooled_eager_ns"),
    *("break_even", "break_even_steps"),
    *("timing_method", "bound", *TIME_COLUMNS, *SPEEDUP_COLUMNS),
    *FURTHER_COLUMNS,
)


def case_values(trials: DataFrame) -> DataFrame:
    """Of `summarize_cases` the columns `VALUE_COLUMNS`: without intervals and labels at a third of the cost.

    `trials` are in time order.
    """
    types = {name: CASE_COLUMNS[name] for name in VALUE_COLUMNS}
    trials = without_cancelled(trials)
    if trials.empty:
        return empty_frame(types)
    groups = Groups.by(trials, CASE_KEYS)
    times, passed = trial_times(trials, groups), passed_mask(trials)
    newest = groups.last_row(np.arange(len(trials)))
    latency, cost = groups.mean(times.latency_ns), groups.mean(times.compile_cost_ns)
    eager = is_eager(trials)[newest]
    compiled = equal_to(trials["strategy_kind"], StrategyKind.COMPILE.value)[newest]
    graphs = _largest_count(groups, trials["graphs"], passed)
    speedup = groups.mean(times.speedup)
    values: dict[str, object] = {
        **{name: trials[name].array.take(newest) for name in VALUE_COLUMNS[:7]},
        "status": _statuses(groups, passed),
        "failure_kind": _most_frequent(groups, failure_kinds(trials)),
        "nothing_compiled": compiled & (graphs == 0),
        "latency_ns": latency,
        "speedup": np.where(eager & ~np.isnan(latency), 1.0, speedup),
        "compile_cost_ns": cost,
        "peak_bytes": groups.mean(_passed_peaks(trials, passed)),
        **{name: groups.mean(times.others[name]) for name in FURTHER_COLUMNS},
        **device_time_columns(trials, groups, times.device, times.timed, eager),
        "pooled_eager_ns": times.pooled_eager_ns,
    }
    repayment = repayment_columns(
        cost, latency, times.pooled_eager_ns, speedup, eager=eager, ends=no_quotients(groups.count)
    )
    first_look = groups.sum(~np.isnan(times.latency_ns)) == 1
    return typed_frame(values | without_first_looks(repayment, first_look), types)


def summary_columns(trials: DataFrame, groups: Groups, times: TrialTimes) -> dict[str, object]:
    """The columns of `CASE_COLUMNS` for any `groups` of trials of one case each; `trials` is not empty.

    `times`: what `trial_times` says of the same trials and groups.
    """
    started = trials["started_at"].astype("datetime64[us, UTC]")
    newest_rows = groups.last_row(started.to_numpy(dtype="datetime64[us]"), trials["trial_id"].to_numpy(str))
    # Column by column: a frame of rows would hold every other column too. What is summed up to be kept has
    # no labels of its build.
    labels = [name for name in (*CASE_KEYS, *LABELS) if name in trials]
    newest = {name: trials[name].array.take(newest_rows) for name in labels}
    columns: dict[str, object] = {**newest, "last_started_at": started.array.take(newest_rows)}
    passed, eager = passed_mask(trials), is_eager(trials)[newest_rows]
    columns |= _outcome_columns(trials, groups, passed, times.wild)
    columns |= _time_columns(groups, times, eager)
    columns |= device_time_columns(trials, groups, times.device, times.timed, eager)
    columns |= _memory_columns(trials, groups, passed=passed, reference=eager)
    # Exact and the same in every trial of a healthy case: the largest is the one to look at.
    counts = {name: _largest_count(groups, trials[name], passed) for name in COUNTED}
    least = {name: -_largest_count(groups, -trials[name], passed) for name in SMALLEST}
    columns["gpu_utilization_percent"] = groups.mean(
        np.where(passed, positive(trials["gpu_utilization_percent"]), np.nan)
    )
    compiled = equal_to(trials["strategy_kind"], StrategyKind.COMPILE.value)[newest_rows]
    columns |= {**counts, **least, "nothing_compiled": compiled & (counts["graphs"] == 0)}
    columns |= spread_columns(trials, groups, times.latency_ns, times.timed)
    return columns | throughput_columns(items_per_step(trials)[newest_rows], columns)


def _outcome_columns(trials: DataFrame, groups: Groups, passed: Bools, wild: Bools) -> dict[str, object]:
    return {
        "status": _statuses(groups, passed),
        "trials": groups.sum(np.ones(len(trials))),
        "failed_trials": groups.sum(~passed),
        "suspect_trials": groups.sum(suspect_mask(trials)),
        "wild_trials": groups.sum(wild),
        "failure_kind": _most_frequent(groups, failure_kinds(trials)),
        "numerics_status": _worst_numerics(groups, trials["numerics_status"]),
    }


def _statuses(groups: Groups, passed: Bools) -> NDArray[np.str_]:
    total, failed = groups.sum(np.ones(len(passed))), groups.sum(~passed)
    return np.select([failed == 0, failed == total], [Status.OK.value, Status.FAILED.value], MIXED)


def _most_frequent(groups: Groups, values: Series) -> ExtensionArray:
    """Per group the value that occurs most often, the first by name among equals; missing without any."""
    codes, names = pd.factorize(values.array, sort=True)
    present, width = codes >= 0, len(names)
    if not width:
        return pd.array([None] * groups.count, dtype="str")
    cells = groups.codes[present] * width + codes[present]
    counts = np.bincount(cells, minlength=groups.count * width).reshape(groups.count, width)
    most = counts.argmax(axis=1)  # the first of equals
    most_frequent: ExtensionArray = names.take(np.where(counts.any(axis=1), most, -1), allow_fill=True)
    return most_frequent


def _worst_numerics(groups: Groups, statuses: Series) -> list[str | None]:
    order = [status.value for status in reversed(_NUMERICS_ORDER)]
    severity = {status: float(rank) for rank, status in enumerate(order)}
    codes, names = statuses.factorize()
    ranks = np.array([*(severity.get(name, np.nan) for name in names), np.nan])  # missing: code -1
    worst = groups.max(ranks[codes])
    return [None if np.isnan(rank) else order[int(rank)] for rank in worst.tolist()]


def _time_columns(groups: Groups, times: TrialTimes, eager: Bools) -> dict[str, object]:
    """`eager`: flags of the cases that are the reference."""
    latencies, costs, speedups = (
        means_over_trials(groups, values)
        for values in (times.latency_ns, times.compile_cost_ns, times.speedup)
    )
    borrowed = np.array([each is Control.SAME_RUN for each in times.control])
    cost, saved = repayment_parts(times, groups, costs, speedups)
    saved = np.where(borrowed[groups.codes], np.nan, saved)
    control_ns = matched_control(groups.mean(times.control_ns), latencies.value, speedups.value)
    return {
        "counted_trials": latencies.n,
        "first_look": latencies.n == 1,
        "latency_ns": latencies.value,
        "latency_low_ns": latencies.low,
        "latency_high_ns": latencies.high,
        "control_latency_ns": control_ns,
        "control": times.control,
        **_speedup_columns(speedups, borrowed=borrowed, reference=eager & (latencies.n > 0)),
        "compile_cost_ns": costs.value,
        "compile_cost_low_ns": costs.low,
        "compile_cost_high_ns": costs.high,
        "pooled_eager_ns": times.pooled_eager_ns,
        **repayment_columns(
            costs.value,
            latencies.value,
            times.pooled_eager_ns,
            speedups.value,
            eager=eager,
            ends=repayment_intervals(groups, cost, saved),
        ),
        **{name: groups.mean(values) for name, values in times.others.items()},
    }


def repayment_parts(
    times: TrialTimes, groups: Groups, costs: Means, speedups: Means
) -> tuple[Floats, Floats]:
    """Of each trial what it pays and what a step saves, on the clock of the eager that stands for all.

    To first order around the means of its case, so that their mean is what the case pays and saves.
    """
    pooled, speedup = (each[groups.codes] for each in (times.pooled_eager_ns, speedups.value))
    cost, mean = times.compile_cost_ns, costs.value[groups.codes]
    with np.errstate(invalid="ignore", divide="ignore"):
        paid = np.where(costs.log[groups.codes], mean * (1 + np.log(cost / mean)), cost)
        return paid, pooled * (1 - (1 - np.log(times.speedup / speedup)) / speedup)


def _largest_count(groups: Groups, counts: Series, passed: Bools) -> Floats:
    return groups.max(np.where(passed, floats(counts), np.nan))
