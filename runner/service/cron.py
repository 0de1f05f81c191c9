"""Crontab expressions as people know them -> triggers of APScheduler, which reads some of them differently.

APScheduler counts weekdays from Monday = 0, knows no 7 and no names such as @daily, demands both day and
weekday where crontab takes either, and fires twice at a time that the clocks repeat.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

from apscheduler.triggers.cron import CronTrigger

# As crontab(5) lists them.
_NAMED = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_FIELDS = ("minute", "hour", "day", "month", "weekday")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_DAYS = re.compile(r"(\*|[0-7]|[a-z]{3})(?:-([0-7]|[a-z]{3}))?(?:/([1-9]\d?))?")
_ANY_HOUR = re.compile(r"\*(/\d+)?")
# Every date that exists comes up in these years, 29 February included.
_FIRST, _LAST = datetime(2024, 1, 1, tzinfo=UTC), datetime(2032, 12, 31, tzinfo=UTC)


class Trigger(CronTrigger):  # type: ignore[misc]
    """Fires at fixed hours once when the clocks go back, as cron(8) does; `*` hours go by real time."""

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime | None:
        """The first firing after `previous_fire_time`, or from `now` on."""
        fire_at: datetime | None = super().get_next_fire_time(previous_fire_time, now)
        while fire_at is not None and fire_at.fold and self._has_fixed_hours():
            fire_at = super().get_next_fire_time(fire_at, fire_at)
        return fire_at

    def _has_fixed_hours(self) -> bool:
        hours = next(str(field) for field in self.fields if field.name == "hour")
        return _ANY_HOUR.fullmatch(hours) is None


def parse_cron(expression: str, timezone: str = "UTC") -> Trigger:
    """The trigger of "0 3 * * mon-fri", "0 3 * * 1-5" or "@daily" in a time zone such as "Europe/Berlin".

    Raises ValueError, saying what is wrong: no cron, no time zone, a day that never comes, or both a day of
    the month and a weekday, which crontab takes as either and most people mean as both.
    """
    zone = _zone(timezone)
    fields = _NAMED.get(expression.strip().lower(), expression).lower().split()
    if len(fields) != len(_FIELDS):
        raise ValueError(f"cron must have five fields (minute hour day month weekday), not {expression!r}")
    named = dict(zip(_FIELDS, fields, strict=True))
    if named["day"] != "*" and named["weekday"] != "*":
        raise ValueError(
            f"cron with days and weekdays ({expression!r}): make two schedules of it, one for each"
        )
    weekday = _weekdays(named.pop("weekday"))
    try:
        bounded = CronTrigger(**named, day_of_week=weekday, timezone=zone, end_date=_LAST)
        trigger = Trigger(**named, day_of_week=weekday, timezone=zone)
    except (ValueError, TypeError) as error:
        raise ValueError(f"cron {expression!r} is not valid: {error}") from error
    if bounded.get_next_fire_time(None, _FIRST) is None:
        raise ValueError(f"cron {expression!r} never comes")
    return trigger


def firings_after(trigger: Trigger, after: datetime) -> Iterator[datetime]:
    """Every firing later than `after`, in UTC."""
    fire_at = trigger.get_next_fire_time(after, after)
    while fire_at is not None:
        yield fire_at.astimezone(UTC)
        fire_at = trigger.get_next_fire_time(fire_at, fire_at)


def next_firings(trigger: Trigger, after: datetime, count: int) -> list[datetime]:
    """The next `count` firings later than `after`, in UTC."""
    return list(islice(firings_after(trigger, after), count))


def count_firings(trigger: Trigger, after: datetime, until: datetime, limit: int) -> int:
    """How many firings lie after `after` and not after `until`, at most `limit`."""
    return sum(1 for _ in islice(takewhile(lambda at: at <= until, firings_after(trigger, after)), limit))


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError(
            f"there is no time zone {name!r}; write UTC or a name such as Europe/Berlin"
        ) from None


def _weekdays(field: str) -> str:
    """Weekdays by name, which mean the same everywhere. In crontab 0 and 7 are Sunday."""
    if field == "*":
        return field
    days: set[int] = set()
    for part in field.split(","):
        match = _DAYS.fullmatch(part)
        if match is None:
            raise ValueError(f"weekday {part!r} is neither a number from 0 to 7 nor a name such as mon")
        first, last, step = match.groups()
        if first == "*":
            days.update(range(0, 7, int(step or 1)))
            continue
        start = _weekday(first)
        # As in crontab, a step without an end reaches to the end of the week.
        end = _weekday(last) if last else (6 if step else start)
        length = 6 if (first, last) == ("0", "7") else (end - start) % 7
        days.update((start + offset) % 7 for offset in range(0, length + 1, int(step or 1)))
    return ",".join(_WEEKDAYS[day] for day in sorted(days))


def _weekday(text: str) -> int:
    if text.isdigit():
        return int(text) % 7
    if text in _WEEKDAYS:
        return _WEEKDAYS.index(text)
    raise ValueError(f"weekday {text!r} is neither a number from 0 to 7 nor a name such as mon")
