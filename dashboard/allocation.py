"""How the server gets its memory: what a thread leaves behind is used again by those after it.

Pages are drawn in threads that come and go, and what they read outlives them in caches. Allocators that give
each thread a heap of its own never fill the holes in those of threads that have ended, so the process grows
without holding more (docs/measured/dashboard.md).
"""

from __future__ import annotations

import ctypes
import os
import platform

import pyarrow as pa

ARENAS = 2
"""As many as pages are drawn at the same time (`dashboard.turns.AT_ONCE`)."""
_M_ARENA_MAX = -8  # malloc.h of glibc
_ARROW_VARIABLE, _GLIBC_VARIABLE = "ARROW_DEFAULT_MEMORY_POOL", "MALLOC_ARENA_MAX"


def share_heaps() -> None:
    """Arrow allocates as everything else does, and glibc from few heaps. Call it before threads start.

    What the environment says of either stands.
    """
    if _ARROW_VARIABLE not in os.environ:
        pa.set_memory_pool(pa.system_memory_pool())
    if _GLIBC_VARIABLE not in os.environ and platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, ARENAS)
