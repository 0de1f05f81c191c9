"""Comparisons drawn from seven fresh processes that were measured on an H100 under four clocks.

A smoothed bootstrap: a process is drawn with everything that it measured, eager and compiled, and moved by
normal noise of half the spread between the processes; variances stay what they were.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from compilewatch.db.judge.decide import Decision, decide
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.statistics.contrast import Observations
from compilewatch.db.judge.statistics.evidence import examine_cases
from compilewatch.db.judge.statistics.noise import Past
from compilewatch.db.records.vocabulary import Metric

Floats = NDArray[np.float64]

CLOCKS = Path(__file__).with_name("h100_clocks.txt")
WORKLOADS = ("mlp", "enc", "elt")
POLICY = Policy()
METRICS = (Metric.LATENCY, Metric.SPEEDUP, Metric.DEVICE_TIME, Metric.ISSUE_TIME, Metric.DEVICE_SPEEDUP)
_NAMES = {"behind": "device", "issue": "issue", "host": "wall"}


def processes() -> dict[str, Floats]:
    """Per workload the log values of seven processes, shape (7, side, clock): eager and compiled by device,
    issue and synchronised wall time.
    """
    lines = [
        json.loads(line.removeprefix("RES ")) for line in CLOCKS.read_text().splitlines() if line.strip()
    ]
    return {
        workload: np.log(
            [[[each[workload][s][c] for c in _NAMES] for s in ("eager", "default")] for each in lines]
        )
        for workload in WORKLOADS
    }


@dataclass(frozen=True)
class Drawn:
    """Log values of `trials` a side, shape (cases, side of the comparison, trials), by metric; `classes`: 1
    for host-bound cases, 2 for device-bound ones.
    """

    values: dict[Metric, Floats]
    classes: NDArray[np.int64]


def draw(
    cases: int, trials: int, generator: np.random.Generator, smoothing: float = 0.5, **changes: float
) -> Drawn:
    """`changes` of the first case of the head side, by clock: `device=0.05` is a step 5 % longer there."""
    known = processes()
    values = {metric: np.empty((cases, 2, trials)) for metric in METRICS}
    classes = np.empty(cases, dtype=np.int64)
    for case in range(cases):
        one = known[WORKLOADS[case % len(WORKLOADS)]]
        mean, spread = one.mean(axis=0), one.std(axis=0, ddof=1)
        issue_or_device = np.maximum(one[:, 1, 1], one[:, 1, 0])
        classes[case] = 1 if np.median(issue_or_device - one[:, 1, 0]) > math.log(1.1) else 2
        picked = one[generator.integers(len(one), size=(2, trials))] - mean
        jitter = smoothing * spread * generator.standard_normal(picked.shape)
        x = mean + (picked + jitter) / math.sqrt(1.0 + smoothing**2)
        if case == 0:
            for number, name in enumerate(_NAMES.values()):
                x[1, :, 1, number] += math.log1p(changes.get(name, 0.0))
        device, issue, wall = (x[..., number] for number in range(3))
        values[Metric.LATENCY][case] = wall[..., 1]
        values[Metric.SPEEDUP][case] = wall[..., 0] - wall[..., 1]
        values[Metric.DEVICE_TIME][case] = device[..., 1]
        values[Metric.ISSUE_TIME][case] = issue[..., 1]
        values[Metric.DEVICE_SPEEDUP][case] = device[..., 0] - device[..., 1]
    return Drawn(values, classes)


def judge(drawn: Drawn, policy: Policy = POLICY) -> dict[Metric, Decision]:
    """Every metric, the sides having taken turns A B, B A."""
    return {
        metric: judge_values(x, drawn.classes, metric, families=len(drawn.values), policy=policy)
        for metric, x in drawn.values.items()
    }


def judge_values(
    x: Floats,
    classes: NDArray[np.int64] | None,
    metric: Metric = Metric.DEVICE_TIME,
    *,
    families: int = len(METRICS),
    policy: Policy = POLICY,
) -> Decision:
    """One metric of log values of shape (cases, 2, trials)."""
    cases, _, trials = x.shape
    shape = (cases, 2, trials)
    number, side, trial = (each.reshape(-1) for each in np.indices(shape))
    observed = Observations(number, side, np.zeros_like(side), 2 * trial + side, x.reshape(-1))
    evidence = examine_cases(observed, Past.empty(), cases, policy, classes)
    limits = policy.for_case("drawn", "default", metric)
    return decide(
        evidence,
        policy,
        minimum_effect=np.full(cases, limits.minimum_effect),
        margin=np.full(cases, limits.unchanged_margin),
        families=families,
    )


def raised(judged: dict[Metric, Decision]) -> bool:
    """Whether anything at all was announced."""
    return any(bool(each.changed.any()) for each in judged.values())
