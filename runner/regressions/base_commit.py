"""Which run a pull request is judged against: that of the commit that its branch started from."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import ConfigError, NotFoundError
from compilewatch.db.judge.compare.sides import Selection
from compilewatch.db.queries.codes import commits_of_run, runs_of_commits
from compilewatch.db.records.identity import SHORT_COMMIT
from compilewatch.db.units import plural
from compilewatch.runner.catalog.work_tree import WorkTree, is_revision

SEARCHED_ANCESTORS = 5000
"""How far back a measured commit is looked for."""

# What a CI says of the change that it checks: the commit itself, or the branch that it is to go into.
_BASE_COMMITS = ("CI_MERGE_REQUEST_DIFF_BASE_SHA",)  # GitLab
_BASE_BRANCHES = (
    "GITHUB_BASE_REF",
    "CI_MERGE_REQUEST_TARGET_BRANCH_NAME",  # GitLab
    "CHANGE_TARGET",  # Jenkins
    "SYSTEM_PULLREQUEST_TARGETBRANCH",  # Azure
    "BITBUCKET_PR_DESTINATION_BRANCH",
    "BUILDKITE_PULL_REQUEST_BASE_BRANCH",
)


@dataclass(frozen=True)
class BaseRun:
    """The run of the base commit, and what to say about the choice. `run` is None where there is none."""

    run: Selection | None
    head: Selection | None
    said: tuple[str, ...] = ()


NO_CODE = BaseRun(None, None)


def base_run(
    database: Database,
    tree: WorkTree | None,
    newest: Selection,
    named: str | None,
    environment: Mapping[str, str] = os.environ,
) -> BaseRun:
    """The run to judge `newest`, one run, against by the history of its code.

    `named` is a commit, branch or tag; without one it is the merge base with the branch that the CI's
    variables or the clone name. Where that commit was not measured it is its nearest measured ancestor, and
    `said` tells. Raises ConfigError or NotFoundError where `named` is no revision, not known to git, or
    neither it nor an ancestor was measured.
    """
    (run_id,) = newest.run_ids
    with database.read() as connection:
        measured = commits_of_run(connection, run_id)
    if not measured:
        if named:
            raise NotFoundError(
                f"Run {run_id} measured no code of a git work tree.",
                "Leave out --base, or name a run with --since.",
            )
        return NO_CODE
    head, is_dirty = measured[0]
    wanted, said = _wanted(tree, head, named, environment)
    said = (*_unmeasured(tree, {commit for commit, _ in measured}), *said)
    if wanted is None or tree is None or (named is None and wanted == head and not is_dirty):
        return BaseRun(None, None, said)
    ancestors = tree.ancestors(wanted, SEARCHED_ANCESTORS)
    with database.read() as connection:
        runs = runs_of_commits(connection, ancestors, run_id)
    if not runs:
        problem = f"Neither {_short(wanted)} nor a commit before it was measured on this machine."
        if named:
            raise NotFoundError(problem, "Check it out, measure it with `compilewatch run`, then gate again.")
        return BaseRun(None, None, (*said, f"{problem} The base is the run before."))
    found = runs[0]
    if found.commit != wanted:
        before = plural(ancestors.index(found.commit), "commit")
        said += (
            f"{_short(wanted)} was not measured; the base is {_short(found.commit)}, {before} before it.",
        )
    name = f"{_short(head)}-dirty" if is_dirty else _short(head)
    return BaseRun(
        Selection(name=f"commit={_short(found.commit)}", run_ids=(found.run_id,)),
        newest.model_copy(update={"name": f"commit={name}"}),
        said,
    )


def _unmeasured(tree: WorkTree | None, measured: Collection[str]) -> Iterator[str]:
    """That what is checked out is not what was `measured`, where the clone knows both."""
    here = tree.commit("HEAD") if tree is not None else None
    if tree is not None and here and here not in measured and any(map(tree.commit, measured)):
        run = " and ".join(sorted(map(_short, measured)))
        yield f"{_short(here)} is checked out and its code was not measured last; the run of {run} is judged."


def _wanted(
    tree: WorkTree | None, head: str, named: str | None, environment: Mapping[str, str]
) -> tuple[str | None, tuple[str, ...]]:
    """The commit that the change starts from; None where nothing tells, with why."""
    if named:
        return _named(tree, named), ()
    if tree is None:
        return None, ()
    if tree.commit(head) is None:
        return None, (f"Git does not know {_short(head)} here. The base is the run before.",)
    stated = (tree.commit(environment[name]) for name in _BASE_COMMITS if environment.get(name))
    branches = [*_branches(environment)]
    started = (tree.merge_base(branch, head) for branch in branches or [tree.default_branch() or "HEAD"])
    commit = next((each for each in (*stated, *started) if each), None)
    if commit is None and branches:
        reason = "Git does not tell where this branch started; fetch the whole history (fetch-depth: 0)."
        return None, (f"{reason} The base is the run before.",)
    return commit, ()


def _named(tree: WorkTree | None, named: str) -> str:
    if tree is None:
        raise ConfigError("--base needs the git work tree of the measured code.", "Run the gate inside it.")
    if not is_revision(named):
        raise ConfigError(
            "--base takes a commit, a branch or a tag.", "Write for example --base origin/main."
        )
    commit = tree.commit(named)
    if commit is None:
        raise NotFoundError(
            f"Git knows no commit {named!r} here.", "Fetch it first, with the whole history (fetch-depth: 0)."
        )
    return commit


def _branches(environment: Mapping[str, str]) -> Iterator[str]:
    """The branch that the CI names, as the clone knows it."""
    for name in _BASE_BRANCHES:
        branch = environment.get(name, "").removeprefix("refs/heads/")
        if branch and is_revision(branch):
            yield from (f"origin/{branch}", branch)


def _short(commit: str) -> str:
    return commit[:SHORT_COMMIT]
