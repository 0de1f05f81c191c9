"""A database of the oldest schema, in a file and on a server: all rows and numbers stay."""

from __future__ import annotations

import math
import shutil
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, inspect, select, table, text
from sqlalchemy import column as named

from compilewatch.db.engine.schema import HEAD, OLDEST, VERSION_TABLE
from compilewatch.db.engine.session import open_database
from compilewatch.db.errors import DatabaseError
from compilewatch.db.queries.trials import trial_records, trials_frame
from compilewatch.db.records.trial import parse_trial
from compilewatch.db.service.integrity import find_damage
from compilewatch.db.store.backup import restore
from compilewatch.db.store.trial_writer import bring_up
from compilewatch.db.store.trials import save_trials

SCHEMAS = Path(__file__).parents[1] / "schemas"
OLD = SCHEMAS / f"{OLDEST}.db"
RECORDS = [parse_trial(line) for line in OLD.with_suffix(".jsonl").read_bytes().splitlines()]
"""What the release that wrote the file said was in it."""
Columns = dict[str, list[str]]


@pytest.fixture
def old_url(empty_database_url: str) -> str:
    """A database as the program of that schema made it, with rows in every table."""
    if empty_database_url.startswith("sqlite"):
        shutil.copyfile(OLD, empty_database_url.removeprefix("sqlite:///"))
        return empty_database_url
    import psycopg

    with psycopg.connect(empty_database_url) as connection:
        connection.execute(OLD.with_suffix(".sql").read_bytes())
    return empty_database_url


def test_every_revision_has_its_file() -> None:
    revisions = {f"{number:04d}" for number in range(int(OLDEST), int(HEAD) + 1)}
    assert revisions == {file.stem for file in SCHEMAS.glob("*.db")}


def test_the_file_of_this_release_has_this_schema_and_rows_in_every_table(sqlite_url: str) -> None:
    stored = f"sqlite:///{SCHEMAS / HEAD}.db"
    assert columns_of(stored) == columns_of(sqlite_url)
    assert [name for name, rows in rows_of(stored, columns_of(stored)).items() if not rows] == []


def test_an_upgrade_changes_no_row_and_no_number(old_url: str) -> None:
    columns = columns_of(old_url)
    assert [name for name, rows in rows_of(old_url, columns).items() if not rows] == []
    columns["trial"].remove("record_version")
    del columns["data_version"]  # counts that something was written
    summed_up = {"run_case": columns.pop("run_case")}
    before, sums = rows_of(old_url, columns), rows_of(old_url, summed_up)
    with open_database(old_url, migrate=True) as database:
        bring_up(database)
        assert list(trial_records(database)) == RECORDS
        assert set(trials_frame(database)["record_version"]) == {1}
        assert find_damage(database) == []
        assert save_trials(database, RECORDS) == (0, len(RECORDS))
    assert columns_of(old_url) == columns_of(f"sqlite:///{SCHEMAS / HEAD}.db")
    assert rows_of(old_url, columns) == before
    # What later revisions hold as well is what this release takes from the same records.
    newest = f"sqlite:///{SCHEMAS / HEAD}.db"
    later = sorted(set(columns_of(newest)["trial"]) - {*columns["trial"], "record_version"})
    held = {"trial": ["trial_id", *later]}
    assert sorted(rows_of(old_url, held)["trial"]) == sorted(rows_of(newest, held)["trial"])
    # Made anew, on a processor that may round the last digit another way.
    now, then = (chain.from_iterable(each["run_case"]) for each in (rows_of(old_url, summed_up), sums))
    assert [pair for pair in zip(now, then, strict=True) if not _are_alike(*pair)] == []


@pytest.mark.parametrize(
    ("revision", "commits"),
    [
        ("0031", "of commit 978766465463, then of commit a51b7d109a11, then of this release"),
        ("0032", "of commit a51b7d109a11, then of this release"),
    ],
)
def test_an_older_one_is_refused_and_stays_as_it_is(old_url: str, revision: str, commits: str) -> None:
    engine = _engine(old_url)
    with engine.begin() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '{revision}'"))
    engine.dispose()
    everything = columns_of(old_url) | {VERSION_TABLE: ["version_num"]}
    before = rows_of(old_url, everything)
    for migrate in (True, False):
        with pytest.raises(DatabaseError, match=f"has schema {revision}, older than this release") as caught:
            open_database(old_url, migrate=migrate)
        assert caught.value.next_step == f"Run `compilewatch db upgrade` {commits}."
    assert rows_of(old_url, everything) == before


def test_an_old_file_goes_over_to_postgresql(empty_postgres_url: str) -> None:
    restore(OLD, empty_postgres_url)
    with open_database(empty_postgres_url, read_only=True) as database:
        assert list(trial_records(database)) == RECORDS
        assert find_damage(database) == []


def _are_alike(now: Any, then: Any) -> bool:
    return bool(now == then or (isinstance(now, float) and math.isclose(now, then, rel_tol=1e-12)))


def _engine(url: str) -> Engine:
    return create_engine(url.replace("postgresql:", "postgresql+psycopg:"))


def columns_of(url: str) -> Columns:
    """The columns of every table, by name."""
    engine = _engine(url)
    found = inspect(engine)
    names = sorted(set(found.get_table_names()) - {VERSION_TABLE})
    columns = {name: sorted(each["name"] for each in found.get_columns(name)) for name in names}
    engine.dispose()
    return columns


def rows_of(url: str, columns: Columns) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of these columns, as the driver has it."""
    engine = _engine(url)
    with engine.connect() as connection:
        rows = {
            name: sorted(
                map(tuple, connection.execute(select(*map(named, names)).select_from(table(name)))), key=repr
            )
            for name, names in columns.items()
        }
    engine.dispose()
    return rows
