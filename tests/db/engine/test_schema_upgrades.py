"""A database file of every schema that was in use, upgraded: all rows and all numbers as they were."""

from __future__ import annotations

import math
import shutil
import sqlite3
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from compilewatch.db.engine.migrations import HEAD, VERSION_TABLE
from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.queries.service.integrity import find_damage
from compilewatch.db.queries.trials import trial_records
from compilewatch.db.records.trial import Trial, parse_trial
from compilewatch.db.store.backup import restore
from compilewatch.db.store.run_cases import bring_up

SCHEMAS = Path(__file__).parents[1] / "schemas"
FILES = sorted(SCHEMAS.glob("*.db"))
# Came one after the other within one release: no program that writes one of them alone was ever given out.
NEVER_ALONE = {"0005", "0006", "0007", "0008", "0009", "0017"}


def test_every_revision_has_its_file() -> None:
    revisions = {f"{number:04d}" for number in range(1, int(HEAD) + 1)}
    assert revisions - NEVER_ALONE == {file.stem for file in FILES}


def test_the_file_of_this_release_has_this_schema_and_rows_in_every_table(sqlite_url: str) -> None:
    kept = rows_of(SCHEMAS / f"{HEAD}.db")
    made = rows_of(Path(sqlite_url.removeprefix("sqlite:///")))
    assert {table: sorted(columns) for table, (columns, _) in kept.items()} == {
        table: sorted(columns) for table, (columns, _) in made.items()
    }
    assert [table for table, (_, rows) in kept.items() if not rows] == []


@pytest.fixture(params=FILES, ids=lambda file: file.stem)
def old(request: pytest.FixtureRequest) -> Path:
    file: Path = request.param
    return file


def records_of(old: Path) -> list[Trial]:
    """What the release that wrote the file said was in it."""
    lines = old.with_suffix(".jsonl").read_text(encoding="utf-8").splitlines()
    return [parse_trial(line.encode(), where=old.name) for line in lines]


def test_an_upgrade_changes_no_row_and_no_number(old: Path, tmp_path: Path) -> None:
    file = tmp_path / "upgraded.db"
    shutil.copyfile(old, file)
    before = rows_of(file)
    with open_database(f"sqlite:///{file}", migrate=True) as database:
        bring_up(database)
        expect_as_it_was(database, old)
    columns = {
        table: [name for name in names if name not in OF_BUILDS]
        for table, (names, _) in before.items()
        if table not in DROPPED
    }
    kept = {table: names for table, names in columns.items() if table not in REWRITTEN}
    summed_up = {"run_case": kept.pop("run_case")} if "run_case" in kept else {}
    assert rows_of(file, kept) == rows_of(old, kept)
    # Made anew, on a processor that may round the last digit another way.
    now, then = (
        chain.from_iterable(rows_of(each, summed_up).get("run_case", ([], []))[1]) for each in (file, old)
    )
    assert [pair for pair in zip(now, then, strict=True) if not _are_alike(*pair)] == []


# A build is the software stack since 0018: what names one is rewritten there, which has tests of its own.
OF_BUILDS = {"build_id", "base_build_id", "head_build_id", "settings"}
REWRITTEN = {
    *("build", "conditions", "regression", "triage_event", "notification", "run_part"),
    # Counts that something was written.
    "data_version",
}


DROPPED = {"sign_off", "watch", "build_alias"}


FIRST_MIDDLE_LAST = (FILES[0], FILES[len(FILES) // 2], FILES[-1])


@pytest.mark.parametrize(
    "old",
    [pytest.param(file, marks=() if file in FIRST_MIDDLE_LAST else pytest.mark.slow) for file in FILES],
    ids=lambda file: file.stem,
)
def test_an_old_file_goes_over_to_postgresql(old: Path, empty_postgres_url: str) -> None:
    restore(old, empty_postgres_url)
    with open_database(empty_postgres_url, read_only=True) as database:
        expect_as_it_was(database, old)


def expect_as_it_was(database: Database, old: Path) -> None:
    expected = records_of(old)
    assert expected
    assert list(trial_records(database)) == expected
    assert find_damage(database) == []


def _are_alike(now: Any, then: Any) -> bool:
    return bool(now == then or (isinstance(now, float) and math.isclose(now, then, rel_tol=1e-12)))


def rows_of(
    file: Path, columns: dict[str, list[str]] | None = None
) -> dict[str, tuple[list[str], list[tuple[Any, ...]]]]:
    """Every row of every table with its columns, as SQLite itself has them, or of the named columns only."""
    connection = sqlite3.connect(file)
    try:
        if columns is None:
            found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            names = [name for (name,) in found if name != VERSION_TABLE]
            columns = {
                name: [row[1] for row in connection.execute(f'PRAGMA table_info("{name}")')] for name in names
            }
        return {
            table: (
                names,
                sorted(connection.execute(f'SELECT {", ".join(names)} FROM "{table}"').fetchall(), key=repr),
            )
            for table, names in columns.items()
        }
    finally:
        connection.close()
