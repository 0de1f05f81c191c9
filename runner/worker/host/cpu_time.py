"""CPU time of this process and everything below it, alive or gone."""

from __future__ import annotations

import contextlib
import os
import resource
from pathlib import Path


def tree_cpu_ns() -> int:
    """User and system time of this process, of the children it has waited for, and of all that still live.

    The pool of compile workers lives on after the first result, so `RUSAGE_CHILDREN` alone would miss it.
    """
    total = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        total += usage.ru_utime + usage.ru_stime
    return int(total * 1e9) + _living_descendants_ns(os.getpid())


def _living_descendants_ns(root: int) -> int:
    ticks = os.sysconf("SC_CLK_TCK")
    children: dict[int, list[tuple[int, int]]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # proc(5): after the command's closing parenthesis come state, ppid, ... utime stime cutime
            # cstime.
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            spent = sum(int(value) for value in fields[11:15])
            children.setdefault(int(fields[1]), []).append((int(entry.name), spent))
    total, queue = 0, [root]
    while queue:
        for pid, spent in children.get(queue.pop(), ()):
            total += spent
            queue.append(pid)
    return total * 1_000_000_000 // ticks
