"""Which machines and builds a run measured; almost always one of each."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd
from sqlalchemy import select

from db.queries.frames import frame_of
from db.session import Database
from db.tables import SERIES, TRIAL

_COLUMNS = {"run_id": "str", "machine_id": "str", "build_id": "str"}


def run_parts(db: Database, run_ids: Iterable[str]) -> pd.DataFrame:
    """One row per run, machine and build that have a trial in common; none for a run without trials."""
    wanted = list(run_ids)
    columns = (TRIAL.c.run_id, SERIES.c.machine_id, TRIAL.c.build_id)
    statement = (
        select(*columns)
        .join(SERIES, SERIES.c.series_id == TRIAL.c.series_id)
        .where(TRIAL.c.run_id.in_(wanted))
        .group_by(*columns)
        .order_by(*columns)
    )
    with db.read() as connection:
        return frame_of(connection.execute(statement).all(), _COLUMNS)
