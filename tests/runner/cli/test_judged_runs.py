"""Which run is judged against which: real repositories and clones, one database for all of them.

Trials are stored as runners would; `compilewatch run` is typed for real in the last test alone.
"""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from compilewatch.db.engine.session import open_database
from compilewatch.db.judge.policy import Policy
from compilewatch.db.queries.run_parts import newest_two
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.requests import RunStatus
from compilewatch.db.records.trial import Code, Trial
from compilewatch.db.service.regressions import regressions_frame
from compilewatch.db.store.trials import end_run, save_trials, start_run
from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.process.saved_progress import remember_runs
from compilewatch.runner.regressions.confirmation import fresh_comparisons
from tests.builders import MS, START, make_history, make_machine, make_timing
from tests.git_repository import Repository
from tests.runner.terminal import compilewatch, in_this_process

VARIABLES = (
    "GITHUB_BASE_REF",
    "GITHUB_HEAD_REF",
    "GITHUB_REF",
    "GITHUB_REF_NAME",
    "GITHUB_REPOSITORY",
    "CI_MERGE_REQUEST_DIFF_BASE_SHA",
    "CI_MERGE_REQUEST_TARGET_BRANCH_NAME",
)
HERE, ELSEWHERE = "gpu-box-3", "gpu-box-9"


@dataclass
class Fleet:
    """Runners of one repository with one database, and the `compilewatch` of the one this process is on."""

    repository: Repository
    url: str
    patch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]
    said: str = ""
    stored: list[str] = field(default_factory=list)

    def measure(
        self,
        commit: str | None,
        factor: float = 1.0,
        *,
        machine: str = HERE,
        after: timedelta | None = None,
        status: RunStatus | None = RunStatus.FINISHED,
        is_dirty: bool = False,
        torch: str = "2.13.0",
        trials: int = 6,
    ) -> str:
        """Store a run of `commit` on `machine`; it begins `after` the one before began."""
        at = self._next(after)
        run_id = f"run-{len(self.stored):04d}"
        device = {"device_name": "NVIDIA L4"} if machine == ELSEWHERE else {}
        history = make_history(
            workloads=("mlp", "bert-base"),
            builds=(torch,),
            machines=(make_machine(name=machine, **device),),
            latency_ns=lambda _workload, strategy, _run: 12 * MS if strategy == "eager" else 8 * MS * factor,
            trials_per_case=trials,
            between_trials=0.003,
            start=at,
            seed=len(self.stored),
        )
        self.stored.append(run_id)
        with open_database(self.url, migrate=True) as database:
            if status is not None:
                start_run(
                    database,
                    run_id=run_id,
                    suite=None,
                    label=None,
                    started_at=at,
                    planned_trials=len(history),
                )
            save_trials(database, [_at(trial, run_id, commit, is_dirty=is_dirty) for trial in history])
            if status in (RunStatus.FINISHED, RunStatus.CANCELLED):
                end_run(database, run_id, ended_at=at + timedelta(hours=1), status=status)
        return run_id

    def _next(self, after: timedelta | None) -> datetime:
        self._at = getattr(self, "_at", START) + (timedelta(hours=6) if after is None else after)
        return self._at

    def job(self, root: Path, **variables: str) -> None:
        """From now on commands are typed in `root` with these variables of a CI."""
        for name in VARIABLES:
            self.patch.delenv(name, raising=False)
        for name, value in variables.items():
            self.patch.setenv(name, value)
        self.patch.chdir(root)

    def made(self, *run_ids: str) -> None:
        """`compilewatch run` made these here."""
        remember_runs(Settings(), run_ids)

    def gate(self, *arguments: str) -> int:
        self.capsys.readouterr()
        code = exit_code_of(app, ["gate", *arguments, "--db", self.url])
        captured = self.capsys.readouterr()
        self.said = captured.out + captured.err
        return code

    def document(self, *arguments: str) -> dict[str, Any]:
        self.capsys.readouterr()
        exit_code_of(app, ["gate", "--json", *arguments, "--db", self.url])
        found: dict[str, Any] = json.loads(self.capsys.readouterr().out)
        return found

    @property
    def sides(self) -> tuple[str, str]:
        """The runs that are judged."""
        document = self.document()
        (base,), (head,) = (document[side]["run_ids"] for side in ("base", "head"))
        return base, head

    @property
    def recorded(self) -> list[str]:
        with open_database(self.url) as database:
            return [str(each) for each in regressions_frame(database)["regression_id"]]

    def pull_request(self, number: int, *, start: str = "main", name: str | None = None) -> str:
        """A branch with one commit, checked out."""
        branch = name or f"change-{number}"
        self.repository.git("checkout", "--quiet", "-B", branch, start)
        return self.repository.commit(f"change {number}")

    def merge_of(self, commit: str) -> str:
        """What a CI checks out for a pull request: its merge into main, which no branch has."""
        self.repository.git("checkout", "--quiet", "--detach", "main")
        self.repository.git("merge", "--quiet", "--no-ff", "--no-edit", commit)
        return self.repository.git("rev-parse", "HEAD")

    def in_pull_request(self, number: int) -> None:
        self.job(
            self.repository.root,
            GITHUB_REF=f"refs/pull/{number}/merge",
            GITHUB_BASE_REF="main",
            GITHUB_HEAD_REF=f"change-{number}",
            GITHUB_REPOSITORY="team/models",
        )


NOWHERE = "nowhere"
"""In the place of a commit: a copy of the project without its repository."""


def _at(trial: Trial, run_id: str, commit: str | None, *, is_dirty: bool) -> Trial:
    code = None
    if commit != NOWHERE:
        code = Code(commit=commit, dirty=is_dirty, source_hash=(commit or "0" * 16)[:16])
    timing = make_timing("host", headline="samples")
    fields = {"code": code, "timing": timing, "run_id": run_id}
    # Short enough that two jobs on one device take turns.
    fields["ended_at"] = trial.started_at + timedelta(seconds=20)
    return Trial(**trial.model_dump() | fields)


@pytest.fixture
def fleet(
    tmp_path: Path, sqlite_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Fleet:
    monkeypatch.setattr("socket.gethostname", lambda: HERE)
    found = Fleet(Repository(tmp_path / "project"), sqlite_url, monkeypatch, capsys)
    found.repository.commit("start", **{".gitignore": ".compilewatch/\n"})
    found.job(found.repository.root)
    return found


def test_two_pull_requests_at_once_on_one_machine_are_each_judged_by_main(fleet: Fleet) -> None:
    main = fleet.measure(fleet.repository.commit("main"))
    slow = fleet.pull_request(1)
    first = fleet.measure(slow, 1.4)
    quick = fleet.pull_request(2)
    second = fleet.measure(quick, 1.2, after=timedelta(seconds=12))
    for commit, run_id, number in ((slow, first, 1), (quick, second, 2)):
        fleet.repository.git("checkout", "--quiet", commit)
        fleet.in_pull_request(number)
        assert fleet.sides == (main, run_id)
        assert fleet.gate() == 1, fleet.said


def test_a_nightly_of_another_machine_is_neither_head_nor_base(fleet: Fleet) -> None:
    main = fleet.measure(fleet.repository.commit("main"))
    head = fleet.pull_request(1)
    mine = fleet.measure(head, 2.0)
    fleet.measure(head, 1.0, machine=ELSEWHERE)
    fleet.measure(head, 1.0, machine=ELSEWHERE)
    assert fleet.gate() == 1, fleet.said
    assert fleet.sides == (main, mine)
    fleet.patch.setattr("socket.gethostname", lambda: "laptop")
    recorded = fleet.recorded
    assert fleet.gate() == 2
    assert "laptop" in fleet.said
    assert HERE in fleet.said, "which machines there are"
    assert fleet.gate("--machine", HERE) == 1
    assert fleet.recorded == recorded


def test_another_machine_that_is_named_is_judged_by_its_own_runs(fleet: Fleet) -> None:
    main = fleet.repository.commit("main")
    fleet.measure(main)
    head = fleet.pull_request(1)
    fleet.measure(head)
    theirs = fleet.measure(head, 1.4, machine=ELSEWHERE)
    recorded = fleet.recorded
    assert fleet.gate("--machine", ELSEWHERE) == 2, "main was not measured there"
    assert f"git checkout {main[:7]}" in fleet.said
    assert fleet.recorded == recorded
    base = fleet.measure(main, machine=ELSEWHERE)
    assert fleet.gate("--machine", ELSEWHERE) == 1, fleet.said
    document = fleet.document("--machine", ELSEWHERE)
    assert [document[side]["run_ids"] for side in ("base", "head")] == [[base], [theirs]]
    assert fleet.gate() == 0, "here nothing is slower"
    assert fleet.gate("--machine", "gpu-box-8") == 2
    assert HERE in fleet.said


def test_a_run_of_an_unknown_commit_is_neither_head_nor_base(fleet: Fleet) -> None:
    main = fleet.measure(fleet.repository.commit("main"))
    fleet.measure(None, 1.4)
    head = fleet.pull_request(1)
    mine = fleet.measure(head, 1.4)
    unknown = fleet.measure(None, 1.0)
    assert fleet.sides == (main, mine)
    recorded = fleet.recorded
    assert fleet.gate("--run", unknown) == 2
    assert fleet.recorded == recorded


def test_a_run_of_a_copy_without_its_repository_is_no_side_and_decides_nothing(
    fleet: Fleet, tmp_path: Path
) -> None:
    main = fleet.measure(fleet.repository.commit("main"))
    head = fleet.measure(fleet.pull_request(1), 1.4)
    assert fleet.gate() == 1
    recorded = fleet.recorded
    (tmp_path / "copy").mkdir()
    fleet.job(tmp_path / "copy")
    copied = fleet.measure(NOWHERE, 1.0)
    assert fleet.gate("--run", copied) == 2
    assert "is in no git work tree" in fleet.said
    assert fleet.gate("--run", copied, "--since", main) == 0, "named, it is one"
    with open_database(fleet.url) as database:
        assert [*fresh_comparisons(database, [copied], Policy())] == [], "no fresh trials of a commit"
    assert fleet.recorded == recorded
    fleet.job(fleet.repository.root)
    assert fleet.sides == (main, head)


def test_what_nobody_wrote_meets_the_run_before_that_nobody_wrote(fleet: Fleet) -> None:
    fleet.measure(fleet.repository.commit("main"))
    of_nobody = fleet.measure(NOWHERE)
    fleet.measure(fleet.repository.commit("again"))
    alone = make_history(workloads=("resnet-50",), builds=("2.12.0",), start=START + timedelta(days=30))
    fields = {"suite": None, "run_id": "of-resnet"}
    with open_database(fleet.url) as database:
        save_trials(
            database,
            [each.model_copy(update=fields | {"trial_id": f"of-{each.trial_id}"}) for each in alone],
        )
        _, before = newest_two(database, "of-resnet", measured=True)
    assert before is not None
    assert before.run_ids == (of_nobody,)


def test_a_push_to_main_is_judged_by_the_commit_before_it_on_main(fleet: Fleet) -> None:
    before = fleet.measure(fleet.repository.commit("main"))
    fleet.measure(fleet.pull_request(1), 1.4)
    fleet.repository.git("checkout", "--quiet", "main")
    squashed = fleet.repository.commit("change 1 (#1)")
    pushed = fleet.measure(squashed, 1.4)
    assert fleet.gate() == 1, fleet.said
    assert fleet.sides == (before, pushed)


def test_of_a_merge_the_merged_branch_is_no_base(fleet: Fleet) -> None:
    before = fleet.measure(fleet.repository.commit("main"))
    fleet.measure(fleet.pull_request(1), 1.4)
    fleet.repository.git("checkout", "--quiet", "main")
    fleet.repository.git("merge", "--quiet", "--no-ff", "--no-edit", "change-1")
    pushed = fleet.measure(fleet.repository.git("rev-parse", "HEAD"), 1.4)
    assert fleet.sides == (before, pushed)
    fleet.measure(fleet.repository.git("rev-parse", "HEAD"), 1.4)
    assert fleet.sides[0] == before, "measured again, it is no base of itself"


def test_a_clone_of_depth_one_is_told_what_to_fetch(fleet: Fleet, tmp_path: Path) -> None:
    fleet.measure(fleet.repository.commit("main"))
    head = fleet.pull_request(1)
    fleet.measure(head, 1.4)
    clone = tmp_path / "clone"
    source = f"file://{fleet.repository.root}"
    subprocess.run(
        ["git", "clone", "--quiet", "--depth=1", "--branch=change-1", source, str(clone)], check=True
    )
    for variables in ({}, {"GITHUB_BASE_REF": "main", "GITHUB_REF": "refs/pull/1/merge"}):
        fleet.job(clone, **variables)
        assert fleet.gate() == 2
        assert "fetch-depth: 0" in fleet.said
    assert fleet.recorded == []


def test_where_main_was_never_measured_nothing_is_compared(fleet: Fleet) -> None:
    main = fleet.repository.commit("main")
    fleet.measure(fleet.pull_request(1), 1.0)
    fleet.measure(fleet.pull_request(2), 1.4)
    assert fleet.gate() == 2
    assert f"git checkout {main[:7]}" in fleet.said
    assert fleet.recorded == []


def test_without_any_history_the_next_step_is_to_measure(fleet: Fleet) -> None:
    fleet.measure(fleet.repository.commit("first"))
    fleet.repository.commit("second")
    assert fleet.gate() == 2
    assert "compilewatch run" in fleet.said


@pytest.mark.parametrize("status", [RunStatus.CANCELLED, RunStatus.RUNNING])
def test_a_run_that_was_cut_short_is_neither_head_nor_base(fleet: Fleet, status: RunStatus) -> None:
    whole = fleet.measure(fleet.repository.commit("main"))
    fleet.measure(fleet.repository.commit("main, cancelled"), 1.4, status=status)
    head = fleet.pull_request(1)
    mine = fleet.measure(head, 1.4)
    cut = fleet.measure(head, 1.0, status=status)
    assert fleet.sides == (whole, mine)
    assert fleet.gate("--run", cut) == 2
    assert "Measure again" in fleet.said


def test_the_run_that_this_checkout_made_last_is_judged(fleet: Fleet) -> None:
    fleet.measure(fleet.repository.commit("main"))
    head = fleet.pull_request(1)
    mine = fleet.measure(head, 1.4)
    fleet.made(mine)
    fleet.measure(head, 1.0)
    assert fleet.sides[1] == mine
    fleet.made("never-stored")
    assert fleet.gate() == 2
    assert "never-stored has no trial in this database" in fleet.said
    fleet.made(mine)
    next_one = fleet.repository.commit("another")
    assert fleet.gate() == 2, "what was made of another commit is not found"
    assert next_one[:7] in fleet.said


def test_changes_that_are_not_committed_are_judged_by_the_run_of_just_these(fleet: Fleet) -> None:
    commit = fleet.repository.commit("main", model_py="1")
    base = fleet.measure(commit)
    (fleet.repository.root / "model.py").write_text("2")
    mine = fleet.measure(commit, 1.4, is_dirty=True)
    fleet.made(mine)
    assert fleet.sides == (base, mine)
    (fleet.repository.root / "model.py").write_text("3")
    assert fleet.gate() == 2
    assert "as it is changed here" in fleet.said


def test_of_one_commit_the_run_with_another_build_is_the_base(fleet: Fleet) -> None:
    fleet.measure(fleet.repository.commit("before"))
    commit = fleet.repository.commit("main")
    old = fleet.measure(commit, torch="2.12.0")
    fleet.measure(commit, torch="2.13.0")
    new = fleet.measure(commit, 1.4, torch="2.13.0")
    assert fleet.sides == (old, new)


def accept(fleet: Fleet) -> None:
    for each in fleet.recorded:
        assert exit_code_of(app, ["triage", each, "--state", "expected", "--db", fleet.url]) == 0


def test_what_was_accepted_on_a_pull_request_holds_after_a_rebase_up_to_its_size(fleet: Fleet) -> None:
    fleet.measure(fleet.repository.commit("main"))
    merge = fleet.merge_of(fleet.pull_request(1))
    fleet.measure(merge, 1.4)
    fleet.in_pull_request(1)
    assert fleet.gate() == 1
    accept(fleet)
    assert fleet.gate() == 0
    known = fleet.recorded
    fleet.repository.git("checkout", "--quiet", "main")
    fleet.measure(fleet.repository.commit("main moved"))
    fleet.repository.git("checkout", "--quiet", "change-1")
    fleet.repository.git("rebase", "--quiet", "main")
    rebased = fleet.repository.git("rev-parse", "HEAD")
    fleet.measure(fleet.merge_of(rebased), 1.4)
    assert fleet.gate() == 0, fleet.said
    assert "Accepted: " in fleet.said
    assert fleet.recorded == known, "it is not recorded once more"
    fleet.in_pull_request(2)
    assert fleet.gate() == 1, "nobody accepted it on another pull request"
    fleet.in_pull_request(1)
    fleet.repository.git("checkout", "--quiet", "change-1")
    worse = fleet.merge_of(fleet.repository.commit("slower still"))
    fleet.measure(worse, 2.5)
    assert fleet.gate() == 1, "more than was accepted"


def test_what_was_accepted_on_a_branch_of_a_clone_holds_for_its_next_commit(fleet: Fleet) -> None:
    fleet.measure(fleet.repository.commit("main"))
    fleet.measure(fleet.pull_request(1), 1.4)
    assert fleet.gate() == 1
    accept(fleet)
    fleet.measure(fleet.repository.commit("more"), 1.4)
    assert fleet.gate() == 0, fleet.said


def test_what_was_accepted_on_a_branch_is_not_accepted_of_another_that_is_named_there(fleet: Fleet) -> None:
    fleet.measure(fleet.repository.commit("main"))
    fleet.measure(fleet.pull_request(2), 1.4)
    other = fleet.stored[-1]
    fleet.measure(fleet.pull_request(1), 1.4)
    assert fleet.gate() == 1
    accept(fleet)
    assert fleet.gate() == 0, fleet.said
    assert fleet.gate("--head", "change-2") == 1, fleet.said
    assert fleet.gate("--run", other) == 1, fleet.said


def test_the_comment_of_a_named_commit_names_that_commit(fleet: Fleet) -> None:
    fleet.measure(fleet.repository.commit("main"))
    fleet.measure(other := fleet.merge_of(fleet.pull_request(2)), 1.4)
    fleet.measure(fleet.merge_of(fleet.pull_request(1)))
    fleet.in_pull_request(1)
    assert fleet.gate("--head", other) == 1
    assert f"→ {other[:7]}: " in fleet.said


def test_what_was_accepted_on_main_is_accepted_of_that_commit_alone(fleet: Fleet) -> None:
    fleet.measure(fleet.repository.commit("1"))
    fleet.measure(fleet.repository.commit("2"), 1.4)
    assert fleet.gate() == 1
    accept(fleet)
    assert fleet.gate() == 0
    fleet.measure(fleet.repository.commit("3"), 2.0)
    assert fleet.gate() == 1, fleet.said


def test_what_was_measured_by_turns_is_the_row_and_no_step_to_take(fleet: Fleet) -> None:
    """The two runs of `--confirm run`, stored as it stores them, show less than the two separate ones."""
    base, head = fleet.repository.commit("main"), fleet.pull_request(1)
    fleet.measure(base)
    mine = fleet.measure(head, 1.3)
    fleet.made(mine)
    apart = fleet.document()
    fleet.measure(base, 1.0)
    fleet.measure(head, 1.1, after=timedelta(seconds=30))
    by_turns = fleet.document()
    assert by_turns["head"]["run_ids"] == apart["head"]["run_ids"] == [mine]
    for document, change, design in ((apart, 0.3, "separate runs"), (by_turns, 0.1, "interleaved")):
        (row,) = (
            each
            for each in document["rows"]
            if (each["workload"], each["strategy"], each["metric"]) == ("mlp", "default", "latency")
        )
        assert row["change"] == pytest.approx(change, abs=0.01)
        assert row["design"].replace("_", " ") == design
    assert fleet.gate("--markdown") == 1
    assert "--confirm run" not in fleet.said


def test_the_comment_names_the_commit_that_people_know(fleet: Fleet) -> None:
    base = fleet.repository.commit("main")
    fleet.measure(base)
    known = fleet.pull_request(1)
    merge = fleet.merge_of(known)
    fleet.measure(merge, 1.4)
    fleet.in_pull_request(1)
    assert fleet.gate("--markdown") == 1
    title = fleet.said.splitlines()[0]
    assert f"{base[:7]} → {known[:7]}: 2 slower of 4 cases, worst " in title
    assert merge[:7] not in fleet.said
    assert fleet.gate() == 1
    assert f"Verdict: {base[:7]} → {known[:7]}: 2 slower of 4 cases, " in fleet.said
    assert fleet.document()["head"]["components"]["code"] == merge[:7], "the document has what was measured"


def test_a_verdict_is_said_where_nothing_is_slower_too(fleet: Fleet) -> None:
    base, head = fleet.repository.commit("main"), fleet.pull_request(1)
    runs = [fleet.measure(base), fleet.measure(head)]
    assert fleet.gate() == 0
    assert f"Verdict: {base[:7]} → {head[:7]}: no slowdown shown, changes below " in fleet.said
    assert not any(run in fleet.said for run in runs)
    assert fleet.gate("--markdown") == 0
    assert fleet.said.startswith(f"### compilewatch: {base[:7]} → {head[:7]}: no slowdown shown, ")
    assert "/docs/reference/policy.md" in fleet.said
    assert "minimum\\_trials" not in fleet.said


MODEL = "import torch\n\nfrom ranking import step\n\n\ndef build():\n    return step, (torch.ones(4),)\n"
RANKING = "import time\n\n\ndef step(x):\n    time.sleep({seconds})\n    return x + 1\n"
SETTINGS = """
[run]
samples = 8
relative_interval = 0.99
warmup_s = 0
canaries = false

[[workload]]
name = "ranker"
target = "my_models:build"
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_what_is_really_measured_is_found_judged_and_dirty_with_an_untracked_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real processes: `gate` finds what `run` left, and an untracked module changes what is measured."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    repository = Repository(tmp_path / "project")

    def typed(*arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
        return in_this_process(*arguments, cwd=repository.root, **extra)

    def measure(**extra: str) -> str:
        arguments = ("run", "-w", "ranker", "-s", "eager", "--trials", "3")
        done = compilewatch(*arguments, cwd=repository.root, **extra)
        assert done.returncode in (0, 1), done.stderr
        return done.stderr

    def newest_code() -> str | None:
        with open_database(f"sqlite:///{repository.root}/compilewatch.db") as database:
            return trials_frame(database, Filters())["code"].astype(object).iloc[-1]

    ignored = "__pycache__/\n.compilewatch/\n*.db*\n"
    first = repository.commit(
        "a model", my_models_py=MODEL, **{"compilewatch.toml": SETTINGS, ".gitignore": ignored}
    )
    (repository.root / "ranking.py").write_text(RANKING.format(seconds=0.02))
    (repository.root / "notes.txt").write_text("nobody imports this")
    said = measure()
    assert f"Not compared: Neither {first[:7]} nor a commit before it was measured" in said
    assert str(newest_code()).startswith(f"{first[:7]}-dirty")

    main = repository.commit("ranking")
    said = measure()
    assert newest_code() == main[:7]
    assert "Not compared: " in said, "a dirty run is no base"
    assert typed("gate").returncode == 2

    repository.git("checkout", "--quiet", "-b", "change")
    slow = repository.commit("slow", ranking_py=RANKING.format(seconds=0.06))
    said = measure()
    (run_id,) = re.findall(r"^Run: (\S+)$", said, re.MULTILINE)
    judged = typed("gate", "--json")
    assert judged.returncode == 1, judged.stderr
    document = json.loads(judged.stdout)
    assert document["head"]["run_ids"] == [run_id]
    assert [document[side]["components"]["code"] for side in ("base", "head")] == [main[:7], slow[:7]]

    empty = tmp_path / "empty"
    empty.mkdir()
    said = measure(PATH=str(empty))
    assert f"The commit of {repository.root} is not known: git is not installed." in said
    refused = typed("gate", PATH=str(empty))
    assert refused.returncode == 2
    assert "git is not installed" in refused.stderr


def test_code_in_a_submodule_is_judged_by_the_history_of_the_submodule(fleet: Fleet, tmp_path: Path) -> None:
    project = Repository(tmp_path / "around")
    subprocess.run(
        ["git", "clone", "--quiet", str(fleet.repository.root), str(project.root / "models")], check=True
    )
    workload = '[[workload]]\nname = "ranker"\ntarget = "my_models:build"\npath = ["models"]\n'
    (project.root / "compilewatch.toml").write_text(workload)
    fleet.job(project.root, GITHUB_REF="refs/pull/1/merge", GITHUB_BASE_REF="main")
    base = fleet.measure(fleet.repository.git("rev-parse", "main"))
    head = fleet.pull_request(1)
    mine = fleet.measure(head, 1.4)
    subprocess.run(["git", "-C", str(project.root / "models"), "fetch", "--quiet"], check=True)
    fleet.made(mine)
    assert fleet.sides == (base, mine)
    assert fleet.gate() == 1, fleet.said


def test_a_commit_named_as_its_own_base_was_measured(fleet: Fleet) -> None:
    first, head = fleet.repository.commit("main"), fleet.pull_request(1)
    fleet.measure(first)
    fleet.measure(head, 1.4)
    assert fleet.gate("--base", head) == 1
    assert f"{head[:7]} has no other run; the base is {first[:7]}, 1 commit before it." in fleet.said


def test_latest_and_previous_are_builds_of_this_machine(fleet: Fleet) -> None:
    commit = fleet.repository.commit("main")
    fleet.measure(commit, torch="2.12.0")
    fleet.measure(commit, 1.4, torch="2.13.0")
    for torch in ("2.12.0", "2.13.0"):
        fleet.measure(commit, machine=ELSEWHERE, torch=torch)
    assert exit_code_of(app, ["compare", "previous", "latest", "--db", fleet.url]) == 1
    fleet.patch.setattr("socket.gethostname", lambda: "laptop")
    assert exit_code_of(app, ["compare", "previous", "latest", "--db", fleet.url]) != 1
