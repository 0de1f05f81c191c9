"""A link that somebody asks for, held against what is drawn now."""

from __future__ import annotations

from collections.abc import Sequence

from dashboard.links.links import Link, Page
from dashboard.links.resolution import settle
from dashboard.read.choices import Choices
from dashboard.read.data import read_builds
from dashboard.read.snapshots import Snapshot
from db.queries.filters import Filters

# Their default is every machine.
ALL_MACHINES = frozenset({Page.REGRESSIONS, Page.RUNS, Page.REPORTS})


def resolved_link(link: Link, snapshot: Snapshot, choices: Choices) -> tuple[Link, tuple[str, ...]]:
    """`link` with names taken for ids, and a sentence for each value that means nothing.

    A name that several builds have is the one that was measured on the machine that the page shows.
    """

    def here(so_far: Link) -> Sequence[str]:
        machine = so_far.machine or (None if so_far.page in ALL_MACHINES else choices.newest_machine)
        return read_builds(snapshot, Filters(machines=(machine,))) if machine else ()

    likely = dict.fromkeys(("build", "base", "head"), here)
    return settle(link, choices.known, choices.called, likely)
