"""Names: what somebody types is found, or refused with those that there are; what machines were called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

from sqlalchemy import Column, Connection, select

from compilewatch.db.engine.session import Database
from compilewatch.db.engine.tables import BUILD, MACHINE, RUN, RUN_PART, SERIES, STRATEGY, TRIAL, WORKLOAD
from compilewatch.db.errors import NotFoundError, did_you_mean, one_line
from compilewatch.db.metrics.eligibility import is_canary
from compilewatch.db.queries.selection import Filters, read_records
from compilewatch.db.records.identity import version_key
from compilewatch.db.records.trial import Build
from compilewatch.db.units import first_of

MOST_NAMED = 8


class _Kind(NamedTuple):
    """What is named by `column`; `called` is what people know it by, where that is something else."""

    noun: str
    field: str
    column: Column[str]
    called: Column[str] | None = None


_KINDS = (
    _Kind("workload", "workloads", WORKLOAD.c.name),
    _Kind("strategy", "strategies", STRATEGY.c.name),
    _Kind("machine", "machines", MACHINE.c.machine_id, MACHINE.c.name),
    _Kind("build", "builds", BUILD.c.build_id, BUILD.c.torch),
    _Kind("suite", "suites", RUN.c.suite),
    _Kind("run", "runs", RUN.c.run_id),
)


def require_stored(db: Database, filters: Filters) -> None:
    """Check that all workloads, strategies, machines, builds, suites and runs of `filters` are stored.

    Raises NotFoundError for the first one that is not, with the nearest names or, of few, with all.
    """
    with db.read() as connection:
        for kind in _KINDS:
            names: Sequence[str] = getattr(filters, kind.field)
            stored = select(kind.column).where(kind.column.in_(names))
            known = set(connection.scalars(stored)) if names else set()
            for name in names:
                if name not in known:
                    next_step = _which_there_are(connection, kind, name)
                    raise NotFoundError(f"No {kind.noun} {one_line(name)!r} is stored.", next_step)


def machines_named(db: Database, names: Sequence[str]) -> tuple[str, ...]:
    """The ids of the machines that are called so now, else were, or have that id. A name of several is none.

    Raises NotFoundError for one that is not stored.
    """
    called = [*former_machine_names(db), *machine_names(db)] if names else []
    machines = Counter(name for name, _ in called)
    ids = {name: machine for name, machine in called if machines[name] == 1}
    found = tuple(ids.get(name, name) for name in names)
    require_stored(db, Filters(machines=found))
    return found


def stored_names(db: Database, noun: str) -> list[str]:
    """Every "workload", "strategy", "machine", "build", "suite" or "run" that is stored, as it is named; no
    canary, which nobody chose to measure.
    """
    column = MACHINE.c.name if noun == "machine" else next(k.column for k in _KINDS if k.noun == noun)
    statement = select(column).where(column.is_not(None)).distinct().order_by(column)
    return [name for name in db.scalars(statement) if not is_canary(name)]


def _which_there_are(connection: Connection, kind: _Kind, name: str) -> str:
    columns = [kind.column] if kind.called is None else [kind.column, kind.called]
    statement = select(*columns).where(kind.column.is_not(None)).distinct().order_by(*reversed(columns))
    called = {row[0]: row[-1] for row in connection.execute(statement) if not is_canary(row[0])}
    if not called:
        return "Nothing is: measure with `compilewatch run`."
    if hint := did_you_mean(name, called, most=2):
        return hint
    ordered = sorted(called.items(), key=lambda named: version_key(named[1]))
    choices = [each if each == label else f"{each} ({label})" for each, label in ordered]
    return f"Stored: {first_of(choices, MOST_NAMED)}."


def machine_names(db: Database) -> list[tuple[str, str]]:
    """Name and id of every machine, and its name with that of its device, as pages write it."""
    columns = (MACHINE.c.machine_id, MACHINE.c.name, MACHINE.c.device_name)
    rows = db.rows(select(*columns).order_by(MACHINE.c.machine_id))
    return [(text, key) for key, name, device in rows for text in (f"{name} ({device})", name)]


def former_machine_names(db: Database) -> list[tuple[str, str]]:
    """Name and id of every machine for each name that it was measured under and that none has now."""
    called = (
        select(TRIAL.c.machine_name)
        .join(SERIES, SERIES.c.series_id == TRIAL.c.series_id)
        .where(TRIAL.c.run_id == RUN_PART.c.run_id, SERIES.c.machine_id == RUN_PART.c.machine_id)
        .limit(1)
        .scalar_subquery()
    )
    rows = db.rows(select(RUN_PART.c.machine_id, called.label("name")).distinct())
    now = {name for name, _ in machine_names(db)}
    return sorted((row.name, row.machine_id) for row in rows if row.name and row.name not in now)


def recorded_builds(db: Database, build_ids: Collection[str]) -> list[Build]:
    """The builds with these ids, the one measured last first; settings are of single trials."""
    columns = [BUILD.c[name] for name in Build.model_fields if name in BUILD.c]
    statement = (
        select(*columns)
        .where(BUILD.c.build_id.in_(list(build_ids)))
        .order_by(BUILD.c.last_seen_at.desc(), BUILD.c.build_id)
    )
    return read_records(db, Build, statement)
