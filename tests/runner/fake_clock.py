"""A wall clock that tests set, and APScheduler driven by it without a thread."""

from __future__ import annotations

import datetime as real
from typing import Any

import apscheduler.schedulers.base
import pytest
from apscheduler.schedulers.base import BaseScheduler


class FakeClock:
    """Call it for the time; set `now` to step it forward or back."""

    def __init__(self, now: real.datetime) -> None:
        self.now = now

    def __call__(self) -> real.datetime:
        return self.now

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let APScheduler read this clock."""
        clock = self

        class Clock(real.datetime):
            @classmethod
            def now(cls, tz: real.tzinfo | None = None) -> Any:
                return clock.now.astimezone(tz)

        monkeypatch.setattr(apscheduler.schedulers.base, "datetime", Clock)


class SteppedScheduler(BaseScheduler):  # type: ignore[misc]
    """Looks for due jobs when it is woken, and only then."""

    def wakeup(self) -> None:
        self._process_jobs()

    def shutdown(self, wait: bool = True) -> None:
        super().shutdown(wait)
