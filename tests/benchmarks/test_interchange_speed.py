"""How fast trials of 100 samples come in and go out, beside a bare executemany of the same rows."""

import sqlite3
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from db.interchange.bulk import without_cycle_collection
from db.interchange.exporting import export
from db.interchange.files import input_files
from db.interchange.importing import import_paths
from db.queries.filters import Filters
from db.quick_trials import QuickReader
from db.session import Database, open_database
from db.store_rows import Identifier, detail_columns, prepare, sample_columns, trial_columns
from db.tables import METADATA
from tests.builders import make_history

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900)]

TRIALS = 20_000
SAMPLES = 100
PAIRS = 3


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU time of this process: the machine may be shared."""
    start = time.process_time()
    work()
    return time.process_time() - start


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """TRIALS compiled trials with SAMPLES samples and as many of the control, as jsonl."""
    path = tmp_path_factory.mktemp("history") / "history.jsonl"
    per_run = 3 * 4 * 4
    trials = make_history(
        workloads=("bert-base", "resnet-50", "mlp", "elementwise"),
        strategies=("default", "reduce-overhead", "max-autotune", "default+dynamic"),
        builds=["2.13.0"] * (TRIALS // per_run + 1),
        samples=SAMPLES,
    )[:TRIALS]
    with path.open("w") as stream:
        stream.writelines(trial.to_json() + "\n" for trial in trials)
    return path


@pytest.fixture(scope="module")
def filled(history: Path, tmp_path_factory: pytest.TempPathFactory) -> Database:
    database = open_database(f"sqlite:///{tmp_path_factory.mktemp('db')}/history.db", migrate=True)
    seconds = cpu_seconds(lambda: import_paths(database, [history]))
    print(f"\nimport jsonl: {TRIALS / seconds:,.0f} trials/s ({seconds:.2f} s CPU for {TRIALS:,} trials)")
    return database


def test_import_against_bare_executemany(filled: Database, history: Path, tmp_path: Path) -> None:
    """In pairs, one after the other: what else the machine does meanwhile falls on both.

    The bare insert keeps what the import keeps: the same tables with their indexes and unique keys, foreign
    keys that are enforced, and a commit that survives a power cut.
    """
    source = sqlite3.connect(filled.url.removeprefix("sqlite:///"))
    tables = [table.name for table in METADATA.sorted_tables]
    rows = {name: source.execute(f"SELECT * FROM {name}").fetchall() for name in tables}
    schema = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
    statements = [statement for (statement,) in source.execute(schema)]
    ratios = []
    for pair in range(PAIRS):
        bare = sqlite3.connect(tmp_path / f"bare-{pair}.db")
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            bare.execute(f"PRAGMA {pragma}")
        for statement in statements:
            bare.execute(statement)
        floor = cpu_seconds(partial(bare_insert, bare, rows))
        bare.close()
        with open_database(f"sqlite:///{tmp_path}/again-{pair}.db", migrate=True) as database:
            seconds = cpu_seconds(partial(import_paths, database, [history]))
        ratios.append(floor / seconds)
        print(
            f"\nimport jsonl {TRIALS / seconds:,.0f} trials/s, bare executemany {TRIALS / floor:,.0f} "
            f"trials/s, ratio {ratios[-1]:.2f}"
        )
    print(f"median ratio {statistics.median(ratios):.2f}")
    assert len(ratios) == PAIRS


def bare_insert(bare: sqlite3.Connection, rows: dict[str, list[tuple[Any, ...]]]) -> None:
    """The same rows, prepared in advance, in one transaction."""
    with bare:
        for name, content in rows.items():
            if content:
                marks = ", ".join("?" * len(content[0]))
                bare.executemany(f"INSERT INTO {name} VALUES ({marks})", content)


def test_where_the_time_of_an_import_goes(history: Path, tmp_path: Path) -> None:
    """Each stage alone, in batches as the import takes them; the rest is the database."""
    (file,) = input_files(history)
    spent: dict[str, float] = defaultdict(float)

    def timed(stage: str, work: Callable[[], Any]) -> Any:
        start = time.process_time()
        found = work()
        spent[stage] += time.process_time() - start
        return found

    reader, identifier = QuickReader(), Identifier()
    with without_cycle_collection():
        lines = timed("lines of the file", lambda: [line for _, line in file.lines()])
        for start in range(0, TRIALS, 1000):
            some = [lines[place : place + 100] for place in range(start, min(start + 1000, TRIALS), 100)]
            found = timed("JSON to checked records", partial(lambda some: [*map(reader.read, some)], some))
            trials = [trial for part in found for trial in part]
            new = timed("identity, hash, blobs, quantiles", partial(prepare, trials, identifier))
            for columns in (trial_columns, detail_columns, sample_columns):
                timed("columns of rows", partial(columns, new))
        with open_database(f"sqlite:///{tmp_path}/whole.db", migrate=True) as database:
            whole = cpu_seconds(partial(import_paths, database, [history]))
    spent["the database, and the rest"] = whole - sum(spent.values())
    print()
    for stage, seconds in (*spent.items(), ("import", whole)):
        print(f"{stage:35s} {seconds / TRIALS * 1e6:6.1f} us a trial")
    assert whole > 0


def test_import_into_postgresql(history: Path, empty_postgres_url: str) -> None:
    with open_database(empty_postgres_url, migrate=True) as database:
        start = time.perf_counter()
        seconds = cpu_seconds(lambda: import_paths(database, [history]))
        wall = time.perf_counter() - start
    print(
        f"\nimport jsonl into PostgreSQL: {TRIALS / seconds:,.0f} trials/s of CPU here, "
        f"{TRIALS / wall:,.0f} trials/s by the clock"
    )
    assert seconds > 0


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
from db.interchange.exporting import ExportFormat, export
from db.interchange.importing import import_paths
from db.queries.filters import Filters
from db.session import open_database
with open_database(f"sqlite:///{sys.argv[2]}", migrate=True) as database:
    import_paths(database, [Path(sys.argv[1])])
    for name in ExportFormat:
        export(database, Filters(), format=name, output=Path(sys.argv[2] + "." + name))
# ru_maxrss would include the parent that this process was forked from.
print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
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
        peaks[TRIALS // share] = int(output) * 1024
    print("\npeak memory: " + ", ".join(f"{n:,} trials {size / 2**20:.0f} MiB" for n, size in peaks.items()))
    assert peaks[TRIALS] < peaks[TRIALS // 10] * 2
