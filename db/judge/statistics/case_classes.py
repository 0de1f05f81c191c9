"""Classes of cases that differ in noise: host-bound, device-bound, and those of which nobody can say.

What a host-bound case costs depends on the host's mood and scatters twenty times as much as device time. One
prior over both lends the calm ones the noise of the others, and a canary of one says nothing of the other.
"""

from __future__ import annotations

import math
from fnmatch import fnmatchcase

import numpy as np
from pandas import DataFrame

from compilewatch.db.judge.decide import ON_DEVICE, Canaries
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.statistics.contrast import Contrasts
from compilewatch.db.metrics.device_times import loop_device_ns
from compilewatch.db.metrics.eligibility import positive
from compilewatch.db.metrics.groups import Bools, Floats, Groups, Ints
from compilewatch.db.records.vocabulary import Bound, Metric

ONE_CLASS = 0
"""The class of a CPU's cases, and of those on a GPU that were not timed on both clocks."""

_NUMBERS = {Bound.HOST: 1, Bound.DEVICE: 2}
_ON_CLOCK = dict.fromkeys(ON_DEVICE, Metric.DEVICE_TIME)


def case_bounds(trials: DataFrame, case: Ints, cases: int, policy: Policy) -> tuple[Bound | None, ...]:
    """What each case waits for, over the trials of both sides: so a comparison and its reverse agree.

    `case`: number of each trial's case. None where device time or pipelined wall time is missing.
    """
    if not {"device_ns", "unflushed_ns", "wall_pipelined_ns"} <= set(trials.columns):
        return (None,) * cases
    ratio = positive(trials["wall_pipelined_ns"]) / loop_device_ns(trials)
    return tuple(bounds_of(Groups(case, cases).mean(ratio), policy))


def bounds_of(ratios: Floats, policy: Policy) -> list[Bound | None]:
    """By pipelined wall time over device time; None where that is not known."""
    limit = policy.host_bound_ratio
    return [None if math.isnan(r) else Bound.HOST if r > limit else Bound.DEVICE for r in ratios.tolist()]


def class_numbers(
    bounds: tuple[Bound | None, ...], workloads: list[str], canary: tuple[bool, ...], policy: Policy
) -> Ints:
    """The class of every case as a number. A canary belongs to the class that it stands for, once there are
    classes.
    """
    numbers = [ONE_CLASS if bound is None else _NUMBERS[bound] for bound in bounds]
    if not any(number for number, is_canary in zip(numbers, canary, strict=True) if not is_canary):
        return np.zeros(len(numbers), dtype=np.int64)
    for place, workload in enumerate(workloads):
        if canary[place]:
            is_host = fnmatchcase(workload, policy.host_canary_workloads)
            numbers[place] = _NUMBERS[Bound.HOST if is_host else Bound.DEVICE]
    return np.array(numbers, dtype=np.int64)


def run_changes(clocks: dict[Metric, Contrasts], metric: Metric, canary: Bools) -> Floats:
    """Log changes of these canaries between separate runs, as of one run against one; on the clock of
    `metric` where a canary was timed on it, else in latency.
    """
    own = clocks.get(_ON_CLOCK.get(metric, metric), clocks[Metric.LATENCY])
    latency = clocks[Metric.LATENCY]
    timed = np.isfinite(own.difference)
    change = np.where(timed, own.difference, latency.difference)
    scale = np.where(timed, own.run_scale, latency.run_scale)
    known = canary & np.isfinite(change) & (scale > 0)
    changes: Floats = change[known] / np.sqrt(scale[known] / 2.0)
    return changes


def canary_changes(
    differences: dict[Metric, Floats], canary: Bools, workloads: list[str], policy: Policy, *, gpu: bool
) -> Canaries:
    """`differences`: log changes per case by metric, NaN where unknown; latency is taken where a canary was
    not timed on the clock of the metric.
    """
    of_host = np.array(
        [fnmatchcase(each, policy.host_canary_workloads) for each in workloads], dtype=np.bool_
    )

    def by_metric(chosen: Bools) -> dict[Metric, float | None]:
        latency = _median(differences[Metric.LATENCY][chosen])
        own = {metric: _median(differences[metric][chosen]) for metric in differences}
        return {metric: latency if each is None else each for metric, each in own.items()}

    return Canaries(
        gpu=gpu,
        everything=_median(differences[Metric.LATENCY][canary]),
        host=by_metric(canary & of_host),
        device=by_metric(canary & ~of_host),
    )


def _median(differences: Floats) -> float | None:
    known = differences[np.isfinite(differences)]
    return float(np.median(known)) if len(known) else None
