"""The judge on comparisons drawn from seven processes of an H100, and on classes that differ in noise.

    pytest tests/qa/benchmarks/test_gpu_verdicts.py -m benchmark -s

COMPILEWATCH_BENCH=full draws ten times as many comparisons.
"""

from __future__ import annotations

import numpy as np
import pytest

from compilewatch.db.records.vocabulary import Metric
from tests.db.verdicts.h100 import WORKLOADS, draw, judge, judge_values, raised
from tests.qa.benchmarks.tables import line
from tests.qa.benchmarks.verdict_rules import FULL

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]

REPEATS = 1000 if FULL else 100
SMOOTHING = {"tight modes": 0.1, "smoothed": 0.5, "normal": 1.0}


@pytest.mark.parametrize("name", SMOOTHING)
def test_alarms_of_24_identical_cases(name: str):
    line(["processes", "n", "any alarm", *(str(metric) for metric in Metric if metric in _metrics())])
    for trials in (3, 4, 5, 10):
        generator = np.random.default_rng([21, trials])
        found = [judge(draw(24, trials, generator, SMOOTHING[name])) for _ in range(REPEATS)]
        by_metric = [np.mean([raised({m: each[m]}) for each in found]) for m in _metrics()]
        share = np.mean([raised(each) for each in found])
        line([name, trials, f"{share:.3f}", *(f"{each:.3f}" for each in by_metric)])
        if trials in (3, 5):
            assert share <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / REPEATS)


def _metrics() -> list[Metric]:
    return list(draw(3, 2, np.random.default_rng(0)).values)


def test_power_for_five_percent_on_the_device():
    line(["changed case", "n", "found"])
    for first, workload in enumerate(WORKLOADS):
        for trials in (3, 4, 5):
            generator = np.random.default_rng([22, trials])
            hits = 0
            for _ in range(REPEATS):
                drawn = draw(24, trials, generator)
                x = drawn.values[Metric.DEVICE_TIME]
                x[first, 1] += np.log(1.05)
                hits += bool(judge_values(x, drawn.classes).regressed[first])
            line([workload, trials, f"{hits / REPEATS:.3f}"])
            if trials == 5:
                assert hits / REPEATS >= 0.8


@pytest.mark.parametrize("share", [0.5, 0.75])
def test_a_calm_case_among_noisy_ones(share: float):
    line(["noisy", "n", "found by class / jointly", "any alarm by class / jointly"])
    noisy = np.arange(24) < share * 24
    classes = np.where(noisy, 1, 2)
    for trials in (3, 4, 5):
        generator = np.random.default_rng([23, trials])
        found, alarms = np.zeros(2), np.zeros(2)
        for _ in range(REPEATS):
            x = np.where(noisy, 0.10, 0.005)[:, None, None] * generator.standard_normal((24, 2, trials))
            changed = x.copy()
            changed[-1, 1] += np.log(1.05)
            for number, known in enumerate((classes, None)):
                found[number] += bool(judge_values(changed, known).regressed[-1])
                alarms[number] += raised({Metric.DEVICE_TIME: judge_values(x, known)})
        line(
            [
                share,
                trials,
                *(" / ".join(f"{each / REPEATS:.3f}" for each in both) for both in (found, alarms)),
            ]
        )
        assert found[0] / REPEATS >= 0.95
        assert alarms[0] / REPEATS <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / REPEATS)
