"""Crontab expressions as people know them -> triggers of APScheduler, which reads some of them differently.

APScheduler counts weekdays from Monday = 0, knows no 7 and no names such as @daily, demands both day and
weekday where crontab takes either, and loses or repeats days where the clocks change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

from apscheduler.triggers.base import BaseTrigger
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
# Longer than any change of the clocks to come: they are of two hours at most.
_CHANGE = timedelta(hours=3)
# Every date that exists comes up in these years, 29 February included.
_FIRST, _LAST = datetime(2024, 1, 1, tzinfo=UTC), datetime(2032, 12, 31, tzinfo=UTC)


class Trigger(BaseTrigger):  # type: ignore[misc]
    """Fires at the times of a wall clock in a zone, each existing local day as cron(8) does.

    APScheduler's own arithmetic across a change of the clocks skips days, so its fields count on a wall clock
    without changes (UTC), and zoneinfo says when that time is. A time that the clocks skip comes that much
    later (PEP 495); one that they repeat comes once where hours are fixed, twice where every hour counts.
    """

    def __init__(self, wall: CronTrigger, zone: ZoneInfo, *, every_hour: bool) -> None:
        self._wall = wall
        self._zone = zone
        self._folds = (0, 1) if every_hour else (0,)

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime | None:
        """The first firing after `previous_fire_time`, or from `now` on."""
        after = previous_fire_time or now - timedelta(microseconds=1)
        first: datetime | None = None
        for wall in self._wall_times(self._begin(after)):
            times = [wall.replace(tzinfo=self._zone, fold=fold).astimezone(UTC) for fold in self._folds]
            first = min((at for at in (*times, first) if at is not None and at > after), default=None)
            if first is not None and wall >= first.astimezone(self._zone).replace(tzinfo=None):
                break
        return first and first.astimezone(self._zone)

    def _begin(self, after: datetime) -> datetime:
        """From where on the wall clock a firing after `after` may come: before it where the clocks change."""
        around = {(after + step).astimezone(self._zone).utcoffset() for step in (-_CHANGE, _CHANGE)}
        wall = after.astimezone(self._zone).replace(tzinfo=None)
        return wall if len(around) == 1 else wall - _CHANGE

    def _wall_times(self, since: datetime) -> Iterator[datetime]:
        """Times on the wall clock from `since` on, without zone."""
        at = self._wall.get_next_fire_time(None, since.replace(tzinfo=UTC))
        while at is not None:
            yield at.replace(tzinfo=None)
            at = self._wall.get_next_fire_time(at, at)


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
        bounded = CronTrigger(**named, day_of_week=weekday, timezone=UTC, end_date=_LAST)
        wall = CronTrigger(**named, day_of_week=weekday, timezone=UTC)
    except (ValueError, TypeError) as error:
        raise ValueError(f"cron {expression!r} is not valid: {error}") from error
    if bounded.get_next_fire_time(None, _FIRST) is None:
        raise ValueError(f"cron {expression!r} never comes")
    return Trigger(wall, zone, every_hour=_ANY_HOUR.fullmatch(named["hour"]) is not None)


def firings_after(trigger: Trigger, after: datetime) -> Iterator[datetime]:
    """Every firing later than `after`, in UTC."""
    fire_at = trigger.get_next_fire_time(after, after)
    while fire_at is not None:
        yield fire_at.astimezone(UTC)
        fire_at = trigger.get_next_fire_time(fire_at, fire_at)


def next_firings(trigger: Trigger, after: datetime, count: int) -> list[datetime]:
    """The next `count` firings later than `after`, in UTC."""
    return list(islice(firings_after(trigger, after), count))


def firings_before(trigger: Trigger, after: datetime, until: datetime, limit: int) -> list[datetime]:
    """The firings after `after` and before `until` in UTC, oldest first, at most the first `limit`."""
    return list(islice(takewhile(lambda at: at < until, firings_after(trigger, after)), limit))


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
