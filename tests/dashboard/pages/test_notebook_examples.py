"""The examples for notebooks run as they stand there, against a served dashboard and its database."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from compilewatch.db.engine.session import open_database
from compilewatch.db.interchange.exporting import export
from compilewatch.db.interchange.importing import import_paths
from compilewatch.db.queries.selection import Filters
from tests.dashboard.serving import served

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "notebook.md").read_text()
EXAMPLE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OVER_HTTP, FROM_PARQUET, WITH_PACKAGE = EXAMPLE.findall(PAGE)


@pytest.fixture(scope="module")
def demo_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What `compilewatch demo` serves of the CPU: four workloads over six releases of torch."""
    url = f"sqlite:///{tmp_path_factory.mktemp('demo')}/demo.db"
    with open_database(url, migrate=True) as database:
        import_paths(database, [ROOT / "docs/measured/cpu-history.jsonl"])
    return url


def run(code: str, folder: Path, **variables: str) -> str:
    (folder / "cell.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "-W", "error", "cell.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def test_over_http(demo_url: str, tmp_path: Path) -> None:
    assert len(OVER_HTTP.strip().splitlines()) <= 40
    with served(demo_url, tmp_path / "log") as running:
        printed = run(OVER_HTTP, tmp_path, COMPILEWATCH_API=running.origin)
    # The median of the five trials' medians, read off the recorded file: 1.560295 ms.
    assert re.search(r"^ +encoder +default +1\.56\d*$", printed, re.MULTILINE)
    assert re.search(r"matched|compared|cases", printed)


def test_from_a_parquet_file(demo_url: str, tmp_path: Path) -> None:
    with open_database(demo_url, read_only=True) as database:
        export(database, Filters(), format="parquet", output=tmp_path / "history.parquet")
    printed = run(FROM_PARQUET, tmp_path)
    assert re.search(r"^default +1\.\d+$", printed, re.MULTILINE)


def test_with_the_package(demo_url: str, tmp_path: Path) -> None:
    printed = run(WITH_PACKAGE, tmp_path, COMPILEWATCH_DATABASE_URL=demo_url)
    assert "break_even" in printed
    assert re.search(r"2\.12\.1 +default", printed)


@pytest.mark.parametrize("name", re.findall(r"^\| `(compilewatch\.db\.[\w.]+)\(", PAGE, re.MULTILINE))
def test_every_name_of_the_read_api_is_there(name: str) -> None:
    module, _, function = name.rpartition(".")
    assert callable(getattr(import_module(module), function))
