"""A link that somebody asks for, held against what is drawn now, and what a page opens on where it leaves
that open: what tells most.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any, NamedTuple

from compilewatch.dashboard.links.links import PAGES, RUNS_OF, Link
from compilewatch.dashboard.links.resolution import settle, the_one
from compilewatch.dashboard.read.choices import Choices
from compilewatch.dashboard.read.data import read_builds, read_choices, read_former_names, read_regressions
from compilewatch.dashboard.read.database import reader
from compilewatch.dashboard.read.versions import cached
from compilewatch.db.engine.session import Database
from compilewatch.db.errors import CompilewatchError
from compilewatch.db.judge.compare.sides import Selection
from compilewatch.db.queries.selection import Filters
from compilewatch.db.verdicts.sides import LATEST, PREVIOUS, builds_of_side, resolve_one, resolve_sides


class Requested(NamedTuple):
    """A link with names taken for ids, a sentence for each value that means nothing, and what is said where a
    name stood for several builds.
    """

    link: Link
    unknown: tuple[str, ...]
    remarks: tuple[str, ...] = ()


def resolved_link(link: Link, choices: Choices) -> Requested:
    """`link` as it can be drawn. Builds are named as for `compilewatch compare`, or as pages call them.

    A name that several builds have is the one with most cases on the machine that the page shows. A machine
    that was renamed answers to its old name too.
    """
    called = choices.called
    if link.machine and the_one(link.machine, choices.machines, called["machine"]) is None:
        called = {**called, "machine": [*called["machine"], *read_former_names()]}
    link, unknown = settle(link, choices.known, called)
    wanted = {key: getattr(link, key) for key in RUNS_OF if getattr(link, key) is not None}
    by_name = {key: name for key, name in wanted.items() if name not in choices.builds}
    if not by_name:
        return Requested(link, unknown)
    first = None if PAGES[link.page].all_machines else first_machine()
    machine = link.machine or (first.machine_id if first else None)
    database = reader()
    sides: dict[str, str | Selection] = {key: _as_pages_say(name, choices) for key, name in wanted.items()}
    remarks: tuple[str, ...] = ()
    try:
        if {"base", "head"} <= by_name.keys():
            both = resolve_sides(sides["base"], sides["head"], database, machine)
            sides["base"], sides["head"], remarks = both[:3]
    except CompilewatchError:
        # Which of the two means nothing is told below.
        remarks = ()
    for key in by_name:
        side = sides[key]
        try:
            if isinstance(side, str):
                side, more = resolve_one(side, database, machine)
                remarks += more
            link = replace(link, **_taken(key, side, database))
        except CompilewatchError as error:
            nothing: dict[str, Any] = {key: None}
            link = replace(link, **nothing)
            unknown += (f"{key}: {error.message} {error.next_step}".strip(),)
    return Requested(link, unknown, remarks)


def _as_pages_say(name: str, choices: Choices) -> str | Selection:
    """The build that is called so on pages, where it is just one; else the name."""
    build = the_one(name, choices.builds, [(each, key) for key, each in choices.builds.items()])
    return name if build is None else Selection(name=choices.builds[build], build_ids=(build,))


def _taken(key: str, side: Selection, database: Database) -> dict[str, Any]:
    """What a side is in a link: a build, and of it some runs alone where the name is that of runs."""
    runs = () if side.name in (LATEST, PREVIOUS) else side.run_ids
    builds = builds_of_side(side, database)
    return {key: builds[-1] if builds else None, RUNS_OF[key]: runs}


class FirstMachine(NamedTuple):
    """A machine, and why it is shown in a word or three."""

    machine_id: str
    why: str


@cached
def first_machine() -> FirstMachine | None:
    """The machine with most cases in open regressions that no later build took back, else the newest with two
    builds, else the newest; None where there is none.
    """
    machines = read_choices().newest_machines
    cases = {
        (each.regression.machine_id, each.regression.row.case.ids)
        for each in read_regressions()
        if each.is_open
    }
    waiting = Counter(machine for machine, _ in cases if machine in machines)
    if waiting:
        return FirstMachine(max(machines, key=lambda each: waiting[each]), "has open regressions")
    for place, machine in enumerate(machines):
        here = Filters(machines=(machine,))
        if len(read_builds(here, only_measured=True) or read_builds(here)) > 1:
            return FirstMachine(machine, "newest" if place == 0 else "newest with two builds")
    return FirstMachine(machines[0], "newest") if machines else None
