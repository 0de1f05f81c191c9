"""Whether the disk has room for what a run writes."""

from __future__ import annotations

import shutil
from pathlib import Path

from db.errors import CompilewatchError

# A cold compilation writes up to 150 MB of headers and kernels per trial; less than this and it fails midway.
_MIN_FREE_BYTES = 500 * 2**20


def require_space(data_dir: Path) -> None:
    """Raise CompilewatchError where a run would fail midway for want of disk space."""
    existing = next(path for path in (data_dir.resolve(), *data_dir.resolve().parents) if path.exists())
    free = shutil.disk_usage(existing).free
    if free < _MIN_FREE_BYTES:
        raise CompilewatchError(
            f"Only {free // 2**20} MiB are free in {existing}; a run needs {_MIN_FREE_BYTES // 2**20} MiB.",
            "Free space, or set data_dir and TMPDIR to another disk.",
        )
