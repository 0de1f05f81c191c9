"""What `compare` and `gate` read of a long history and how long they take, against reading all of it.

One row is printed per command, database and size; how to choose sizes: `large_databases`. Of a command
the seconds and the CPU seconds of its process are given, from start to end.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pandas as pd
import pytest

from db.engine.session import Database, open_database
from db.judge.compare.sides import Selection
from db.judge.compare.upgrade import compare_builds
from db.judge.results import Comparison
from db.queries.cases import comparison
from db.queries.trials import trials_frame
from db.verdicts import gateway
from db.verdicts.newest import newest_runs
from db.verdicts.sides import resolve_side
from tests.benchmarks.large_databases import postgresql_history, sizes, sqlite_history

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]

LIMIT_S = 2.0
ROUNDS = 5


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def server_kind(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind


@pytest.fixture(scope="module", params=sizes(), ids=lambda size: f"{size:_}")
def url(request: pytest.FixtureRequest, server_kind: str) -> str:
    if server_kind == "sqlite":
        return sqlite_history(request.param)
    return postgresql_history(request.getfixturevalue("postgres_url"), request.param)


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    with open_database(url, read_only=True) as database:
        yield database


def sides_of(command: str, database: Database) -> tuple[Selection, Selection]:
    if command == "gate":
        newest, before, _ = newest_runs(database)
        assert before is not None
        return before, newest
    base, head = (resolve_side(name, database) for name in ("previous", "latest"))
    return base, head


def trials_read(monkeypatch: pytest.MonkeyPatch, judge: Callable[[], Comparison]) -> int:
    """How many trials the gateway is given by its two reads."""
    read: list[int] = []

    def counted(frame: Callable[..., pd.DataFrame]) -> Callable[..., pd.DataFrame]:
        def count(*arguments: object, **named: object) -> pd.DataFrame:
            found = frame(*arguments, **named)
            read.append(len(found))
            return found

        return count

    with monkeypatch.context() as patch:
        for name in ("frame_where", "_trials"):
            patch.setattr(comparison, name, counted(getattr(comparison, name)))
        judge()
    return sum(read)


def seconds_of(judge: Callable[[], object], rounds: int) -> tuple[float, float]:
    """The least wall and CPU seconds of some rounds."""
    taken = []
    for _ in range(rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        judge()
        taken.append((time.perf_counter() - wall, time.process_time() - cpu))
    return min(wall for wall, _ in taken), min(cpu for _, cpu in taken)


def typed(command: str, url: str) -> tuple[float, float]:
    """The least seconds and CPU seconds of the whole command. `gate` records what it finds, once."""
    arguments = ["compare", "previous", "latest"] if command == "compare" else ["gate"]

    def run() -> tuple[float, float]:
        wall, cpu = time.perf_counter(), _cpu_of_children_s()
        done = subprocess.run(
            [sys.executable, "-m", "runner", *arguments, "--json", "--db", url],
            capture_output=True,
            check=False,
        )
        assert done.stdout, done.stderr
        return time.perf_counter() - wall, _cpu_of_children_s() - cpu

    taken = [run() for _ in range(ROUNDS)]
    return min(wall for wall, _ in taken), min(cpu for _, cpu in taken)


def _cpu_of_children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize("command", ["compare", "gate"])
def test_a_verdict_reads_a_bounded_part(
    command: str, url: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, head = sides_of(command, database)
    read = trials_read(monkeypatch, lambda: gateway.compare(database, base, head))
    wall_s, cpu_s = seconds_of(lambda: gateway.compare(database, base, head), ROUNDS)
    command_s, command_cpu_s = typed(command, url)

    def on_everything() -> int:
        everything = trials_frame(database)
        compare_builds(everything, base, head, history=everything)
        return len(everything)

    started = time.perf_counter()
    stored = on_everything()
    everything_s = time.perf_counter() - started
    kind = url.partition(":")[0]
    print(
        f"\n{command}, {kind}, {stored:,} trials: reads {read:,} trials; verdict {wall_s:.2f} s, "
        f"{cpu_s:.2f} s CPU; command {command_s:.2f} s of {LIMIT_S:g} s, {command_cpu_s:.2f} s CPU; "
        f"on everything {everything_s:.1f} s"
    )
    assert read < stored or stored < 50_000
