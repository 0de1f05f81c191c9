"""What this process and everything below it did: CPU time, alive or gone, and who is left."""

from __future__ import annotations

import contextlib
import os
import resource
from pathlib import Path

# torch/_inductor/compile_worker/__main__.py is what Inductor's pool runs; the processes that it forks have
# its command line.
_POOL = b"compile_worker"


def tree_cpu_ns() -> int:
    """User and system time of this process, of the children it has waited for, and of all that still live.

    The pool of compile workers lives on after the first result, so `RUSAGE_CHILDREN` alone would miss it.
    """
    total = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        total += usage.ru_utime + usage.ru_stime
    ticks = os.sysconf("SC_CLK_TCK")
    living = sum(spent for _, spent in _living_descendants())
    return int(total * 1e9) + living * 1_000_000_000 // ticks


def compile_pool() -> list[int]:
    """The processes of the compiler's pool that live below this one, with the one that starts them."""
    pool = []
    for pid, _ in _living_descendants():
        with contextlib.suppress(OSError):
            if _POOL in Path(f"/proc/{pid}/cmdline").read_bytes():
                pool.append(pid)
    return pool


def _living_descendants() -> list[tuple[int, int]]:
    """Process ids below this process, each with its CPU time in ticks, of children it waited for too."""
    children: dict[int, list[tuple[int, int]]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # proc(5): after the command's closing parenthesis come state, ppid, ... utime stime cutime
            # cstime.
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            spent = sum(int(value) for value in fields[11:15])
            children.setdefault(int(fields[1]), []).append((int(entry.name), spent))
    found, queue = [], [os.getpid()]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += [pid for pid, _ in below]
    return found
