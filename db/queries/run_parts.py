"""What each run measured, and when: which builds and runs a machine has, without a look at its trials."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

import pandas as pd
from sqlalchemy import Column, ColumnElement, Connection, case, exists, func, select

from compilewatch.db.engine.session import Database
from compilewatch.db.engine.tables import BUILD, LATEST, RUN, RUN_PART, SERIES, TRIAL, WORKLOAD
from compilewatch.db.judge.compare.sides import Selection
from compilewatch.db.metrics.eligibility import CANARY_WORKLOADS
from compilewatch.db.queries import facets
from compilewatch.db.queries.codes import codes_of_runs
from compilewatch.db.queries.facets import is_imported, is_measured, is_whole
from compilewatch.db.queries.selection import Filters, any_of, matching, matching_series, plain, read_frame
from compilewatch.db.records.identity import stack_order, version_key
from compilewatch.db.records.requests import RunStatus
from compilewatch.db.records.trial import SourceKind


def within(filters: Filters) -> list[ColumnElement[bool]]:
    """Conditions on `run_part` for the parts of the machines, builds and runs selected that lie in part or
    whole in the time selected. Other filters are about single trials and leave parts as they are.
    """
    conditions = _of_parts(Filters(machines=filters.machines, builds=filters.builds))
    conditions += any_of((RUN_PART.c.run_id, filters.runs))
    if filters.since is not None:
        conditions.append(RUN_PART.c.last_seen_at >= filters.since)
    if filters.until is not None:
        conditions.append(RUN_PART.c.first_seen_at <= filters.until)
    return conditions


def run_parts(db: Database, run_ids: Iterable[str]) -> pd.DataFrame:
    """One row per run, machine and build that have a trial in common; none for a run without trials."""
    columns = (RUN_PART.c.run_id, RUN_PART.c.machine_id, RUN_PART.c.build_id)
    statement = select(*columns).where(RUN_PART.c.run_id.in_(list(run_ids)))
    return read_frame(db, statement.order_by(*columns))


def stored_builds(db: Database, filters: Filters, *, only_measured: bool = False) -> frozenset[str]:
    """The builds of the trials that `filters` let through; of those that were measured here, where asked."""
    build, _, conditions = _builds_among(filters, only_measured=only_measured)
    return frozenset(db.scalars(select(build).where(*conditions).distinct()))


def measured_builds(
    db: Database,
    filters: Filters = Filters(),  # noqa: B008
    *,
    newest: int | None = None,
) -> list[str]:
    """The builds of those trials that were measured here, the one measured last first; where nothing was
    measured, those of imported results. Of `newest` no more are read than tell the first so many.
    """
    measured = builds_newest_first(db, filters, only_measured=True, newest=newest)
    return (measured or builds_newest_first(db, filters, newest=newest))[:newest]


def builds_newest_first(
    db: Database, filters: Filters, *, only_measured: bool = False, newest: int | None = None
) -> list[str]:
    """`stored_builds`, the one with the newest trial first; of several that were measured by turns, or have
    trials of one moment, as imports of one command, the newest release. Of `newest` at least the first so
    many.
    """
    build, when, conditions = _builds_among(filters, only_measured=only_measured)
    last = plain(func.max(when)).label("last")
    statement = select(build, last).where(*conditions).group_by(build).order_by(last.desc(), build)
    with db.read() as connection:
        # With some more: builds that were measured by turns end close together.
        limited = statement if newest is None else statement.limit(newest + MOST_BY_TURNS)
        last_of = {row.build_id: row.last for row in connection.execute(limited)}
        turns = list(_by_turns(last_of, _began(connection, last_of)))
        together = [build_id for builds in turns if len(builds) > 1 for build_id in builds]
        rows = connection.execute(select(BUILD).where(BUILD.c.build_id.in_(together))).mappings()
        order = {row["build_id"]: stack_order(dict(row)) for row in rows}
    return [
        build_id
        for builds in turns
        for build_id in (sorted(builds, key=order.__getitem__, reverse=True) if len(builds) > 1 else builds)
    ]


def _builds_among(
    filters: Filters, *, only_measured: bool
) -> tuple[Column[str], Column[datetime], list[ColumnElement[bool]]]:
    """Of the trials that `filters` let through the column of builds, that of moments, and conditions."""
    measured: ColumnElement[bool]
    # Whether a run is either in the selection with all its trials or out of it.
    if filters == Filters(machines=filters.machines, suites=filters.suites, builds=filters.builds):
        build, when, conditions = RUN_PART.c.build_id, RUN_PART.c.last_seen_at, _of_parts(filters)
        # By the parts selected: one of its trials may have to tell of a run.
        measured = exists().where(RUN.c.run_id == RUN_PART.c.run_id, is_measured())
    else:
        build, when, conditions = TRIAL.c.build_id, TRIAL.c.started_at, matching(filters)
        measured = TRIAL.c.source_kind == SourceKind.MEASURED
    return build, when, [*conditions, *([measured] if only_measured else [])]


MOST_BY_TURNS = 16


def _began(connection: Connection, builds: Collection[str]) -> dict[str, Any]:
    """When the newest run of each build began, of a suite where any is: one that only looks closer at a few
    cases gives way, as for `newest_two`.
    """
    columns = (RUN_PART.c.build_id, plain(RUN_PART.c.first_seen_at).label("first_seen_at"))
    of_builds = RUN_PART.c.build_id.in_(list(builds))
    of_suite = func.max(case((RUN.c.suite.is_not(None), RUN_PART.c.last_seen_at)))
    last = func.coalesce(of_suite, func.max(RUN_PART.c.last_seen_at)).label("last")
    parts = select(RUN_PART.c.build_id, last).join(RUN, RUN.c.run_id == RUN_PART.c.run_id)
    newest = parts.where(of_builds).group_by(RUN_PART.c.build_id).subquery()
    is_newest = (newest.c.build_id == RUN_PART.c.build_id) & (newest.c.last == RUN_PART.c.last_seen_at)
    rows = connection.execute(select(*columns).join(newest, is_newest))
    return {row.build_id: row.first_seen_at for row in rows}


def _by_turns(last_of: Mapping[str, Any], began: Mapping[str, Any]) -> Iterator[list[str]]:
    """The builds of `last_of`, newest first, together those whose newest runs overlap in time: which of them
    had the last turn says nothing about which is the newer one. Moments are as the driver gives them.
    """
    together: list[str] = []
    for build_id, last in last_of.items():
        if together and last < min(began.get(each, last_of[each]) for each in together):
            yield together
            together = []
        together.append(build_id)
    if together:
        yield together


def build_totals(db: Database, filters: Filters) -> pd.DataFrame:
    """One row per build of the machines and suites selected, the one with the newest trial first: `build_id`,
    `runs`, `trials`, `first_seen_at`, `last_seen_at`.
    """
    last = func.max(RUN_PART.c.last_seen_at)
    statement = (
        select(RUN_PART.c.build_id, func.count().label("runs"), func.sum(RUN_PART.c.trials).label("trials"))
        .add_columns(func.min(RUN_PART.c.first_seen_at).label("first_seen_at"), last.label("last_seen_at"))
        .where(*_of_parts(filters))
        .group_by(RUN_PART.c.build_id)
        .order_by(last.desc(), RUN_PART.c.build_id)
    )
    return read_frame(db, statement)


def series_by_build(
    db: Database, filters: Filters, builds: Iterable[str], *, runs: int
) -> dict[str, frozenset[tuple[str, str]]]:
    """The series of the trials that `filters` let through, each with the conditions it was measured under, by
    build: of each of `builds` those that its newest `runs` runs have, without the machine's control series.
    So it does not grow with the history.
    """
    found: dict[str, set[tuple[str, str]]] = {build_id: set() for build_id in builds}
    of_builds = replace(filters, builds=tuple(found))
    newest_first = (func.max(RUN_PART.c.last_seen_at).desc(), RUN_PART.c.run_id)
    place = func.row_number().over(partition_by=RUN_PART.c.build_id, order_by=newest_first)
    key = (RUN_PART.c.build_id, RUN_PART.c.run_id)
    parts = select(*key, place.label("place")).where(*_of_parts(of_builds)).group_by(*key).subquery()
    canaries = select(WORKLOAD.c.workload_id).where(
        WORKLOAD.c.name.startswith(CANARY_WORKLOADS.removesuffix("*"))
    )
    measured = select(SERIES.c.series_id).where(SERIES.c.workload_id.not_in(canaries))
    of_newest = (parts.c.run_id == TRIAL.c.run_id) & (parts.c.build_id == TRIAL.c.build_id)
    statement = (
        select(TRIAL.c.build_id, TRIAL.c.series_id, TRIAL.c.conditions_id)
        .join(parts, of_newest & (parts.c.place <= runs))
        .where(*matching(of_builds), TRIAL.c.series_id.in_(measured))
    )
    for build_id, series_id, conditions_id in db.rows(statement.distinct()):
        found[build_id].add((series_id, conditions_id))
    return {build_id: frozenset(series) for build_id, series in found.items()}


def _torch_of(connection: Connection, build_ids: Iterable[str]) -> dict[str, str]:
    statement = select(BUILD.c.build_id, BUILD.c.torch).where(BUILD.c.build_id.in_(list(build_ids)))
    return {row.build_id: row.torch for row in connection.execute(statement)}


def newest_build(db: Database, filters: Filters = Filters()) -> str | None:  # noqa: B008
    """The build of the newest trial among the newest runs of the series that `filters` let through; where
    they let through older runs alone, the build of the newest trial of these. Of what was measured together,
    as `newest_two` has it, the newest release. What was imported counts where nothing was measured.
    """
    of_series = select(LATEST.c.run_id, LATEST.c.series_id, LATEST.c.started_at).join(
        SERIES, SERIES.c.series_id == LATEST.c.series_id
    )
    newest = of_series.where(*matching_series(filters)).subquery()
    of_builds = (
        select(
            *(TRIAL.c.build_id, TRIAL.c.run_id, TRIAL.c.source_kind),
            func.max(TRIAL.c.started_at).label("last"),
        )
        .where(*matching(filters))
        .group_by(TRIAL.c.build_id, TRIAL.c.run_id, TRIAL.c.source_kind)
    )
    of_series_too = TRIAL.c.series_id == newest.c.series_id
    # A series names one newest run, also of several that began at one moment. Asked for apart: each of the
    # two has an index.
    statements = [
        of_builds.join(newest, of_series_too & (TRIAL.c.run_id == newest.c.run_id)),
        of_builds.join(newest, of_series_too & (TRIAL.c.started_at == newest.c.started_at)),
    ]
    with db.read() as connection:
        rows = [row for statement in statements for row in connection.execute(statement)]
        measured = [row for row in rows if row.source_kind is SourceKind.MEASURED] or rows
        last = max((row.last for row in measured), default=None)
        runs = {row.run_id for row in measured if row.last == last}
        kinds = {row.source_kind for row in measured}
        began = select(func.min(RUN.c.first_seen_at)).where(RUN.c.run_id.in_(runs)).scalar_subquery()
        together = [TRIAL.c.started_at >= began, TRIAL.c.source_kind.in_(kinds), *matching(filters)]
        builds: set[str] = set(connection.scalars(select(TRIAL.c.build_id).where(*together).distinct()))
        torch = _torch_of(connection, builds) if len(builds) > 1 else {}
    if builds:
        return max(sorted(builds), key=lambda build_id: version_key(torch.get(build_id)))
    return next(iter(measured_builds(db, filters, newest=1)), None)


def builds_of_newest_runs(db: Database, machines: Collection[str]) -> frozenset[str]:
    """The builds of the newest run of any series of these machines."""
    newest = (
        select(LATEST.c.run_id)
        .join(SERIES, SERIES.c.series_id == LATEST.c.series_id)
        .where(SERIES.c.machine_id.in_(machines))
    )
    there = RUN_PART.c.machine_id.in_(machines) & RUN_PART.c.run_id.in_(newest)
    return frozenset(db.scalars(select(RUN_PART.c.build_id).where(there).distinct()))


def of_newest_builds(db: Database, filters: Filters = Filters()) -> list[Filters]:  # noqa: B008
    """`filters` narrowed to each machine and its `newest_build`, by machine id; a machine without one is left
    out. Filters that name builds are the only ones, as they are.
    """
    if filters.builds:
        return [filters]
    statement = select(SERIES.c.machine_id).where(*matching_series(filters)).distinct()
    here = [replace(filters, machines=(machine_id,)) for machine_id in sorted(db.scalars(statement))]
    newest = [(each, newest_build(db, each)) for each in here]
    return [replace(each, builds=(build_id,)) for each, build_id in newest if build_id is not None]


def last_measured_at(db: Database, filters: Filters) -> datetime | None:
    """When the newest trial of the machines, builds and suites selected began."""
    statement = select(func.max(RUN_PART.c.last_seen_at)).where(*_of_parts(filters))
    moment: datetime | None = db.scalars(statement)[0]
    return moment


def last_run(db: Database, filters: Filters) -> str | None:
    """The run with the newest trial of the machines, builds and suites selected."""
    with db.read() as connection:
        return next(iter(_runs(connection, filters, 1, [], newest_first=True)), None)


def newest_runs_began(db: Database, filters: Filters, runs: int) -> datetime | None:
    """When the first of the `runs` newest runs of the machines, builds and suites selected began to store
    trials, of those that began by `until`; None where there are fewer. Other filters are about single trials
    and leave runs as they are.
    """
    by_then = [RUN_PART.c.first_seen_at <= filters.until] if filters.until is not None else []
    newest = (
        select(func.min(RUN_PART.c.first_seen_at).label("began"))
        .where(*_of_parts(filters), *by_then)
        .group_by(RUN_PART.c.run_id)
        .order_by(func.max(RUN_PART.c.last_seen_at).desc())
        .limit(runs)
    )
    began: list[datetime] = db.scalars(newest)
    return min(began) if len(began) == runs else None


class NewestRun(NamedTuple):
    """A run that no other one began after, and its suite."""

    run_id: str
    suite: str | None


def run_status(db: Database, run_id: str) -> RunStatus | None:
    """How a run with trials stands; finished where nobody announced it, None where it has no trial."""
    statement = select(func.coalesce(RUN.c.status, RunStatus.FINISHED))
    found = db.scalars(statement.where(RUN.c.run_id == run_id, RUN.c.trials > 0))
    return RunStatus(found[0]) if found else None


def newest_advice(db: Database, workload: str, machine: str) -> tuple[datetime, dict[str, Any]] | None:
    """What `compilewatch advise` last found of a workload by name on a machine, and when its run began."""
    on_machine = select(RUN_PART.c.run_id).where(RUN_PART.c.machine_id == machine)
    statement = select(RUN.c.first_seen_at, RUN.c.advice).where(RUN.c.advice.is_not(None))
    newest = statement.where(RUN.c.run_id.in_(on_machine)).order_by(RUN.c.first_seen_at.desc())
    found = (row for row in db.rows(newest) if row.advice["workload"] == workload)
    return next(((row.first_seen_at, row.advice) for row in found), None)


def are_until_decided(connection: Connection, run_ids: Collection[str]) -> bool:
    """Whether any of these runs was begun without a number of trials, to be judged as they came."""
    begun = select(RUN.c.run_id).where(RUN.c.status.is_not(None), RUN.c.planned_trials.is_(None))
    return connection.scalar(begun.where(RUN.c.run_id.in_(list(run_ids))).limit(1)) is not None


def measured_machines(db: Database) -> tuple[str, ...]:
    """The machines that measured a run."""
    statement = select(RUN_PART.c.machine_id).join(RUN, RUN.c.run_id == RUN_PART.c.run_id)
    return tuple(db.scalars(statement.where(is_measured()).distinct().order_by(RUN_PART.c.machine_id)))


def newest_run(
    db: Database, *, measured: bool, of_suite: bool = False, machines: Collection[str] = ()
) -> NewestRun | None:
    """The run with trials that began to store them last, measured here or imported; of those of any suite,
    and of those on one of `machines` where any is named.
    """
    conditions = [*_with_trials(measured), *([RUN.c.suite.is_not(None)] if of_suite else [])]
    if machines:
        on = select(RUN_PART.c.run_id).where(RUN_PART.c.machine_id.in_(list(machines)))
        conditions.append(RUN.c.run_id.in_(on))
    newest = select(RUN.c.run_id, RUN.c.suite).where(*conditions)
    newest = newest.order_by(RUN.c.first_seen_at.desc(), RUN.c.run_id.desc())
    return next((NewestRun(*row) for row in db.rows(newest.limit(1))), None)


def newest_machine(db: Database) -> str | None:
    """The machine with most trials of the newest run; of imported results where nothing was measured."""
    newest = newest_run(db, measured=True) or newest_run(db, measured=False)
    return None if newest is None else machine_of_run(db, newest.run_id)


def machine_of_run(db: Database, run_id: str) -> str | None:
    """The machine that has most trials of a run; None where there is none."""
    trials = func.sum(RUN_PART.c.trials)
    statement = select(RUN_PART.c.machine_id).where(RUN_PART.c.run_id == run_id)
    machines = statement.group_by(RUN_PART.c.machine_id).order_by(trials.desc(), RUN_PART.c.machine_id)
    return next(iter(db.scalars(machines)), None)


def newest_two(db: Database, run_id: str, *, measured: bool) -> tuple[Selection, Selection | None]:
    """The newest run `run_id` and the one before it, of its suite and on one of its machines, as sides.

    Of what was measured together, which are runs of the same code that overlap in time, through others too,
    and the builds of a run that has several on a machine, the newest release is the newest, and before it
    comes the release before. A run that was cut short is none before, nor one of somebody's code before
    one of nobody's; one of other code, such as another pull request on the same machine at the same time, was
    not measured together.
    """
    machines = select(RUN_PART.c.machine_id).where(RUN_PART.c.run_id == run_id)
    here = RUN_PART.c.machine_id.in_(machines)
    runs_here = select(RUN_PART.c.run_id).where(here)
    began = (RUN.c.first_seen_at, RUN.c.run_id)
    with db.read() as connection:
        of_run = select(RUN.c.suite, RUN.c.first_seen_at).where(RUN.c.run_id == run_id)
        suite, first_seen_at = connection.execute(of_run).one()
        same_suite = RUN.c.suite.is_(None) if suite is None else RUN.c.suite == suite
        like = [*_with_trials(measured), same_suite, RUN.c.run_id.in_(runs_here)]
        alike, first_seen_at = _by_turns_with(connection, run_id, like, first_seen_at)
        together = select(RUN.c.run_id).where(RUN.c.run_id.in_(alike))
        earlier = select(RUN.c.run_id).where(*like, is_whole(), RUN.c.last_seen_at < first_seen_at)
        if run_id not in codes_of_runs(connection, [run_id]):
            of_code = exists().where(TRIAL.c.run_id == RUN.c.run_id, TRIAL.c.code_hash.is_not(None))
            earlier = earlier.where(~of_code)
        parts = select(RUN_PART.c.run_id, RUN_PART.c.machine_id, RUN_PART.c.build_id)
        parts = parts.where(here, RUN_PART.c.run_id.in_(together))
        builds = _builds_of_runs(connection.execute(parts.order_by(*parts.selected_columns)))
        before = connection.scalar(earlier.order_by(*(column.desc() for column in began)).limit(1))
        begun = connection.scalars(together.order_by(*began)).all()
    known = facets.builds(db, sorted({build for each in builds.values() for build in each}))["build_id"]
    rank = {build: number for number, build in enumerate(known)}
    sides = [
        (rank[build], run_side(run) if len(builds[run]) == 1 else side_within(run, build))
        for run in begun
        for build in builds[run]
    ]
    order = [side for _, side in sorted(sides, key=lambda each: each[0])]
    if len(order) > 1:
        return order[-1], order[-2]
    return order[-1], None if before is None else run_side(before)


def _by_turns_with(
    connection: Connection, run_id: str, like: Sequence[ColumnElement[bool]], began: datetime
) -> tuple[list[str], datetime]:
    """The runs `like` this one, of its code, that overlap it or each other in time, and when the first one
    began: as builds that were measured by turns, one of them may have ended before another began.
    """
    while True:
        overlapping = select(RUN.c.run_id, RUN.c.first_seen_at).where(*like, RUN.c.last_seen_at >= began)
        begun = {row.run_id: row.first_seen_at for row in connection.execute(overlapping)}
        codes = codes_of_runs(connection, [run_id, *begun])
        alike = [each for each in begun if codes.get(each) == codes.get(run_id)]
        first = min((begun[each] for each in alike), default=began)
        if first >= began:
            return alike, began
        began = first


def _builds_of_runs(parts: Iterable[Any]) -> dict[str, list[str]]:
    """By run its builds on the machine where it has most; run, machine and build of each part."""
    found: dict[str, dict[str, list[str]]] = {}
    for run, machine, build in parts:
        found.setdefault(run, {}).setdefault(machine, []).append(build)
    return {run: max(by_machine.values(), key=len) for run, by_machine in found.items()}


def run_side(run_id: str) -> Selection:
    """One run as a side of a comparison."""
    return Selection(name=run_id, run_ids=(run_id,))


def side_within(run_id: str, build_id: str) -> Selection:
    """One build of a run that measured several."""
    return Selection(name=build_id, build_ids=(build_id,), run_ids=(run_id,))


def _with_trials(measured: bool) -> list[ColumnElement[bool]]:
    return [RUN.c.trials > 0, is_measured() if measured else is_imported()]


def runs_near(
    connection: Connection, filters: Filters, moment: datetime, limit: int, *, but: Iterable[str] = ()
) -> tuple[str, ...]:
    """The `limit` runs nearest in time to `moment`, of the machines, builds and suites selected."""
    others = [RUN_PART.c.run_id.not_in(list(but))]
    before = _runs(
        connection, filters, limit, [RUN_PART.c.last_seen_at <= moment, *others], newest_first=True
    )
    if len(before) == limit:
        return before
    after = [RUN_PART.c.last_seen_at > moment, *others]
    return before + _runs(connection, filters, limit - len(before), after, newest_first=False)


def _runs(
    connection: Connection,
    filters: Filters,
    limit: int,
    conditions: list[ColumnElement[bool]],
    *,
    newest_first: bool,
) -> tuple[str, ...]:
    when = func.max(RUN_PART.c.last_seen_at)
    statement = (
        select(RUN_PART.c.run_id)
        .where(*_of_parts(filters), *conditions)
        .group_by(RUN_PART.c.run_id)
        .order_by(when.desc() if newest_first else when, RUN_PART.c.run_id)
        .limit(limit)
    )
    return tuple(connection.scalars(statement))


def _of_parts(filters: Filters) -> list[ColumnElement[bool]]:
    conditions = any_of((RUN_PART.c.machine_id, filters.machines), (RUN_PART.c.build_id, filters.builds))
    if filters.suites:
        conditions.append(RUN_PART.c.run_id.in_(select(RUN.c.run_id).where(RUN.c.suite.in_(filters.suites))))
    return conditions
