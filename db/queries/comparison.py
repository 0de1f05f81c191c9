"""The trials that a comparison needs: both sides, and enough of the past to know the noise."""

from __future__ import annotations

import pandas as pd
from sqlalchemy import ColumnElement, Connection, and_, not_, or_

from db.queries.filters import Filters
from db.queries.run_parts import runs_near
from db.queries.selection import matching
from db.queries.trials import frame_where
from db.session import Database
from db.tables import TRIAL
from db.verdicts.sides import Selection

HISTORY_RUNS = 30
"""How many runs beside the compared ones are read. What a history may lend to a case is limited by policy to
fewer degrees of freedom (`Policy.history_df_limit`), so that more would only be older."""


def comparison_frame(
    db: Database,
    base: Selection,
    head: Selection,
    filters: Filters = Filters(),  # noqa: B008
    *,
    machine_id: str | None = None,
) -> pd.DataFrame:
    """A trials frame (`db.queries.trials`) with the trials of both sides that `filters` let through, and of
    the `HISTORY_RUNS` runs nearest in time to the head on each of their machines (or on `machine_id` alone).
    """
    with db.read() as connection:
        sides = frame_where(connection, [or_(_of(base), _of(head)), *matching(filters)], filters)
        history = history_runs(connection, sides, head, filters, machine_id)
        if not history:
            return sides
        others = [TRIAL.c.run_id.in_(history), not_(or_(_of(base), _of(head)))]
        past = frame_where(connection, [*others, *matching(filters)], filters)
    return pd.concat([past, sides], ignore_index=True).sort_values(
        ["started_at", "trial_id"], ignore_index=True
    )


def _of(side: Selection) -> ColumnElement[bool]:
    """The trials of a side; as `Selection.mask`, nothing for a selection that selects by nothing."""
    parts = [
        column.in_(ids)
        for column, ids in ((TRIAL.c.build_id, side.build_ids), (TRIAL.c.run_id, side.run_ids))
        if ids
    ]
    return and_(*parts) if parts else TRIAL.c.trial_id.in_(())


def history_runs(
    connection: Connection, sides: pd.DataFrame, head: Selection, filters: Filters, machine_id: str | None
) -> list[str]:
    """The runs beside those of `sides` (a trials frame) from which a comparison learns the noise."""
    # Of sixty columns the two that are looked at.
    heads = sides[["machine_id", "started_at"]][head.mask(sides)]
    newest = heads.groupby("machine_id")["started_at"].max()
    compared = list(sides["run_id"].unique())
    found: dict[str, None] = {}
    for machine, moment in newest.items():
        if machine_id in (None, machine):
            here = Filters(machines=(str(machine),), suites=filters.suites)
            near = runs_near(connection, here, moment.to_pydatetime(), HISTORY_RUNS, but=compared)
            found |= dict.fromkeys(near)
    return list(found)
