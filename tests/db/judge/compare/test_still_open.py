"""Which cases are open, and what more trials of them would show."""

from __future__ import annotations

import math

import pytest

from compilewatch.db.engine.session import Database
from compilewatch.db.judge.compare.whole import outlooks, still_open
from compilewatch.db.judge.results import Comparison
from compilewatch.db.records.vocabulary import CauseClass, Design, Metric, Verdict
from compilewatch.db.store.trials import save_trials
from tests.regression_cases import RUN_0, RUN_1, judged, stepping_history


@pytest.fixture
def comparison(sqlite_database: Database) -> Comparison:
    """Every compiled case is twice as slow, eager is not."""
    save_trials(sqlite_database, stepping_history(1.0, 2.0, builds=("2.12.0", "2.13.0"), trials_per_case=8))
    return judged(sqlite_database, RUN_0, RUN_1)


def with_rows(comparison: Comparison, metric: Metric, **changes: object) -> Comparison:
    rows = tuple(
        row.model_copy(update=changes) if row.metric is metric and row.strategy == "default" else row
        for row in comparison.rows
    )
    return comparison.model_copy(update={"rows": rows})


def opened(comparison: Comparison) -> set[tuple[str, Metric]]:
    return {(row.strategy, row.metric) for row in still_open(comparison)}


def test_a_case_that_is_slower_is_decided_whatever_its_speedup(comparison: Comparison) -> None:
    for verdict in (Verdict.INCONCLUSIVE, Verdict.UNCHANGED):
        other = with_rows(comparison, Metric.SPEEDUP, verdict=verdict)
        assert "default" not in {strategy for strategy, _ in opened(other)}


def test_a_case_is_open_while_its_latency_or_its_speedup_is(comparison: Comparison) -> None:
    unsure = {"verdict": Verdict.INCONCLUSIVE}
    both = with_rows(with_rows(comparison, Metric.SPEEDUP, **unsure), Metric.LATENCY, **unsure)
    assert ("default", Metric.LATENCY) in opened(both)
    assert ("default", Metric.SPEEDUP) not in opened(both), "a case is named once"
    same = with_rows(both, Metric.LATENCY, verdict=Verdict.UNCHANGED)
    assert ("default", Metric.SPEEDUP) in opened(same)
    faster = with_rows(same, Metric.SPEEDUP, verdict=Verdict.IMPROVED)
    assert not {strategy for strategy, _ in opened(faster)} & {"default"}


def test_what_the_machine_explains_is_open(comparison: Comparison) -> None:
    aside = {"verdict": Verdict.INCONCLUSIVE, "cause": CauseClass.MACHINE}
    found = with_rows(with_rows(comparison, Metric.SPEEDUP, **aside), Metric.LATENCY, **aside)
    assert ("default", Metric.LATENCY) in opened(found)


def test_more_trials_by_turns_show_smaller_changes_and_separate_runs_promise_nothing(
    comparison: Comparison,
) -> None:
    unsure = {"verdict": Verdict.INCONCLUSIVE, "significance_threshold": 0.20, "trials": (8, 8)}
    separate = with_rows(with_rows(comparison, Metric.LATENCY, **unsure), Metric.SPEEDUP, **unsure)
    assert not list(outlooks(separate, 100))
    by_turns = with_rows(separate, Metric.LATENCY, design=Design.INTERLEAVED)
    by_turns = with_rows(by_turns, Metric.SPEEDUP, design=Design.INTERLEAVED)
    few, many = ({each.row.case.ids: each for each in outlooks(by_turns, more)} for more in (8, 120))
    assert few.keys() == many.keys()
    assert few
    for case, outlook in few.items():
        assert 0.02 <= many[case].visible < outlook.visible
        assert outlook.equal_after is not None
        # Normal theory: 8 (1.645 x 0.0675 / 0.0296)^2 = 113 trials of one look, more of several.
        assert outlook.equal_after > 8 * (math.log1p(0.20) / 2.7 * 1.645 / math.log1p(0.03)) ** 2
