"""What is imported and read before the first reader comes."""

from __future__ import annotations

import logging
from threading import Thread

from dashboard.data import read_choices, read_points, recent
from dashboard.snapshots import Snapshot
from db.errors import CompilewatchError
from db.queries.filters import Filters

_LOG = logging.getLogger("compilewatch.dashboard")


def warm() -> None:
    """Import and read what the first page needs; go on with the newest runs in a thread of its own.

    Raises DatabaseError when the database cannot be read.
    """
    from dashboard import app  # noqa: F401

    snapshot = Snapshot.now()
    newest = read_choices(snapshot).newest_machine
    if newest is not None:
        Thread(target=_warm_newest_runs, args=(snapshot, newest), daemon=True).start()


def _warm_newest_runs(snapshot: Snapshot, machine_id: str) -> None:
    """Read what most pages show first, beside the readers that come already."""
    try:
        read_points(snapshot, recent(snapshot, Filters(machines=(machine_id,))))
    except CompilewatchError as error:
        _LOG.warning("the newest runs could not be read ahead: %s", error)
