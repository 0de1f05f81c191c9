"""A memory cgroup with a small limit below the own one; needs root and a writable hierarchy."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

_MOUNTS = Path("/proc/self/mountinfo")
_OWN = Path("/proc/self/cgroup")


@dataclass(frozen=True)
class MemoryGroup:
    """Who writes its process id into `members` belongs to the group, with the children it starts then."""

    members: Path


@contextlib.contextmanager
def memory_group(limit_bytes: int) -> Iterator[MemoryGroup]:
    """A group whose processes together get `limit_bytes`; skips the test where none can be made."""
    parent, limit = _own_group()
    directory = parent / f"compilewatch-faults-{os.getpid()}"
    try:
        directory.mkdir()
    except OSError as error:
        pytest.skip(f"needs the right to make a memory cgroup below {parent}: {error.strerror}")
    try:
        _limit(directory / limit, limit_bytes)
        yield MemoryGroup(directory / "cgroup.procs")
    finally:
        _remove(directory)


def _limit(file: Path, limit_bytes: int) -> None:
    try:
        file.write_text(str(limit_bytes))
    except OSError as error:
        # In version 2 a group with processes of its own gives no controller to those below it.
        pytest.skip(f"needs a memory cgroup that can be limited: {file} says {error.strerror}")


def _own_group() -> tuple[Path, str]:
    """The directory of this process's memory cgroup, and the file of its limit: version 1, else version 2."""
    lines = [line.split(":", 2) for line in _OWN.read_text().splitlines()]
    paths = {name: path for _, names, path in lines for name in names.split(",")}
    if "memory" in paths and (mount := _mount_of("cgroup", "memory")):
        return mount / paths["memory"].lstrip("/"), "memory.limit_in_bytes"
    if "" in paths and (mount := _mount_of("cgroup2", "")):
        return mount / paths[""].lstrip("/"), "memory.max"
    return pytest.skip("needs a mounted memory cgroup")


def _mount_of(kind: str, controller: str) -> Path | None:
    for line in _MOUNTS.read_text().splitlines():
        place, _, source = line.partition(" - ")
        found, _, options = source.split(" ", 2)
        if found == kind and (not controller or controller in options.split(" ")[-1].split(",")):
            return Path(place.split(" ")[4])
    return None


def _remove(directory: Path, within_s: float = 10.0) -> None:
    """A group can be removed once the last of its processes is reaped."""
    deadline = time.monotonic() + within_s
    while True:
        try:
            directory.rmdir()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
