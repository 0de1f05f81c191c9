"""Which trials have a log value of a metric, and which have none."""

from __future__ import annotations

import numpy as np
import pytest

from db.judge.compare.measured import log_values
from db.records.vocabulary import Metric
from tests.db.judge.frames import MS, trial
from tests.db.metrics.frames import trials_frame


def test_a_cost_of_zero_or_less_and_a_break_even_that_is_never_have_no_logarithm():
    rows = [
        trial(trial_compile_cost_ns=8e9),
        trial(trial_compile_cost_ns=0.0),
        trial(trial_compile_cost_ns=-1.0),
        trial(trial_compile_cost_ns=8e9, control_latency_ns=9 * MS),
    ]
    metrics = log_values(trials_frame(rows)).metrics
    nan, steps, cost = np.nan, np.log(8e9 / (5 * MS)), np.log(8e9)
    assert metrics[Metric.BREAK_EVEN] == pytest.approx([steps, nan, nan, nan], nan_ok=True)
    assert metrics[Metric.COMPILE_COST] == pytest.approx([cost, nan, nan, cost], nan_ok=True)
