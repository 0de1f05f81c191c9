"""Which trials have a log value of a metric, and which have none."""

from __future__ import annotations

import numpy as np
import pytest

from compilewatch.db.judge.compare.measured import log_values
from compilewatch.db.metrics.cases import case_values
from compilewatch.db.metrics.groups import Groups
from compilewatch.db.records.vocabulary import Metric
from tests.db.judge.frames import MS, trial
from tests.db.metrics.frames import trials_frame


def test_values_with_a_cost_of_zero_or_less_or_a_break_even_that_is_never_have_no_logarithm():
    rows = [
        trial(trial_compile_cost_ns=8e9),
        trial(trial_compile_cost_ns=8e9),
        trial(trial_compile_cost_ns=-1.0),
        trial(trial_compile_cost_ns=8e9, control_latency_ns=9 * MS),
    ]
    groups = Groups(np.array([0, 1, 1, 2]), 3)
    metrics = log_values(trials_frame(rows), groups).metrics
    nan, steps, cost = np.nan, np.log(8e9 / (5 * MS)), np.log(8e9)
    assert metrics[Metric.BREAK_EVEN] == pytest.approx([steps, nan, nan, nan], nan_ok=True)
    assert metrics[Metric.COMPILE_COST] == pytest.approx([cost, nan, nan, cost], nan_ok=True)


def test_the_mean_of_log_break_evens_is_that_of_the_means():
    rows = [
        trial(latency_ns=own, control_latency_ns=control, trial_compile_cost_ns=cost)
        for own, control, cost in ((10.0, 15.0, 80.0), (14.0, 13.0, 90.0), (9.0, 16.0, 70.0))
    ]
    (case,) = case_values(trials_frame(rows)).to_dict("records")
    eager = np.array([case["pooled_eager_ns"]])
    logs = log_values(trials_frame(rows), Groups(np.zeros(3, np.int64), 1), eager).metrics
    steps = case["compile_cost_ns"] / (eager[0] - eager[0] / case["speedup"])
    assert np.exp(logs[Metric.BREAK_EVEN].mean()) == pytest.approx(steps, rel=1e-12)
    assert case["break_even_steps"] == np.ceil(steps)
