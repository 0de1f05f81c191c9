"""How the server gets its memory: what a thread leaves behind is used again by those after it.

Pages are drawn in threads that come and go, and what they read outlives them in caches. Allocators that give
each thread a heap of its own never fill the holes in those of threads that have ended, so the process grows
without holding more. glibc returns only what lies at the end of a heap, and what readers looked at a moment
ago lies in the middle (docs/measured/dashboard.md).
"""

from __future__ import annotations

import ctypes
import os
import platform
import threading
import time

import pyarrow as pa

ARENAS = 2
"""As many as pages are drawn at the same time (`dashboard.render.limit.AT_ONCE`)."""
GIVE_BACK_EVERY_S = 10.0
"""A call takes 1 to 30 ms beside fifty readers, and gives back 1 to 60 MiB."""
_M_ARENA_MAX = -8  # malloc.h of glibc
_ARROW_VARIABLE, _GLIBC_VARIABLE = "ARROW_DEFAULT_MEMORY_POOL", "MALLOC_ARENA_MAX"


def share_heaps() -> None:
    """Arrow allocates as everything else does, and glibc from few heaps. Call it before threads start.

    What the environment says of either stands.
    """
    if _ARROW_VARIABLE not in os.environ:
        pa.set_memory_pool(pa.system_memory_pool())
    if _GLIBC_VARIABLE not in os.environ and _is_glibc():
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, ARENAS)


def trim_regularly(every_s: float = GIVE_BACK_EVERY_S) -> None:
    """Return the free pages inside the heaps to the system, again and again, beside all other threads.

    Nothing happens where the C library is not glibc.
    """
    if _is_glibc():
        threading.Thread(target=_trim, args=(every_s,), daemon=True).start()


def _trim(every_s: float) -> None:
    trim = ctypes.CDLL(None).malloc_trim
    trim.argtypes = [ctypes.c_size_t]
    while True:
        time.sleep(every_s)
        trim(0)


def _is_glibc() -> bool:
    return platform.libc_ver()[0] == "glibc"
