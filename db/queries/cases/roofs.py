"""What a machine reached in the canaries of a run, and the work of cases beside it."""

from __future__ import annotations

import pandas as pd
from sqlalchemy import Row, func, select

from compilewatch.db.cause.roofline import Roofs
from compilewatch.db.engine.session import Database
from compilewatch.db.queries.filters import Filters
from compilewatch.db.queries.frames import frame_of
from compilewatch.db.queries.selection import CASES, matching
from compilewatch.db.records.sampling_facts import Profile
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.tables.trials import SERIES, STRATEGY, TRIAL, TRIAL_DETAIL, WORKLOAD

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
    rows = {row.name: row for row in database.rows(statement) if row.took_ns}
    if rows.keys() != {GEMM, COPY}:
        return None
    per_s = {name: row.items_per_iteration / row.took_ns * 1e9 for name, row in rows.items()}
    # A copy reads every byte and writes it.
    return Roofs(rows[GEMM].dtype, per_s[GEMM], 2 * per_s[COPY])


ROOFLINE_COLUMNS = {
    **{"workload_id": "str", "strategy": "str"},
    **dict.fromkeys(("operations", "bytes", "step_ns"), "float64"),
    **dict.fromkeys(("roof_operations_per_s", "roof_bytes_per_s"), "float64"),
}


def rooflines(database: Database, filters: Filters) -> pd.DataFrame:
    """One row per case with a profile, the newest: what an eager step computes and moves, how long a step of
    the case takes, and what the canaries of its run reached a second; columns as `ROOFLINE_COLUMNS`.

    A workload has a row of eager too, timed beside a compiled case where it has no process of its own. A case
    is absent whose operations or bytes nobody counted, or whose run has no canaries in its dtype.
    """
    cells: dict[tuple[str, str], tuple[object, ...]] = {}
    roofs: dict[str, Roofs | None] = {}
    for row in _profiled(database, filters):
        if row.run_id not in roofs:
            roofs[row.run_id] = roofs_of(database, row.run_id)
        reached, work = roofs[row.run_id], Profile.model_validate(row.profile)
        if reached is None or reached.dtype != row.dtype or not work.flops or not work.bytes:
            continue
        counted = (work.flops, work.bytes)
        own, eager = row.own_ns, row.eager_ns
        for strategy, step_ns in ((row.strategy, own), (EAGER.name, eager)):
            if step_ns:
                roof = (reached.operations_per_s, reached.bytes_per_s)
                cells.setdefault(
                    (row.workload_id, strategy), (row.workload_id, strategy, *counted, step_ns, *roof)
                )
    return frame_of(list(cells.values()), ROOFLINE_COLUMNS)


def _profiled(database: Database, filters: Filters) -> list[Row[tuple[object, ...]]]:
    """The newest trial with a profile of each series, those of eager first."""
    order = (TRIAL.c.started_at.desc(), TRIAL.c.trial_id.desc())
    ranked = (
        select(
            *(TRIAL.c.trial_id, TRIAL.c.run_id, TRIAL_DETAIL.c.profile),
            *(WORKLOAD.c.workload_id, WORKLOAD.c.dtype, STRATEGY.c.name.label("strategy")),
            func.coalesce(TRIAL.c.wall_pipelined_ns, TRIAL.c.latency_ns).label("own_ns"),
            func.coalesce(TRIAL.c.control_wall_pipelined_ns, TRIAL.c.control_latency_ns).label("eager_ns"),
            func.row_number().over(partition_by=TRIAL.c.series_id, order_by=order).label("rank"),
        )
        .select_from(CASES)
        .join(TRIAL, TRIAL.c.series_id == SERIES.c.series_id)
        .join(TRIAL_DETAIL, TRIAL_DETAIL.c.trial_id == TRIAL.c.trial_id)
        .where(*matching(filters), TRIAL_DETAIL.c.profile.is_not(None))
        .subquery()
    )
    statement = (
        select(ranked)
        .where(ranked.c.rank == 1)
        .order_by(ranked.c.strategy != EAGER.name, ranked.c.workload_id, ranked.c.strategy)
    )
    return database.rows(statement)
