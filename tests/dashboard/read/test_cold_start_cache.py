"""Phases of cold starts: each trial's are read once, and never told of another database."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest

from dashboard.read import cold_start_cache
from dashboard.read.cold_start_cache import ColdStartCache
from db.engine.session import Database, open_database
from db.queries.cold_start import cold_starts
from db.queries.data_version import data_version
from db.queries.trials import trials_frame
from db.store.trials import save_trials
from tests.builders import make_history, make_imported, make_trial


class _Asking:
    """What is kept of a database that another may take the place of, and what was read of it."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.asked: list[int] = []
        self.kept = ColdStartCache(self._read, lambda: data_version(self.database))

    def _read(self, trial_ids: Sequence[str]) -> dict[str, list[int]]:
        self.asked.append(len(trial_ids))
        return cold_starts(self.database, trial_ids)

    def check(self, trials: pd.DataFrame | None = None) -> None:
        """What is kept is what a read from nothing gives."""
        trials = trials_frame(self.database) if trials is None else trials
        found = self.kept.of(trials)
        expected = cold_starts(self.database, list(trials["trial_id"]))
        assert found.phase_ns.tolist() == [expected[trial_id] for trial_id in trials["trial_id"]]
        assert list(found.trials["strategy"]) == list(trials["strategy"])


@pytest.fixture
def asking(sqlite_url: str) -> _Asking:
    database = open_database(sqlite_url)
    save_trials(database, [*make_history(builds=("2.13.0",), trials_per_case=2), make_imported()])
    return _Asking(database)


def test_only_trials_that_came_are_read(asking: _Asking) -> None:
    asking.check()
    asking.check()
    first = list(asking.asked)
    save_trials(asking.database, [make_trial(trial_id="new", run_id="new"), make_imported(trial_id="other")])
    asking.check()
    assert len(first) == 1
    assert asking.asked == [*first, 2]


def test_a_selection_of_what_is_known_is_not_read(asking: _Asking) -> None:
    every = trials_frame(asking.database)
    asking.check(every)
    asking.check(every.iloc[2:5])
    asking.check(every.iloc[:0])
    assert asking.asked == [len(every)]


def test_trials_that_are_gone_are_told_no_more(asking: _Asking) -> None:
    every = trials_frame(asking.database)
    asking.check(every)
    assert len(asking.kept.of(every.iloc[1:]).phase_ns) == len(every) - 1


def test_another_database_in_the_place_of_the_one_before_is_read_anew(
    asking: _Asking, tmp_path: Path
) -> None:
    save_trials(asking.database, [make_trial(trial_id="same", latency_ns=1_000_000)])
    asking.check()
    asking.database = open_database(f"sqlite:///{tmp_path / 'other.db'}", migrate=True)
    save_trials(asking.database, [make_trial(trial_id="same", latency_ns=9_000_000)])
    asking.check()


def test_no_more_is_kept_than_the_last_look_asked_for(
    asking: _Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cold_start_cache, "MOST_TRIALS", 3)
    every = trials_frame(asking.database)
    asking.check(every)
    asking.check(every.iloc[:2])
    asking.check(every.iloc[2:4])
    asking.check(every.iloc[2:4])
    asking.check(every.iloc[:2])
    assert asking.asked == [len(every), 2, 2]
