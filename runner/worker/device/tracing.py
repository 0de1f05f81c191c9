"""What the device's own tracing says of steps, session by session: on an NVIDIA GPU that of CUPTI.

Three things go wrong there. Where the first session of a process has no kernel at all, CUPTI may give none
for as long as the process lives. A session may lose the kernels at its start without a word. And a session
takes what it takes. So the first session is one of a step, and thrown away; one of no step comes last; a
session with fewer kernels than the fullest does not count; and there is an end to it.
"""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from compilewatch.runner.worker.device.interface import Device, Session, Step

STEPS = 10
"""Sessions of a step whose time is wanted."""
COUNTED_STEPS = 3
"""Of one that is only counted; and without as many whole ones there is no time."""
LONGEST_NS = 10_000_000_000
"""Of all sessions of one side."""


@dataclass(frozen=True)
class Observed:
    """Of one side: `sessions` of which `whole` lost no kernel, their times, and what the fullest counted."""

    busy_ns: list[int]
    unflushed_ns: list[int]
    """The same with the caches as the step left them; empty where that was not asked for."""
    sessions: int
    whole: int
    fullest: Session | None
    waits: int
    problem: str | None = None
    """Why there is no time."""


class Tracer:
    """Traces the sides of one process on `device`."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._has_begun = False

    def observe(self, steps: Sequence[Step], *, with_times: bool) -> tuple[list[Observed], int]:
        """Of each step, and how often the tracing itself waits for the device."""
        found = [self._of(step, with_times=with_times) for step in steps]
        last = None
        if all(each.fullest is not None for each in found):
            with contextlib.suppress(Exception):
                last = self._session(lambda: None)
        return found, 0 if last is None else last.waits

    def events(self, step: Step) -> tuple[Sequence[Any], bool]:
        """Those of the session that noted most, of a device that keeps them, and whether that is all: another
        noted as much. Raises RuntimeError where none was there.
        """
        found = self._of(step, with_times=True)
        if found.sessions == 0:
            raise RuntimeError(found.problem)
        return found.fullest.events if found.fullest else (), found.whole > 1 or found.sessions == 1

    def _of(self, step: Step, *, with_times: bool) -> Observed:
        until = self._device.now_ns() + LONGEST_NS
        wanted = STEPS if with_times else COUNTED_STEPS
        problem = None
        sessions: list[Session] = []
        unflushed: list[Session] = []
        try:
            if not self._has_begun:
                self._has_begun = True
                self._device.trace(step)
            sessions = self._sessions(step, wanted, until)
            if with_times and self._device.flushes:
                unflushed = self._sessions(step, COUNTED_STEPS, until, flush=False)
        except Exception as error:  # noqa: BLE001 - whatever a driver or a tracer raises
            problem = f"{type(error).__name__}: {error}"
        fullest = max(sessions, key=lambda each: each.kernels, default=None)
        most = 0 if fullest is None else fullest.kernels
        whole = [each.busy_ns for each in sessions if each.kernels == most > 0]
        if most == 0:
            problem = problem or "the device's own tracing shows no kernel"
        elif len(sessions) < COUNTED_STEPS:
            problem = (
                problem or f"{len(sessions)} of {wanted} steps could be traced in {LONGEST_NS / 1e9:.0f} s"
            )
        elif len(whole) < COUNTED_STEPS:
            problem = problem or f"{len(whole)} of {len(sessions)} traced steps lost no kernel"
        return Observed(
            busy_ns=whole,
            unflushed_ns=[each.busy_ns for each in unflushed if each.kernels == most > 0],
            sessions=len(sessions),
            whole=len(whole),
            fullest=fullest if most else None,
            waits=max((each.waits for each in sessions), default=0),
            problem=problem,
        )

    def _sessions(self, step: Step, count: int, until_ns: int, *, flush: bool = True) -> list[Session]:
        """As many as fit before `until_ns`, by the longest so far; `count` at most."""
        found: list[Session] = []
        longest = 0
        while len(found) < count and self._device.now_ns() + longest < until_ns:
            begun = self._device.now_ns()
            if flush:
                self._device.flush()
            session = self._session(step)
            if session is None:
                break
            found.append(session)
            longest = max(longest, self._device.now_ns() - begun)
        return found

    def _session(self, step: Step) -> Session | None:
        self._device.synchronize()
        return self._device.trace(step)


def median_ns(values: Sequence[int]) -> int | None:
    """Of as many as a time needs; None of fewer."""
    return round(statistics.median(values)) if len(values) >= COUNTED_STEPS else None
