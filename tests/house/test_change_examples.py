"""The diffs of docs/change apply to the code as it is, are short, and pass their own tests."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.tracked import ROOT, project_files

DIFFS = [path for path in project_files() if path.parent == Path("docs/change") and path.suffix == ".diff"]
CHANGED_LINES = 100


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkout's Python files, for every diff in turn."""
    folder = tmp_path_factory.mktemp("checkout")
    for path in project_files():
        if path.parts[0] in ("db", "runner", "dashboard", "tests") or path.name == "pyproject.toml":
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, folder / path)
    return folder


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)


def test_every_change_that_the_page_promises_is_there() -> None:
    page = (ROOT / "docs/change/index.md").read_text(encoding="utf-8")
    assert {path.name for path in DIFFS} == set(re.findall(r"\(([a-z-]+\.diff)\)", page))


@pytest.mark.parametrize("diff", DIFFS, ids=lambda path: path.stem)
def test_a_change_applies_and_passes_its_tests(diff: Path, copy: Path) -> None:
    text = (ROOT / diff).read_text(encoding="utf-8")
    changed = re.findall(r"^(?:\+(?!\+\+ )|-(?!-- ))", text, re.MULTILINE)
    assert len(changed) < CHANGED_LINES
    touched = re.findall(r"^\+\+\+ b/(.+\.py)$", text, re.MULTILINE)
    tests = [path for path in touched if Path(path).name.startswith("test_")]
    assert tests
    applied = run(copy, "git", "apply", str(ROOT / diff))
    assert applied.returncode == 0, applied.stderr
    try:
        checked = run(copy, sys.executable, "-m", "ruff", "check", *touched)
        assert checked.returncode == 0, checked.stdout
        passed = run(copy, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)
        assert passed.returncode == 0, passed.stdout + passed.stderr
    finally:
        run(copy, "git", "apply", "--reverse", str(ROOT / diff))
