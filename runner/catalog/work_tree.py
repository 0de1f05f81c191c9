"""The git work tree that a workload's file lies in: its commit, and how commits follow each other.

Git is asked for facts only: no hook, no monitor of the file system, no fetch of what a partial clone lacks.
Whatever comes from a command line or a CI's variable is checked and stands behind `--end-of-options`.

A container measures files that another user owns, which git refuses as "dubious ownership". It is told that
the tree is safe, for the one question, where the owner of the measured files owns the repository too: their
code runs anyway, and a repository that a stranger put above them stays refused.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from compilewatch.db.records.trial import Code
from compilewatch.runner.catalog.targets import is_target, source_file, split_target

_TIMEOUT_S = 60.0
_COMMAND = ("git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
# A name of a commit, branch or tag: nothing that git would take for an option, a range or a search.
_REVISION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+-]{0,199}(?:[~^][0-9]{0,4})*")
_DEFAULT_BRANCHES = ("origin/HEAD", "origin/main", "origin/master", "main", "master")


def is_revision(text: str) -> bool:
    """Whether `text` can be the name of a commit, a branch or a tag."""
    return _REVISION.fullmatch(text) is not None and ".." not in text and "@{" not in text


@dataclass(frozen=True)
class WorkTree:
    """The checked out files below `root`."""

    root: Path

    is_trusted: bool = False
    """Whether git is told that the tree is safe though another user owns it."""

    @classmethod
    def around(cls, path: Path) -> WorkTree | None:
        """The innermost work tree that `path` lies in, if there is one."""
        path = Path(os.path.realpath(path))
        found = (each for each in (path, *path.parents) if (each / ".git").exists())
        root = next(found, None)
        return None if root is None else cls(root, _is_owned_alike(path, root))

    def state(self) -> Code:
        """The commit and whether files that git follows differ from it; None each where git does not tell."""
        commit = self.commit("HEAD")
        if commit is None:
            return Code()
        changes = self._ask("status", "--porcelain", "--untracked-files=no")
        return Code(commit=commit, dirty=None if changes is None else bool(changes.strip()))

    def changes(self) -> str | None:
        """The commit and a hash of what differs from it in files that git follows: the same as long as nobody
        edits, commits or checks out. None where git does not tell.
        """
        commit, text = (
            self.commit("HEAD"),
            self._ask("diff", "--no-ext-diff", "--no-textconv", "--binary", "HEAD"),
        )
        if commit is None or text is None:
            return None
        return f"{commit}+{hashlib.sha256(text.encode()).hexdigest()}" if text else commit

    def untracked(self) -> tuple[str, ...]:
        """Files and folders (with "/" at their end) that git neither follows nor ignores, from the root."""
        listed = self._ask("ls-files", "--others", "--exclude-standard", "--directory", "-z")
        return tuple(each for each in (listed or "").split("\0") if each)

    def problem(self) -> tuple[str, str] | None:
        """Why the commit is not known and what helps; None where it is."""
        if self.commit("HEAD") is not None:
            return None
        try:
            finished = self._run(("rev-parse", "--verify", "HEAD^{commit}"), _TIMEOUT_S)
        except OSError:
            return "git is not installed", "Install git."
        except subprocess.TimeoutExpired:
            return "git does not answer", "Look at what `git status` says there."
        if "dubious ownership" in finished.stderr:
            safe = f"git config --global --add safe.directory {self.root}"
            return "the repository belongs to another user", f"Type `{safe}`, or measure as its owner."
        if self._ask("rev-parse", "--git-dir") is None:
            return "git finds no repository there", "Mount or copy the folder with its .git."
        return "nothing is committed", "Commit, then measure."

    def is_shallow(self) -> bool:
        """Whether the history was cut off when it was fetched."""
        return (self._ask("rev-parse", "--is-shallow-repository") or "").strip() == "true"

    def branch(self) -> str | None:
        """The branch that is checked out; None of a commit that is checked out by itself."""
        return (self._ask("symbolic-ref", "--quiet", "--short", "HEAD") or "").strip() or None

    def commit(self, revision: str) -> str | None:
        """The whole hash of the commit that `revision` names; None where there is none, or no revision."""
        if not is_revision(revision):
            return None
        answer = self._ask("rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}")
        text = (answer or "").strip()
        return text if _COMMIT.fullmatch(text) else None

    def merge_base(self, one: str, other: str) -> str | None:
        """The newest commit that both come from; None where git knows none."""
        commits = [self.commit(each) for each in (one, other)]
        if None in commits:
            return None
        answer = self._ask("merge-base", "--end-of-options", *(str(each) for each in commits))
        text = (answer or "").strip()
        return text if _COMMIT.fullmatch(text) else None

    def ancestors(self, commit: str, most: int, *, first_parent: bool = False) -> list[str]:
        """`commit` and those before it, at most so many, the nearest first; empty where git has none. With
        `first_parent` those of its own branch alone, without what was merged into it.
        """
        named = self.commit(commit)
        if named is None:
            return []
        order = "--first-parent" if first_parent else "--topo-order"
        answer = self._ask("rev-list", order, f"--max-count={most}", "--end-of-options", named)
        return [line for line in (answer or "").split() if _COMMIT.fullmatch(line)]

    def default_branch(self) -> str | None:
        """The branch that others start from, as far as this clone knows."""
        return next((each for each in _DEFAULT_BRANCHES if self.commit(each)), None)

    @contextmanager
    def checked_out(self, commit: str) -> Iterator[WorkTree | None]:
        """A second work tree at `commit`, gone afterwards; None where git cannot make one.

        A repository of its own that borrows the objects of this one, so that nothing is written to a project
        that is mounted to be read.
        """
        objects = (self._ask("rev-parse", "--path-format=absolute", "--git-path", "objects") or "").strip()
        with tempfile.TemporaryDirectory(prefix="compilewatch-base-") as directory:
            other = WorkTree(Path(directory).resolve() / self.root.name)
            other.root.mkdir()
            is_known = bool(objects) and _COMMIT.fullmatch(commit) is not None
            if not is_known or other._ask("init", "--quiet", "--template=") is None:
                yield None
                return
            (other.root / ".git" / "objects" / "info").mkdir(exist_ok=True)
            (other.root / ".git" / "objects" / "info" / "alternates").write_text(
                f"{objects}\n", encoding="utf-8"
            )
            made = other._ask("checkout", "--quiet", "--detach", commit, timeout_s=900)
            yield None if made is None else other

    def _ask(self, *arguments: str, timeout_s: float = _TIMEOUT_S) -> str | None:
        """What git prints; None where it fails, refuses, or is not installed."""
        try:
            finished = self._run(arguments, timeout_s)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return finished.stdout if finished.returncode == 0 else None

    def _run(self, arguments: Sequence[str], timeout_s: float) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        environment |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
        safe = ("-c", f"safe.directory={self.root}") if self.is_trusted else ()
        return subprocess.run(
            [*_COMMAND, *safe, "-C", str(self.root), *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )


def _is_owned_alike(path: Path, root: Path) -> bool:
    """Whether `path`, or the nearest folder of it that is there, has the owner of the repository."""
    found = next(each for each in (path, *path.parents) if each.exists())
    try:
        return {each.stat().st_uid for each in (root, root / ".git")} == {found.stat().st_uid}
    except OSError:
        return False


def work_tree_of(target: str, path: Sequence[str]) -> WorkTree | None:
    """The work tree of a workload of the user's own, found in the directories `path`; None for what is built
    in or installed.
    """
    if not path or not is_target(target):
        return None
    file = source_file(split_target(target)[0], path)
    return None if file is None else WorkTree.around(file)
