"""What a checkout and a search have measured, on disk: the runs that the next `compilewatch gate` judges, and
where a search goes on after a kill.
"""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Self

from pydantic import BaseModel, ConfigDict

from compilewatch.db.errors import CompilewatchError
from compilewatch.db.part_files import part_of
from compilewatch.db.records.ids import identity
from compilewatch.runner.catalog.work_tree import WorkTree
from compilewatch.runner.config.settings import Settings

_FOLDER = "last-runs"
_REMEMBERED = 50
"""So many states of work trees; the oldest goes first."""


def remember_runs(settings: Settings, run_ids: Sequence[str]) -> None:
    """Note what was just measured from the work tree as it is. Raises CompilewatchError where the disk
    refuses.
    """
    path = _path(settings)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part_of(path) as part:
            part.write_text(json.dumps({"run_ids": list(run_ids)}) + "\n", encoding="utf-8")
            part.replace(path)
        known = sorted(path.parent.glob("*.json"), key=lambda each: each.stat().st_mtime_ns)
    except OSError as error:
        raise CompilewatchError(
            f"{path} cannot be written, so `compilewatch gate` needs `--run {run_ids[-1]}`.",
            "Set data_dir to a writable directory.",
        ) from error
    for old in known[:-_REMEMBERED]:
        with contextlib.suppress(OSError):
            old.unlink()


def last_runs(settings: Settings) -> tuple[str, ...]:
    """The runs of the newest `compilewatch run` from the work tree as it is now, on this host; none where
    none was made or somebody edited since.
    """
    try:
        found = json.loads(_path(settings).read_text(encoding="utf-8"))["run_ids"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ()
    is_list = isinstance(found, list) and all(isinstance(each, str) for each in found)
    return tuple(found) if is_list else ()


def _path(settings: Settings) -> Path:
    root = settings.project_root.resolve()
    tree = WorkTree.around(root)
    key = {"host": socket.gethostname(), "root": str(root), "code": tree.changes() if tree else None}
    return settings.data_dir / _FOLDER / f"{identity(key)}.json"


class SearchQuestion(BaseModel):
    """What is searched for. Two commands with the same question share their trials."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    folder: ClassVar[str]
    """Where states of these searches lie, below the data directory."""

    workloads: tuple[str, ...] = ()
    """The ids of those in question as they are now: an edited one is another question."""

    @property
    def key(self) -> str:
        """The name of its state."""
        return identity(self.model_dump(mode="json"))

    def path(self, data_dir: Path) -> Path:
        """Where its state is kept."""
        return data_dir / self.folder / f"{self.key}.json"


class SearchState(BaseModel):
    """What is known so far: ids and reasons. What is installed and run comes from the command."""

    model_config = ConfigDict(extra="forbid")

    question: SearchQuestion

    @classmethod
    def load(cls, question: SearchQuestion, data_dir: Path) -> Self:
        """The stored state, else a new one. Raises CompilewatchError for one that cannot be read."""
        path = question.path(data_dir)
        try:
            return cls.model_validate(json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return cls(question=question)
        except (OSError, ValueError, RecursionError) as error:
            raise CompilewatchError(
                f"{path} cannot be read.", "Delete it to begin the search anew."
            ) from error

    def save(self, data_dir: Path) -> None:
        """Whole or not at all. Raises CompilewatchError where the disk refuses."""
        path = self.question.path(data_dir)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with part_of(path) as part:
                part.write_text(self.model_dump_json(indent=2) + "\n", encoding="utf-8")
                part.replace(path)
        except OSError as error:
            raise CompilewatchError(
                f"{path} cannot be written: {error.strerror}.",
                "Free space or set data_dir to a writable directory.",
            ) from error
