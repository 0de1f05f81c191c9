"""A file that stands under its name whole or not at all: it is written beside that first."""

from __future__ import annotations

import contextlib
import glob
import os
import re
from collections.abc import Iterator
from pathlib import Path

_PART = re.compile(r"\..+\.(\d+)\.partial")


@contextlib.contextmanager
def part_of(path: Path) -> Iterator[Path]:
    """A name beside `path` to write to, and to rename when it is whole; nothing else stays.

    Nor does what a process left there for `path` that was killed. Raises OSError.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.partial")
    remove_left_parts(path.parent, path.name)
    part.unlink(missing_ok=True)  # in a container the killed process often had the same number
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)


def remove_left_parts(directory: Path, name: str | None = None) -> None:
    """Remove what killed processes were writing in `directory`, of the file `name` or of all."""
    for path in directory.glob(f".{glob.escape(name) if name else '*'}.*.partial"):
        found = _PART.fullmatch(path.name)
        if found and not _runs(int(found[1])):
            with contextlib.suppress(OSError):  # somebody else's
                path.unlink(missing_ok=True)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
