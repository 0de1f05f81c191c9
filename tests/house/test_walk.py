"""A walk through README and docs: every command is typed in a fresh clone, or is excused for a reason."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house import walk
from tests.house.shell_blocks import commands
from tests.house.tracked import ROOT, project_files
from tests.postgres import Unavailable, own_server

# The reference is written from the command line itself; its blocks are usage lines.
PAGES = {
    path: commands((ROOT / path).read_text(encoding="utf-8"))
    for path in project_files()
    if path.suffix == ".md" and (path.parts[0] == "docs" or path.name == "README.md")
    if path != Path("docs/commands.md")
}
WALKED = {
    path: [typed for typed in found if walk.excuse(typed.line) is None] for path, found in PAGES.items()
}


def test_every_command_is_typed_or_excused() -> None:
    neither = {
        f"{path}: {typed.line}"
        for path, found in WALKED.items()
        for typed in found
        if not walk.is_typed(typed)
    }
    assert neither == set()
    assert sum(len(found) for found in WALKED.values()) > 35


def test_what_is_printed_is_compared() -> None:
    assert walk.same("a  1.5 x\n", "a 1.5 x", exactly=True)
    assert not walk.same("a 1.5 x", "a 1.6 x", exactly=True)
    assert walk.same("a 1.5 x", "a 1,612.3 x", exactly=False)
    assert not walk.same("a 1.5 x", "b 1.5 x", exactly=False)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh clone, installed as the README says."""
    folder = tmp_path_factory.mktemp("walk") / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
    kept = {name: value for name, value in os.environ.items() if re.match("PATH$|HOME$|PIP_", name)}
    # The second one adds the fleet; `make up` then finds the first.
    for extras in ([], ["EXTRAS=postgres,fleet"]):
        subprocess.run(["make", "install", *extras], cwd=folder, env=kept, check=True, timeout=1_200)
    return folder


@pytest.fixture
def team_database() -> Iterator[str | None]:
    """The URL of an empty PostgreSQL, None where there can be none."""
    try:
        with own_server() as server:
            yield server.url
    except Unavailable:
        yield None


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("page", [path for path, found in WALKED.items() if found], ids=str)
def test_a_page_is_true(page: Path, clone: Path, team_database: str | None, tmp_path: Path) -> None:
    steps = walk.Walk(clone, tmp_path, team_database)
    steps.prepare((ROOT / page).read_text(encoding="utf-8"))
    if team_database is None and any(walk.TEAM_DATABASE.search(typed.line) for typed in WALKED[page]):
        pytest.skip("the page needs PostgreSQL")
    wrong = [told for typed in WALKED[page] if (told := steps.type(typed)) is not None]
    assert wrong == []
