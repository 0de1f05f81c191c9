"""Stored cases over builds and machines, each summed up over all its trials, with what changes a strategy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, dropwhile, groupby, islice
from operator import attrgetter
from typing import Any, NamedTuple

import pandas as pd
from sqlalchemy import ColumnElement, Connection, and_, or_, select

from compilewatch.db.columns.case import CASE_COLUMNS
from compilewatch.db.engine.session import Database
from compilewatch.db.engine.tables import BUILD, MACHINE, SERIES, STRATEGY, TRIAL, WORKLOAD
from compilewatch.db.errors import NotFoundError, one_line
from compilewatch.db.metrics.cases import summarize_cases
from compilewatch.db.metrics.eligibility import is_canary
from compilewatch.db.queries.selection import CASES, Filters, matching, matching_series, matching_trials
from compilewatch.db.queries.trials import frame_where
from compilewatch.db.records.identity import FLOAT32, version_key
from compilewatch.db.records.strategies import compile_arguments, sort_key
from compilewatch.db.records.trial import FailureKind, Strategy

LISTED_COLUMNS: dict[str, str] = {"case_id": "str", **CASE_COLUMNS}
"""Name -> pandas dtype of `stored_cases`."""


def stored_cases(
    db: Database, filters: Filters, *, after: str | None = None, limit: int | None = None
) -> pd.DataFrame:
    """One row per case and build, by workload, machine, version of torch and strategy; columns are
    `LISTED_COLUMNS`, `case_id` is unique. At most `limit`, those that follow the case `after`; only the
    trials of these are read.

    A case is summed up over all its trials that `filters` let through. Its strategies choose rows: the eager
    that a row is set against is there whatever is chosen. Raises NotFoundError for a case `after` that is
    none of them.
    """
    return cases_and_peers(db, filters, after=after, limit=limit)[0]


def cases_and_peers(
    db: Database, filters: Filters, *, after: str | None = None, limit: int | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """`stored_cases`, and a frame of these and of every case that one of them may be set against, whatever
    workloads and strategies are chosen: of its workload, and of that with one rank or in float32.
    """
    wide = replace(filters, strategies=(), workloads=())
    with db.read() as connection:
        chosen = _in_order(connection, filters, after, limit)
        conditions = matching(wide)
        if limit is not None or filters.workloads:
            conditions += _of_workloads(chosen)
        every = summarize_cases(frame_where(connection, conditions, wide))
    every.insert(0, "case_id", every["build_id"] + "-" + every["series_id"])
    cases = every.set_index("case_id", drop=False).loc[list(map(_case_id, chosen))].reset_index(drop=True)
    return cases, every


class _Listed(NamedTuple):
    series: Any
    build_id: str


def _in_order(
    connection: Connection, filters: Filters, after: str | None, limit: int | None
) -> list[_Listed]:
    """The cases with a trial that `filters` let through; read workload by workload, so many as it takes."""
    workloads = _by_workload(connection, filters)
    if after is not None:
        _, _, of_cursor = after.partition("-")
        workloads = dropwhile(lambda each: of_cursor not in {row.series_id for row in each}, workloads)
    cases: Iterator[_Listed] = chain.from_iterable(
        _of_builds(connection, filters, each) for each in workloads
    )
    if after is not None:
        cases = dropwhile(lambda case: _case_id(case) != after, cases)
        if next(cases, None) is None:
            raise NotFoundError(f"There is no row {one_line(after)} here.", "Begin again at the first page.")
    return list(islice(cases, limit))


def _by_workload(connection: Connection, filters: Filters) -> Iterator[list[Any]]:
    """Series by name of workload and machine, those of one of each together; the machine's controls are none
    unless they are asked for.
    """
    statement = select(
        *(SERIES.c.series_id, SERIES.c.machine_id, SERIES.c.workload_id),
        *(WORKLOAD.c.name.label("workload"), MACHINE.c.name.label("machine")),
        STRATEGY.c.name.label("strategy"),
    ).select_from(CASES)
    rows = connection.execute(statement.where(*matching_series(filters))).all()
    listed = [row for row in rows if filters.workloads or not is_canary(row.workload)]
    place = attrgetter("workload", "machine")
    return (list(rows) for _, rows in groupby(sorted(listed, key=place), key=place))


def _of_builds(connection: Connection, filters: Filters, series: Sequence[Any]) -> list[_Listed]:
    """The cases of `series`, by version of torch, build and strategy."""
    kind = TRIAL.c.failure_kind
    statement = (
        select(TRIAL.c.series_id, TRIAL.c.build_id, BUILD.c.torch)
        .join(BUILD, BUILD.c.build_id == TRIAL.c.build_id)
        .where(
            TRIAL.c.series_id.in_([each.series_id for each in series]),
            or_(kind.is_(None), kind != FailureKind.CANCELLED),
            *matching_trials(filters),
        )
        .distinct()
    )
    known = {each.series_id: each for each in series}

    def place(row: Any) -> tuple[Any, ...]:
        return version_key(row.torch), row.build_id, sort_key(known[row.series_id].strategy), row.series_id

    rows = sorted(connection.execute(statement), key=place)
    return [_Listed(known[row.series_id], row.build_id) for row in rows]


def _case_id(case: _Listed) -> str:
    return f"{case.build_id}-{case.series.series_id}"


def _of_workloads(cases: Sequence[_Listed]) -> list[ColumnElement[bool]]:
    """Conditions on `trial` that hold for every trial of the workloads of `cases` on their machines and
    builds, and of those with one rank or in float32: what one is set against may be another's.
    """
    own = WORKLOAD.c.workload_id.in_({each.series.workload_id for each in cases})
    several = or_(WORKLOAD.c.ranks.is_not(None), WORKLOAD.c.variant.is_not(None))
    of_versions = WORKLOAD.c.version.in_(select(WORKLOAD.c.version).where(own, several))
    first = or_(WORKLOAD.c.ranks == 1, WORKLOAD.c.variant == FLOAT32)
    series = select(SERIES.c.series_id).where(
        SERIES.c.machine_id.in_({each.series.machine_id for each in cases}),
        SERIES.c.workload_id.in_(select(WORKLOAD.c.workload_id).where(or_(own, and_(of_versions, first)))),
    )
    return [TRIAL.c.series_id.in_(series), TRIAL.c.build_id.in_({each.build_id for each in cases})]


def changes_of_strategies(db: Database) -> dict[str, str]:
    """By strategy id what it gives torch.compile beside its defaults, its scope and its caches, in words."""
    columns = [STRATEGY.c[name] for name in ("strategy_id", *Strategy.model_fields) if name in STRATEGY.c]
    with db.read() as connection:
        rows = [dict(row) for row in connection.execute(select(*columns)).mappings()]
    return {row.pop("strategy_id"): _changes(Strategy.model_validate(row)) for row in rows}


def _region(own: dict[str, Any]) -> str:
    """What one part of the model sets itself: "dynamic True, freezing True"."""
    given = {**own, **own.get("options", {})}
    return ", ".join(f"{name} {value}" for name, value in given.items() if name != "options")


def _changes(strategy: Strategy) -> str:
    given = compile_arguments(strategy)
    options = given.pop("options", {})
    usual = {"backend": "inductor", "mode": "default"}
    named = [f"{name} {value}" for name, value in given.items() if usual.get(name) != value]
    scope = [] if strategy.scope in ("full", "regions") else [f"scope {strategy.scope}"]
    scope += [f"{path}: {_region(own) or 'compiled'}" for path, own in strategy.regions.items()]
    cache = [f"cache {strategy.cache}"] if strategy.cache in ("warm", "portable", "packaged") else []
    return ", ".join([*named, *(f"{name} {value}" for name, value in options.items()), *scope, *cache])
