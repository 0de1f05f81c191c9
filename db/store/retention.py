"""Forgetting old samples. What follows from them by plain arithmetic stays with the trial."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import Connection, RowMapping, delete, select, update

from compilewatch.db.engine.session import Database
from compilewatch.db.engine.writing import bump_data_version, lock_data_version
from compilewatch.db.tables.trials import TRIAL, TRIAL_DETAIL, TRIAL_SAMPLES

_BATCH = 500


def compact_samples(
    db: Database, before: datetime, *, should_stop: Callable[[], bool] = lambda: False
) -> int:
    """Delete the samples of trials begun before `before`: how many trials lost theirs.

    Medians, percentiles and counts stay in the trial's row, and its record gets them as a `summary`, as an
    imported result has one. A trial keeps the content hash of the record that was saved: that record is
    known when it comes again. One transaction per batch, so that others can write in between.
    """
    compacted = 0
    while not should_stop():
        with db.write() as connection:
            lock_data_version(connection)
            rows = _with_samples(connection, before)
            if not rows:
                break
            for row in rows:
                if row["summary"] is None:
                    this = TRIAL_DETAIL.c.trial_id == row["trial_id"]
                    connection.execute(update(TRIAL_DETAIL).where(this).values(summary=_summary(row)))
            samples = TRIAL_SAMPLES.c.trial_id.in_([row["trial_id"] for row in rows])
            connection.execute(delete(TRIAL_SAMPLES).where(samples))
            bump_data_version(connection)
        compacted += len(rows)
    return compacted


def _with_samples(connection: Connection, before: datetime) -> list[RowMapping]:
    has_samples = (
        select(TRIAL_SAMPLES.c.trial_id).where(TRIAL_SAMPLES.c.trial_id == TRIAL.c.trial_id).exists()
    )
    columns = ("trial_id", "latency_ns", "control_latency_ns", "samples")
    statement = (
        select(*(TRIAL.c[name] for name in columns), TRIAL_DETAIL.c.summary)
        .join(TRIAL_DETAIL, TRIAL_DETAIL.c.trial_id == TRIAL.c.trial_id)
        .where(TRIAL.c.started_at < before, has_samples)
        .order_by(TRIAL.c.started_at)
        .limit(_BATCH)
    )
    return list(connection.execute(statement).mappings())


def _summary(row: RowMapping) -> dict[str, int]:
    summary = {"latency_ns": row["latency_ns"], "control_latency_ns": row["control_latency_ns"]}
    whole = {**summary, "n": row["samples"]}
    return {name: round(value) for name, value in whole.items() if value is not None}
