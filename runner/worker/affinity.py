"""Which CPUs this process and its children may use, around libgomp's binding of the main thread.

`OMP_PROC_BIND` makes libgomp pin the main thread to one core as torch is loaded. Children inherit the pin:
every g++ of a compilation, and every process of the compile pool, would queue on that one core.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

_BINDING = ("OMP_PROC_BIND", "OMP_PLACES")

ALL = frozenset(os.sched_getaffinity(0))
"""The CPUs this process was given; right only if this module is imported before torch."""


def release_children() -> None:
    """Keep the binding of this process's own threads, which libgomp has read by now, from its children."""
    for name in _BINDING:
        os.environ.pop(name, None)


@contextlib.contextmanager
def unbound() -> Iterator[None]:
    """Let the main thread, and what it starts meanwhile, run on every CPU; bind it again afterwards."""
    bound = os.sched_getaffinity(0)
    os.sched_setaffinity(0, ALL)
    try:
        yield
    finally:
        os.sched_setaffinity(0, bound)
