"""The smallest change that a machine can show: from identical trials, repeated, and how far they differ.

A machine has one noise floor per clock and class: device time of a host-bound case is not as noisy as its
wall time. Latency is the headline: on a GPU the wall time of a synchronised step.

Classes of cases that differ in noise: host-bound, device-bound, and those of which nobody can say.

What a host-bound case costs depends on the host's mood and scatters twenty times as much as device time. One
prior over both lends the calm ones the noise of the others, and a canary of one says nothing of the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np
from pandas import DataFrame

from compilewatch.db.judge.decide import ON_DEVICE, Canaries
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.significance import Z_LEVEL, Z_POWER
from compilewatch.db.judge.statistics.contrast import Contrasts
from compilewatch.db.metrics.eligibility import positive, timed_mask
from compilewatch.db.metrics.groups import Bools, Floats, Groups, Ints, Present, equal_to
from compilewatch.db.metrics.trial_times import loop_device_ns
from compilewatch.db.records.trial import TimingMethod
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


VALIDATION_SUITE = "validate"
MIN_PROCESSES = 3
TRIALS_A_SIDE = 5
"""How many trials a side a noise floor is for where none are named."""

CLOCKS = {
    "device_time": "device_ns",
    "issue_time": "issue_ns",
    "latency": "latency_ns",
    "wall_pipelined": "wall_pipelined_ns",
}
"""Clocks by metric, and their columns of a trials frame; eager's have `control_` before them."""
SPEEDUP = "speedup"


@dataclass(frozen=True)
class Scatter:
    """How one metric of one case differs between fresh processes.

    `cv` is the standard deviation of the logarithms of the processes' medians. `bound` is None on a CPU, and
    where device time or pipelined wall time is missing.
    """

    metric: str
    workload: str
    strategy: str
    bound: Bound | None
    cv: float
    processes: int


@dataclass(frozen=True)
class NoiseFloor:
    """Of one machine, clock and class: `cv` pooled over the cases of the class, by at least `processes`
    fresh processes of each.
    """

    metric: str
    bound: Bound | None
    cv: float
    processes: int

    @property
    def change(self) -> float:
        """The smallest relative change that `TRIALS_A_SIDE` trials a side show."""
        return smallest_effect(self.cv, TRIALS_A_SIDE)


def scatters(trials: DataFrame) -> list[Scatter]:
    """Of every clock of every case in `trials`, a trials frame of one machine and build, and of eager in the
    same processes. Cases with fewer than `MIN_PROCESSES` trials are left out; so are failed, suspect
    and wild trials, and device times that were not gated, which are another figure.
    """
    calm = trials[timed_mask(trials)]
    of_cases = calm.groupby(["workload", "strategy"], sort=False)
    cases = Groups(np.asarray(of_cases.ngroup(), dtype=np.int64), of_cases.ngroups)
    sides = [*_sides(calm, cases, ""), *_sides(calm, cases, "control_")]
    names = calm[["workload", "strategy"]].drop_duplicates().to_numpy().tolist()
    return [
        Scatter(metric, workload, side or strategy, bounds[case], cvs[case], processes[case])
        for case, (workload, strategy) in enumerate(names)
        for metric, side, bounds, cvs, processes in sides
        if processes[case] >= MIN_PROCESSES
    ]


def _sides(
    calm: DataFrame, cases: Groups, prefix: str
) -> Iterator[tuple[str, str, list[Bound | None], list[float], list[int]]]:
    """Per metric its name, "eager" where it is eager's, and of each case class, variation and processes."""
    values = _values(calm, prefix)
    in_loop = np.where(np.isnan(values["device_time"]), np.nan, loop_device_ns(calm, prefix))
    ratios = cases.mean(values["wall_pipelined"]) / cases.mean(in_loop)
    bounds = bounds_of(ratios, Policy())
    for metric, each in values.items():
        logs = cases.present(np.log(each))
        yield metric, "eager" if prefix else "", bounds, _variations(logs), logs.n.tolist()


def _values(calm: DataFrame, prefix: str) -> dict[str, Floats]:
    """Per metric the figure of each trial, NaN where it has none; speedup on the compiled side alone."""
    values = {metric: positive(calm[prefix + column]) for metric, column in CLOCKS.items()}
    gated = equal_to(calm[f"{prefix}timing_method"], TimingMethod.GATED.value)
    values["device_time"] = np.where(gated, values["device_time"], np.nan)
    if not prefix:
        values[SPEEDUP] = positive(calm["control_latency_ns"]) / values["latency"]
    return values


def _variations(logs: Present) -> list[float]:
    """Per case the run-to-run variation, the standard deviation of the logarithms; NaN for less than two."""
    groups = len(logs.n)
    means = np.bincount(logs.codes, logs.values, groups) / np.maximum(logs.n, 1)
    squares = np.bincount(logs.codes, (logs.values - means[logs.codes]) ** 2, groups)
    variations: list[float] = np.sqrt(squares / np.where(logs.n > 1, logs.n - 1, np.nan)).tolist()
    return variations


def noise_floors(variations: Iterable[Scatter]) -> tuple[NoiseFloor, ...]:
    """One per metric and class, in the order of `CLOCKS` with speedup last. A class's variance is the mean of
    its cases', weighted by their degrees of freedom.
    """
    groups: dict[tuple[str, Bound | None], list[Scatter]] = {}
    for each in variations:
        groups.setdefault((each.metric, each.bound), []).append(each)
    order = [*CLOCKS, SPEEDUP]
    floors = []
    for (metric, bound), cases in sorted(
        groups.items(), key=lambda item: (order.index(item[0][0]), item[0][1] or "")
    ):
        freedom = sum(case.processes - 1 for case in cases)
        variance = sum(case.cv**2 * (case.processes - 1) for case in cases) / freedom
        floors.append(NoiseFloor(metric, bound, math.sqrt(variance), min(c.processes for c in cases)))
    return tuple(floors)


def floor_of(floors: Iterable[NoiseFloor], metric: str, bound: Bound | None = None) -> NoiseFloor | None:
    """The floor of `metric` for cases of the class `bound`; of all classes the highest where it is None."""
    mine = [floor for floor in floors if floor.metric == metric and bound in (None, floor.bound)]
    return max(mine, key=lambda floor: floor.cv, default=None)


def known_cv(floors: Iterable[NoiseFloor], metric: str) -> float | None:
    """The highest CV of `metric` that the machine is known for; None where it is not."""
    floor = floor_of(floors, metric)
    return None if floor is None else floor.cv


def floor_variations(floors: Iterable[NoiseFloor], metric: str, bounds: Sequence[Bound | None]) -> Floats:
    """Per case of the class in `bounds` the CV of its floor, NaN where there is none."""
    known = tuple(floors)
    mine = {bound: floor_of(known, metric, bound) for bound in set(bounds)}
    return np.array([np.nan if (each := mine[bound]) is None else each.cv for bound in bounds])


def smallest_effect(cv: float, trials: int) -> float:
    """N = 2 (cv (2.81 + 1.645) / effect)^2 of `db.judge.significance.trials_needed`, for the
    effect."""
    return cv * (Z_LEVEL + Z_POWER) * math.sqrt(2 / trials)


def largest_variation(effect: float, trials: int) -> float:
    """The same for the CV: up to it, so many trials a side show a relative change of `effect`."""
    return effect / smallest_effect(1.0, trials)
