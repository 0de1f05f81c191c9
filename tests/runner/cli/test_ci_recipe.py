"""The recipe of docs/ci.md in a fresh git repository, with processes that are really measured."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.git_repository import Repository
from tests.runner.ci_script import ROOT, gate
from tests.runner.second_environment import make_environment
from tests.runner.terminal import compilewatch, in_this_process

DOCUMENT = (ROOT / "docs" / "ci.md").read_text()
SETTINGS = """
[run]
samples = 8
relative_interval = 0.99
warmup_s = 0
canaries = false

"""
MODEL = """
import torch

from ranking import step

def build():
    return step, (torch.ones(4),)
"""
RANKING = """
import time

def step(x):
    # Asleep, so that a machine busy with other things measures the same.
    time.sleep({seconds})
    return x + 1
"""
IGNORED = "__pycache__/\n.compilewatch/\n*.db*\ntmp/\ngate.md\n"


class Project(Repository):
    """A repository whose workload imports the code under review; its step takes what a commit says."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        super().__init__(root)
        (root / "tmp").mkdir()
        # Locks of the device live there: another run on this host must not keep these waiting.
        patch.setenv("TMPDIR", str(root / "tmp"))
        for name in ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_DIFF_BASE_SHA"):
            patch.delenv(name, raising=False)
        (three_lines, *_) = re.findall(r"```toml\n(.*?)```", DOCUMENT, re.DOTALL)
        (root / "compilewatch.toml").write_text(SETTINGS + three_lines)
        (root / ".gitignore").write_text(IGNORED)
        (root / "my_models.py").write_text(MODEL)

    def step_takes(self, seconds: float, message: str = "change") -> str:
        """A commit after which a step takes so long."""
        return self.commit(message, ranking_py=RANKING.format(seconds=seconds))

    def measure(self, *more: str) -> None:
        arguments = ("run", "--workload", "ranker", "--strategy", "eager", "--trials", "3", *more)
        finished = in_this_process(*arguments, cwd=self.root)
        assert finished.returncode in (0, 1), finished.stderr

    @property
    def title(self) -> str:
        """The first line of the comment."""
        return (self.root / "gate.md").read_text().splitlines()[0]

    @property
    def url(self) -> str:
        return f"sqlite:///{self.root}/compilewatch.db"


@pytest.mark.slow
def test_a_library_made_slower_is_named_and_the_code_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same commit in two environments, between which a library was upgraded: it brings the step."""
    project = Project(tmp_path / "project", monkeypatch)
    builds = {}
    for name, release, seconds in (("before", "1.0.20", 0.01), ("after", "1.0.21", 0.04)):
        source = RANKING.format(seconds=seconds)
        builds[name] = make_environment(tmp_path / name, timm=release, timm_layers=source)
    told = "".join(f'[[build]]\nname = "{name}"\npython = "{python}"\n' for name, python in builds.items())
    with (project.root / "compilewatch.toml").open("a") as configuration:
        configuration.write(told)
    project.commit("start", ranking_py="from timm_layers import step\n")
    for name in builds:
        project.measure("--build", name)
    judged = in_this_process("gate", cwd=project.root)
    assert judged.returncode == 1, judged.stderr
    first = judged.stdout.splitlines()[0]
    assert first.startswith("ranker / eager: latency ")
    assert "timm 1.0.20 -> 1.0.21" in first
    assert "code" not in first


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_recipe_from_an_empty_repository_to_a_change_that_is_confirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unchanged is green, 2.5 times slower red, 12 % slower undecided until both commits are measured by
    turns.
    """
    project = Project(tmp_path / "project", monkeypatch)
    options = {"RUN_OPTIONS": "--workload ranker --strategy eager --trials 3"}
    base = project.step_takes(0.1)
    project.measure()
    project.git("checkout", "--quiet", "-b", "change")

    unchanged = project.commit("same", README_md="a word")
    green = gate(project.root, project.url, **options)
    assert green.returncode == 0, green.stdout + green.stderr
    assert f"{base[:7]} → {unchanged[:7]}: no slowdown shown, changes below" in project.title

    slow = project.step_takes(0.25)
    red = gate(project.root, project.url, **options)
    assert red.returncode == 1, red.stdout + red.stderr
    assert re.search(r"1 slower of 1 case, worst ranker / eager latency 2\.\d+x, code ", project.title)
    assert re.search(rf"code {base[:7]} \S+ {slow[:7]}", project.title)

    project.git("checkout", "--quiet", "-b", "a-tenth", "main")
    tenth = project.step_takes(0.112)
    open_ = gate(project.root, project.url, **options)
    assert open_.returncode == 2, open_.stdout + open_.stderr
    assert "gate --confirm run" in open_.stdout + open_.stderr

    decided = compilewatch("gate", "--confirm", "run", "--json", cwd=project.root, timeout_s=600)
    assert decided.returncode == 1, decided.stderr
    document = json.loads(decided.stdout)
    (confirmation,) = document["confirmations"]
    assert (confirmation["outcome"], confirmation["row"]["design"]) == ("confirmed", "interleaved")
    assert confirmation["row"]["change"] == pytest.approx(0.12, abs=0.03)
    (row,) = (each for each in document["rows"] if each["metric"] == "latency")
    assert row["design"] == "interleaved"
    assert f" · {base[:7]}: " in decided.stderr, "progress lines say which commit"
    assert f" · {tenth[:7]}: " in decided.stderr
    assert document["geomean"]["eager_latency"]["change"] == pytest.approx(row["change"], abs=0.001)
    assert [document[side]["components"]["code"] for side in ("base", "head")] == [base[:7], tenth[:7]]
    assert project.git("status", "--porcelain") == ""
    comment = compilewatch("gate", "--confirm", "run", "--markdown", cwd=project.root, timeout_s=600)
    assert "--confirm run" not in comment.stdout
    assert in_this_process("gate", cwd=project.root).returncode == 1, "what was confirmed stays red"
