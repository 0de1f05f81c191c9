"""The dead man's switch: a schedule that has produced nothing for its period is told, once.

When a result is due is stored, so that the dashboard can tell it even when no service lives that could.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime

from compilewatch.db.engine.session import Database
from compilewatch.db.records.schedules import Schedule, ScheduleSpec, ScheduleWatch
from compilewatch.db.service.schedules import (
    SCHEDULES,
    claim_silence,
    last_result_of,
    save_due,
    schedule_watches,
)
from compilewatch.runner.config.cron import next_firings, parse_cron

_LOG = logging.getLogger("compilewatch.schedule")

Notify = Callable[[ScheduleWatch, Schedule], None]


def result_due_at(schedule: Schedule, last_result_at: datetime | None) -> datetime | None:
    """By when the first firing after the last result must have led to another: the firing after that one.

    So there is a whole period for its first trial. None for a paused schedule. Raises ValueError for a cron
    that cannot be read.
    """
    if schedule.paused:
        return None
    since = max(filter(None, (schedule.active_since, last_result_at)))
    trigger = parse_cron(schedule.spec.cron, schedule.spec.timezone)
    firings = next_firings(trigger, since, 2)
    return firings[1] if len(firings) == 2 else None


class Silence:
    """Looks after the schedules of this configuration. Call `check` every few seconds."""

    def __init__(self, database: Database, configured: Mapping[str, ScheduleSpec], notify: Notify) -> None:
        self._database = database
        self._configured = configured
        self._notify = notify

    def check(self, now: datetime) -> list[str]:
        """Store when results are due, tell of those that did not come, by schedule. Raises DatabaseError."""
        watches = schedule_watches(self._database)
        silent = []
        for schedule in SCHEDULES.all(self._database):
            if schedule.from_config and schedule.name not in self._configured:
                continue
            watch = self._watch(schedule, watches.get(schedule.name))
            if watch is None or watch.due_at is None or not watch.is_silent(now):
                continue
            if claim_silence(self._database, schedule.name, watch.due_at):
                last = watch.last_result_at.isoformat() if watch.last_result_at else "never"
                _LOG.error(
                    "Schedule %s has produced nothing for its period; its last result: %s.",
                    schedule.name,
                    last,
                )
                self._notify(watch, schedule)
                silent.append(schedule.name)
        return silent

    def _watch(self, schedule: Schedule, known: ScheduleWatch | None) -> ScheduleWatch | None:
        last = last_result_of(self._database, schedule.name)
        try:
            due = result_due_at(schedule, last)
        except ValueError:
            return None
        if known is None or (known.last_result_at, known.due_at) != (last, due):
            save_due(self._database, schedule.name, last_result_at=last, due_at=due)
        told_due_at = known.told_due_at if known else None
        return ScheduleWatch(schedule=schedule.name, last_result_at=last, due_at=due, told_due_at=told_due_at)
