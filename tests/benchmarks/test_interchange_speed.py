"""How fast trials of 100 samples come in and go out, beside a bare executemany of the same rows."""

import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from db.engine.session import Database, open_database
from db.interchange.read.importing import import_paths
from db.interchange.write.exporting import export
from db.queries.filters import Filters
from db.tables.trials import METADATA
from tests.builders import make_history

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900)]

TRIALS = 20_000
SAMPLES = 100
PAIRS = 3
COMPILED = ("default", "reduce-overhead", "max-autotune", "default+dynamic")
LARGE = 50_000


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU time of this process: the machine may be shared."""
    start = time.process_time()
    work()
    return time.process_time() - start


def clock_seconds(work: Callable[[], object]) -> float:
    """Time by the clock: means something on a quiet machine only."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def lines_of(trials: int, strategies: tuple[str, ...]) -> list[str]:
    """Lines of jsonl: trials with SAMPLES samples, and as many of the control where they are compiled."""
    per_run = 3 * 4 * len(strategies)
    made = make_history(
        workloads=("bert-base", "resnet-50", "mlp", "elementwise"),
        strategies=strategies,
        builds=["2.13.0"] * (trials // per_run + 1),
        samples=SAMPLES,
    )
    return [trial.to_json() + "\n" for trial in made[:trials]]


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """TRIALS compiled trials as jsonl."""
    path = tmp_path_factory.mktemp("history") / "history.jsonl"
    path.write_text("".join(lines_of(TRIALS, COMPILED)))
    return path


@pytest.fixture(scope="module")
def filled(history: Path, tmp_path_factory: pytest.TempPathFactory) -> Database:
    database = open_database(f"sqlite:///{tmp_path_factory.mktemp('db')}/history.db", migrate=True)
    seconds = cpu_seconds(lambda: import_paths(database, [history]))
    print(f"\nimport jsonl: {TRIALS / seconds:,.0f} trials/s ({seconds:.2f} s CPU for {TRIALS:,} trials)")
    return database


@pytest.mark.parametrize(("kind", "strategies"), [("eager", ("eager",)), ("compiled", COMPILED)])
def test_import_against_bare_executemany(kind: str, strategies: tuple[str, ...], tmp_path: Path) -> None:
    """In turns: what else the machine does meanwhile falls on all.

    The bare insert keeps what the import keeps: the same tables with their indexes and unique keys, foreign
    keys that are enforced, and a commit that survives a power cut.
    """
    lines = lines_of(LARGE, strategies)
    path = tmp_path / "large.jsonl"
    path.write_text("".join(lines))
    statements, rows = stored(path, tmp_path)
    ratios: list[float] = []
    for _ in range(PAIRS):
        bare = sqlite3.connect(fresh(tmp_path / "bare.db"))
        for statement in (*map("PRAGMA {}".format, PRAGMAS), *statements):
            bare.execute(statement)
        cpu = cpu_seconds(partial(bare_insert, bare, rows))
        bare.close()
        alone = imported_s("process_time", path, fresh(tmp_path / "again.db"))
        ratios.append(cpu / alone)
        print(
            f"{kind}: {LARGE / alone:,.0f} trials/s of CPU, bare {LARGE / cpu:,.0f}, ratio {cpu / alone:.2f}"
        )
    print(f"{kind}: median ratio {statistics.median(ratios):.2f}")
    assert len(ratios) == PAIRS


# As the command imports: in a process that holds nothing else, which a fork would have to copy.
TIMED_IMPORT = """
import sys, time
from pathlib import Path
from db.interchange.read.importing import import_paths
from db.engine.session import open_database
clock = getattr(time, sys.argv[1])
with open_database(f"sqlite:///{sys.argv[3]}", migrate=True) as database:
    start = clock()
    report = import_paths(database, [Path(sys.argv[2])])
    print(clock() - start)
assert report.new and not report.errors
"""


def imported_s(clock: str, file: Path, target: Path) -> float:
    """Seconds that an import of `file` takes by a function of `time`, once all is loaded."""
    command = [sys.executable, "-c", TIMED_IMPORT, clock, str(file), str(target)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON")


def fresh(path: Path) -> Path:
    """The path of a database of SQLite that is not there yet."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    return path


def stored(history: Path, folder: Path) -> tuple[list[str], dict[str, list[tuple[Any, ...]]]]:
    """How a database that holds `history` was created, and all that it holds by table."""
    path = folder / "stored.db"
    with open_database(f"sqlite:///{path}", migrate=True) as database:
        import_paths(database, [history])
    source = sqlite3.connect(path)
    tables = [table.name for table in METADATA.sorted_tables]
    rows = {name: source.execute(f"SELECT * FROM {name}").fetchall() for name in tables}
    schema = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
    statements = [statement for (statement,) in source.execute(schema)]
    source.close()
    return statements, rows


def bare_insert(bare: sqlite3.Connection, rows: dict[str, list[tuple[Any, ...]]]) -> None:
    """The same rows, prepared in advance, in one transaction."""
    with bare:
        for name, content in rows.items():
            if content:
                marks = ", ".join("?" * len(content[0]))
                bare.executemany(f"INSERT INTO {name} VALUES ({marks})", content)


def test_import_into_postgresql(history: Path, empty_postgres_url: str) -> None:
    with open_database(empty_postgres_url, migrate=True) as database:
        wall = clock_seconds(lambda: import_paths(database, [history]))
    print(f"\nimport jsonl into PostgreSQL: {TRIALS / wall:,.0f} trials/s by the clock")
    assert wall > 0


@pytest.mark.parametrize("name", ["jsonl", "csv", "parquet", "oss-v3", "markdown"])
def test_export(filled: Database, tmp_path: Path, name: str) -> None:
    path = tmp_path / "out"
    seconds = cpu_seconds(lambda: export(filled, Filters(), format=name, output=path))
    print(
        f"\nexport {name}: {TRIALS / seconds:,.0f} trials/s, {path.stat().st_size / TRIALS:,.0f} bytes/trial"
    )
    assert path.stat().st_size > 0


MEASURE = """
import re, sys
from pathlib import Path
from db.interchange.write.exporting import ExportFormat, export
from db.interchange.read.importing import import_paths
from db.queries.filters import Filters
from db.engine.session import open_database
with open_database(f"sqlite:///{sys.argv[2]}", migrate=True) as database:
    import_paths(database, [Path(sys.argv[1])])
    for name in ExportFormat:
        export(database, Filters(), format=name, output=Path(sys.argv[2] + "." + name))
# ru_maxrss would include what this process was forked from; that of the one forked from it is its own.
own = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]
print(own)
"""


def test_memory_does_not_grow_with_the_file(history: Path, tmp_path: Path) -> None:
    """Peak resident memory of a process that imports a tenth and the whole and exports every format."""
    lines = history.read_text().splitlines(keepends=True)
    peaks = {}
    for share in (10, 1):
        path = tmp_path / f"{share}.jsonl"
        path.write_text("".join(lines[: TRIALS // share]))
        command = [sys.executable, "-c", MEASURE, str(path), str(tmp_path / f"{share}.db")]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        peaks[TRIALS // share] = int(output)
    for trials, peak_kib in peaks.items():
        print(f"\npeak memory, {trials:,} trials: {peak_kib / 1024:.0f} MiB")
    assert peaks[TRIALS] < peaks[TRIALS // 10] * 2
