"""Ctrl-C and SIGTERM stop a run between two statements of ours, never in the middle of storing."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event


@contextmanager
def stop_signal() -> Iterator[Event]:
    """An event that SIGINT and SIGTERM set while the block runs; the former handlers come back after it."""
    stop = Event()

    def ask_to_stop(number: int, frame: object) -> None:  # noqa: ARG001
        stop.set()

    former = {number: signal.signal(number, ask_to_stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
