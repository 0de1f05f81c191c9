"""A wall clock that somebody sets while processes work: Debian's libfaketime, which they are started with."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from tests.qa.faults.forked import FORKED

_LIBRARY = next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))), None)


def set_clock(clock: Path, off: timedelta) -> None:
    """Have every process that was started with `clock` see the time `off` from the real one, from now on."""
    new = clock.with_name(f"{clock.name}.new")
    new.write_text(f"{off.total_seconds():+.0f}\n")
    new.replace(clock)


def started(work: Callable[..., object], arguments: tuple[Any, ...], clock: Path | None) -> BaseProcess:
    """A process that does `work`; with a `clock`, it and all that it starts read the time by that file.

    The monotonic clock goes on, as that of a machine whose clock is set.
    """
    if clock is None:
        process: BaseProcess = FORKED.Process(target=work, args=arguments)
        process.start()
        return process
    if _LIBRARY is None:
        pytest.skip("needs libfaketime: apt-get install libfaketime")
    set_clock(clock, timedelta(0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LD_PRELOAD", str(_LIBRARY))
        patch.setenv("FAKETIME_TIMESTAMP_FILE", str(clock))
        patch.setenv("FAKETIME_NO_CACHE", "1")
        patch.setenv("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        patch.setenv("FAKETIME_DONT_RESET", "1")
        process = multiprocessing.get_context("spawn").Process(target=work, args=arguments)
        process.start()
    return process
