"""No command that measures is silent for long, whatever it does: what it waits for may take minutes."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from typing import Any, Self, TextIO

FIRST_S = 1.2
"""Without a line so long after its start, a command says that it begins."""
LONGEST_S = 9.0
"""Longer than what says itself what is under way is silent, since that says more."""


class Silence:
    """Says on standard error that `command` is at work whenever neither stream got a word for a while."""

    def __init__(self, command: str) -> None:
        self._command, self._limit_s, self._has_said = command, FIRST_S, False
        self._began = self._said = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="silence", daemon=True)
        self._streams = ExitStack()

    def __enter__(self) -> Self:
        self._streams.enter_context(redirect_stdout(_Heard(sys.stdout, self._heard)))
        self._streams.enter_context(redirect_stderr(_Heard(sys.stderr, self._heard)))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._streams.close()

    def _heard(self) -> None:
        self._said, self._limit_s, self._has_said = time.monotonic(), LONGEST_S, True

    def _watch(self) -> None:
        while not self._over.wait(max(0.05, self._said + self._limit_s - time.monotonic())):
            now = time.monotonic()
            if now - self._said >= self._limit_s:
                passed = f"{now - self._began:.0f} s so far" if self._has_said else "begins"
                print(f"compilewatch {self._command}: {passed}", file=sys.stderr, flush=True)


class _Heard:
    """`stream`, which tells of each word that it gets."""

    def __init__(self, stream: TextIO, heard: Callable[[], None]) -> None:
        self._stream, self._tell = stream, heard

    def write(self, text: str) -> int:
        written = self._stream.write(text)
        self._tell()
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def command_of(arguments: list[str], measuring: Any) -> str | None:
    """Which of the commands `measuring` is typed; None for another one, or where its help is wanted."""
    word = next((each for each in arguments if not each.startswith("-")), None)
    return word if word in measuring and "--help" not in arguments else None
