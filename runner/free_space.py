"""Whether the disk has room for what a run writes."""

from __future__ import annotations

import shutil
from pathlib import Path

from db.errors import CompilewatchError

MIN_FREE_BYTES = 500 * 2**20
"""A cold trial writes up to 150 MB of headers and kernels; those of several may lie there at once."""


def existing_part(path: Path) -> Path:
    """`path`, or the nearest directory above it that is there already."""
    return next(each for each in (path, *path.parents) if each.exists())


def require_space(data_dir: Path) -> None:
    """Raise CompilewatchError where a run would fail midway for want of disk space."""
    existing = existing_part(data_dir.resolve())
    free = shutil.disk_usage(existing).free
    if free < MIN_FREE_BYTES:
        raise CompilewatchError(
            f"Only {free // 2**20} MiB are free in {existing}; a run needs {MIN_FREE_BYTES // 2**20} MiB.",
            "Free space, or set data_dir and TMPDIR to another disk.",
        )
