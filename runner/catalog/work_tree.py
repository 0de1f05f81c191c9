"""The git work tree that a workload's file lies in: its commit, and how commits follow each other.

Git is asked for facts only: no hook, no monitor of the file system, no fetch of what a partial clone lacks.
Whatever comes from a command line or a CI's variable is checked and stands behind `--end-of-options`.
"""

from __future__ import annotations

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

    @classmethod
    def around(cls, path: Path) -> WorkTree | None:
        """The innermost work tree that `path` lies in, if there is one."""
        path = Path(os.path.realpath(path))
        found = (each for each in (path, *path.parents) if (each / ".git").exists())
        root = next(found, None)
        return None if root is None else cls(root)

    def state(self) -> Code:
        """The commit and whether files that git follows differ from it; None each where git does not tell."""
        commit = self.commit("HEAD")
        if commit is None:
            return Code()
        changes = self._ask("status", "--porcelain", "--untracked-files=no")
        return Code(commit=commit, dirty=None if changes is None else bool(changes.strip()))

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

    def ancestors(self, commit: str, most: int) -> list[str]:
        """`commit` and those before it, at most so many, the nearest first; empty where git has none."""
        named = self.commit(commit)
        if named is None:
            return []
        answer = self._ask("rev-list", "--topo-order", f"--max-count={most}", "--end-of-options", named)
        return [line for line in (answer or "").split() if _COMMIT.fullmatch(line)]

    def default_branch(self) -> str | None:
        """The branch that others start from, as far as this clone knows."""
        return next((each for each in _DEFAULT_BRANCHES if self.commit(each)), None)

    @contextmanager
    def checked_out(self, commit: str) -> Iterator[WorkTree | None]:
        """A second work tree at `commit`, gone afterwards; None where git cannot make one."""
        with tempfile.TemporaryDirectory(prefix="compilewatch-base-") as directory:
            place = Path(directory).resolve() / self.root.name
            made = self._ask(
                "worktree",
                "add",
                "--detach",
                "--quiet",
                "--end-of-options",
                str(place),
                commit,
                timeout_s=900,
            )
            try:
                yield None if made is None else WorkTree(place)
            finally:
                self._ask("worktree", "remove", "--force", "--end-of-options", str(place))

    def _ask(self, *arguments: str, timeout_s: float = _TIMEOUT_S) -> str | None:
        """What git prints; None where it fails, refuses, or is not installed."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        environment |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
        command: Sequence[str] = [*_COMMAND, "-C", str(self.root), *arguments]
        try:
            finished = subprocess.run(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout_s,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return finished.stdout if finished.returncode == 0 else None


def work_tree_of(target: str, path: Sequence[str]) -> WorkTree | None:
    """The work tree of a workload of the user's own, found in the directories `path`; None for what is built
    in or installed.
    """
    if not path or not is_target(target):
        return None
    file = source_file(split_target(target)[0], path)
    return None if file is None else WorkTree.around(file)
