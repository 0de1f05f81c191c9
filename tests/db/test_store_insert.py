"""Rows in bulk: every column type as SQLAlchemy itself would send it, errors as it would raise them."""

import pytest
from sqlalchemy import insert, select
from sqlalchemy.exc import IntegrityError

from db.session import Database
from db.store import save_trials
from db.store_insert import insert_rows
from db.store_rows import Identifier, content_hash, detail_row, sample_rows, trial_row
from db.tables import TRIAL, TRIAL_DETAIL, TRIAL_SAMPLES
from tests.builders import make_imported, make_trial

TRIALS = [
    make_trial(label='"; DROP TABLE trial; --\t\\N\n\\.', suite=None),
    make_trial(failure="crash"),
    make_imported(ended_at=None),
]
TABLES = (TRIAL, TRIAL_DETAIL, TRIAL_SAMPLES)


def rows_of() -> dict[str, list[dict[str, object]]]:
    ids = [Identifier().ids(trial) for trial in TRIALS]
    return {
        "trial": [trial_row(t, i, content_hash(t, i)) for t, i in zip(TRIALS, ids, strict=True)],
        "trial_detail": [detail_row(trial) for trial in TRIALS],
        "trial_samples": [row for trial in TRIALS for row in sample_rows(trial)],
    }


def test_rows_are_those_that_sqlalchemy_would_have_inserted(database: Database) -> None:
    save_trials(database, TRIALS)
    stored = {}
    for way in ("bulk", "one by one"):
        with database.write() as connection:
            for table in reversed(TABLES):
                connection.execute(table.delete())
            for table in TABLES:
                if way == "bulk":
                    insert_rows(connection, table, rows_of()[table.name])
                else:
                    connection.execute(insert(table), rows_of()[table.name])
        with database.read() as connection:
            stored[way] = [sorted(map(repr, connection.execute(select(table)))) for table in TABLES]
    assert stored["bulk"] == stored["one by one"]
    assert len(stored["bulk"][0]) == 3


def test_a_refused_row_leaves_the_transaction_to_roll_back(database: Database) -> None:
    save_trials(database, TRIALS)
    with pytest.raises(IntegrityError), database.write() as connection:
        insert_rows(connection, TRIAL, rows_of()["trial"])
    with database.read() as connection:
        assert len(connection.execute(select(TRIAL.c.trial_id)).all()) == 3


def test_no_rows_are_no_statement(database: Database) -> None:
    with database.write() as connection:
        insert_rows(connection, TRIAL, [])
