"""The trials that a verdict rests on: both sides, and the past of their series."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

import pandas as pd
from sqlalchemy import ColumnElement, Connection, Select, or_, select

from compilewatch.db.columns.metrics import FURTHER_COLUMNS
from compilewatch.db.columns.source_metrics import judged_metrics
from compilewatch.db.engine.tables import TRIAL, TRIAL_DETAIL
from compilewatch.db.judge.compare.sides import Selection
from compilewatch.db.metrics.groups import equal_to
from compilewatch.db.metrics.trial_times import POOLED_EAGER, compile_cost_ns, with_pooled_eager
from compilewatch.db.queries.run_parts import runs_near
from compilewatch.db.queries.selection import Filters, dtypes, frame_of, matching, matching_trials, selected
from compilewatch.db.queries.trials import frame_where, trials_of
from compilewatch.db.records.trial import SourceKind

MOST_SERIES_NAMED = 500
"""So many series are named in a query; of more, all trials of the runs are read and the others dropped."""

_PAST = select(
    *selected(TRIAL, "trial_id", "run_id", "build_id", "series_id", "started_at", "status", "code_hash"),
    *selected(TRIAL, "numerics_status", "suspect", "latency_ns", "control_latency_ns"),
    *selected(TRIAL, "until_steady_ns", "calls_until_steady", "peak_bytes"),
    *selected(TRIAL, "timing_method", "control_timing_method", "device_ns", "issue_ns", "control_device_ns"),
    *selected(TRIAL, *FURTHER_COLUMNS),
)
_SM_CLOCK = TRIAL_DETAIL.c.timing[("side", "sm_clock_mhz", 1)].as_float()


def sides_frame(connection: Connection, base: Selection, head: Selection, filters: Filters) -> pd.DataFrame:
    """A trials frame (`db.queries.trials`) of the trials of both sides that `filters` let through.

    A further column `sm_clock_mhz` is the median SM clock while the trial's own side was timed, NA where
    device time was not taken; others are the judged figures of sources (`db.columns.source_metrics`).
    """
    every = replace(filters, strategies=())
    conditions = [or_(trials_of(base), trials_of(head)), *matching(every)]
    sides = frame_where(connection, conditions, every)
    if filters.strategies:
        sides = _of_strategies(sides, base, head, filters.strategies)
    clocks: dict[str, float] = {}
    if sides["device_ns"].notna().any():
        statement = select(TRIAL.c.trial_id, _SM_CLOCK).join_from(TRIAL, TRIAL_DETAIL)
        timed = statement.where(TRIAL.c.device_ns.is_not(None), *conditions)
        clocks = dict(connection.execute(timed).all())
    columns = {"sm_clock_mhz": clocks} | _source_metrics(connection, sides, conditions)
    ids = sides["trial_id"].tolist()
    return sides.assign(
        **{name: pd.array([of.get(each) for each in ids], dtype="Float64") for name, of in columns.items()}
    )


def _source_metrics(
    connection: Connection, sides: pd.DataFrame, conditions: Sequence[ColumnElement[bool]]
) -> dict[str, dict[str, float]]:
    """The judged figures of imported trials by column and trial."""
    imported = TRIAL.c.source_kind == SourceKind.IMPORTED
    found: dict[str, dict[str, float]] = {}
    if equal_to(sides["source_kind"], SourceKind.IMPORTED.value).any():
        stated = select(TRIAL.c.trial_id, TRIAL_DETAIL.c.summary).join_from(TRIAL, TRIAL_DETAIL)
        for trial_id, summary in connection.execute(stated.where(imported, *conditions)):
            for name, value in judged_metrics((summary or {}).get("metrics") or {}).items():
                found.setdefault(name, {})[trial_id] = value
    return found


def _of_strategies(
    trials: pd.DataFrame, base: Selection, head: Selection, strategies: Collection[str]
) -> pd.DataFrame:
    """Those of some strategies. Eager is pooled over all of them, so no break-even depends on the choice."""
    parts = [trials[side.mask(trials)] for side in (base, head)]
    known = pd.concat(
        [with_pooled_eager(each.assign(build_id="")) for each in parts if len(each)] or [trials]
    )
    if POOLED_EAGER in known:
        eager_ns = known[POOLED_EAGER]
        trials = trials.assign(**{POOLED_EAGER: eager_ns[~eager_ns.index.duplicated()]})
    return trials[trials["strategy"].isin(strategies)].reset_index(drop=True)


def past_frame(
    connection: Connection,
    series: pd.DataFrame,
    moment: datetime,
    filters: Filters,
    *,
    runs: int,
    searched: int,
    but: tuple[str, ...],
    further: Sequence[str] = (),
) -> pd.DataFrame:
    """Of each series the trials of its `runs` runs nearest in time to `moment`, oldest first.

    Looked for among the `searched` nearest runs of the machines that `filters` name: those before `moment`
    first, then those after it; the runs `but` are passed over. `series` has a row for each with its
    `series_id`; its other columns become columns of the trials, and so do those `further` ones.
    """
    suites = Filters(machines=filters.machines, suites=filters.suites)
    nearest = runs_near(connection, suites, moment, searched, but=but)
    ids = [str(each) for each in series["series_id"]]
    statement = _PAST.add_columns(*selected(TRIAL, *further))
    frames = list(_by_batch(partial(_trials, connection, statement, filters), ids, nearest, runs))
    past = pd.concat(frames, ignore_index=True) if frames else frame_of([], dtypes(statement))
    past = past.sort_values(["started_at", "trial_id"], ignore_index=True).merge(series, on="series_id")
    past["trial_compile_cost_ns"] = compile_cost_ns(
        past["until_steady_ns"], past["calls_until_steady"], past["latency_ns"]
    )
    return past


def _by_batch(
    read: Callable[[tuple[str, ...], Collection[str]], pd.DataFrame],
    series: Sequence[str],
    nearest: tuple[str, ...],
    runs: int,
) -> Iterator[pd.DataFrame]:
    """As many runs at a time as each series needs, and only the series that still lack some."""
    lacking = dict.fromkeys(series, runs)
    for start in range(0, len(nearest), runs):
        batch = nearest[start : start + runs]
        frame = read(batch, lacking)
        if not frame.empty:
            cells = frame[["series_id", "run_id"]].drop_duplicates()
            order = cells["run_id"].map({run: place for place, run in enumerate(batch)})
            place = order.groupby(cells["series_id"]).rank(method="first")
            chosen = cells[place <= cells["series_id"].map(lacking)]
            yield frame.merge(chosen, on=["series_id", "run_id"])
            for name, number in chosen["series_id"].value_counts().items():
                lacking[str(name)] -= int(number)
            lacking = {name: number for name, number in lacking.items() if number}
        if not lacking:
            return


def _trials(
    connection: Connection,
    statement: Select[Any],
    filters: Filters,
    run_ids: tuple[str, ...],
    series: Collection[str],
) -> pd.DataFrame:
    # Sides are named by build or run; the past is of others.
    open_ = replace(filters, builds=(), runs=())
    conditions = [TRIAL.c.run_id.in_(run_ids), *matching_trials(open_)]
    named = len(series) <= MOST_SERIES_NAMED
    if named:
        conditions.append(TRIAL.c.series_id.in_(list(series)))
    frame = frame_of(connection.execute(statement.where(*conditions)), dtypes(statement))
    return frame if named else frame[frame["series_id"].isin(list(series))]
