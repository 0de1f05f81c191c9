"""Rows in bulk: every column type as SQLAlchemy itself would send it, errors as it would raise them."""

import hashlib
import json
import struct
from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy import insert, select
from sqlalchemy.exc import IntegrityError

from db.engine.session import Database
from db.records.ids import recorded_build_identity
from db.records.trial import Trial
from db.store.insert import insert_columns, insert_rows
from db.store.trial_rows import Identifier, detail_columns, sample_columns, trial_columns, trial_rows
from db.store.trials import save_trials
from db.tables.metadata import JsonText
from db.tables.trials import DETAIL_PARTS, SAMPLE_KINDS, TRIAL, TRIAL_DETAIL, TRIAL_SAMPLES
from tests.builders import make_imported, make_trial

TRIALS = [
    make_trial(label='"; DROP TABLE trial; --\t\\N\n\\.', suite=None),
    make_trial(failure="crash"),
    make_imported(ended_at=None),
]
TABLES = (TRIAL, TRIAL_DETAIL, TRIAL_SAMPLES)


def rows_of() -> dict[str, list[dict[str, object]]]:
    prepared = trial_rows(TRIALS, Identifier())
    columns = {
        "trial": trial_columns(prepared),
        "trial_detail": {
            name: values if name == "trial_id" else [text and JsonText(text) for text in values]
            for name, values in detail_columns(prepared).items()
        },
        "trial_samples": sample_columns(prepared),
    }
    return {
        table: [dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True)]
        for table, found in columns.items()
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


def test_moments_are_stored_as_sqlalchemy_stores_them(sqlite_database: Database) -> None:
    save_trials(sqlite_database, TRIALS[:1])
    nepal = timezone(timedelta(hours=5, minutes=45))
    moments = [
        datetime(1, 1, 1, tzinfo=UTC),
        None,
        datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(2026, 11, 20, 18, 0, 0, 10, tzinfo=nepal),
        datetime(2026, 11, 20, 18, 0, tzinfo=nepal),
    ]
    (row,) = rows_of()["trial"][:1]
    rows = [row | {"trial_id": f"t{number}", "ended_at": at} for number, at in enumerate(moments)]
    stored = []
    for way in ("bulk", "one by one"):
        with sqlite_database.write() as connection:
            connection.execute(TRIAL.delete())
            if way == "bulk":
                insert_rows(connection, TRIAL, rows)
            else:
                connection.execute(insert(TRIAL), rows)
            text = "SELECT trial_id, started_at, ended_at FROM trial ORDER BY trial_id"
            stored.append(connection.exec_driver_sql(text).all())
    assert stored[0] == stored[1]
    assert stored[0][3][2] == "2026-11-20 12:15:00.000010"


def test_a_moment_without_a_time_zone_is_refused(sqlite_database: Database) -> None:
    save_trials(sqlite_database, TRIALS[:1])
    (row,) = rows_of()["trial"][:1]
    naive = row | {"trial_id": "naive", "ended_at": datetime(2026, 11, 20)}  # noqa: DTZ001
    with pytest.raises(ValueError, match="time zone"), sqlite_database.write() as connection:
        insert_rows(connection, TRIAL, [naive])


def test_a_refused_row_leaves_the_transaction_to_roll_back(database: Database) -> None:
    save_trials(database, TRIALS)
    with pytest.raises(IntegrityError), database.write() as connection:
        insert_rows(connection, TRIAL, rows_of()["trial"])
    with database.read() as connection:
        assert len(connection.execute(select(TRIAL.c.trial_id)).all()) == 3


def test_no_rows_are_no_statement(database: Database) -> None:
    with database.write() as connection:
        insert_rows(connection, TRIAL, [])
        insert_columns(connection, TRIAL, {column.name: [] for column in TRIAL.columns})


def test_what_no_row_has_is_null(database: Database) -> None:
    """Columns that are null in all rows are not named; with one value among them they are."""
    alike = [trial.model_copy(update={"trial_id": f"t{n}"}) for n, trial in enumerate([TRIALS[2]] * 3)]
    save_trials(database, alike)
    told = trial_columns(trial_rows(alike, Identifier()))
    assert told["ended_at"] == [None] * 3
    with database.read() as connection:
        stored = connection.execute(select(TRIAL).order_by(TRIAL.c.trial_id)).mappings().all()
    for name, values in told.items():
        assert [row[name] for row in stored] == list(values)


def test_every_field_of_a_record_is_part_of_its_content() -> None:
    """A field that is added to the record and forgotten in the content would let a changed record pass."""
    scalars = {
        "schema_",
        "trial_id",
        "run_id",
        "started_at",
        "ended_at",
        "suite",
        "label",
        "source",
        "status",
    }
    stack = {"workload", "strategy", "machine", "build"}
    assert set(Trial.model_fields) == scalars | stack | set(DETAIL_PARTS) | set(SAMPLE_KINDS)


def test_the_content_tells_any_two_different_records_apart() -> None:
    trial = make_trial(trial_id="one")
    others = [
        trial.model_copy(update=change)
        for change in (
            {"run_id": "another"},
            {"ended_at": None},
            {"suite": None, "label": "standard"},
            {"source": trial.source.model_copy(update={"name": "x"})},
            {"build": trial.build.model_copy(update={"label": "x"})},
            {"machine": trial.machine.model_copy(update={"name": "x"})},
            {"samples_ns": trial.samples_ns[:-1]},
            {"samples_ns": trial.samples_ns[:-1], "control_warmup_ns": trial.samples_ns[-1:]},
            {"memory": None},
            {"memory": trial.memory.model_copy(update={"peak_bytes": None})},
        )
    ]
    contents = [entry.content for entry in trial_rows([trial, trial, *others], Identifier())]
    assert contents[0] == contents[1]
    assert len(set(contents)) == 1 + len(others)


def content_of(trial: Trial) -> str:
    """As releases stored it: written out, from one trial alone."""
    (ids,) = [entry.ids for entry in trial_rows([trial], Identifier())]
    arrays = [(kind, values) for kind in SAMPLE_KINDS if (values := getattr(trial, kind))]
    began, ended = (at and at.isoformat().replace("+00:00", "Z") for at in (trial.started_at, trial.ended_at))
    told = [
        *(trial.schema_, trial.trial_id, trial.run_id, began, ended, trial.suite, trial.label),
        *(trial.source.kind, trial.source.name, trial.status),
        *(ids.machine, recorded_build_identity(trial.build), ids.workload, ids.strategy),
        *(trial.machine.name, trial.machine.device_uuid, trial.build.label),
        [(kind, 8 * len(values)) for kind, values in arrays],
    ]
    lines = []
    for name in DETAIL_PARTS:
        if (part := getattr(trial, name)) is not None:
            lines += [name, part.model_dump_json(exclude_defaults=True)]
    written = [json.dumps(told, separators=(",", ":"), ensure_ascii=False), "\n".join(lines)]
    raw = [struct.pack(f"<{len(values)}q", *values) for _, values in arrays]
    return hashlib.sha256(b"\n".join([*map(str.encode, written), *raw])).hexdigest()[:32]


def test_the_content_is_the_one_that_earlier_releases_stored() -> None:
    """Otherwise a trial that is sent again would be compared with what is stored field by field."""
    few = [*TRIALS, make_trial(warmup_ns=[]), make_trial(samples_ns=[5], control_samples_ns=[])]
    many = [trial.model_copy(update={"trial_id": f"t{n}"}) for n in range(70) for trial in few]
    prepared = trial_rows(many, Identifier())
    assert [entry.trial for entry in prepared] == many
    assert [entry.content for entry in prepared] == [*map(content_of, many)]


def test_trials_are_prepared_together_as_alone() -> None:
    """Many at once, and of many lengths."""
    many = [make_trial(seed=n, samples=1 + n % 7, warmup_ns=[n] * (n % 3)) for n in range(230)] + TRIALS
    alone = [entry for trial in many for entry in trial_rows([trial], Identifier())]
    assert [entry[1:] for entry in trial_rows(many, Identifier())] == [entry[1:] for entry in alone]
