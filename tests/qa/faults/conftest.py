"""Places to break, and the count of what was injected."""

from __future__ import annotations

import contextlib
import itertools
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from compilewatch.runner.process import measured_process
from tests.qa.faults.place import Place, new_place
from tests.qa.faults.runner_process import GRACE_S

ROUNDS = int(os.environ.get("COMPILEWATCH_FAULT_ROUNDS", "12"))
TABLE = os.environ.get("COMPILEWATCH_FAULT_TABLE")
PROMISED = 1_000


@dataclass
class Tally:
    """How many faults of each kind were injected and survived, and how long that took."""

    counts: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    seconds: dict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))

    @contextlib.contextmanager
    def fault(self, where: str, what: str) -> Iterator[None]:
        """Counts one fault, if everything that is checked in the block holds."""
        began = time.monotonic()
        yield
        self.counts[where, what] += 1
        self.seconds[where, what] += time.monotonic() - began

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def table(self) -> str:
        lines = ["| where | fault | times | s each |", "|---|---|---:|---:|"]
        for key in sorted(self.counts):
            each = self.seconds[key] / self.counts[key]
            lines.append(f"| {key[0]} | {key[1]} | {self.counts[key]} | {each:.1f} |")
        return "\n".join([*lines, f"| | **all** | **{self.total}** | |"])


_TALLY = Tally()


@pytest.fixture
def tally() -> Tally:
    return _TALLY


@pytest.fixture
def numbered() -> Callable[[str], str]:
    numbers = itertools.count(1)
    return lambda name: f"{name.replace(' ', '-')}-{next(numbers):04d}"


@pytest.fixture
def place(sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """An installation on SQLite, in which trials of this process work too."""
    return worked_in(new_place(sqlite_url, tmp_path / "place"), monkeypatch)


@pytest.fixture
def server_place(empty_postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """The same on PostgreSQL."""
    return worked_in(new_place(empty_postgres_url, tmp_path / "place"), monkeypatch)


def worked_in(place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(tempfile, "tempdir", str(place.scratch))
    monkeypatch.setattr(measured_process, "GRACE_S", GRACE_S)
    return place


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Print the table; with a file for it, the whole rig ran and must have kept its number."""
    if not _TALLY.total:
        return
    print(f"\n{_TALLY.table()}")
    if TABLE:
        Path(TABLE).write_text(_TALLY.table() + "\n", encoding="utf-8")
        if _TALLY.total < PROMISED and session.exitstatus == 0:
            print(f"Only {_TALLY.total} faults were injected; {PROMISED} are promised.")
            session.exitstatus = 1
