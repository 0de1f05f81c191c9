"""How fast trials are stored and read, against the least that any program would have to do."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert, select

from db.engine.session import Database, open_database
from db.queries.trials import trials_frame
from db.records.trial import Trial
from db.store.trials import save_trials
from db.tables.trials import METADATA
from tests.builders import make_history

pytestmark = pytest.mark.benchmark

_RUNS, _SAMPLES = 60, 100


def history() -> list[Trial]:
    """Records with 100 samples each, as they come from an import."""
    return make_history(
        workloads=("bert-base", "resnet-50", "mlp", "elementwise"),
        strategies=("eager", "default", "reduce-overhead", "max-autotune"),
        builds=[f"2.{minor}.0" for minor in range(_RUNS)],
        trials_per_case=5,
        samples=_SAMPLES,
    )


def stored_rows(connection: Connection) -> dict[str, list[dict[str, object]]]:
    return {
        table.name: [dict(row) for row in connection.execute(select(table)).mappings()]
        for table in METADATA.sorted_tables
        if table.name != "data_version"
    }


def bare_insert(database: Database, rows: dict[str, list[dict[str, object]]]) -> None:
    """The same rows in one transaction, one executemany per table, prepared in advance."""
    with database.write() as connection:
        for table in METADATA.sorted_tables:
            if rows.get(table.name):
                connection.execute(insert(table), rows[table.name])


def test_saving_against_a_bare_executemany(
    database: Database, backend: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    trials = history()
    started = time.perf_counter()
    save_trials(database, trials)
    saving_s = time.perf_counter() - started
    with database.read() as connection:
        rows = stored_rows(connection)
    bare_url = f"sqlite:///{tmp_path / 'bare.db'}"
    if backend == "postgresql":
        bare_url = request.getfixturevalue("empty_postgres_url")
    with open_database(bare_url, migrate=True) as bare:
        started = time.perf_counter()
        bare_insert(bare, rows)
        bare_s = time.perf_counter() - started
    print(
        f"\n{backend}: save_trials {len(trials) / saving_s:,.0f} trials/s, "
        f"bare executemany {len(trials) / bare_s:,.0f} trials/s, rate {bare_s / saving_s:.2f} of bare"
    )


def test_reading_all_and_one_series(database: Database, backend: str) -> None:
    save_trials(database, history())
    started = time.perf_counter()
    frame = trials_frame(database)
    seconds = time.perf_counter() - started
    print(f"\n{backend}: trials_frame of {len(frame):,} trials at {len(frame) / seconds:,.0f} trials/s")
