"""Databases that tests in several processes read: the first that asks makes one, the others copy it."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from compilewatch.db.engine.session import open_database

MEASURED = Path(__file__).parents[1] / "docs" / "measured"
_CPU, _H100 = [MEASURED / "cpu-history.jsonl"], sorted((MEASURED / "h100").glob("*.jsonl"))
HISTORIES = {"cpu": _CPU, "h100": _H100, "both": _CPU + _H100}
"""The recorded histories that come with the code, by the name of the database that holds them."""

MadeOnce = Callable[[str, Callable[[str], None]], Path]
"""By its name and what fills the database at a URL: a copy of its own for each process of tests."""


def made_once(factory: pytest.TempPathFactory, name: str, fill: Callable[[str], None]) -> Path:
    """A copy for this process of the SQLite database `name`, which `fill` makes in one of the processes.

    A file that has its name is whole: it is renamed only once it is filled.
    """
    own = factory.getbasetemp()
    # Of pytest-xdist every process has a folder of its own in one that they share.
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    made = shared / f"{name}.db"
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            begun = shared / f"{name}.begun.db"
            begun.unlink(missing_ok=True)
            fill(f"sqlite:///{begun}")
            begun.rename(made)
    copy = factory.mktemp("made") / f"{name}.db"
    shutil.copyfile(made, copy)
    return copy


def import_histories(name: str, url: str) -> None:
    """Import the recorded histories of `name`."""
    from compilewatch.db.interchange.importing import import_paths

    with open_database(url, migrate=True) as database:
        assert import_paths(database, HISTORIES[name]).new


def fill_demo(url: str) -> None:
    """Store what `compilewatch demo` shows."""
    from compilewatch.runner.cli.stored.demo import fill

    with open_database(url, migrate=True) as database:
        fill(database)
