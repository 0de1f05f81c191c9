"""Names of the two sides of a comparison -> which trials they are."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import NamedTuple

from pandas import DataFrame
from sqlalchemy import Column, Connection, select

from db.engine.session import Database
from db.errors import ConfigError, NotFoundError, one_line
from db.judge.compare.sides import COMPONENTS, Selection
from db.queries import facets
from db.queries.facets import measured_runs
from db.queries.filters import Filters
from db.queries.run_parts import measured_builds
from db.records.versions import version_key
from db.tables.trials import BUILD, MACHINE, RUN, STRATEGY, WORKLOAD

LATEST, PREVIOUS = "latest", "previous"
_HOW = "Name torch=2.13.0, driver=580.95, a label, a build id, a run id, latest or previous."


def resolve_side(name: str, database: Database) -> Selection:
    """The builds or the run that `name` stands for.

    `name` is component=version, a stack label, a build id, a run id, or `latest`/`previous` (the build
    measured last, and the one before it, without what was imported; where nothing was measured, the imported
    ones). Raises NotFoundError with the nearest names, ConfigError for a component that is none.
    """
    if name in (LATEST, PREVIOUS):
        return _by_recency(name, database)
    builds = facets.builds(database)
    if builds.empty:
        raise _no_build()
    component, equals, version = name.partition("=")
    if equals:
        return _by_component(name, component, version, builds)
    if name in set(builds["build_id"]):
        return Selection(name=name, build_ids=(name,))
    runs = facets.runs(database)
    if name in set(runs["run_id"]):
        return Selection(name=name, run_ids=(name,))
    labelled = builds.loc[builds["build_label"] == name, "build_id"]
    if not labelled.empty:
        return Selection(name=name, build_ids=tuple(labelled))
    labelled_runs = runs.loc[runs["label"] == name, "run_id"]
    if not labelled_runs.empty:
        return Selection(name=name, run_ids=tuple(labelled_runs))
    raise _unknown(name, builds, runs)


def _by_recency(name: str, database: Database) -> Selection:
    place = 0 if name == LATEST else 1
    order = measured_builds(database, newest=place + 1)
    if not order:
        raise _no_build()
    if len(order) <= place:
        raise NotFoundError("Only one build was measured.", "Measure the other one, then compare.")
    build = order[place]
    return Selection(name=name, build_ids=(build,), run_ids=measured_runs(database, build))


def _by_component(name: str, component: str, version: str, builds: DataFrame) -> Selection:
    if component not in COMPONENTS:
        raise ConfigError(f"A build has no component {component!r}.", f"Name one of {', '.join(COMPONENTS)}.")
    matching = builds.loc[builds[component] == version, "build_id"]
    if matching.empty:
        measured = ", ".join(sorted(set(builds[component].dropna()))) or "none"
        raise NotFoundError(f"No build with {name} was measured.", f"Measured {component}: {measured}.")
    return Selection(name=name, build_ids=tuple(matching))


def _no_build() -> NotFoundError:
    return NotFoundError("There is no build in this database.", "Measure with `compilewatch run`.")


def _unknown(name: str, builds: DataFrame, runs: DataFrame) -> NotFoundError:
    known = [*builds["build_id"], *builds["build_label"].dropna(), *runs["run_id"], LATEST, PREVIOUS]
    near = difflib.get_close_matches(name, [str(each) for each in known], n=2)
    hint = f"Did you mean {' or '.join(near)}?" if near else _HOW
    return NotFoundError(f"There is no build, run or label {name!r}.", hint)


# Names that somebody asks for and that nothing stored has: refused, with the names that there are.

_MOST_NAMED = 8


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


def _which_there_are(connection: Connection, kind: _Kind, name: str) -> str:
    columns = [kind.column] if kind.called is None else [kind.column, kind.called]
    statement = select(*columns).where(kind.column.is_not(None)).distinct().order_by(*reversed(columns))
    called = {row[0]: row[-1] for row in connection.execute(statement)}
    if not called:
        return "Nothing is: measure with `compilewatch run`."
    if near := difflib.get_close_matches(name, called, n=2):
        return f"Did you mean {' or '.join(near)}?"
    ordered = sorted(called.items(), key=lambda named: version_key(named[1]))
    choices = [each if each == label else f"{each} ({label})" for each, label in ordered]
    more = f" and {len(choices) - _MOST_NAMED} more" if len(choices) > _MOST_NAMED else ""
    return f"Stored: {', '.join(choices[:_MOST_NAMED])}{more}."
