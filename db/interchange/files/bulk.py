"""Handling many records at once without Python's cycle collector in the way."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_cycle_collection() -> Iterator[None]:
    """Pauses the cycle collector of this process; records hold no cycles, so memory does not grow.

    Reading creates hundreds of objects per record, which makes the collector walk the whole heap again and
    again: a quarter of the time of an import.
    """
    paused = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if paused:
            gc.enable()
