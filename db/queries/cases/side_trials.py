"""Which trials, cases and builds a side of a comparison has."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, and_, select

from compilewatch.db.judge.compare.sides import Selection
from compilewatch.db.metrics.eligibility import is_canary
from compilewatch.db.queries.selection import any_of
from compilewatch.db.tables.trials import SERIES, TRIAL, WORKLOAD


def trials_of(side: Selection) -> ColumnElement[bool]:
    """The trials of a side; as `Selection.mask`, nothing for a selection that selects by nothing."""
    parts = any_of((TRIAL.c.build_id, side.build_ids), (TRIAL.c.run_id, side.run_ids))
    return and_(*parts) if parts else TRIAL.c.trial_id.in_(())


def cases_of(connection: Connection, side: Selection, machine_id: str | None = None) -> set[str]:
    """The ids of the series of a side, on one machine or on all, without the machine's control series."""
    mine = select(TRIAL.c.series_id).where(trials_of(side))
    here = any_of((SERIES.c.machine_id, () if machine_id is None else (machine_id,)))
    statement = (
        select(SERIES.c.series_id, WORKLOAD.c.name)
        .join(WORKLOAD, WORKLOAD.c.workload_id == SERIES.c.workload_id)
        .where(SERIES.c.series_id.in_(mine), *here)
    )
    return {row.series_id for row in connection.execute(statement) if not is_canary(row.name)}


def builds_of(connection: Connection, side: Selection) -> frozenset[str]:
    """The ids of the builds of a side."""
    if side.build_ids:
        return frozenset(side.build_ids)
    return frozenset(connection.scalars(select(TRIAL.c.build_id).where(trials_of(side)).distinct()))
