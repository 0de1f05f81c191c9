"""Old samples are forgotten, and nothing that follows from them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pandas as pd
from sqlalchemy import text

from compilewatch.db.engine.session import Database
from compilewatch.db.queries.data_version import data_version
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trial_record, trial_records, trials_frame
from compilewatch.db.records.trial import Trial, parse_trial
from compilewatch.db.store.removal import compact_samples
from compilewatch.db.store.trials import save_trial, save_trials
from tests.builders import make_trial

NOW = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)


def trial(name: str, days_ago: int) -> Trial:
    return make_trial(
        trial_id=name, started_at=NOW - timedelta(days=days_ago), samples_ns=[10, 30, 20], ended_at=NOW
    )


def sample_rows(database: Database) -> dict[str, int]:
    with database.read() as connection:
        rows = connection.execute(text("SELECT trial_id, count(*) FROM trial_samples GROUP BY trial_id"))
        return {row[0]: row[1] for row in rows}


def test_only_old_samples_go_and_every_figure_stays(database: Database) -> None:
    save_trials(database, [trial("old", 90), trial("new", 10)])
    before, kinds = trials_frame(database), sample_rows(database)
    version = data_version(database)
    assert compact_samples(database, NOW - timedelta(days=30)) == 1
    assert sample_rows(database) == {"new": kinds["new"]}
    pd.testing.assert_frame_equal(trials_frame(database), before)
    assert data_version(database) == version + 1
    assert compact_samples(database, NOW - timedelta(days=30)) == 0
    assert data_version(database) == version + 1


def test_a_compacted_record_is_still_a_record(database: Database) -> None:
    saved = trial("old", 90)
    save_trial(database, saved)
    compact_samples(database, NOW)
    compacted = trial_record(database, "old")
    assert compacted.samples_ns == []
    assert (compacted.summary.latency_ns, compacted.summary.n) == (20, 3)
    assert parse_trial(compacted.to_json()) == compacted
    assert [each.trial_id for each in trial_records(database, Filters())] == ["old"]


def test_the_record_that_was_saved_is_still_known(database: Database) -> None:
    saved = trial("old", 90)
    save_trial(database, saved)
    compact_samples(database, NOW)
    assert not save_trial(database, saved)


def test_a_service_that_stops_forgets_no_more(database: Database) -> None:
    save_trial(database, trial("old", 90))
    assert compact_samples(database, NOW, should_stop=lambda: True) == 0
    assert sample_rows(database)
