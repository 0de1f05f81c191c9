"""What a machine reached in the canaries of a run."""

from __future__ import annotations

from sqlalchemy import func, select

from db.cause.roofline import Roofs
from db.engine.session import Database
from db.tables.trials import SERIES, TRIAL, WORKLOAD

GEMM, COPY = "canary-gemm", "canary-copy"


def roofs_of(database: Database, run_id: str) -> Roofs | None:
    """The fastest of the run's canaries, before and after its trials; None where one of both is missing."""
    took_ns = func.min(func.coalesce(TRIAL.c.device_ns, TRIAL.c.latency_ns)).label("took_ns")
    statement = (
        select(WORKLOAD.c.name, WORKLOAD.c.dtype, WORKLOAD.c.items_per_iteration, took_ns)
        .select_from(TRIAL)
        .join(SERIES, SERIES.c.series_id == TRIAL.c.series_id)
        .join(WORKLOAD, WORKLOAD.c.workload_id == SERIES.c.workload_id)
        .where(TRIAL.c.run_id == run_id, WORKLOAD.c.name.in_((GEMM, COPY)))
        .group_by(WORKLOAD.c.name, WORKLOAD.c.dtype, WORKLOAD.c.items_per_iteration)
    )
    with database.read() as connection:
        rows = {row.name: row for row in connection.execute(statement) if row.took_ns}
    if rows.keys() != {GEMM, COPY}:
        return None
    per_s = {name: row.items_per_iteration / row.took_ns * 1e9 for name, row in rows.items()}
    # A copy reads every byte and writes it.
    return Roofs(rows[GEMM].dtype, per_s[GEMM], 2 * per_s[COPY])
