"""What git tells of the measured code, asked so that nothing of the repository or the environment is run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from compilewatch.db.records.trial import Code
from compilewatch.runner.catalog.work_tree import WorkTree, is_revision
from tests.git_repository import Repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "project")


def tree_of(repository: Repository) -> WorkTree:
    tree = WorkTree.around(repository.root / "package" / "models.py")
    assert tree is not None
    return tree


def test_the_state_is_the_commit_and_whether_followed_files_differ(repository: Repository) -> None:
    tree = tree_of(repository)
    assert tree.state() == Code()
    commit = repository.commit(ranking_py="one")
    (repository.root / "notes.txt").write_text("not followed", encoding="utf-8")
    assert tree.state() == Code(commit=commit, dirty=False)
    (repository.root / "ranking.py").write_text("two", encoding="utf-8")
    assert tree.state() == Code(commit=commit, dirty=True)


def test_what_is_checked_out_has_a_name_of_its_own_until_somebody_edits(repository: Repository) -> None:
    commit = repository.commit(ranking_py="one")
    tree = tree_of(repository)
    assert tree.changes() == commit
    (repository.root / "notes.txt").write_text("not followed", encoding="utf-8")
    assert tree.changes() == commit
    (repository.root / "ranking.py").write_text("two", encoding="utf-8")
    second = tree.changes()
    assert second is not None
    assert second.startswith(f"{commit}+")
    (repository.root / "ranking.py").write_text("three", encoding="utf-8")
    assert tree.changes() not in (commit, second)


def test_files_are_untracked_that_git_neither_follows_nor_ignores(repository: Repository) -> None:
    repository.commit(**{"ranking_py": "one", ".gitignore": "*.db\n"})
    for name in ("own.py", "history.db", "part/inner.py"):
        (repository.root / name).parent.mkdir(exist_ok=True)
        (repository.root / name).write_text("x", encoding="utf-8")
    assert tree_of(repository).untracked() == ("own.py", "part/")


def test_why_a_commit_is_not_known(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tree_of(repository)
    assert tree.problem() == ("nothing is committed", "Commit, then measure.")
    repository.commit("1")
    assert tree.problem() is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert tree.problem() == ("git is not installed", "Install git.")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")
def test_a_tree_of_another_user_is_read_where_the_measured_files_are_theirs_too(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rule is about who owns the two; git's own refusal is tried with a user that owns neither."""
    monkeypatch.setenv("HOME", str(repository.root.parent))
    commit = repository.commit(ranking_py="one")
    package = repository.root / "package"
    package.mkdir()
    for path in (repository.root, *repository.root.rglob("*")):
        os.chown(path, 54321, 54321)
    tree = tree_of(repository)
    assert tree.state() == Code(commit=commit, dirty=False)
    with tree.checked_out(commit) as other:
        assert other is not None
        assert (other.root / "ranking.py").read_text(encoding="utf-8") == "one"
    os.chown(package, 54322, 54322)
    refused = tree_of(repository)
    assert refused.state() == Code()
    problem = refused.problem()
    assert problem is not None
    assert "another user" in problem[0]
    assert f"safe.directory {repository.root}" in problem[1]


def test_outside_of_a_work_tree_there_is_none(tmp_path: Path) -> None:
    assert WorkTree.around(tmp_path / "models.py") is None


def test_variables_of_a_hook_lead_nowhere_else(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = repository.commit(ranking_py="one")
    other = Repository(tmp_path / "other")
    other.commit(other_py="x")
    monkeypatch.setenv("GIT_DIR", str(other.root / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.root))
    assert tree_of(repository).state().commit == commit


def test_a_monitor_of_the_repository_is_not_started(repository: Repository, tmp_path: Path) -> None:
    repository.commit(ranking_py="one")
    started = tmp_path / "started"
    monitor = tmp_path / "monitor.sh"
    monitor.write_text(f"#!/bin/sh\ntouch {started}\n", encoding="utf-8")
    monitor.chmod(0o755)
    repository.git("config", "core.fsmonitor", str(monitor))
    assert tree_of(repository).state().dirty is False
    assert not started.exists()


def test_history_by_merge_base_and_ancestors(repository: Repository) -> None:
    first, second = repository.commit("1"), repository.commit("2")
    repository.git("checkout", "--quiet", "-b", "change")
    third = repository.commit("3")
    repository.git("checkout", "--quiet", "main")
    fourth = repository.commit("4")
    tree = tree_of(repository)
    assert tree.default_branch() == "main"
    assert tree.merge_base("main", third) == second
    assert tree.ancestors(third, 10) == [third, second, first]
    assert tree.ancestors(fourth, 1) == [fourth]
    assert tree.merge_base("main", "f" * 40) is None
    repository.git("merge", "--quiet", "--no-ff", "--no-edit", "change")
    merge = repository.git("rev-parse", "HEAD")
    assert tree.ancestors(merge, 10, first_parent=True) == [merge, fourth, second, first]
    assert third in tree.ancestors(merge, 10)


@pytest.mark.parametrize(
    "text",
    [
        *("--output=/tmp/x", "-h", "", "main..change", "main@{1}", ":/change"),
        *("HEAD^{/x}", "a b", "a\nb", "$(id)", "é"),
    ],
)
def test_what_is_no_name_never_reaches_git(text: str, repository: Repository) -> None:
    repository.commit("1")
    assert not is_revision(text)
    assert tree_of(repository).commit(text) is None


def test_another_commit_is_checked_out_beside_and_goes_away(repository: Repository) -> None:
    base = repository.commit(ranking_py="one")
    head = repository.commit(ranking_py="two")
    tree = tree_of(repository)
    before = {path: path.stat().st_mtime_ns for path in repository.root.rglob("*")}
    with tree.checked_out(base) as other:
        assert (other.root / "ranking.py").read_text(encoding="utf-8") == "one"
        assert other.state() == Code(commit=base, dirty=False)
    assert not other.root.exists()
    assert {path: path.stat().st_mtime_ns for path in repository.root.rglob("*")} == before, "only read"
    assert tree.state() == Code(commit=head, dirty=False)
    with tree.checked_out("f" * 40) as none:
        assert none is None
