"""Names of builds: kept from one look to the next, and never those of builds as they were before."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pandas as pd
import pytest

from dashboard.read.choices import KnownBuilds
from dashboard.read.shaping import build_names
from db.engine.session import Database, open_database
from db.metrics.groups import row_dicts
from db.queries.facets import builds
from db.queries.offered import offered
from db.store.trials import save_trials
from tests.builders import START, make_build, make_trial


@pytest.fixture
def database(sqlite_url: str) -> Database:
    database = open_database(sqlite_url)
    for number, torch in enumerate(("2.12.0", "2.13.0", "2.11.0", "2.13.0.dev1", "2.14.0")):
        _save(database, torch, number)
    return database


def _save(database: Database, torch: str, number: int, **more: str) -> None:
    began = START + timedelta(days=number)
    save_trials(
        database, [make_trial(build=make_build(torch, **more), trial_id=f"trial-{number}", started_at=began)]
    )


def _known(database: Database) -> tuple[tuple[object, ...], ...]:
    return offered(database, newest_runs=1).builds


def _counting(database: Database, asked: list[int | None]) -> KnownBuilds:
    def read(build_ids: Sequence[str] | None) -> pd.DataFrame:
        asked.append(None if build_ids is None else len(build_ids))
        return builds(database, build_ids)

    return KnownBuilds(read)


def _check(known: KnownBuilds, database: Database) -> None:
    """What is kept is what a read from nothing gives, in its order."""
    found = known.named(_known(database))
    rows = row_dicts(builds(database))
    assert found.names == build_names(rows)
    assert list(found.names) == list(found.rows) == [row["build_id"] for row in rows]
    assert all(found.rows[row["build_id"]]["torch"] == row["torch"] for row in rows)


def test_only_a_build_that_came_is_read_and_it_takes_its_place(database: Database) -> None:
    asked: list[int | None] = []
    known = _counting(database, asked)
    _check(known, database)
    _check(known, database)
    assert asked == [None]
    _save(database, "2.12.1", 7)
    _check(known, database)
    assert asked == [None, 1]


def test_a_build_with_the_same_torch_gives_the_one_before_another_name(database: Database) -> None:
    known = _counting(database, [])
    before = known.named(_known(database)).names
    _save(database, "2.12.0", 8, driver="999.9")
    _check(known, database)
    after = known.named(_known(database)).names
    changed = {name for key, name in before.items() if after[key] != name}
    assert changed == {"torch 2.12.0"}


def test_a_build_that_is_called_otherwise_is_read_again(database: Database) -> None:
    asked: list[int | None] = []
    known = _counting(database, asked)
    _check(known, database)
    _save(database, "2.14.0", 9, label="mine")
    _check(known, database)
    assert asked == [None, 1]
    assert "torch 2.14.0 (mine)" in known.named(_known(database)).names.values()


def test_what_is_gone_is_named_no_more(database: Database) -> None:
    known = _counting(database, [])
    every = _known(database)
    known.named(every)
    assert list(known.named(every[:2]).names) == [
        row["build_id"] for row in row_dicts(builds(database, [str(each[0]) for each in every[:2]]))
    ]
