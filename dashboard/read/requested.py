"""A link that somebody asks for, held against what is drawn now."""

from __future__ import annotations

from collections.abc import Sequence

from dashboard.links.links import PAGES, Link
from dashboard.links.resolution import settle, the_one
from dashboard.read.choices import Choices
from dashboard.read.data import read_builds, read_former_builds, read_former_names
from dashboard.read.first_look import first_machine
from dashboard.read.snapshots import Snapshot
from db.queries.filters import Filters

_BUILDS = ("build", "base", "head")
_BY_RECENCY = ("latest", "previous")


def resolved_link(link: Link, snapshot: Snapshot, choices: Choices) -> tuple[Link, tuple[str, ...]]:
    """`link` with names taken for ids, and a sentence for each value that means nothing.

    A name that several builds have is the one that was measured on the machine that the page shows. A machine
    that was renamed answers to its old name too.
    """

    def here(so_far: Link) -> Sequence[str]:
        first = None if PAGES[so_far.page].all_machines else first_machine(snapshot)
        machine = so_far.machine or (first.machine_id if first else None)
        return read_builds(snapshot, Filters(machines=(machine,))) if machine else ()

    called = choices.called
    if link.machine and the_one(link.machine, choices.machines, called["machine"]) is None:
        called = {**called, "machine": [*called["machine"], *read_former_names(snapshot)]}
    if former := read_former_builds(snapshot):
        called = {key: [*names, *former] if key in _BUILDS else names for key, names in called.items()}
    if any(word in str(getattr(link, key)) for key in _BUILDS for word in _BY_RECENCY):
        recent = list(zip(_BY_RECENCY, here(link), strict=False))
        called = {key: [*names, *recent] if key in _BUILDS else names for key, names in called.items()}
    likely = dict.fromkeys(_BUILDS, here)
    return settle(link, choices.known, called, likely)
