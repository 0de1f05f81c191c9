"""The four times of a GPU per case: means over trials, speedup of each, and what bounds the case."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pandas import DataFrame

from compilewatch.db.metrics.controls import matched_control
from compilewatch.db.metrics.eligibility import positive
from compilewatch.db.metrics.groups import Bools, Floats, Groups, equal_to
from compilewatch.db.records.trial import CONTROL_TIMES, DEVICE_TIMES, SPEEDUP_COLUMNS, TimingMethod

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
