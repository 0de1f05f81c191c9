"""Which runs a checkout made last, on disk: what the next `compilewatch gate` judges.

A file for each state of a work tree, so that two jobs with one data directory do not find each other's runs.
"""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Sequence
from pathlib import Path

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
