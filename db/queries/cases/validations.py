"""The trials that tell the noise of a machine: its validations and its repeats, newest runs first."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
from sqlalchemy import Connection, func, select

from compilewatch.db.judge.statistics.noise_floor import VALIDATION_SUITE
from compilewatch.db.queries.facets import BEGAN
from compilewatch.db.queries.filters import Filters
from compilewatch.db.queries.trials import trials_of_runs
from compilewatch.db.records.trial import SourceKind
from compilewatch.db.tables.runs import RUN_PART
from compilewatch.db.tables.trials import MACHINE, RUN, TRIAL


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


def measured_machines(connection: Connection) -> list[str]:
    """The id of every machine, in order."""
    return list(connection.scalars(select(MACHINE.c.machine_id).order_by(MACHINE.c.machine_id)))


def newest_repeats(
    connection: Connection, machine_id: str, *, trials: int, limit: int
) -> Iterator[pd.DataFrame]:
    """Like `trials_frame`, what was measured of each build in each of a machine's newest runs, read as they
    are asked for: of those among at most `limit` that have at least so many `trials` of some case.
    """
    statement = (
        select(RUN_PART.c.run_id, RUN_PART.c.build_id)
        .where(RUN_PART.c.machine_id == machine_id, RUN_PART.c.trials >= trials)
        .order_by(RUN_PART.c.last_seen_at.desc(), RUN_PART.c.run_id.desc(), RUN_PART.c.build_id)
        .limit(limit)
    )
    for run_id, build_id in connection.execute(statement).all():
        mine = (TRIAL.c.run_id == run_id, TRIAL.c.build_id == build_id)
        by_case = select(TRIAL.c.series_id).where(*mine).group_by(TRIAL.c.series_id)
        if connection.execute(by_case.having(func.count() >= trials).limit(1)).first() is None:
            continue
        chosen = Filters(machines=(machine_id,), builds=(build_id,), sources=(SourceKind.MEASURED,))
        yield trials_of_runs(connection, chosen, (run_id,))
