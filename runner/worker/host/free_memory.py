"""How much of the host's memory a process may use: of the machine, and of the groups that it is in. Standard
library only.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUPS = Path("/proc/self/cgroup")
_MEMINFO = Path("/proc/meminfo")


def _memory_groups() -> Iterator[tuple[int, int]]:
    """(limit, bytes in use) of each control group that holds this process's memory, those around it too. What
    it caches of files is not in use: the kernel gives it back.
    """
    for line in _OWN_CGROUPS.read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            root, names = _CGROUPS, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            root = _CGROUPS / "memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        own = root / path.lstrip("/")
        for place in (each for each in (own, *own.parents) if each.is_relative_to(root)):
            # A group without a limit says "max"; a container does not see those around it.
            with contextlib.suppress(OSError, ValueError):
                limit, used = (int((place / name).read_text()) for name in names[:2])
                facts = dict(each.split() for each in (place / "memory.stat").read_text().splitlines())
                yield limit, used - int(facts.get(names[2], 0))


def _meminfo(name: str) -> int | None:
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = _MEMINFO.read_text().splitlines()
        return int(next(line for line in lines if line.startswith(f"{name}:")).split()[1]) * 1024
    return None


def limit_bytes() -> int | None:
    """What this process and its children may use together: of the machine, a container or a job; None where
    the system does not tell.
    """
    limits = [found] if (found := _meminfo("MemTotal")) is not None else []
    with contextlib.suppress(OSError, ValueError):
        limits += [limit for limit, _ in _memory_groups()]
    return min(limits, default=None)


def available_bytes() -> int | None:
    """What is left of that; None where the system does not tell."""
    free = [found] if (found := _meminfo("MemAvailable")) is not None else []
    with contextlib.suppress(OSError, ValueError):
        free += [limit - used for limit, used in _memory_groups()]
    return min(free, default=None)


def has_room_for(size_bytes: int) -> bool:
    """Whether the host has four times `size_bytes` left, or does not tell: steps work with large ones."""
    free = available_bytes()
    return free is None or 4 * size_bytes < free


def give_back() -> None:
    """Return to the system what was freed and the allocator still has. Nothing with another than glibc's."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
