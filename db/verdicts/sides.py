"""Names of builds, runs and commits -> which trials they are: the one resolver of commands, pages and API."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import NamedTuple

from pandas import DataFrame

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import ConfigError, NotFoundError, did_you_mean, one_line
from compilewatch.db.judge.compare.sides import CODE, STACK, Selection, libraries_of
from compilewatch.db.queries import facets
from compilewatch.db.queries.codes import commits_like, runs_of_commit
from compilewatch.db.queries.facets import measured_runs
from compilewatch.db.queries.named import MOST_NAMED
from compilewatch.db.queries.run_parts import measured_builds, newest_machine, run_parts
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import builds_of, cases_of
from compilewatch.db.records.identity import version_key
from compilewatch.db.units import first_of, plural

_COMMIT = re.compile(r"[0-9a-f]{4,64}(?:-dirty)?")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_SHORTEST_PREFIX = 4
_MOST_CHOICES = 12
LATEST, PREVIOUS = "latest", "previous"
_HOW = "Name torch=2.13.0, commit=abc1234, a label, a day, the id of a build or run, latest or previous."


class Chosen(NamedTuple):
    """One selection for a name, and what is said where the name stood for several."""

    side: Selection
    remarks: tuple[str, ...] = ()


class Sides(NamedTuple):
    """The two sides of a comparison, what is said where a name stood for several, and the machine that was
    asked about: that of the newest run where a side is `latest` or `previous` and none was named.
    """

    base: Selection
    head: Selection
    remarks: tuple[str, ...] = ()
    machine_id: str | None = None


def resolve_side(name: str, database: Database) -> Selection:
    """The builds or the run that `name` stands for; several builds together where it stands for several.

    `name` is component=version, `torch-VERSION` as `builds create` calls it, commit=HASH, a stack label, a
    build id, a run id, the beginning of one, a day (its newest run), or `latest`/`previous` (the build
    measured last, and the one before it, without what was imported; where nothing was measured, the imported
    ones). Raises NotFoundError with the nearest names, ConfigError for a component that is none.
    """
    found = _candidates(name, database)
    return found[0] if len(found) == 1 else _together(name, found)


def resolve_one(name: str, database: Database, machine_id: str | None = None) -> Chosen:
    """What `name` stands for on a machine, or anywhere; of several the one with most cases there, the newest
    of these, and `remarks` names the others. Raises as `resolve_side`.
    """
    found = _candidates(name, database, machine_id)[:_MOST_CHOICES]
    if len(found) == 1:
        return Chosen(found[0])
    with database.read() as connection:
        cases = [len(cases_of(connection, side, machine_id)) for side in found]
    place = max(range(len(found)), key=lambda number: (cases[number], -number))
    return Chosen(found[place], (_several(found, place, plural(cases[place], "case"), _torch_of(database)),))


def resolve_sides(
    base: str | Selection, head: str | Selection, database: Database, machine_id: str | None = None
) -> Sides:
    """Both sides of a comparison, on a machine or anywhere. Where a name stands for several builds, that pair
    of them is taken which has most cases in common, and `remarks` names the others. Raises as `resolve_side`.
    """
    if machine_id is None and {base, head} & {LATEST, PREVIOUS}:
        machine_id = newest_machine(database)
    choices = [
        [side] if isinstance(side, Selection) else _candidates(side, database, machine_id)[:_MOST_CHOICES]
        for side in (base, head)
    ]
    if all(len(each) == 1 for each in choices):
        return Sides(choices[0][0], choices[1][0], machine_id=machine_id)
    with database.read() as connection:
        cases = [[cases_of(connection, side, machine_id) for side in of_side] for of_side in choices]
        builds = [[builds_of(connection, side) for side in of_side] for of_side in choices]
    pairs = [(i, j) for i in range(len(choices[0])) for j in range(len(choices[1]))]
    # One build cannot be both sides; then most cases, then where no more than the named part differs.
    first, second = max(
        pairs,
        key=lambda pair: (
            not _same(choices[0][pair[0]], choices[1][pair[1]]),
            len(cases[0][pair[0]] & cases[1][pair[1]]),
            builds[0][pair[0]] == builds[1][pair[1]],
            -pair[0] - pair[1],
        ),
    )
    common = f"{plural(len(cases[0][first] & cases[1][second]), 'case')} of the other side"
    torch = _torch_of(database)
    remarks = tuple(
        _several(of_side, place, common, torch)
        for of_side, place in zip(choices, (first, second), strict=True)
        if len(of_side) > 1
    )
    return Sides(choices[0][first], choices[1][second], remarks, machine_id)


def builds_named(names: Iterable[str], database: Database) -> tuple[str, ...]:
    """The ids of the builds that `names` stand for, all of those that a name stands for. Raises as
    `resolve_side`.
    """
    sides = [resolve_side(name, database) for name in names]
    return tuple(dict.fromkeys(build for side in sides for build in builds_of_side(side, database)))


def builds_of_side(side: Selection, database: Database) -> tuple[str, ...]:
    """The ids of the builds of a side, those of its runs where it names runs alone."""
    return side.build_ids or tuple(run_parts(database, side.run_ids)["build_id"].astype(str))


def _candidates(name: str, database: Database, machine_id: str | None = None) -> list[Selection]:
    """All that `name` stands for, each alone, the newest first; `machine_id` is where the newest is looked
    for.
    """
    if name in (LATEST, PREVIOUS):
        return [_by_recency(name, database, machine_id)]
    builds = facets.builds(database)
    if builds.empty:
        raise NotFoundError("There is no build in this database.", "Measure with `compilewatch run`.")
    component, equals, version = name.partition("=")
    if equals:
        return _by_component(name, component, version, builds, database)
    runs = facets.runs(database)
    for found in _readings(name, builds, runs):
        if found:
            return [side.model_copy(update={"name": name}) for side in found]
    raise _unknown(name, builds, runs)


def _readings(name: str, builds: DataFrame, runs: DataFrame) -> Iterator[list[Selection]]:
    """What `name` may be, the surest first."""
    build_ids, run_ids = ([str(each) for each in column] for column in (builds["build_id"], runs["run_id"]))
    yield _of_builds([name] if name in build_ids else [])
    yield _of_runs([name] if name in run_ids else [])
    yield _of_builds(builds.loc[builds["build_label"] == name, "build_id"])
    labelled = [str(each) for each in runs.loc[runs["label"] == name, "run_id"]]
    yield [Selection(name=name, run_ids=tuple(labelled))] if labelled else []
    release = name.removeprefix("torch-").removeprefix("torch ")
    yield _of_builds(builds.loc[builds["torch"] == release, "build_id"])
    if _DAY.fullmatch(name):
        yield _of_runs(_of_day(name, runs))
    if len(name) >= _SHORTEST_PREFIX:
        yield _of_builds(each for each in build_ids if each.startswith(name))
        yield _of_runs(each for each in run_ids if each.startswith(name))


def _of_day(name: str, runs: DataFrame) -> list[str]:
    """The newest run with trials that began on that day, in UTC."""
    try:
        day = date.fromisoformat(name)
    except ValueError:
        return []
    mine = runs[(runs["started_at"].dt.date == day) & (runs["trials"] > 0)]
    return [str(each) for each in mine["run_id"].head(1)]


def _of_builds(build_ids: Iterable[object]) -> list[Selection]:
    # Of frames in the order of their versions.
    return [Selection(name=str(each), build_ids=(str(each),)) for each in build_ids][::-1]


def _of_runs(run_ids: Iterable[str]) -> list[Selection]:
    return [Selection(name=each, run_ids=(each,)) for each in run_ids]


def _together(name: str, found: Sequence[Selection]) -> Selection:
    builds = {each for side in found for each in side.build_ids}
    runs = {each for side in found for each in side.run_ids}
    return Selection(name=name, build_ids=tuple(sorted(builds)), run_ids=tuple(sorted(runs)))


def _same(one: Selection, other: Selection) -> bool:
    return (one.build_ids, one.run_ids) == (other.build_ids, other.run_ids)


def _by_recency(name: str, database: Database, machine_id: str | None) -> Selection:
    place = 0 if name == LATEST else 1
    here = Filters(machines=() if machine_id is None else (machine_id,))
    order = measured_builds(database, here, newest=place + 1)
    where = "" if machine_id is None else f" on machine {machine_id}"
    if not order:
        if machine_id is None:
            raise NotFoundError("There is no build in this database.", "Measure with `compilewatch run`.")
        raise NotFoundError(f"No build was measured{where}.", "See `compilewatch list machines`.")
    if len(order) <= place:
        raise NotFoundError(
            f"Only one build was measured{where}.",
            "Name two of its runs (`compilewatch list runs`), or measure another build there.",
        )
    build = order[place]
    return Selection(name=name, build_ids=(build,), run_ids=measured_runs(database, build))


def _by_component(
    name: str, component: str, version: str, builds: DataFrame, database: Database
) -> list[Selection]:
    if component in ("commit", CODE):
        return _by_commit(name, version, database)
    of_builds = builds["packages"].map(lambda libraries: libraries_of(libraries).get(component))
    if component in STACK:
        of_builds = builds[component]
    elif of_builds.isna().all():
        libraries = sorted({each for packages in builds["packages"] for each in libraries_of(packages)})
        known = ", ".join((*STACK, "commit", *libraries))
        raise ConfigError(f"A build has no component {component!r}.", f"Name one of {known}.")
    matching = builds.loc[of_builds == version, "build_id"]
    if matching.empty:
        measured = sorted(set(of_builds.dropna()), key=version_key, reverse=True)
        newest = f"Measured {component}: {first_of(measured, MOST_NAMED) or 'none'}."
        hint = did_you_mean(version, measured, newest, most=2)
        raise NotFoundError(f"No build with {name} was measured.", hint)
    return [side.model_copy(update={"name": name}) for side in _of_builds(matching)]


def _by_commit(name: str, text: str, database: Database) -> list[Selection]:
    """The runs of a commit by build: of the clean ones, and where there is none, of those with changes."""
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
    runs_of: dict[str, list[str]] = {}
    for row in run_parts(database, found).to_dict("records"):
        runs_of.setdefault(str(row["build_id"]), []).append(str(row["run_id"]))
    order = [str(each) for each in facets.builds(database)["build_id"] if each in runs_of][::-1]
    return [Selection(name=name, build_ids=(each,), run_ids=tuple(runs_of[each])) for each in order]


def _torch_of(database: Database) -> dict[str, str]:
    known = facets.builds(database)
    return dict(zip(known["build_id"], known["torch"], strict=True))


def _several(choices: Sequence[Selection], place: int, most: str, torch: Mapping[str, str]) -> str:
    """That a name stands for several builds or runs, and which of them was taken for having `most`."""

    def called(side: Selection) -> str:
        key = (side.build_ids or side.run_ids)[0]
        return f"{key[:8]} (torch {torch[key]})" if key in torch else key

    others = ", ".join(called(each) for number, each in enumerate(choices) if number != place)
    noun = "build" if choices[0].build_ids else "run"
    return (
        f"{choices[0].name} is {plural(len(choices), noun)}: {called(choices[place])} is taken, which has "
        f"{most}; not {others}."
    )


def _unknown(name: str, builds: DataFrame, runs: DataFrame) -> NotFoundError:
    known = [*builds["build_id"], *builds["build_label"].dropna(), *runs["run_id"], LATEST, PREVIOUS]
    hint = did_you_mean(name, map(str, known), _HOW, most=2)
    return NotFoundError(f"There is no build, run or label {name!r}.", hint)
