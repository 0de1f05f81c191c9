"""Processes that save and migrate at once, some of them killed.

They come from a server that has imported the program once, a tenth of what each fresh interpreter costs.
"""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Iterator
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from multiprocessing.synchronize import Barrier
from multiprocessing.util import get_temp_dir

import pytest

from compilewatch.db.engine.session import open_database
from compilewatch.db.store.trials import save_trial
from tests.builders import START, make_trial

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["pytest", __name__, "compilewatch.db.engine.schema", "alembic.command"])
_OUTSIDE = tempfile.gettempdir()


def _context() -> ForkServerContext:
    """Its socket lies outside of the folder that goes with the last test: the server ends after that."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", _OUTSIDE)
        get_temp_dir()
    return _CONTEXT


def saver(url: str, name: str, count: int, shared: int = 0) -> tuple[ForkServerProcess, Connection]:
    """Saves `shared` trials that every such process saves too, then `count` of its own, one transaction each.

    It sends each id once the save has returned.
    """
    context = _context()
    reads, writes = context.Pipe(duplex=False)
    process = context.Process(target=_save, args=(url, name, count, shared, writes), daemon=True)
    process.start()
    writes.close()
    return process, reads


def sent(reads: Connection) -> Iterator[str]:
    """What a process sent, until it ended."""
    try:
        while True:
            yield reads.recv()
    except EOFError:
        reads.close()


def _save(url: str, name: str, count: int, shared: int, writes: Connection) -> None:
    with open_database(url) as database:
        for trial_id in [f"shared-{n}" for n in range(shared)] + [f"{name}-{n}" for n in range(count)]:
            save_trial(database, make_trial(trial_id=trial_id, started_at=START))
            writes.send(trial_id)


def migrate_at_once(url: str, count: int) -> list[int | None]:
    """Open the database, migrating it, in so many processes that begin together. Their exit codes."""
    context = _context()
    begin = context.Barrier(count)
    processes = [context.Process(target=_migrate, args=(url, begin), daemon=True) for _ in range(count)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    return [process.exitcode for process in processes]


def _migrate(url: str, begin: Barrier) -> None:
    begin.wait(60)
    open_database(url, migrate=True).close()
