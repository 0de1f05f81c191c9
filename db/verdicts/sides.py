"""Names of the two sides of a comparison -> which trials they are."""

from __future__ import annotations

import difflib
import re

from pandas import DataFrame

from db.engine.session import Database
from db.errors import ConfigError, NotFoundError, one_line
from db.judge.compare.sides import CODE, STACK, Selection
from db.queries import facets
from db.queries.codes import commits_like, runs_of_commit
from db.queries.facets import measured_runs
from db.queries.run_parts import measured_builds
from db.units import plural

_COMMIT = re.compile(r"[0-9a-f]{4,64}(?:-dirty)?")
LATEST, PREVIOUS = "latest", "previous"
_HOW = "Name torch=2.13.0, driver=580.95, commit=abc1234, a label, a build id, a run id, latest or previous."


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
        return _by_component(name, component, version, builds, database)
    build = dict(facets.former_build_names(database)).get(name, name)
    if build in set(builds["build_id"]):
        return Selection(name=name, build_ids=(build,))
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


def _by_commit(name: str, text: str, database: Database) -> Selection:
    """The runs of a commit: of the clean ones, and where there is none, of those with changes."""
    if not _COMMIT.fullmatch(text):
        raise ConfigError(f"{one_line(name)} names no commit.", "Write its first digits: commit=abc1234.")
    digits, with_changes = text.removesuffix("-dirty"), text.endswith("-dirty")
    with database.read() as connection:
        commits = commits_like(connection, digits)
        if not commits:
            raise NotFoundError(f"No commit {digits} was measured.", "See `compilewatch list runs`.")
        if len(commits) > 1:
            raise NotFoundError(
                f"{plural(len(commits), 'measured commit')} begin with {digits}.",
                f"Give more digits: {', '.join(each[: len(digits) + 6] for each in commits[:3])}.",
            )
        kinds = (True,) if with_changes else (False, True)
        found = next((r for dirty in kinds if (r := runs_of_commit(connection, commits[0], dirty=dirty))), [])
    if not found:
        raise NotFoundError(f"{digits} was measured without changes only.", f"Name commit={digits}.")
    return Selection(name=name, run_ids=tuple(found))


def _by_component(
    name: str, component: str, version: str, builds: DataFrame, database: Database
) -> Selection:
    if component in ("commit", CODE):
        return _by_commit(name, version, database)
    if component not in STACK:
        known = ", ".join((*STACK, "commit"))
        raise ConfigError(f"A build has no component {component!r}.", f"Name one of {known}.")
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
