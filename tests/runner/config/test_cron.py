"""Crontab expressions mean here what they mean in crontab, through daylight saving and all."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise, takewhile
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compilewatch.db.errors import ConfigError
from compilewatch.runner.config.cron import firings_after, firings_before, next_firings, parse_cron
from compilewatch.runner.config.sources import load_settings

# A Friday.
NOW = datetime(2026, 11, 20, 22, 0, tzinfo=UTC)


def days(cron: str, count: int = 3) -> list[str]:
    return [f"{at:%a}" for at in next_firings(parse_cron(cron), NOW, count)]


def times(cron: str, timezone: str, after: datetime, count: int) -> list[str]:
    return [f"{at:%m-%d %H:%M}" for at in next_firings(parse_cron(cron, timezone), after, count)]


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("0 3 * * 1", ["Mon", "Mon", "Mon"]),
        ("0 3 * * mon", ["Mon", "Mon", "Mon"]),
        ("0 3 * * 0", ["Sun", "Sun", "Sun"]),
        ("0 3 * * 7", ["Sun", "Sun", "Sun"]),
        ("0 3 * * 1-5", ["Mon", "Tue", "Wed"]),
        ("0 3 * * MON-FRI", ["Mon", "Tue", "Wed"]),
        ("0 3 * * 5-7", ["Sat", "Sun", "Fri"]),
        ("0 3 * * sat-mon", ["Sat", "Sun", "Mon"]),
        ("0 3 * * */2", ["Sat", "Sun", "Tue"]),
        ("0 3 * * 1,3", ["Mon", "Wed", "Mon"]),
        ("0 3 * * 0-7", ["Sat", "Sun", "Mon"]),
        ("@daily", ["Sat", "Sun", "Mon"]),
        ("@weekly", ["Sun", "Sun", "Sun"]),
    ],
)
def test_weekdays_are_those_of_crontab(cron: str, expected: list[str]) -> None:
    assert days(cron) == expected


@pytest.mark.parametrize(
    ("cron", "timezone", "complaint"),
    [
        ("0 3 * *", "UTC", "five fields"),
        ("@reboot", "UTC", "five fields"),
        ("0 3 1 * mon", "UTC", "make two schedules"),
        ("0 0 31 2 *", "UTC", "never comes"),
        ("61 * * * *", "UTC", "not valid"),
        ("*/0 * * * *", "UTC", "not valid"),
        ("0 3 * * 8", "UTC", "neither a number from 0 to 7"),
        ("0 3 * * mo", "UTC", "neither a number from 0 to 7"),
        ("0 3 * * xyz", "UTC", "neither a number from 0 to 7"),
        ("0 3 * * *", "Mars/Olympus", "no time zone"),
        ("0 3 * * *", "../../etc/passwd", "no time zone"),
    ],
)
def test_what_is_no_schedule_is_refused(cron: str, timezone: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse_cron(cron, timezone)


def test_a_fixed_hour_fires_once_when_the_clocks_go_back() -> None:
    evening = datetime(2026, 10, 24, 20, 0, tzinfo=UTC)
    assert times("30 2 * * *", "Europe/Berlin", evening, 3) == ["10-25 00:30", "10-26 01:30", "10-27 01:30"]


def test_every_hour_means_every_real_hour_when_the_clocks_go_back() -> None:
    night = datetime(2026, 10, 24, 23, 0, tzinfo=UTC)
    expected = ["10-24 23:30", "10-25 00:30", "10-25 01:30", "10-25 02:30"]
    assert times("30 * * * *", "Europe/Berlin", night, 4) == expected


def test_an_hour_that_the_clocks_skip_fires_once_an_hour_later() -> None:
    evening = datetime(2026, 3, 28, 20, 0, tzinfo=UTC)
    assert times("30 2 * * *", "Europe/Berlin", evening, 3) == ["03-29 01:30", "03-30 00:30", "03-31 00:30"]


def test_a_leap_day_comes() -> None:
    assert times("0 3 29 2 *", "UTC", NOW, 1) == ["02-29 03:00"]


def test_firings_before_a_moment_come_up_to_a_limit() -> None:
    hourly = parse_cron("@hourly")
    later = NOW.replace(hour=23, minute=59)
    assert firings_before(hourly, NOW, later, 10) == next_firings(hourly, NOW, 1)
    assert len(firings_before(hourly, NOW.replace(day=1), NOW, 10)) == 10


def test_a_wrong_schedule_is_said_with_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    content = '[[schedule]]\nname = "nightly"\ncron = "0 3 1 * mon"\n'
    Path("compilewatch.toml").write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"make two schedules.*in \[\[schedule\]\] nightly"):
        load_settings()


ZONES = (
    "Africa/Cairo", "Africa/Casablanca", "America/Asuncion", "America/Havana", "America/Los_Angeles",
    "America/New_York", "America/Santiago", "America/Scoresbysund", "America/St_Johns", "Antarctica/Troll",
    "Asia/Beirut", "Asia/Jerusalem", "Asia/Kathmandu", "Atlantic/Azores", "Australia/Lord_Howe",
    "Australia/Sydney", "Europe/Berlin", "Europe/Chisinau", "Europe/Lisbon", "Europe/London",
    "Pacific/Auckland", "UTC",
)  # fmt: skip


@given(
    zone=st.sampled_from(ZONES),
    year=st.integers(2026, 2035),
    hour=st.integers(0, 23),
    minute=st.integers(0, 59),
)
@example(zone="Europe/Berlin", year=2026, hour=0, minute=0)
@example(zone="America/Santiago", year=2026, hour=0, minute=30)
@example(zone="America/Scoresbysund", year=2026, hour=23, minute=30)
def test_a_daily_schedule_fires_once_for_every_local_day(
    zone: str, year: int, hour: int, minute: int
) -> None:
    """Where that time of a day does not exist, at most as much later as the clock is put forward: it may be
    the next day by then.
    """
    there = ZoneInfo(zone)
    first, last = (datetime(of, 1, 1, tzinfo=there).astimezone(UTC) for of in (year, year + 1))
    trigger = parse_cron(f"{minute} {hour} * * *", zone)
    fired = takewhile(lambda at: at < last, firings_after(trigger, first - timedelta(microseconds=1)))
    length = (datetime(year + 1, 1, 1) - datetime(year, 1, 1)).days  # noqa: DTZ001 days of a calendar
    asked = [datetime(year, 1, 1, hour, minute, tzinfo=there) + timedelta(day) for day in range(length)]
    beside = [at - wanted.astimezone(UTC) for at, wanted in zip(fired, asked, strict=True)]
    assert max(map(abs, beside)) <= timedelta(hours=2)
    assert sum(map(bool, beside)) <= 2


@given(zone=st.sampled_from(ZONES), year=st.integers(2026, 2035), weekday=st.integers(0, 7))
def test_weekly_and_monthly_schedules_skip_nothing(zone: str, year: int, weekday: int) -> None:
    there = ZoneInfo(zone)
    first, last = (datetime(of, 1, 1, tzinfo=there).astimezone(UTC) for of in (year, year + 1))
    for cron, least, most in ((f"0 0 * * {weekday}", 52, 53), ("@monthly", 12, 12)):
        fired = list(
            takewhile(
                lambda at: at < last,
                firings_after(parse_cron(cron, zone), first - timedelta(microseconds=1)),
            )
        )
        assert least <= len({at.astimezone(there).date() for at in fired}) == len(fired) <= most


@given(zone=st.sampled_from(ZONES), start=st.datetimes(datetime(2026, 1, 1), datetime(2035, 12, 31)))  # noqa: DTZ001
def test_every_quarter_of_an_hour_is_a_real_quarter(zone: str, start: datetime) -> None:
    fired = next_firings(parse_cron("*/15 * * * *", zone), start.replace(tzinfo=UTC), 20)
    assert {later - earlier for earlier, later in pairwise(fired)} == {timedelta(minutes=15)}
