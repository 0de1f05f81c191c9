"""Trials as a frame: one row each, with everything that pages filter, group and plot.

Which trials, cases and builds a side of a comparison has.

Trials of runs that may have taken turns with others.

The trials that tell the noise of a machine: its validations and its repeats, newest runs first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd
from sqlalchemy import ColumnElement, Connection, Select, and_, func, or_, select, tuple_

from compilewatch.db.columns import trial as columns
from compilewatch.db.engine.session import Database
from compilewatch.db.engine.tables import (
    BUILD,
    LATEST,
    MACHINE,
    RUN,
    RUN_PART,
    SERIES,
    STRATEGY,
    TRIAL,
    TRIAL_DETAIL,
    WORKLOAD,
)
from compilewatch.db.errors import NotFoundError, one_line
from compilewatch.db.judge.compare.sides import Selection
from compilewatch.db.judge.statistics.noise_floor import VALIDATION_SUITE
from compilewatch.db.metrics.eligibility import is_canary
from compilewatch.db.metrics.groups import floats
from compilewatch.db.metrics.throughput import items_per_step, rates_per_second
from compilewatch.db.metrics.trial_times import compile_cost_ns
from compilewatch.db.queries.facets import BEGAN
from compilewatch.db.queries.records import trial_record, trial_records
from compilewatch.db.queries.run_parts import newest_runs_began, within
from compilewatch.db.queries.selection import (
    CASES,
    Filters,
    any_of,
    arrays_of,
    dtypes,
    frame_of,
    matching,
    matching_series,
    of_builds,
    of_conditions,
    of_series,
    oldest_first,
    selected,
)
from compilewatch.db.records.identity import code_name
from compilewatch.db.records.trial import SourceKind, Status, TimingMethod

__all__ = [
    "COLUMNS",
    "frame_where",
    "latest_trials_frame",
    "listed_trials",
    "trial_ids",
    "trial_record",
    "trial_records",
    "trials_frame",
    "trials_of_runs",
    "trials_page",
]

_UNREAD = ("content_hash", "device_uuid")
_TRIALS = select(*selected(TRIAL, *(each.name for each in TRIAL.c if each.name not in _UNREAD)))
_DTYPES = dtypes(_TRIALS)
_LISTED = (
    select(
        *selected(TRIAL, "trial_id", "started_at", "run_id"),
        *selected(WORKLOAD, workload="name"),
        *selected(STRATEGY, strategy="name"),
        *selected(TRIAL, machine="machine_name"),
        *selected(BUILD, "torch"),
        *selected(TRIAL, "status", "failure_kind", "latency_ns", "control_latency_ns"),
    )
    .select_from(CASES)
    .join(TRIAL, TRIAL.c.series_id == SERIES.c.series_id)
    .join(BUILD, BUILD.c.build_id == TRIAL.c.build_id)
    .order_by(TRIAL.c.started_at.desc(), TRIAL.c.trial_id.desc())
)

COLUMNS = tuple(each.column for each in columns.TRIAL if each.in_frames)
"""The columns of every trials frame, in order."""


def trials_frame(db: Database, filters: Filters = Filters()) -> pd.DataFrame:  # noqa: B008
    """One row per matching trial, ordered by start, with the columns of `COLUMNS`.

    `latency_ns` is the median of the trial's headline array (see `db.records.trial.Trial.timing`), or of its
    summary where it was imported without any. The times of a GPU are medians of the arrays of their names.
    `code` names the commit of the workload's own work tree (`db.records.identity.code_name`).
    `trial_compile_cost_ns` is what its calls until steady took beyond as many steady ones. Times are ns,
    memory bytes; missing is NA, never 0. Failed trials are there, with their reason.
    """
    with db.read() as connection:
        return _frame(connection, _trials(filters), filters)


def listed_trials(db: Database, filters: Filters) -> pd.DataFrame:
    """What tells matching trials apart, a row each, newest first: id, case, outcome and latency in ns."""
    with db.read() as connection:
        return frame_of(connection.execute(_LISTED.where(*matching(filters))), dtypes(_LISTED))


def trial_ids(db: Database, filters: Filters) -> list[str]:
    """The ids of matching trials."""
    with db.read() as connection:
        return list(connection.scalars(select(TRIAL.c.trial_id).where(*matching(filters))))


def cases_of_run(db: Database, run_id: str) -> list[tuple[str, str, str]]:
    """The workload id, the strategy id and the id of each trial of a run."""
    of_trials = select(SERIES.c.workload_id, SERIES.c.strategy_id, TRIAL.c.trial_id).where(
        TRIAL.c.run_id == run_id, TRIAL.c.series_id == SERIES.c.series_id
    )
    with db.read() as connection:
        return [(workload, strategy, trial) for workload, strategy, trial in connection.execute(of_trials)]


def latest_trials_frame(db: Database, filters: Filters = Filters()) -> pd.DataFrame:  # noqa: B008
    """Like `trials_frame`, of each series only the trials of its newest run, failed ones included.

    Which run is newest does not depend on the filters. A trial that was cancelled makes no run the newest.
    """
    # As a join, SQLite would look up every trial's series in `latest` instead of the other way round.
    newest = tuple_(TRIAL.c.run_id, TRIAL.c.series_id).in_(select(LATEST.c.run_id, LATEST.c.series_id))
    with db.read() as connection:
        return _frame(connection, _trials(filters).where(newest), filters)


def frame_where(
    connection: Connection, conditions: Sequence[ColumnElement[bool]], filters: Filters
) -> pd.DataFrame:
    """Like `trials_frame`, of those under `conditions`, which let through no other than `filters`."""
    return _frame(connection, _TRIALS.where(*conditions), filters)


def trials_to_sum_up(connection: Connection, conditions: Sequence[ColumnElement[bool]]) -> pd.DataFrame:
    """Like `frame_where`, without what its build is made of and its settings."""
    return _frame(connection, _TRIALS.where(*conditions), Filters(), whole=False)


def trials_of_runs(connection: Connection, filters: Filters, run_ids: Sequence[str]) -> pd.DataFrame:
    return frame_where(connection, [TRIAL.c.run_id.in_(run_ids), *matching(filters)], filters)


_PROFILED_AMONG = 200


def newest_profiled(
    db: Database, machine_id: str, cases: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], str]:
    """The id of the newest trial with a profile of each of `cases` (workload and strategy ids) on a machine,
    of those that have one among the newest 200 trials of the case.
    """
    trial_ids: dict[tuple[str, str], str] = {}
    with db.read() as connection:
        for workload_id, strategy_id in cases:
            of_case = (SERIES.c.workload_id == workload_id, SERIES.c.strategy_id == strategy_id)
            series = select(SERIES.c.series_id).where(SERIES.c.machine_id == machine_id, *of_case)
            latest = (
                select(TRIAL.c.trial_id, TRIAL.c.started_at)
                .where(TRIAL.c.series_id == series.scalar_subquery())
                .order_by(TRIAL.c.started_at.desc())
                .limit(_PROFILED_AMONG)
                .subquery()
            )
            profiled = (
                select(latest.c.trial_id)
                .join(TRIAL_DETAIL, TRIAL_DETAIL.c.trial_id == latest.c.trial_id)
                .where(TRIAL_DETAIL.c.profile.is_not(None))
                .order_by(latest.c.started_at.desc(), latest.c.trial_id.desc())
                .limit(1)
            )
            if (trial_id := connection.scalar(profiled)) is not None:
                trial_ids[workload_id, strategy_id] = trial_id
    return trial_ids


def trials_page(db: Database, filters: Filters, *, after: str | None, limit: int) -> pd.DataFrame:
    """Like `trials_frame`, at most `limit` trials, those that follow the trial `after` in its order, with the
    figures that exported files have beside: `speedup`, `throughput_per_s` and a source's further `metrics`.

    Raises NotFoundError where there is no trial `after`.
    """
    statement = _trials(filters).order_by(*oldest_first()).limit(limit)
    with db.read() as connection:
        if after is not None:
            started_at = connection.scalar(select(TRIAL.c.started_at).where(TRIAL.c.trial_id == after))
            if started_at is None:
                raise NotFoundError(f"There is no trial {one_line(after)}.", "Begin again at the first page.")
            later = TRIAL.c.started_at > started_at
            same = and_(TRIAL.c.started_at == started_at, TRIAL.c.trial_id > after)
            statement = statement.where(or_(later, same))
        return _with_figures(connection, _frame(connection, statement, filters))


def _with_figures(connection: Connection, trials: pd.DataFrame) -> pd.DataFrame:
    of_trials = select(TRIAL_DETAIL.c.trial_id, TRIAL_DETAIL.c.summary)
    stated = of_trials.where(
        TRIAL_DETAIL.c.trial_id.in_(trials["trial_id"].tolist()), TRIAL_DETAIL.c.summary.is_not(None)
    )
    summaries = {row.trial_id: row.summary for row in connection.execute(stated)}
    of_each = [summaries.get(trial_id) or {} for trial_id in trials["trial_id"]]
    latency = floats(trials["latency_ns"])
    rates = pd.Series(rates_per_second(items_per_step(trials), latency), trials.index)
    # What a source tells without a latency is as it says.
    throughputs = pd.Series([each.get("throughput_per_s") for each in of_each], trials.index, dtype="Float64")
    speedups = floats(trials["control_latency_ns"]) / np.where(latency > 0, latency, np.nan)
    return trials.assign(
        speedup=pd.array(speedups, dtype="Float64"),
        throughput_per_s=rates.astype("Float64").fillna(throughputs),
        metrics=pd.Series([each.get("metrics") or None for each in of_each], trials.index, dtype="object"),
    )


def _trials(filters: Filters) -> Select[Any]:
    return _TRIALS.where(*matching(filters))


def _frame(
    connection: Connection, statement: Select[Any], filters: Filters, *, whole: bool = True
) -> pd.DataFrame:
    # Sorted here: asked for an order, SQLite walks the whole table in that order, however few rows match.
    rows = sorted(connection.execute(statement), key=attrgetter("started_at", "trial_id"))
    trials = arrays_of(rows, _DTYPES)
    values = {**trials, **of_series(connection, filters, [row.series_id for row in rows])}
    values["machine"] = trials["machine_name"]
    parts = (pd.Series(values[name]) for name in ("until_steady_ns", "calls_until_steady", "latency_ns"))
    values["trial_compile_cost_ns"] = compile_cost_ns(*parts).array
    codes = [code_name(row.code_commit, row.code_dirty, row.code_hash) for row in rows]
    values["code"] = pd.array(codes, dtype="str")
    if not whole:
        return pd.DataFrame(values, copy=False)
    values |= of_builds(connection, [row.build_id for row in rows])
    values |= of_conditions(connection, [row.conditions_id for row in rows])
    return pd.DataFrame({name: values[name] for name in COLUMNS}, copy=False)


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


def turn_trials(db: Database, filters: Filters) -> pd.DataFrame:
    """What `db.judge.sequence` reads of those trials that `filters` let through whose run shares its time on
    its machine with another, or measured several builds: any other took no turns. One row each, unordered.
    """
    names = ("run_id", "build_id", "started_at", "ended_at")
    statement = select(*selected(TRIAL, *names), *selected(SERIES, "machine_id")).join(
        SERIES, SERIES.c.series_id == TRIAL.c.series_id
    )
    with db.read() as connection:
        runs = connection.scalars(_together(filters)).all()
        chosen = statement.where(TRIAL.c.run_id.in_(runs), *matching(filters))
        return frame_of(connection.execute(chosen) if runs else (), dtypes(statement))


def _together(filters: Filters) -> Select[tuple[str]]:
    """The runs of which a part shares its time with another one of its machine, or its run."""
    part = RUN_PART.c
    machine, start = part.machine_id, part.first_seen_at
    before = func.max(part.last_seen_at).over(partition_by=machine, order_by=start, rows=(None, -1))
    after = func.lead(start).over(partition_by=machine, order_by=start)
    parts = (
        select(
            *(part.run_id, part.first_seen_at, part.last_seen_at),
            *(before.label("busy_until"), after.label("next_at")),
            func.count().over(partition_by=part.run_id).label("parts"),
        )
        .where(*within(filters))
        .subquery()
    )
    shares = (parts.c.first_seen_at <= parts.c.busy_until) | (parts.c.next_at <= parts.c.last_seen_at)
    return select(parts.c.run_id).where(or_(shares, parts.c.parts > 1)).distinct()


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
