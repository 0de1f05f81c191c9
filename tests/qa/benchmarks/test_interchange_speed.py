"""How fast trials of 100 samples come in and go out, in CPU time of one process."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.interchange.exporting import export
from compilewatch.db.interchange.importing import import_paths
from compilewatch.db.queries.selection import Filters
from tests.builders import START, make_history

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900)]

TRIALS = 20_000
COMPILED = ("default", "reduce-overhead", "max-autotune", "default+dynamic")


def cpu_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Database:
    folder = tmp_path_factory.mktemp("history")
    made = make_history(
        workloads=("bert-base", "resnet-50", "mlp", "elementwise"),
        strategies=COMPILED,
        builds=["2.13.0"] * (TRIALS // (3 * 4 * len(COMPILED)) + 1),
        start=START - timedelta(days=TRIALS // 40),
        samples=100,
    )
    path = folder / "history.jsonl"
    path.write_text("".join(trial.to_json() + "\n" for trial in made[:TRIALS]), encoding="utf-8")
    database = open_database(f"sqlite:///{folder}/history.db", migrate=True)
    seconds = cpu_seconds(lambda: import_paths(database, [path]))
    print(f"\nimport jsonl: {TRIALS / seconds:,.0f} trials/s ({seconds:.2f} s CPU for {TRIALS:,} trials)")
    return database


@pytest.mark.parametrize("name", ["jsonl", "csv", "parquet", "oss-v3", "markdown"])
def test_export(filled: Database, tmp_path: Path, name: str) -> None:
    path = tmp_path / "out"
    seconds = cpu_seconds(lambda: export(filled, Filters(), format=name, output=path))
    size = path.stat().st_size
    print(f"\nexport {name}: {TRIALS / seconds:,.0f} trials/s, {size / TRIALS:,.0f} bytes/trial")
    assert size > 0
