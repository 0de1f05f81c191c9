"""What is said to be kept was handed to the disk before: the file, then the directory that names it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from compilewatch.db.engine.session import open_database
from compilewatch.runner.process.spool import Spool
from tests.builders import make_trial


def test_a_trial_in_the_spool_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name.lstrip(".").partition(".")[0])
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    path = Spool(tmp_path / "spool").put(make_trial(trial_id="kept"))
    assert synced == ["kept", "spool"]
    assert path.exists()


def test_a_commit_is_on_the_disk(sqlite_url: str) -> None:
    """FULL syncs the log at each commit; NORMAL would lose the last ones in a power cut."""
    full = 2
    with open_database(sqlite_url) as database, database.write() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == full
