"""The newest trials of a selection, and how many it has, without reading all of them."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
from sqlalchemy import func, select, tuple_

from compilewatch.db.engine.session import Database
from compilewatch.db.queries.filters import Filters
from compilewatch.db.queries.run_parts import newest_runs_began
from compilewatch.db.queries.selection import any_of, matching, matching_series
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.trial import Status, TimingMethod
from compilewatch.db.tables.run_parts import RUN_PART
from compilewatch.db.tables.trials import (
    LATEST,
    SERIES,
    TRIAL,
)

_FIRST_RUNS, _WIDENED = 4, 8


def newest_trials_frame(db: Database, filters: Filters, limit: int) -> pd.DataFrame:
    """The last `limit` rows of `trials_frame`, looked for in ever more of the newest runs."""
    runs = _FIRST_RUNS
    while not filters.runs and (began := newest_runs_began(db, filters, runs)) is not None:
        frame = trials_frame(db, replace(filters, since=max(began, filters.since or began)))
        if len(frame) >= limit or (filters.since is not None and began <= filters.since):
            return frame.tail(limit).reset_index(drop=True)
        runs *= _WIDENED
    return trials_frame(db, filters).tail(limit).reset_index(drop=True)


def any_trial(db: Database, filters: Filters) -> bool:
    return bool(db.scalars(select(TRIAL.c.trial_id).where(*matching(filters)).limit(1)))


def ungated_shown(db: Database, filters: Filters) -> bool:
    """Whether a trial of the named builds has ungated times; of no named ones, one of the newest run of any
    series.
    """
    conditions = [TRIAL.c.timing_method == TimingMethod.UNGATED, *matching(filters)]
    if not filters.builds:
        newest = select(LATEST.c.run_id, LATEST.c.series_id)
        conditions.append(tuple_(TRIAL.c.run_id, TRIAL.c.series_id).in_(newest))
    return bool(db.scalars(select(TRIAL.c.trial_id).where(*conditions).limit(1)))


def count_trials(db: Database, filters: Filters = Filters()) -> int:  # noqa: B008
    """How many trials `filters` let through; from the tallies where these tell it."""
    of_series = Filters(
        machines=filters.machines,
        workloads=filters.workloads,
        strategies=filters.strategies,
        tasks=filters.tasks,
    )
    failed = SERIES.c.failed_trials + SERIES.c.cancelled_trials
    counted = {(): SERIES.c.trials, (Status.FAILED,): failed}.get(filters.statuses)
    if counted is not None and replace(filters, statuses=()) == of_series:
        statement = select(func.sum(counted)).where(*matching_series(of_series))
    elif filters == Filters(machines=filters.machines, builds=filters.builds):
        of_parts = any_of((RUN_PART.c.machine_id, filters.machines), (RUN_PART.c.build_id, filters.builds))
        statement = select(func.sum(RUN_PART.c.trials)).where(*of_parts)
    else:
        statement = select(func.count()).select_from(TRIAL).where(*matching(filters))
    return int(db.scalars(statement)[0] or 0)
