"""Trials as a frame: one row each, with everything that pages filter, group and plot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

import pandas as pd
from sqlalchemy import ColumnElement, Connection, Select, and_, func, or_, select, tuple_

from db.engine.session import Database
from db.errors import NotFoundError, one_line
from db.metrics.trial_times import compile_cost_ns
from db.queries.filters import Filters
from db.queries.frames import MOMENT, arrays_of, matched
from db.queries.records import trial_record, trial_records
from db.queries.run_parts import newest_runs_began
from db.queries.selection import CASES, dtypes, matching, matching_series, oldest_first, plain, selected
from db.records.trial import CONTROL_TIMES, DEVICE_TIMES, TimingMethod
from db.tables.run_parts import RUN_PART
from db.tables.trials import BUILD, LATEST, MACHINE, SERIES, STRATEGY, TRIAL, TRIAL_DETAIL, WORKLOAD

__all__ = [
    "COLUMNS",
    "frame_where",
    "latest_trials_frame",
    "trial_record",
    "trial_records",
    "trials_frame",
    "trials_of_runs",
    "trials_page",
]

_OF_TRIAL = {
    "trial_id": "str",
    "run_id": "str",
    "suite": "str",
    "label": "str",
    "started_at": MOMENT,
    "ended_at": MOMENT,
    "source_kind": "str",
    "source_name": "str",
    "machine_name": "str",
    "build_id": "str",
    "build_label": "str",
    "series_id": "str",
    "status": "str",
    "failure_kind": "str",
    "failure_message": "str",
    "latency_ns": "Float64",
    "latency_p05_ns": "Float64",
    "latency_p95_ns": "Float64",
    "latency_p99_ns": "Float64",
    "samples": "Int64",
    "control_latency_ns": "Float64",
    "control_samples": "Int64",
    "time_to_first_result_ns": "Int64",
    "first_call_ns": "Int64",
    "until_steady_ns": "Int64",
    "calls_until_steady": "Int64",
    "process_tree_cpu_ns": "Int64",
    "first_call_cpu_ns": "Int64",
    "first_call_instructions": "Int64",
    "peak_bytes": "Int64",
    "peak_reserved_bytes": "Int64",
    "peak_with_compile_bytes": "Int64",
    "peak_rss_bytes": "Int64",
    "control_peak_bytes": "Int64",
    "graphs": "Int64",
    "graph_breaks": "Int64",
    "recompiles": "Int64",
    "numerics_status": "str",
    "suspect": "boolean",
    "cpu_stall_fraction": "Float64",
    "record_version": "Int64",
    "timing_method": "str",
    "control_timing_method": "str",
    **dict.fromkeys((*DEVICE_TIMES, *CONTROL_TIMES), "Float64"),
}
_OF_SERIES = {
    "series_id": (SERIES.c.series_id, "str"),
    "machine_id": (SERIES.c.machine_id, "str"),
    "device": (MACHINE.c.device, "str"),
    "device_name": (MACHINE.c.device_name, "str"),
    "threads": (MACHINE.c.threads, "Int64"),
    "workload_id": (SERIES.c.workload_id, "str"),
    "workload": (WORKLOAD.c.name, "str"),
    "workload_version": (WORKLOAD.c.version, "str"),
    "task": (WORKLOAD.c.task, "str"),
    "batch_size": (WORKLOAD.c.batch_size, "Int64"),
    "shape": (WORKLOAD.c.shape, "object"),
    "dtype": (WORKLOAD.c.dtype, "str"),
    "items_per_iteration": (WORKLOAD.c.items_per_iteration, "Float64"),
    "item": (WORKLOAD.c.item, "str"),
    "strategy_id": (SERIES.c.strategy_id, "str"),
    "strategy": (STRATEGY.c.name, "str"),
    "strategy_kind": (STRATEGY.c.kind, "str"),
    "cache": (STRATEGY.c.cache, "str"),
    "scope": (STRATEGY.c.scope, "str"),
}
_OF_BUILD = {
    **dict.fromkeys(
        ("build_id", "torch", "torch_variant", "cuda", "driver", "triton", "cudnn", "python", "os"), "str"
    ),
    "settings": "object",
}

_MOST_NAMED = 500

# The columns of every trials frame, in order.
COLUMNS: tuple[str, ...] = (
    *("trial_id", "run_id", "suite", "label", "started_at", "ended_at", "source_kind", "source_name"),
    *("machine_id", "machine", "device", "device_name", "threads"),
    *("build_id", "build_label", *(name for name in _OF_BUILD if name != "build_id")),
    *("workload_id", "workload", "workload_version", "task", "batch_size", "shape", "dtype"),
    *("items_per_iteration", "item", "strategy_id", "strategy", "strategy_kind", "cache", "scope"),
    *("series_id", "status", "failure_kind", "failure_message"),
    *("latency_ns", "latency_p05_ns", "latency_p95_ns", "latency_p99_ns", "samples"),
    *("control_latency_ns", "control_samples", "time_to_first_result_ns", "first_call_ns"),
    *("until_steady_ns", "calls_until_steady", "trial_compile_cost_ns", "process_tree_cpu_ns"),
    *("first_call_cpu_ns", "first_call_instructions"),
    *("peak_bytes", "peak_reserved_bytes", "peak_with_compile_bytes", "peak_rss_bytes"),
    *("control_peak_bytes", "graphs", "graph_breaks", "recompiles", "numerics_status", "suspect"),
    *("cpu_stall_fraction", "record_version", "timing_method", "control_timing_method"),
    *(*DEVICE_TIMES, *CONTROL_TIMES),
)


def trials_frame(db: Database, filters: Filters = Filters()) -> pd.DataFrame:  # noqa: B008
    """One row per matching trial, ordered by start, with the columns of `COLUMNS`.

    `latency_ns` is the median of the trial's headline array (see `db.records.trial.Trial.timing`), or of its
    summary where it was imported without any. The times of a GPU are medians of the arrays of their names.
    `trial_compile_cost_ns` is what its calls until steady took beyond as many steady ones. Times are ns,
    memory bytes; missing is NA, never 0. Failed trials are there, with their reason.
    """
    with db.read() as connection:
        return _frame(connection, _trials(filters), filters)


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
    return _frame(connection, _columns().where(*conditions), filters)


def trials_of_runs(connection: Connection, filters: Filters, run_ids: Sequence[str]) -> pd.DataFrame:
    """Like `trials_frame`, of some runs."""
    return frame_where(connection, [TRIAL.c.run_id.in_(run_ids), *matching(filters)], filters)


def newest_profiled(
    db: Database, machine_id: str, cases: Iterable[tuple[str, str]], *, newest: int
) -> dict[tuple[str, str], str]:
    """The id of the newest trial with a profile of each of `cases` (workload and strategy ids) on a machine,
    of those that have one among the `newest` trials of the case.
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
                .limit(newest)
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
    """Like `trials_frame`, at most `limit` trials, those that follow the trial `after` in its order.

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
        return _frame(connection, statement, filters)


def _trials(filters: Filters) -> Select[tuple[object, ...]]:
    return _columns().where(*matching(filters))


def _columns() -> Select[tuple[object, ...]]:
    columns = (plain(TRIAL.c[name], dtype) for name, dtype in _OF_TRIAL.items())
    return select(*columns).select_from(TRIAL)


def _frame(connection: Connection, statement: Select[tuple[object, ...]], filters: Filters) -> pd.DataFrame:
    # Sorted here: asked for an order, SQLite walks the whole table in that order, however few rows match.
    rows = sorted(connection.execute(statement), key=attrgetter("started_at", "trial_id"))
    trials = arrays_of(rows, _OF_TRIAL)
    series_ids, build_ids = ([getattr(row, name) for row in rows] for name in ("series_id", "build_id"))
    series = matched(_series(connection, filters, series_ids), "series_id", series_ids)
    builds = matched(_builds(connection, build_ids), "build_id", build_ids)
    columns = {**trials, **series, **builds, "machine": trials["machine_name"]}
    parts = (pd.Series(columns[name]) for name in ("until_steady_ns", "calls_until_steady", "latency_ns"))
    columns["trial_compile_cost_ns"] = compile_cost_ns(*parts).array
    return pd.DataFrame({name: columns[name] for name in COLUMNS}, copy=False)


def _series(connection: Connection, filters: Filters, series_ids: Iterable[str]) -> dict[str, Any]:
    """Columns of at least these: of all that `filters` let through where they are too many to name."""
    wanted = list(dict.fromkeys(series_ids))
    statement = select(*selected(_OF_SERIES)).select_from(CASES)
    if len(wanted) <= _MOST_NAMED:
        statement = statement.where(SERIES.c.series_id.in_(wanted))
    else:
        statement = statement.where(*matching_series(filters))
    return arrays_of(connection.execute(statement).all(), dtypes(_OF_SERIES))


def _builds(connection: Connection, build_ids: Iterable[str]) -> dict[str, Any]:
    """Columns of at least these: of all builds where they are too many to name."""
    wanted = list(dict.fromkeys(build_ids))
    statement = select(*(plain(BUILD.c[name], dtype) for name, dtype in _OF_BUILD.items()))
    if len(wanted) <= _MOST_NAMED:
        statement = statement.where(BUILD.c.build_id.in_(wanted))
    return arrays_of(connection.execute(statement).all(), _OF_BUILD)


# The newest trials of a selection, and how many it has, without reading all of them.

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
    """Whether `filters` let any trial through."""
    statement = select(TRIAL.c.trial_id).where(*matching(filters)).limit(1)
    with db.read() as connection:
        return connection.scalar(statement) is not None


def ungated_shown(db: Database, filters: Filters) -> bool:
    """Whether a trial of the named builds has ungated times; of no named ones, one of the newest run of any
    series.
    """
    conditions = [TRIAL.c.timing_method == TimingMethod.UNGATED, *matching(filters)]
    if not filters.builds:
        newest = select(LATEST.c.run_id, LATEST.c.series_id)
        conditions.append(tuple_(TRIAL.c.run_id, TRIAL.c.series_id).in_(newest))
    with db.read() as connection:
        return connection.scalar(select(TRIAL.c.trial_id).where(*conditions).limit(1)) is not None


def count_trials(db: Database, filters: Filters = Filters()) -> int:  # noqa: B008
    """How many trials `filters` let through; from the tallies where these tell it."""
    of_series = Filters(
        machines=filters.machines,
        workloads=filters.workloads,
        strategies=filters.strategies,
        tasks=filters.tasks,
    )
    if filters == of_series:
        statement = select(func.sum(SERIES.c.trials)).where(*matching_series(filters))
    elif filters == Filters(machines=filters.machines, builds=filters.builds):
        conditions = [
            column.in_(ids)
            for column, ids in (
                (RUN_PART.c.machine_id, filters.machines),
                (RUN_PART.c.build_id, filters.builds),
            )
            if ids
        ]
        statement = select(func.sum(RUN_PART.c.trials)).where(*conditions)
    else:
        statement = select(func.count()).select_from(TRIAL).where(*matching(filters))
    with db.read() as connection:
        return int(connection.scalar(statement) or 0)
