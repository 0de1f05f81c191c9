"""`compilewatch demo`: recorded trials as a team's quarter: a regression and its cure, a failure, a sweep."""

from __future__ import annotations

from collections import defaultdict
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.errors import CompilewatchError
from compilewatch.db.judge.policy import Policy
from compilewatch.db.queries.facets import machines
from compilewatch.db.queries.trials import trial_records
from compilewatch.db.records.people import TriageState
from compilewatch.db.records.trial import Status, parse_trial
from compilewatch.db.service.annotations import stored_annotations
from compilewatch.db.service.regressions import standing_regressions
from compilewatch.db.store.trials import save_trials
from compilewatch.db.verdicts.steps import with_later
from compilewatch.runner.cli.stored import demo
from tests.made_once import MadeOnce, fill_demo

HISTORY = Path(__file__).parents[3] / "docs" / "measured" / "cpu-history.jsonl"
RECORDED = [parse_trial(line) for line in HISTORY.read_bytes().splitlines()]


@pytest.fixture(scope="module")
def filled(made: MadeOnce) -> Database:
    return open_database(f"sqlite:///{made('demo', fill_demo)}")


def test_a_quarter_has_a_night_every_three_days_and_the_recorded_figures() -> None:
    moved = {trial.trial_id: trial for trial in demo.as_a_quarter(RECORDED)}
    dates = ("run_id", "started_at", "ended_at")
    for trial in RECORDED:
        own = moved[trial.trial_id]
        assert own.model_copy(update={name: getattr(trial, name) for name in dates}) == trial
        assert own.ended_at is not None
        assert trial.ended_at is not None
        assert own.ended_at - own.started_at == trial.ended_at - trial.started_at
    nights = defaultdict(set)
    for trial in moved.values():
        nights[trial.build.torch].add(trial.started_at.date())
    days = sorted(day for of_release in nights.values() for day in of_release)
    # Six releases, five nights each.
    releases = ("2.6.0", "2.8.0", "2.9.1", "2.11.0", "2.12.1", "2.15.0")
    assert {torch: len(nights[torch]) for torch in releases} == dict.fromkeys(releases, 5)
    assert {later - day for day, later in pairwise(days)} == {
        timedelta(days=3),
        timedelta(days=2),
    }
    assert (days[-1] - days[0]).days == 82
    assert days[-1] == date(2026, 11, 28)


def test_it_has_an_open_regression_a_cured_one_a_failure_and_a_sweep(filled: Database) -> None:
    found = with_later(filled, standing_regressions(filled), Policy())
    by_model = {each.regression.row.workload: each for each in found}
    assert len(found) == len(by_model) == 2
    cured, still_open = by_model["elementwise"], by_model["cnn"]
    row = cured.regression.row
    assert (row.strategy, row.metric) == ("default", "latency")
    # Its history in docs/measured/upgrade-history.md: +167 % [+146, +191].
    assert row.change == pytest.approx(1.67, abs=0.01)
    assert (cured.state, cured.triage[-1].author) == (TriageState.ACKNOWLEDGED, "Ada (demo)")
    assert cured.is_cured
    assert cured.now.startswith("gone with torch 2.15.0")
    row = still_open.regression.row
    assert (row.strategy, row.metric, row.base, row.head) == ("default", "break_even", 47_661, 70_357)
    assert (still_open.state, still_open.is_open) == (TriageState.NEW, True)
    assert still_open.now.startswith("still there with torch 2.12.1")
    trials = list(trial_records(filled))
    # Only what cures it is left out.
    assert {trial.build.torch for trial in trials if trial.workload.name == "cnn"} >= {"2.11.0", "2.12.1"}
    missing = {trial.trial_id for trial in RECORDED} - {trial.trial_id for trial in trials}
    assert {(trial.workload.name, trial.build.torch) for trial in RECORDED if trial.trial_id in missing} == {
        ("cnn", "2.15.0")
    }
    assert any(trial.status is Status.FAILED for trial in trials)
    sizes = {trial.workload.batch_size for trial in trials if trial.workload.name.startswith("encoder-sweep")}
    assert len(sizes) >= 4
    assert set(machines(filled)["device"]) == {"cpu", "cuda"}


def test_started_again_it_is_as_it_was(filled: Database) -> None:
    def stored() -> tuple[object, ...]:
        return len(list(trial_records(filled))), standing_regressions(filled), stored_annotations(filled)

    before = stored()
    demo.fill(filled)
    assert stored() == before


def test_the_demo_of_another_release_is_named(sqlite_url: str) -> None:
    with open_database(sqlite_url) as database:
        save_trials(database, RECORDED)
        with pytest.raises(CompilewatchError, match="demo of another release") as caught:
            demo.fill(database)
    assert "Remove demo.db" in caught.value.next_step
