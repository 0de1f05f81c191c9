"""Classes of cases that differ in noise: host-bound, device-bound, and those of which nobody can say.

What a host-bound case costs depends on the host's mood and scatters twenty times as much as device time. One
prior over both lends the calm ones the noise of the others, and a canary of one says nothing of the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np
from pandas import DataFrame

from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.statistics.contrast import Contrasts
from compilewatch.db.metrics.device_times import loop_device_ns
from compilewatch.db.metrics.eligibility import positive
from compilewatch.db.metrics.groups import Bools, Floats, Groups, Ints
from compilewatch.db.records.vocabulary import Bound, Metric

ONE_CLASS = 0
"""The class of a CPU's cases, and of those on a GPU that were not timed on both clocks."""

_NUMBERS = {Bound.HOST: 1, Bound.DEVICE: 2}
_ON_DEVICE = (Metric.DEVICE_TIME, Metric.DEVICE_SPEEDUP)
_ON_CLOCK = dict.fromkeys(_ON_DEVICE, Metric.DEVICE_TIME)


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


@dataclass(frozen=True)
class Canaries:
    """Median log change of the canaries of one machine; None without one.

    On a CPU `everything` is that of all of them. On a GPU the launch canary measures the host, gemm and copy
    the device, each with the clock of the metric in question where it has it.
    """

    gpu: bool
    everything: float | None
    host: dict[Metric, float | None]
    device: dict[Metric, float | None]

    def of(self, metric: Metric, bound: Bound | None) -> tuple[float, ...]:
        """The canaries that may explain a change of `metric` in a case of this class.

        Of a case on a GPU whose class nobody knows, either may.
        """
        if not self.gpu:
            chosen = [self.everything]
        elif metric in _ON_DEVICE:
            chosen = [self.device[Metric.DEVICE_TIME]]
        elif metric is Metric.ISSUE_TIME:
            chosen = [self.host[Metric.ISSUE_TIME]]
        else:
            host, device = self.host[Metric.LATENCY], self.device[Metric.LATENCY]
            chosen = [host] if bound is Bound.HOST else [device] if bound is Bound.DEVICE else [device, host]
        return tuple(each for each in chosen if each is not None)

    @property
    def shown(self) -> float | None:
        """The change of the device's canaries; on a CPU that of all."""
        return self.device[Metric.LATENCY] if self.gpu else self.everything

    @property
    def shown_host(self) -> float | None:
        """The change of the launch canary on a GPU; None on a CPU, where one number stands for all."""
        return self.host[Metric.LATENCY] if self.gpu else None


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
