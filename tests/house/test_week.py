"""The week of a team: every block of README and docs, typed in a fresh clone, from the first install to CI.

`make week` prints how long each walk took: until its first value, the end of its first line, until the end of
all, and of processors, which a busy machine lengthens less.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.house import ci_jobs, walk
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


WALKS = {
    "README.md": "installation",
    "docs/workloads.md": "own model",
    "docs/upgrade-day.md": "upgrade",
    "docs/schedule.md": "service",
    "docs/deployment.md": "team",
}
"""The walks of the week by the page that has their blocks; CI has its own recipes."""


Took = dict[str, tuple[float, float, float]]


@pytest.fixture(scope="module")
def took() -> Iterator[Took]:
    """Walk -> seconds until its first value, until its end, and of processors; printed in the end."""
    seconds: Took = {}
    yield seconds
    lines = [f"{name:<14}" + "".join(f"{each:>9.1f}" for each in mine) for name, mine in seconds.items()]
    sys.__stdout__.write("\n".join(["", f"{'walk':<14} first, s   all, s   CPU, s", *lines, ""]))


def cpu_s() -> float:
    """Of all processes that this one waited for."""
    times = os.times()
    return times.children_user + times.children_system


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory, took: Took) -> Path:
    """A fresh clone, installed as the README says."""
    folder = tmp_path_factory.mktemp("walk") / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
    kept = {name: value for name, value in os.environ.items() if re.match("PATH$|HOME$|PIP_", name)}
    began, cpu = time.monotonic(), cpu_s()
    # The second one adds the fleet; `make up` then finds the first.
    for extras in ([], ["EXTRAS=postgres,fleet"]):
        subprocess.run(["make", "install", *extras], cwd=folder, env=kept, check=True, timeout=1_200)
        took.setdefault("make install", (*(time.monotonic() - began,) * 2, cpu_s() - cpu))
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
def test_a_page_is_true(
    page: Path,
    clone: Path,
    team_database: str | None,
    tmp_path: Path,
    took: Took,
) -> None:
    steps = walk.Walk(clone, tmp_path, team_database)
    steps.prepare((ROOT / page).read_text(encoding="utf-8"))
    if team_database is None and any(walk.TEAM_DATABASE.search(typed.line) for typed in WALKED[page]):
        pytest.skip("the page needs PostgreSQL")
    cpu = cpu_s()
    wrong = [told for typed in WALKED[page] if (told := steps.type(typed)) is not None]
    if steps.seconds:
        took[WALKS.get(str(page), page.stem)] = steps.seconds[0], sum(steps.seconds), cpu_s() - cpu
    assert wrong == []


@pytest.fixture
def project(tmp_path: Path, clone: Path) -> ci_jobs.Project:
    return ci_jobs.Project(tmp_path, clone / ".venv" / "bin")


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize(
    "recipe", [ci_jobs.github, ci_jobs.gitlab, ci_jobs.any_shell], ids=lambda each: each.__name__
)
def test_ci_comes_from_an_empty_repository_to_a_red_pull_request(
    recipe: Callable[..., tuple[int, str]], project: ci_jobs.Project, took: Took
) -> None:
    began, cpu = time.monotonic(), cpu_s()
    with ci_jobs.forge() as at:
        if recipe is ci_jobs.any_shell:
            code, shown = recipe(project, at, head=project.slower())
        else:
            code, shown = recipe(project, at, is_pull_request=False)
            # The first run of a history has nothing to be judged against; GitLab's recipe lets it pass.
            assert code == (2 if recipe is ci_jobs.github else 0), shown
            project.slower()
            code, shown = recipe(project, at, is_pull_request=True)
    took[f"CI, {recipe.__name__}"] = (*(time.monotonic() - began,) * 2, cpu_s() - cpu)
    assert code == 1, shown
    (comment,) = at.comments
    title = comment.splitlines()[0]
    sys.__stdout__.write(f"\n{title}\n")
    assert re.search(r"1 slower of 1 case, worst ranker / eager latency 2\.\d+x, code ", title)
    assert project.base[:7] in title
