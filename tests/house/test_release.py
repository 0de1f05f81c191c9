"""What is released works where no checkout is: wheel and sdist, every command, a run, the dashboard."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tarfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import typer

from compilewatch import __version__
from compilewatch.runner.cli.app import app
from tests.house.tracked import ROOT, copy_files, packaged_files, project_files

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_200)]
HISTORY = ROOT / "docs" / "measured" / "cpu-history.jsonl"


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with wheel and sdist, the wheel built from the unpacked sdist as a distributor would."""
    checkout, out = tmp_path_factory.mktemp("checkout"), tmp_path_factory.mktemp("dist")
    copy_files(project_files(), checkout)
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(checkout)]
    subprocess.run(build, check=True, capture_output=True)
    return out


@pytest.fixture(scope="module")
def installed(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The console script of a new environment that has the wheel and its pinned dependencies alone."""
    environment = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True, capture_output=True)
    (wheel,) = dist.glob("*.whl")
    install = [environment / "bin" / "python", "-m", "pip", "install", "--quiet"]
    subprocess.run([*install, "--constraint", ROOT / "constraints.txt", wheel], check=True)
    return environment / "bin" / "compilewatch"


def test_an_empty_folder_is_enough_for_uvx(dist: Path, tmp_path: Path) -> None:
    """As docs/start.md has it; uv takes wheels from where pip does."""
    (wheel,) = dist.glob("*.whl")
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("COMPILEWATCH_", "UV_"))
    }
    places = {
        "UV_FIND_LINKS": os.environ.get("PIP_FIND_LINKS", ""),
        "UV_CONSTRAINT": str(ROOT / "constraints.txt"),
    }
    places |= {"UV_CACHE_DIR": str(tmp_path / "cache"), "UV_INDEX_STRATEGY": "unsafe-best-match"}
    extra = os.environ.get("PIP_EXTRA_INDEX_URL")
    command = [sys.executable, "-m", "uv", "tool", "run", "--python", sys.executable, "--from", str(wheel)]
    (tmp_path / "empty").mkdir()
    done = subprocess.run(
        [*command, "compilewatch", "--help"],
        cwd=tmp_path / "empty",
        env=kept
        | {name: value for name, value in places.items() if value}
        | ({"UV_EXTRA_INDEX_URL": extra} if extra else {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    assert "demo" in done.stdout
    assert list((tmp_path / "empty").iterdir()) == []


def type_in(folder: Path, script: Path, *words: str) -> subprocess.CompletedProcess[str]:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("COMPILEWATCH_", "PYTHON"))
    }
    return subprocess.run(
        [str(script), *words], cwd=folder, env=kept, capture_output=True, text=True, check=False, timeout=600
    )


def every_command(group: Any, words: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if not hasattr(group, "list_commands"):
        return [words]
    context = typer.Context(group)
    found = [words]
    for name in group.list_commands(context):
        found += every_command(group.get_command(context, name), (*words, name))
    return found


def test_version_and_changelog_agree_with_the_file_names(dist: Path) -> None:
    assert {path.name for path in dist.iterdir()} == {
        f"compilewatch-{__version__}.tar.gz",
        f"compilewatch-{__version__}-py3-none-any.whl",
    }
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "## Unreleased" in changelog or f"## {__version__}" in changelog


def test_the_sdist_holds_what_is_built_from(dist: Path) -> None:
    with tarfile.open(next(dist.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {path.as_posix() for path in packaged_files()} <= names
    assert {"pyproject.toml", "README.md", "LICENSE"} <= names


def test_every_command_explains_itself_from_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    commands = every_command(typer.main.get_command(app))
    assert len(commands) > 20
    for words in commands:
        shown = type_in(tmp_path, installed, *words, "--help")
        assert shown.returncode == 0, (words, shown.stderr)
        assert "Usage: compilewatch" in shown.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_history_comes_in_is_judged_and_shown(installed: Path, tmp_path: Path) -> None:
    for words in (
        ("import", str(HISTORY)),
        ("list", "runs"),
        ("history", "-w", "elementwise", "-s", "default"),
        ("export", "--format", "markdown"),
        ("db", "upgrade"),
    ):
        shown = type_in(tmp_path, installed, *words)
        assert shown.returncode == 0, (words, shown.stderr)
        assert "Warning" not in shown.stderr, (words, shown.stderr)
    compared = type_in(tmp_path, installed, "compare", "torch=2.6.0", "torch=2.8.0", "--markdown")
    assert (compared.returncode, "elementwise" in compared.stdout) == (1, True), compared.stderr


def test_it_measures_from_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    words = ["run", "-w", "elementwise", "-s", "eager", "-s", "default", "--trials", "1", "--json"]
    measured = type_in(tmp_path, installed, *words)
    assert measured.returncode == 0, measured.stderr
    assert '"schema": "compilewatch.run/1"' in measured.stdout


@pytest.mark.parametrize("command", ["dashboard", "demo"])
def test_it_answers_from_an_empty_folder(installed: Path, tmp_path: Path, command: str) -> None:
    if command == "dashboard":
        assert type_in(tmp_path, installed, "import", str(HISTORY)).returncode == 0
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([str(installed), command, "--port", str(port)], cwd=tmp_path)
    try:
        for path in ("/healthz", "/", "/api/v1/builds"):
            assert _answer(f"http://127.0.0.1:{port}{path}")
        machines = json.loads(_answer(f"http://127.0.0.1:{port}/api/v1/machines"))["rows"]
        assert {row["device"] for row in machines} == ({"cpu", "cuda"} if command == "demo" else {"cpu"})
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)


def _answer(url: str, patience_s: float = 60) -> bytes:
    deadline = time.monotonic() + patience_s
    while True:
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return bytes(answer.read())
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
