"""The judge on comparisons drawn from processes that were measured on an H100; more of them in
tests/qa/benchmarks/test_gpu_verdicts.py.
"""

from __future__ import annotations

import numpy as np
import pytest

from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.statistics.contrast import Observations
from compilewatch.db.judge.statistics.evidence import examine_cases
from compilewatch.db.judge.statistics.noise import Past
from compilewatch.db.records.vocabulary import Metric
from tests.db.verdicts.h100 import draw, judge, judge_values, processes, raised


def test_seven_processes_with_four_clocks():
    known = processes()
    assert {name: values.shape for name, values in known.items()} == dict.fromkeys(known, (7, 2, 3))
    spread = known["elt"].std(axis=0, ddof=1)
    assert spread[1, 0] < 0.02 < 0.1 < spread[1, 1]


def test_five_percent_on_the_device_is_found_with_five_processes_a_side():
    generator = np.random.default_rng(11)
    found = [
        judge_values((drawn := draw(24, 5, generator, device=0.05)).values[Metric.DEVICE_TIME], drawn.classes)
        for _ in range(40)
    ]
    assert np.mean([each.regressed[0] for each in found]) >= 0.8


@pytest.mark.parametrize(
    ("trials", "smoothing"),
    [
        (3, 0.1),
        (5, 0.5),
        pytest.param(3, 0.5, marks=pytest.mark.slow),
        pytest.param(5, 0.1, marks=pytest.mark.slow),
    ],
)
def test_identical_builds_raise_almost_nothing(trials: int, smoothing: float):
    generator = np.random.default_rng(12)
    alarms = sum(raised(judge(draw(24, trials, generator, smoothing))) for _ in range(60))
    # of 60 comparisons with a rate of .05, nine or more happen once in 400 times
    assert alarms <= 8


def test_a_calm_case_is_found_among_three_quarters_noisy_ones():
    generator = np.random.default_rng(13)
    noisy = np.arange(24) < 18
    cv = np.where(noisy, 0.10, 0.005)[:, None, None]
    found = {True: 0, False: 0}
    for _ in range(60):
        x = cv * generator.standard_normal((24, 2, 3))
        x[-1, 1] += np.log(1.05)
        for apart in (True, False):
            classes = np.where(noisy, 1, 2) if apart else None
            found[apart] += bool(judge_values(x, classes).regressed[-1])
    assert found[True] >= 57
    assert found[False] <= 30


@pytest.mark.parametrize(("trials", "rate"), [(3, 0.03), (4, 0.02), (5, 0.03), (9, 0.03), (10, 0.05)])
def test_the_rate_that_a_gpus_cases_are_held_to(trials: int, rate: float):
    case, side, trial = (each.reshape(-1) for each in np.indices((6, 2, trials)))
    x = 0.01 * np.random.default_rng(6).standard_normal(len(case))
    observed = Observations(case, side, np.zeros_like(side), 2 * trial + side, x)
    gpu, cpu = (
        examine_cases(observed, Past.empty(), 6, Policy(), np.full(6, number)).rate for number in (2, 0)
    )
    assert set(gpu.tolist()) == {rate}
    assert set(cpu.tolist()) == {0.03 if trials == 3 else 0.05}
