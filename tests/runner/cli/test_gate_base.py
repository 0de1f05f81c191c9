"""`compilewatch gate` in a git repository: the base is the commit that the change started from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compilewatch.db.engine.session import open_database
from compilewatch.db.records.trial import Code, Trial
from compilewatch.db.service.regressions import standing_regressions
from compilewatch.db.store.trials import save_trials
from compilewatch.runner.catalog.work_tree import is_revision
from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of
from tests.builders import make_timing
from tests.git_repository import Repository
from tests.regression_cases import RUN_1, stepping_history

BUILD = "2.13.0"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    repository = Repository(tmp_path / "project")
    monkeypatch.chdir(repository.root)
    for name in ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_DIFF_BASE_SHA", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME"):
        monkeypatch.delenv(name, raising=False)
    return repository


def store(url: str, *runs: tuple[str | None, float], dirty: bool = False, trials: int = 6) -> None:
    """One run per commit and factor of the compiled latency, in this order."""
    history = stepping_history(
        *(factor for _, factor in runs), builds=(BUILD,) * len(runs), trials_per_case=trials
    )
    run_ids = list(dict.fromkeys(trial.run_id for trial in history))
    commits = dict(zip(run_ids, (commit for commit, _ in runs), strict=True))
    with open_database(url) as database:
        save_trials(database, [_at(trial, commits[trial.run_id], dirty=dirty) for trial in history])


def _at(trial: Trial, commit: str | None, *, dirty: bool) -> Trial:
    if commit is None:
        return trial
    code = Code(commit=commit, dirty=dirty, source_hash=commit[:16])
    timing = make_timing("host", headline="samples")
    fields = {"code": code, "timing": timing}
    return Trial(**trial.model_dump() | fields)


def gate(url: str, *arguments: str) -> int:
    return exit_code_of(app, ["gate", *arguments, "--db", url])


def document(url: str, capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    capsys.readouterr()
    gate(url, "--json", *arguments)
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def sides(url: str, capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    found = document(url, capsys, *arguments)
    return [found[side]["components"]["code"] for side in ("base", "head")]  # type: ignore[index]


def test_a_change_is_judged_against_the_commit_it_started_from(
    repository: Repository, sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    base = repository.commit("base")
    repository.git("checkout", "--quiet", "-b", "other")
    other = repository.commit("of somebody else")
    repository.git("checkout", "--quiet", "-b", "change", "main")
    head = repository.commit("slow")
    store(sqlite_url, (base, 1.0), (other, 2.5), (head, 2.5))
    assert gate(sqlite_url) == 1
    first = capsys.readouterr().out.splitlines()[0]
    assert f"code {base[:7]} -> {head[:7]}" in first
    assert "/ default: latency" in first
    assert "2.5" in first
    gate(sqlite_url, "--markdown")
    title = capsys.readouterr().out.splitlines()[0]
    assert all(word in title for word in (base[:7], head[:7], " / default ", "2.5"))
    found = document(sqlite_url, capsys)
    assert found["changed_components"] == ["code"]
    causes = {row["cause"] for row in found["rows"] if row["verdict"] == "regressed"}  # type: ignore[attr-defined]
    assert causes == {"code"}
    with open_database(sqlite_url) as database:
        recorded = standing_regressions(database)
    assert {each.regression.changed_components for each in recorded} == {("code",)}


def test_what_another_pull_request_changed_is_no_noise_of_the_machine(
    repository: Repository, sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    base = repository.commit("base")
    heads = []
    for number, factor in enumerate((2.5, 1.0, 1.0, 2.5)):
        repository.git("checkout", "--quiet", "-b", f"change-{number}", "main")
        heads.append((repository.commit(f"change {number}"), factor))
    store(sqlite_url, (base, 1.0), *heads, trials=3)
    assert gate(sqlite_url) == 1
    assert "2.5" in capsys.readouterr().out.splitlines()[0]


@pytest.mark.parametrize(
    "variable", ["GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "CI_MERGE_REQUEST_DIFF_BASE_SHA"]
)
def test_the_variables_of_a_ci_name_the_base(
    variable: str,
    repository: Repository,
    sqlite_url: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    main = repository.commit("main")
    repository.git("checkout", "--quiet", "-b", "release")
    release = repository.commit("release")
    repository.git("checkout", "--quiet", "-b", "change")
    head = repository.commit("change")
    store(sqlite_url, (main, 1.0), (release, 1.0), (head, 1.0))
    assert sides(sqlite_url, capsys) == [main[:7], head[:7]]
    monkeypatch.setenv(variable, release if variable.endswith("SHA") else "release")
    assert sides(sqlite_url, capsys) == [release[:7], head[:7]]


def test_an_unmeasured_base_gives_way_to_its_nearest_ancestor_which_is_said(
    repository: Repository, sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    measured = repository.commit("measured")
    repository.commit("not measured")
    base = repository.commit("nor this")
    repository.git("checkout", "--quiet", "-b", "change")
    head = repository.commit("change")
    store(sqlite_url, (measured, 1.0), (head, 1.0))
    assert sides(sqlite_url, capsys) == [measured[:7], head[:7]]
    gate(sqlite_url)
    said = capsys.readouterr().err
    assert f"{base[:7]} was not measured; the base is {measured[:7]}, 2 commits before it." in said
    gate(sqlite_url, "--markdown")
    assert f"the base is {measured[:7]}" in capsys.readouterr().out


def test_a_commit_that_nobody_measured_is_not_judged_and_no_other_in_its_place(
    repository: Repository, sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    base, head = repository.commit("base"), repository.commit("slow")
    store(sqlite_url, (base, 1.0), (head, 2.5))
    unmeasured = repository.commit("slower, and never measured")
    assert gate(sqlite_url) == 2
    said = capsys.readouterr().err
    assert f"No whole run of {unmeasured[:7]} on " in said
    assert "compilewatch run" in said
    with open_database(sqlite_url) as database:
        assert standing_regressions(database) == ()
    assert gate(sqlite_url, "--head", head[:9]) == 1
    assert gate(sqlite_url, "--head", "HEAD~1") == 1
    assert gate(sqlite_url, "--run", RUN_1) == 1
    assert gate(sqlite_url, "--run", RUN_1, "--head", head) == 2
    assert gate(sqlite_url, "--head", "nothing") == 2


def test_on_the_main_branch_the_base_is_the_run_before(
    repository: Repository, sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = repository.commit("1"), repository.commit("2")
    store(sqlite_url, (first, 1.0), (second, 1.0))
    assert sides(sqlite_url, capsys) == [first[:7], second[:7]]
    assert sides(sqlite_url, capsys, "--base", "HEAD~1") == [first[:7], second[:7]]


def test_changes_that_are_not_committed_are_judged_against_their_commit(
    repository: Repository, sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    commit = repository.commit("1")
    store(sqlite_url, (commit, 1.0), (commit, 1.0))
    history = stepping_history(1.0, 1.0, 2.5, builds=(BUILD,) * 3, trials_per_case=6)
    last = [trial for trial in history if trial.run_id == history[-1].run_id]
    with open_database(sqlite_url) as database:
        save_trials(database, [_at(trial, commit, dirty=True) for trial in last])
    assert gate(sqlite_url, "--run", last[0].run_id) == 1
    assert f"code {commit[:7]} -> {commit[:7]}-dirty+" in capsys.readouterr().out.splitlines()[0]


MORE_HOSTILE = (pytest.param(text, marks=pytest.mark.slow) for text in ("$(id)", "../../x", "main\n--all"))


@pytest.mark.parametrize("hostile", ["--output=/tmp/x", "f" * 40, *MORE_HOSTILE])
def test_hostile_variables_are_data(
    hostile: str,
    repository: Repository,
    sqlite_url: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    base = repository.commit("base")
    repository.git("checkout", "--quiet", "-b", "change")
    head = repository.commit("change")
    store(sqlite_url, (base, 1.0), (head, 1.0))
    for name in ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_DIFF_BASE_SHA"):
        monkeypatch.setenv(name, hostile)
    if is_revision(hostile):
        assert gate(sqlite_url) == 2, "a branch that git does not know is no base"
        assert "Git does not tell where this branch started." in capsys.readouterr().err
    else:
        assert sides(sqlite_url, capsys) == [base[:7], head[:7]]


def test_a_named_base_that_is_not_there_is_refused(
    repository: Repository, sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = repository.commit("1"), repository.commit("2")
    store(sqlite_url, (second, 1.0), (second, 1.0))
    for base, words in (
        ("nothing", "Git knows no commit"),
        ("--all", "takes a commit"),
        (first, "was measured on this machine"),
    ):
        assert gate(sqlite_url, f"--base={base}") == 2
        assert words in capsys.readouterr().err
    assert gate(sqlite_url, "--base", first, "--against", f"torch={BUILD}") == 2
    assert "two bases" in capsys.readouterr().err


def test_two_commits_are_compared_by_name(
    repository: Repository, sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    base, head = repository.commit("1"), repository.commit("2")
    store(sqlite_url, (base, 1.0), (head, 2.5))
    arguments = ["compare", f"commit={base[:7]}", f"commit={head[:7]}", "--json", "--db", sqlite_url]
    assert exit_code_of(app, arguments) == 1
    found = json.loads(capsys.readouterr().out)
    assert [found[side]["components"]["code"] for side in ("base", "head")] == [base[:7], head[:7]]
    assert exit_code_of(app, ["compare", "commit=fffffff", "latest", "--db", sqlite_url]) == 2
    assert exit_code_of(app, ["compare", "commit=HEAD", "latest", "--db", sqlite_url]) == 2


def test_the_first_pull_request_of_three_trials_a_side(
    repository: Repository, sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing but a run of the main branch is stored: what is obvious is said at once."""
    base = repository.commit("base")
    repository.git("checkout", "--quiet", "-b", "change")
    same, slow = repository.commit("same"), repository.commit("slow")
    store(sqlite_url, (base, 1.0), (same, 1.0), trials=3)
    assert gate(sqlite_url, "--head", same) != 1
    assert capsys.readouterr().out.startswith(f"Verdict: {base[:7]} → {same[:7]}: ")
    store(sqlite_url, (base, 1.0), (same, 1.0), (slow, 2.5), trials=3)
    assert gate(sqlite_url) == 1
    first = capsys.readouterr().out.splitlines()[0]
    assert "2.5" in first
    assert f"code {base[:7]} -> {slow[:7]}" in first


def test_what_one_run_a_side_cannot_decide_is_to_be_measured_by_turns(
    repository: Repository, sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    base = repository.commit("base")
    repository.git("checkout", "--quiet", "-b", "change")
    store(sqlite_url, (base, 1.0), (repository.commit("a tenth"), 1.12), trials=3)
    assert gate(sqlite_url) == 2
    said = capsys.readouterr().err
    assert "gate --confirm run" in said
    assert "--build A" not in said, "both commits have the same build"


def test_a_slower_library_is_named_and_not_the_code(
    repository: Repository, sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    commit = repository.commit("1")
    history = stepping_history(1.0, 2.5, builds=("2.12.0", "2.13.0"), trials_per_case=6)
    with open_database(sqlite_url) as database:
        save_trials(database, [_at(trial, commit, dirty=False) for trial in history])
    assert gate(sqlite_url) == 1
    assert "code" not in capsys.readouterr().out
    found = document(sqlite_url, capsys)
    assert "torch" in found["changed_components"]  # type: ignore[operator]
    assert "code" not in found["changed_components"]  # type: ignore[operator]
    causes = {row["cause"] for row in found["rows"] if row["verdict"] == "regressed"}  # type: ignore[attr-defined]
    assert "code" not in causes
