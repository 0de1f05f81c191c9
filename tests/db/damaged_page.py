"""A page of a database file overwritten, as a failing disk may do it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path


def overwrite_page(file: Path, name: str) -> None:
    """The root of the table or index of that name."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with file.open("r+b") as raw:
        raw.seek((page - 1) * size)
        raw.write(b"\xff" * size)
