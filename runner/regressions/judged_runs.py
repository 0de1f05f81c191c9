"""Which run is judged, and against which: that of this checkout on this machine, and that of an ancestor.

The head is what the checkout's last `compilewatch run` measured, else the newest whole run of the checked out
commit on this machine. The base is the run of the commit that the change started from, else of its nearest
measured ancestor; on the default branch of the nearest measured first-parent ancestor. Another machine's run,
another commit's, one that was cancelled, or one of an unknown commit is neither, unless it is named.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import ConfigError, NotFoundError
from compilewatch.db.judge.compare.sides import Selection
from compilewatch.db.queries.codes import (
    CommitRun,
    codes_of_runs,
    commits_like,
    commits_of_run,
    is_of_unknown_code,
    newest_run_of,
    runs_of_commits,
)
from compilewatch.db.queries.named import machine_names
from compilewatch.db.queries.run_parts import measured_machines, newest_two, run_status
from compilewatch.db.records.identity import SHORT_COMMIT
from compilewatch.db.records.requests import RunStatus
from compilewatch.db.units import first_of, plural
from compilewatch.db.verdicts.sides import resolve_side
from compilewatch.db.verdicts.steps import newest_runs
from compilewatch.runner.catalog.work_tree import WorkTree, is_revision
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.process.saved_progress import last_runs

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
# The number of the pull request, the branch that it comes from, and whose repository it is.
_NUMBERS = (
    "CI_MERGE_REQUEST_IID",
    "CHANGE_ID",
    "SYSTEM_PULLREQUEST_PULLREQUESTNUMBER",
    "SYSTEM_PULLREQUEST_PULLREQUESTID",
    "BITBUCKET_PR_ID",
    "BUILDKITE_PULL_REQUEST",
)
_BRANCHES = (
    "GITHUB_HEAD_REF",
    "GITHUB_REF_NAME",
    "CI_COMMIT_BRANCH",
    "BRANCH_NAME",
    "BUILD_SOURCEBRANCHNAME",
    "BITBUCKET_BRANCH",
    "BUILDKITE_BRANCH",
)
_REPOSITORIES = (
    "GITHUB_REPOSITORY",
    "CI_PROJECT_PATH",
    "BUILD_REPOSITORY_NAME",
    "BITBUCKET_REPO_FULL_NAME",
    "BUILDKITE_PIPELINE_SLUG",
)
_WHOLE_HISTORY = "Fetch the whole history (GitHub `fetch-depth: 0`, GitLab `GIT_DEPTH: 0`)."
_MEASURE = "Type `compilewatch run` here, or name one: --run ID (`compilewatch list runs`)."


class NoRunBeforeError(NotFoundError):
    """The first run of its suite on its machine: nobody expects a verdict on it."""


@dataclass(frozen=True)
class Head:
    """The run to judge and, of builds that one command measured by turns, the other one to judge it by."""

    run: Selection
    beside: Selection | None = None
    imported: bool = False

    @property
    def run_id(self) -> str:
        return self.run.run_ids[-1]


@dataclass(frozen=True)
class Sides:
    """Head and base, and what to say about the choice. `change` is the pull request or the branch, as the CI
    or the clone calls it; None on the default branch, of a commit that is not checked out, and where nobody
    names one. `pull_request_commit` is its short commit, by which people know the head, where another was
    measured: the merge which a CI checks out.
    """

    base: Selection
    head: Selection
    remarks: tuple[str, ...] = ()
    change: str | None = None
    pull_request_commit: str | None = None


def head_run(
    database: Database,
    settings: Settings,
    *,
    run: str | None = None,
    commit: str | None = None,
    machine: str | None = None,
) -> Head:
    """The run named `run`, the newest one of `commit`, or that of this checkout; on the machine with the id
    `machine`, else this host's. Raises NotFoundError where there is none, with what to type, and ConfigError.
    """
    if run and commit:
        raise ConfigError("--run and --head name two runs.", "Give one of them.")
    tree = WorkTree.around(settings.project_root)
    if run:
        return _head(database, _one_run(database, run))
    if commit:
        return _head(database, _run_of(database, _commit_named(database, tree, commit), machine))
    made = last_runs(settings)
    if made and machine is None:
        return _head(database, made[-1], together=made)
    state = tree.state() if tree is not None else None
    if tree is not None and state is not None and state.commit and not state.dirty:
        with database.read() as connection:
            found = newest_run_of(connection, state.commit, _machines(database, machine))
        if found is not None:
            return _head(database, found)
    return _without_code(database, tree, machine)


def _head(database: Database, run_id: str, *, together: Sequence[str] = ()) -> Head:
    """The run with the builds that were measured by turns with it, of the runs `together` or within it."""
    status = run_status(database, run_id)
    if status is None:
        raise NotFoundError(
            f"Run {run_id} has no trial in this database.",
            "Name the database that `compilewatch run` named (--db), or measure again.",
        )
    if status is not RunStatus.FINISHED:
        how = "was cancelled" if status is RunStatus.CANCELLED else "has not ended"
        raise NotFoundError(f"Run {run_id} {how}: part of it is no verdict.", "Measure again, then gate.")
    newest, before = newest_two(database, run_id, measured=True)
    by_turns = before is not None and {*before.run_ids, *newest.run_ids} <= {run_id, *together}
    if by_turns:
        return Head(newest, before)
    return Head(Selection(name=run_id, run_ids=(run_id,)))


def _one_run(database: Database, name: str) -> str:
    found = resolve_side(name, database)
    if len(found.run_ids) != 1 or found.build_ids:
        raise NotFoundError(f"{name!r} names no run.", "Give the id of one: `compilewatch list runs`.")
    return found.run_ids[0]


def _commit_named(database: Database, tree: WorkTree | None, name: str) -> str:
    if tree is not None and (known := tree.commit(name)):
        return known
    with database.read() as connection:
        stored = commits_like(connection, name) if is_revision(name) else []
    if len(stored) != 1:
        raise NotFoundError(
            f"Git knows no commit {name!r} here." if not stored else f"Several commits begin with {name}.",
            "Name one that was measured: --head COMMIT (`compilewatch list runs`).",
        )
    return stored[0]


def _run_of(database: Database, commit: str, machine: str | None) -> str:
    with database.read() as connection:
        found = newest_run_of(connection, commit, _machines(database, machine))
    if found is None:
        raise NotFoundError(f"No whole run of {_short(commit)} on this machine is stored.", _MEASURE)
    return found


def _without_code(database: Database, tree: WorkTree | None, machine: str | None) -> Head:
    """The newest run of a machine that never measured code of one's own: there are no commits to mix up."""
    here = _machines(database, machine)
    with database.read() as connection:
        of_code = newest_run_of(connection, None, here)
    if of_code is None:
        newest, before, imported = newest_runs(database, machines=here)
        if imported or (before is not None and before.run_ids == newest.run_ids):
            return Head(newest, before, imported)
        return _head(database, newest.run_ids[-1])
    if tree is None:
        raise NotFoundError(
            f"Runs here measured code of one's own, such as {of_code}, and no git work tree is here.",
            "Run the gate in the checkout, or name a run: --run ID.",
        )
    if (problem := tree.problem()) is not None:
        raise NotFoundError(f"The commit of {tree.root} is not known: {problem[0]}.", problem[1])
    state = tree.state()
    changed = " as it is changed here" if state.dirty else ""
    where = f" on {first_of(_names(database, here), 2)}"
    raise NotFoundError(f"No whole run of {_short(str(state.commit))}{changed}{where} is stored.", _MEASURE)


def machine_here(database: Database) -> str | None:
    """The machine that this host is, where it measured; None where none or several are called so."""
    here = _called_like_this_host(database)
    return here[0] if len(here) == 1 else None


def _called_like_this_host(database: Database) -> tuple[str, ...]:
    host, measured = socket.gethostname(), measured_machines(database)
    return tuple(each for name, each in machine_names(database) if name == host and each in measured)


def _machines(database: Database, machine: str | None) -> tuple[str, ...]:
    """The machine that is named, else those called like this host, else the only one that measured. Raises
    NotFoundError where that leaves several.
    """
    if machine is not None:
        return (machine,)
    here, measured = _called_like_this_host(database), measured_machines(database)
    if here or len(measured) < 2:
        return here or measured
    raise NotFoundError(
        f"No run of this machine, {socket.gethostname()}, is stored.",
        f"Type `compilewatch run` here, or name a machine: --machine "
        f"{first_of(_names(database, measured), 4)}.",
    )


def _names(database: Database, machines: Sequence[str]) -> list[str]:
    called = {each: name for name, each in machine_names(database)}
    return [called.get(each, each) for each in machines]


def sides_by_code(
    database: Database,
    settings: Settings,
    head: Head,
    named: str | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Sides:
    """What to judge `head` against: the build beside it, or by the history of its code.

    `named` is a commit, branch or tag; without one it is the merge base with the branch that the CI's
    variables or the clone name. Where that commit was not measured it is its nearest measured ancestor, and
    `remarks` tells. A run without code of one's own meets the run before, of its suite on its machine. Raises
    ConfigError or NotFoundError where `named` is no revision, or no base is known.
    """
    run_id = head.run_id
    with database.read() as connection:
        measured = commits_of_run(connection, run_id)
        has_code = bool(codes_of_runs(connection, [run_id])) or is_of_unknown_code(connection, run_id)
    if named is None and head.beside is not None:
        return Sides(head.beside, head.run)
    if not measured and (has_code or named):
        raise _no_commit(settings, run_id, has_code=has_code)
    if not measured:
        _, before = newest_two(database, run_id, measured=not head.imported)
        if before is None:
            again = "Import an earlier result too" if head.imported else "Run the suite again"
            raise NoRunBeforeError("There is no run before this one.", f"{again}, or name --against.")
        return Sides(before, head.run)
    commit, is_dirty = measured[0]
    project = WorkTree.around(settings.project_root)
    tree = _tree_that_knows(settings, project, commit)
    if tree is None:
        known = "Git does not know" if project is not None else "No git work tree is here that knows"
        raise NotFoundError(
            f"{known} {_short(commit)}, which was measured.",
            f"Run the gate in the checkout. {_WHOLE_HISTORY} Or name a base: --since RUN.",
        )
    start = _start(tree, commit, named, environment, is_dirty=is_dirty)
    found = _nearest_run(database, start, run_id)
    if found is None:
        raise _no_base(tree, start, commit)
    name = f"{_short(commit)}-dirty" if is_dirty else _short(commit)
    # What a CI and the clone say is of the checked out commit, and of no other that is named.
    is_here = tree.commit("HEAD") == commit
    return Sides(
        Selection(name=f"commit={_short(found.commit)}", run_ids=(found.run_id,)),
        head.run.model_copy(update={"name": f"commit={name}"}),
        tuple(_remarks(start, found, commit)),
        change=_change(tree, environment) if is_here and not start.is_default else None,
        pull_request_commit=_people_know(tree, commit, environment) if is_here and tree == project else None,
    )


def _tree_that_knows(settings: Settings, project: WorkTree | None, commit: str) -> WorkTree | None:
    """The project's work tree, else one that the code of a workload lies in: a submodule has commits of its
    own.
    """
    root = settings.project_root
    folders = (root / each for workload in settings.workload for each in workload.path)
    trees = (project, *map(WorkTree.around, folders))
    return next((each for each in trees if each is not None and each.commit(commit)), None)


def base_commit(tree: WorkTree, environment: Mapping[str, str] = os.environ) -> str:
    """The commit that `tree`, as it is checked out, is judged against (`sides_by_code`), measured or not.
    Raises NotFoundError where git does not tell.
    """
    state = tree.state()
    if state.commit is None:
        raise NotFoundError(*(tree.problem() or ("git does not tell the commit", "Commit, then measure.")))
    wanted = _start(tree, state.commit, None, environment, is_dirty=bool(state.dirty)).wanted
    if wanted is None:
        raise NotFoundError(f"{_short(state.commit)} is the first commit.", "Commit a change, then measure.")
    return wanted


@dataclass(frozen=True)
class _Start:
    """Where a change starts: the commits whose runs may be its base, the best first. `again` is the commit
    itself, an earlier run of which is a base too on the default branch.
    """

    wanted: str | None
    ancestors: tuple[str, ...]
    further: tuple[str, ...] = ()
    again: str | None = None
    is_default: bool = False
    is_named: bool = False


def _start(
    tree: WorkTree, head: str, named: str | None, environment: Mapping[str, str], *, is_dirty: bool
) -> _Start:
    wanted = _named(tree, named) if named else _merge_base(tree, head, environment)
    if wanted is None:
        raise NotFoundError("Git does not tell where this branch started.", _WHOLE_HISTORY)
    if not named and wanted == head:
        before = tree.ancestors(head, SEARCHED_ANCESTORS, first_parent=True)[0 if is_dirty else 1 :]
        again = None if is_dirty or tree.is_shallow() else head
        return _Start(before[0] if before else None, tuple(before), again=again, is_default=True)
    nearest = tuple(tree.ancestors(wanted, SEARCHED_ANCESTORS, first_parent=True))
    further = tuple(each for each in tree.ancestors(wanted, SEARCHED_ANCESTORS) if each not in {*nearest})
    return _Start(wanted, nearest, further, is_named=bool(named))


def _merge_base(tree: WorkTree, head: str, environment: Mapping[str, str]) -> str | None:
    stated = (tree.commit(environment[name]) for name in _BASE_COMMITS if environment.get(name))
    branches = [*_branches(environment)]
    started = (tree.merge_base(branch, head) for branch in branches or [tree.default_branch() or "HEAD"])
    return next((each for each in (*stated, *started) if each), None)


def _nearest_run(database: Database, start: _Start, run_id: str) -> CommitRun | None:
    """The run of the first of the commits that has one. On the default branch the same commit with another
    build comes first, and with the same one last.
    """
    with database.read() as connection:
        again = runs_of_commits(connection, [start.again], run_id, earlier=True) if start.again else []
        if other := [each for each in again if not each.same_builds]:
            return other[0]
        for commits in (start.ancestors, start.further):
            if found := runs_of_commits(connection, commits, run_id):
                return found[0]
    return next(iter(again), None)


def _remarks(start: _Start, found: CommitRun, head: str) -> Iterator[str]:
    if found.commit in (start.wanted, start.again) or start.wanted is None:
        return
    order = (*start.ancestors, *start.further)
    before = plural(order.index(found.commit), "commit")
    missing = "has no other run" if start.wanted == head else "was not measured"
    yield f"{_short(start.wanted)} {missing}; the base is {_short(found.commit)}, {before} before it."


def _no_commit(settings: Settings, run_id: str, *, has_code: bool) -> NotFoundError:
    tree = WorkTree.around(settings.project_root)
    problem = None if tree is None else tree.problem()
    if tree is None and has_code:
        where = f"{settings.project_root} is in no git work tree"
        problem = where, "Measure in the checkout, with its .git, or name a base: --since RUN."
    if problem is None:
        return NotFoundError(
            f"Run {run_id} measured no code of a known commit.",
            "Leave out --base, or name a base: --since RUN or --against BUILD.",
        )
    return NotFoundError(f"The commit of run {run_id} is not known: {problem[0]}.", problem[1])


def _no_base(tree: WorkTree, start: _Start, head: str) -> NotFoundError:
    if tree.is_shallow():
        return NotFoundError(
            f"No measured ancestor of {_short(head)} is known: the history was cut off.", _WHOLE_HISTORY
        )
    if start.wanted is None:
        return NotFoundError(f"{_short(head)} is the first commit.", "Measure the next one, then gate.")
    wanted = _short(start.wanted)
    return NotFoundError(
        f"Neither {wanted} nor a commit before it was measured on this machine.",
        f"Measure it first: `git checkout {wanted}`, then `compilewatch run`; or name a base: --since RUN.",
    )


def _named(tree: WorkTree, named: str) -> str:
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


def _change(tree: WorkTree, environment: Mapping[str, str]) -> str | None:
    """The pull request, else the branch, with its repository where the CI names that."""

    def first(names: Sequence[str]) -> str | None:
        return next(
            (text for each in names if (text := environment.get(each, "")) and is_revision(text)), None
        )

    reference = environment.get("GITHUB_REF", "").split("/")
    number = reference[2] if reference[:2] == ["refs", "pull"] and len(reference) > 2 else None
    number = next(
        (each for each in (number, *map(environment.get, _NUMBERS)) if each and each.isdigit()), None
    )
    branch = first(_BRANCHES) or tree.branch()
    if not number and not branch:
        return None
    repository = first(_REPOSITORIES)
    called = f"pull request {number}" if number else f"branch {branch}"
    return f"{called} of {repository}" if repository else called


def _people_know(tree: WorkTree, commit: str, environment: Mapping[str, str]) -> str | None:
    """The pull request's own commit where its merge into the target branch was measured."""
    is_github = environment.get("GITHUB_REF", "").endswith("/merge")
    if not is_github and not environment.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA"):
        return None
    second = tree.commit(f"{commit}^2")
    return None if second is None else _short(second)


def _short(commit: str) -> str:
    return commit[:SHORT_COMMIT]
