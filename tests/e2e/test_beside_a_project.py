"""What a wheel starts beside a project with names of the standard library's and ours: none of its files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import sysconfig
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dashboard.serving import free_port
from tests.house.tracked import PACKAGE, ROOMS, ROOT, copy_files, project_files

MINE = """import torch
import db, runner
assert (db.OWN, runner.OWN) == ("db", "runner"), (db, runner)
def build():
    return torch.nn.Linear(4, 4), (torch.zeros(2, 4),)
"""
# Whoever imports one of them says so in a file beside it.
TRAP = "from pathlib import Path\nPath(__file__).with_suffix('.ran').touch()\n"
TRAPS = ("dashboard.py", "colorsys.py", "statistics.py", "sqlite3.py", "queue.py", "streamlit.py")
HISTORY = ROOT / "docs" / "measured" / "h100" / "upgrade-2.11-2.13.jsonl"


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts of a fresh environment with the wheel; what it needs is found where this Python has it."""
    source, place = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("place")
    files = {path for path in project_files() if path.parts[0] in (PACKAGE, *ROOMS)}
    files |= {path for path in project_files() if path.match("docs/measured/**/*.jsonl")}
    copy_files({*files, *map(Path, ("pyproject.toml", "README.md", "LICENSE"))}, source)
    build = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(place)], cwd=source, check=True, capture_output=True)
    subprocess.run([sys.executable, "-m", "venv", str(place / "env")], check=True, capture_output=True)
    python = place / "env" / "bin" / "python"
    (wheel,) = place.glob("*.whl")
    install = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    beside = [path for path in sys.path if path.endswith("site-packages")]
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(place / "env")}))
    (packages / "dependencies.pth").write_text("\n".join(beside))
    where = [python, "-P", "-c", "import compilewatch; print(compilewatch.__file__)"]
    assert subprocess.check_output(where, cwd=place, text=True).startswith(str(packages))
    return python.parent


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """A folder with modules of its own; none but `db`, `runner` and `mine` may be imported by anybody."""
    for name in ("db", "runner", "tests"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"OWN = {name!r}\n")
    for name in TRAPS:
        (tmp_path / name).write_text(TRAP)
    (tmp_path / "mine.py").write_text(MINE)
    yield tmp_path
    assert [path.name for path in tmp_path.glob("*.ran")] == []


def typed(project: Path, script: Path, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(script), *words],
        cwd=project,
        env=clean(),
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == code, done.stderr
    return done


def clean() -> dict[str, str]:
    ours = ("COMPILEWATCH_", "PYTHON")
    others = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    # Which are the same program in two processes more.
    return {**others, "COMPILEWATCH_RUN__CANARIES": "false"}


def test_its_own_pytest_runs(scripts: Path, tmp_path: Path) -> None:
    for name in ("db", "runner"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"OWN = {name!r}\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_own.py").write_text(
        "import db, runner\ndef test_own():\n    assert (db.OWN, runner.OWN) == ('db', 'runner')\n"
    )
    done = typed(tmp_path, scripts / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-v")
    assert "1 passed" in done.stdout


def test_a_model_that_imports_its_own_is_measured_and_recorded(scripts: Path, project: Path) -> None:
    words = ("run", "-w", "mine:build", "-s", "eager", "--trials", "1", "--json")
    measured = typed(project, scripts / "compilewatch", *words)
    assert '"schema": "compilewatch.run/1"' in measured.stdout


def test_a_script_that_imports_its_own_is_recorded(scripts: Path, tmp_path: Path) -> None:
    (tmp_path / "runner.py").write_text("OWN = 'runner'\n")
    (tmp_path / "job.py").write_text("import runner\nprint('own', runner.OWN)\n")
    done = typed(tmp_path, scripts / "python", "-m", "compilewatch.record", "--", "job.py")
    assert "own runner" in done.stdout


def test_the_dashboard_and_reports_run_nothing_of_the_folder(scripts: Path, project: Path) -> None:
    typed(project, scripts / "compilewatch", "import", str(HISTORY))
    sides = ("--compare", "torch=2.11.0", "torch=2.13.0")
    assert typed(project, scripts / "compilewatch", "report", "create", *sides).stdout.strip()
    port = free_port()
    command = [str(scripts / "compilewatch"), "dashboard", "--port", str(port)]
    process = subprocess.Popen(command, cwd=project, env=clean())
    try:
        for path in ("/healthz", "/chart/overview/overview-models.svg"):
            assert answered(f"http://127.0.0.1:{port}{path}")
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)


def answered(url: str, patience_s: float = 60) -> bytes:
    deadline = time.monotonic() + patience_s
    while True:
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return bytes(answer.read())
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
