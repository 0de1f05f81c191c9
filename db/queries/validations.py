"""The trials by which machines were validated, newest runs first."""

from __future__ import annotations

import pandas as pd
from sqlalchemy import Connection, select

from db.judge.compare.noise_floor import VALIDATION_SUITE
from db.queries.facets import BEGAN
from db.queries.filters import Filters
from db.queries.trials import trials_of_runs
from db.tables.run_parts import RUN_PART
from db.tables.trials import RUN


def validation_trials(connection: Connection, machine_id: str | None, *, runs: int) -> pd.DataFrame | None:
    """Like `trials_frame`, of the newest `runs` validations (of one machine); None where there is none."""
    statement = (
        select(RUN.c.run_id)
        .where(RUN.c.suite == VALIDATION_SUITE)
        .order_by(BEGAN.desc(), RUN.c.run_id.desc())
        .limit(runs)
    )
    if machine_id is not None:
        mine = select(RUN_PART.c.run_id).where(RUN_PART.c.machine_id == machine_id)
        statement = statement.where(RUN.c.run_id.in_(mine))
    run_ids = connection.execute(statement).scalars().all()
    if not run_ids:
        return None
    machines = () if machine_id is None else (machine_id,)
    return trials_of_runs(connection, Filters(machines=machines), run_ids)
