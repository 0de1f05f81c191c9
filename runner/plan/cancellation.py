"""Ending preparations that nobody wants any more: loops and child processes ask whether they are wanted."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from time import monotonic
from typing import TextIO

_POLL_S = 0.2


class PreparationCancelledError(Exception):
    """What is being prepared was cancelled."""


_is_cancelled: ContextVar[Callable[[], bool]] = ContextVar("is_cancelled", default=lambda: False)


@contextlib.contextmanager
def cancellable(is_cancelled: Callable[[], bool]) -> Iterator[None]:
    """Inside, `check_cancelled` and `run_child` raise PreparationCancelledError once `is_cancelled`."""
    token = _is_cancelled.set(is_cancelled)
    try:
        yield
    finally:
        _is_cancelled.reset(token)


def check_cancelled() -> None:
    """Raise PreparationCancelledError once the preparation that this thread is in was cancelled."""
    if _is_cancelled.get()():
        raise PreparationCancelledError


def run_child(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    timeout_s: float,
    stdout: int | TextIO = subprocess.PIPE,
) -> subprocess.CompletedProcess[str]:
    """Run a program without input to its end: its output, unless it goes to `stdout`, and exit code.

    It and its children are killed after `timeout_s`, which raises subprocess.TimeoutExpired, and once they
    are not wanted, which raises PreparationCancelledError. Raises OSError where it cannot be started.
    """
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=dict(env),
        start_new_session=True,
    )
    until = monotonic() + timeout_s
    with child:
        try:
            while True:
                check_cancelled()
                try:
                    out, err = child.communicate(timeout=min(_POLL_S, max(0.0, until - monotonic())))
                except subprocess.TimeoutExpired:
                    if monotonic() >= until:
                        raise
                else:
                    return subprocess.CompletedProcess(list(command), child.returncode, out, err)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            raise
