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

import pytest

from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.judge.compare.sides import Selection
from compilewatch.db.judge.compare.upgrade import compare_builds
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.verdicts import gateway
from compilewatch.db.verdicts.sides import resolve_side
from compilewatch.db.verdicts.steps import newest_runs
from tests.db.verdicts.test_gateway import count_reads

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]

LIMIT_S = 3.0
ROUNDS = 5


@pytest.fixture
def database(history_url: str) -> Iterator[Database]:
    with open_database(history_url, read_only=True) as database:
        yield database


def sides_of(command: str, database: Database) -> tuple[Selection, Selection]:
    if command == "gate":
        newest, before, _ = newest_runs(database)
        assert before is not None
        return before, newest
    base, head = (resolve_side(name, database) for name in ("previous", "latest"))
    return base, head


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
            [sys.executable, "-m", "compilewatch.runner", *arguments, "--json", "--db", url],
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
    command: str, history_url: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, head = sides_of(command, database)
    with monkeypatch.context() as patch:
        reads = count_reads(patch)
        gateway.compare(database, base, head)
    read = sum(reads)
    wall_s, cpu_s = seconds_of(lambda: gateway.compare(database, base, head), ROUNDS)
    command_s, command_cpu_s = typed(command, history_url)

    def on_everything() -> int:
        everything = trials_frame(database)
        compare_builds(everything, base, head, history=everything)
        return len(everything)

    started = time.perf_counter()
    stored = on_everything()
    everything_s = time.perf_counter() - started
    kind = history_url.partition(":")[0]
    print(
        f"\n{command}, {kind}, {stored:,} trials: reads {read:,} trials; verdict {wall_s:.2f} s, "
        f"{cpu_s:.2f} s CPU; command {command_s:.2f} s of {LIMIT_S:g} s, {command_cpu_s:.2f} s CPU; "
        f"on everything {everything_s:.1f} s"
    )
    assert read < stored or stored < 50_000
