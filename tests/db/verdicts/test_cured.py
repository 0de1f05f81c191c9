"""What later builds say of recorded regressions: still there, gone, or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.judge.decide import counts_as_regression
from compilewatch.db.judge.decide_again import is_gone
from compilewatch.db.judge.policy import Policy
from compilewatch.db.records.people import TriageState
from compilewatch.db.records.vocabulary import CauseClass, Verdict
from compilewatch.db.service.recording import TriageEvent, record_comparison, triage
from compilewatch.db.service.regressions import RegressionState, regressions_frame, standing_regressions
from compilewatch.db.store.trials import save_trials
from compilewatch.db.verdicts.steps import with_later
from tests.regression_cases import RUN_0, RUN_1, judged, stepping_history

NOW = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)


@pytest.fixture
def database(sqlite_url: str) -> Iterator[Database]:
    with open_database(sqlite_url) as database:
        yield database


def now(database: Database, *factors: float, builds: tuple[str, ...]) -> tuple[RegressionState, ...]:
    """Run 1 got slower than run 0 and was recorded; the other runs came later."""
    save_trials(database, stepping_history(*factors, builds=builds))
    assert record_comparison(database, judged(database, RUN_0, RUN_1), at=NOW).new
    return with_later(database, standing_regressions(database), Policy())


def test_what_a_later_build_takes_back_is_gone_with_it(database: Database) -> None:
    states = now(database, 1.0, 1.4, 1.0, builds=("2.12.0", "2.13.0", "2.15.0"))
    assert {each.now for each in states} == {"gone with torch 2.15.0"}
    assert all(each.is_cured and not each.is_open for each in states)


def test_what_a_later_build_still_has_is_open(database: Database) -> None:
    states = now(database, 1.0, 1.4, 1.4, builds=("2.12.0", "2.13.0", "2.15.0"))
    assert {each.now for each in states} == {"still there with torch 2.15.0"}
    assert all(each.is_open for each in states)


def test_a_part_that_is_left_is_still_there(database: Database) -> None:
    states = now(database, 1.0, 1.4, 1.2, builds=("2.12.0", "2.13.0", "2.15.0"))
    assert {each.is_open for each in states} == {True}


@pytest.mark.parametrize(
    "builds", [("2.12.0", "2.13.0"), ("2.12.0", "2.13.0", "2.12.0"), ("2.12.0", "2.13.0", "2.11.0")]
)
def test_only_a_later_release_can_take_it_back(database: Database, builds: tuple[str, ...]) -> None:
    """Going back to an older one avoids a regression and mends nothing."""
    states = now(database, *(1.0, 1.4, 1.0)[: len(builds)], builds=builds)
    assert {each.now for each in states} == {""}
    assert all(each.is_open for each in states)


def test_within_a_build_the_newest_run_tells(database: Database) -> None:
    states = now(database, 1.0, 1.4, 1.0, builds=("2.12.0",) * 3)
    assert all(each.is_cured for each in states)
    assert states[0].now.startswith("gone with run ")


def test_what_was_closed_asks_for_nothing(database: Database) -> None:
    first, *_ = now(database, 1.0, 1.4, 1.0, builds=("2.12.0", "2.13.0", "2.15.0"))
    closed = TriageEvent(state=TriageState.FIXED, author="Ada", at=NOW)
    triage(database, first.regression.regression_id, closed)
    states = with_later(database, standing_regressions(database), Policy())
    (again,) = (each for each in states if each.regression == first.regression)
    assert not again.is_cured
    assert not again.is_open


def test_the_list_of_regressions_says_it(database: Database) -> None:
    now(database, 1.0, 1.4, 1.0, builds=("2.12.0", "2.13.0", "2.15.0"))
    frame = regressions_frame(database, later=lambda states: with_later(database, states, Policy()))
    assert set(frame["now"]) == {"gone with torch 2.15.0"}


@pytest.mark.parametrize(
    ("update", "gone"),
    [
        ({"verdict": Verdict.UNCHANGED}, True),
        ({"verdict": Verdict.IMPROVED}, True),
        ({"verdict": Verdict.REGRESSED}, False),
        # Most of it is left, only the trials are too few to tell.
        ({"verdict": Verdict.INCONCLUSIVE}, None),
        ({"verdict": Verdict.INCONCLUSIVE, "change": 0.01, "visible_change": 0.05}, True),
        ({"verdict": Verdict.INCONCLUSIVE, "change": 0.01, "visible_change": 0.9}, None),
        (
            {"verdict": Verdict.INCONCLUSIVE, "change": 0.01, "visible_change": 0.05}
            | {"cause": CauseClass.MACHINE},
            None,
        ),
    ],
)
def test_a_step_is_gone_where_a_later_build_shows_none_or_would_have_shown_it(
    database: Database, update: dict[str, object], gone: bool | None
) -> None:
    save_trials(database, stepping_history(1.0, 1.4, builds=("2.12.0", "2.13.0")))
    recorded = next(row for row in judged(database, RUN_0, RUN_1).rows if counts_as_regression(row))
    assert is_gone(recorded.model_copy(update=update), recorded) is gone
