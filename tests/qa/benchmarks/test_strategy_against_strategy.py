"""Strategy against strategy in rounds of one run: false alarms of equal ones, and a planted +5 %."""

from __future__ import annotations

import pytest

from compilewatch.db.judge.compare.strategies import compare_strategies
from compilewatch.db.records.vocabulary import Metric, Verdict
from tests.db.judge.compare.test_one_strategy_against_another import measured

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]

_COMPARISONS, _CASES, _ROUNDS = 200, 4, 5
_MOVED = (Verdict.REGRESSED, Verdict.IMPROVED)


@pytest.mark.parametrize("cv", [0.01, 0.02])
def test_equal_strategies_and_a_planted_step(cv: float) -> None:
    alarms, found = 0, 0
    for seed in range(_COMPARISONS):
        for head, is_alarm in ((100.0, True), (105.0, False)):
            trials = measured(
                {"default": 100.0, "max-autotune": head}, rounds=_ROUNDS, cv=cv, seed=seed, cases=_CASES
            )
            rows = compare_strategies(trials, "default", "max-autotune").rows
            alarms += is_alarm and any(row.verdict in _MOVED for row in rows)
            found += (
                0
                if is_alarm
                else sum(row.metric is Metric.LATENCY and row.verdict is Verdict.REGRESSED for row in rows)
            )
    rate, power = alarms / _COMPARISONS, found / (_COMPARISONS * _CASES)
    print(f"\nCV {cv:.0%}: any alarm in {rate:.3f} of {_COMPARISONS} A/A, +5 % found in {power:.3f} of cases")
    assert rate <= 0.05
