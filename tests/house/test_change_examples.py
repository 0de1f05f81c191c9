"""The diffs of docs/change apply to the code as it is, are short, and pass their own tests."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.tracked import PACKAGE, ROOMS, ROOT, copy_files, project_files

DIFFS = [path for path in project_files() if path.parent == Path("docs/change") and path.suffix == ".diff"]
CHANGED_LINES = 100


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)


def test_every_change_that_the_page_promises_is_there() -> None:
    page = (ROOT / "docs/change/index.md").read_text(encoding="utf-8")
    assert {path.name for path in DIFFS} == set(re.findall(r"\(([a-z-]+\.diff)\)", page))


def touched(diff: Path) -> list[str]:
    return re.findall(r"^\+\+\+ b/(.+\.py)$", (ROOT / diff).read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("diff", DIFFS, ids=lambda path: path.stem)
def test_a_change_is_short_and_brings_a_test(diff: Path) -> None:
    changed = re.findall(
        r"^(?:\+(?!\+\+ )|-(?!-- ))", (ROOT / diff).read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(changed) < CHANGED_LINES
    assert any(Path(path).name.startswith("test_") for path in touched(diff))


@pytest.mark.parametrize("diff", DIFFS, ids=lambda path: path.stem)
def test_a_change_applies_to_the_code_of_today(diff: Path) -> None:
    tried = run(ROOT, "git", "apply", "--check", str(ROOT / diff))
    assert tried.returncode == 0, tried.stderr


@pytest.mark.slow
def test_the_changes_apply_and_pass_their_tests(tmp_path: Path) -> None:
    """All in one copy of the checkout: no two change the same file."""
    files = [path for diff in DIFFS for path in touched(diff)]
    assert len(files) == len(set(files))
    needed = {*ROOMS, PACKAGE, "tests", "pyproject.toml"}
    copy_files((path for path in project_files() if path.parts[0] in needed), tmp_path)
    applied = run(tmp_path, "git", "apply", *(str(ROOT / diff) for diff in DIFFS))
    assert applied.returncode == 0, applied.stderr
    checked = run(tmp_path, sys.executable, "-m", "ruff", "check", *files)
    assert checked.returncode == 0, checked.stdout
    tests = [path for path in files if Path(path).name.startswith("test_")]
    passed = run(tmp_path, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)
    assert passed.returncode == 0, passed.stdout + passed.stderr
