"""A whole service whose host's clock is set: forwards, backwards, and over both changes of summer time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Event, Thread

import pytest

from db.engine.session import Database
from db.queries.service.schedules import firings, requests, schedules
from db.records.requests import RequestState
from runner.config.settings import ScheduleSettings, Settings, SuiteSettings
from runner.plan import builds
from runner.service import keeper
from runner.service.measures import Here
from runner.service.service import Service
from runner.service.timetable import Host
from tests.runner.fake_clock import FakeClock
from tests.runner.service.test_service import FACTS, Measuring, ask

# What takes a tenth of a second alone may take this long beside other tests.
PATIENCE_S = 60.0


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builds, "check_interpreter", lambda _python: FACTS)
    monkeypatch.setattr(keeper, "BEAT_S", 0.05)
    monkeypatch.setattr(keeper, "RECONCILE_S", 0.05)


@contextmanager
def service(database: Database, data: Path, clock: FakeClock, cron: str, zone: str) -> Iterator[Measuring]:
    settings = Settings(
        data_dir=data,
        service={"watch_builds": False},
        schedule=(ScheduleSettings(name="nightly", cron=cron, timezone=zone, suite="short"),),
        suite=(SuiteSettings(name="short", workloads=("elementwise",), strategies=("eager",), trials=1),),
    )
    measure, stop = Measuring(), Event()
    one = Service(settings, database, Here(measure), host=Host("host", "host:1"), clock=clock)
    thread = Thread(target=one.run, args=(stop,))
    thread.start()
    try:
        yield measure
    finally:
        stop.set()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def wait_until(is_so: Callable[[], bool], what: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, what()
        time.sleep(0.05)


def fired(database: Database) -> list[str]:
    queued = [each for each in reversed(firings(database, "nightly")) if each.request_id]
    return [f"{each.fire_at:%m-%d %H:%M}" for each in queued]


def all_finished(database: Database, count: int) -> bool:
    states = [request.state for request in requests(database)]
    return states == [RequestState.FINISHED] * count


def is_planned(database: Database) -> bool:
    return [schedule.next_run_at is not None for schedule in schedules(database)] == [True]


def test_a_clock_that_is_set_forwards_and_backwards(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = datetime(2026, 11, 20, 22, 10, tzinfo=UTC)
    clock = FakeClock(start)
    clock.install(monkeypatch)
    with service(database, tmp_path, clock, "0 * * * *", "UTC") as measure:
        wait_until(lambda: is_planned(database), lambda: "not planned")
        clock.now = start + timedelta(hours=3)
        wait_until(lambda: all_finished(database, 1), lambda: requests(database))
        assert fired(database) == ["11-21 01:00"]
        clock.now = start - timedelta(hours=5)
        # What is asked is still measured, and its moments do not contradict each other.
        ask(database, "by hand")
        wait_until(lambda: all_finished(database, 2), lambda: requests(database))
        clock.now = start + timedelta(hours=3, seconds=1)
        time.sleep(0.5)
        assert fired(database) == ["11-21 01:00"]
        clock.now = start + timedelta(hours=4)
        wait_until(lambda: all_finished(database, 3), lambda: requests(database))
    assert fired(database) == ["11-21 01:00", "11-21 02:00"]
    assert [firing.outcome for firing in firings(database, "nightly")] == [
        "queued",
        "queued",
        "missed",
        "missed",
    ]
    assert len(measure.plans) == 3


@pytest.mark.parametrize(
    ("begin", "expected"),
    [
        (datetime(2026, 10, 24, 22, tzinfo=UTC), ["10-25 00:30", "10-26 01:30"]),
        (datetime(2026, 3, 28, 22, tzinfo=UTC), ["03-29 01:30", "03-30 00:30"]),
    ],
    ids=["clocks go back", "clocks go forward"],
)
def test_daylight_saving_measures_each_night_once(
    sqlite_database: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    begin: datetime,
    expected: list[str],
) -> None:
    clock = FakeClock(begin)
    clock.install(monkeypatch)
    with service(sqlite_database, tmp_path, clock, "30 2 * * *", "Europe/Berlin"):
        wait_until(lambda: is_planned(sqlite_database), lambda: "not planned")
        for night, fire_at in enumerate(expected, start=1):
            due = datetime.strptime(f"2026-{fire_at}", "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
            for moment in (due - timedelta(minutes=1), due, due + timedelta(minutes=59)):
                clock.now = moment
                time.sleep(0.3)
            clock.now = due + timedelta(minutes=61)
            wait_until(partial(all_finished, sqlite_database, night), partial(fired, sqlite_database))
    assert fired(sqlite_database) == expected
    assert {firing.outcome for firing in firings(sqlite_database, "nightly")} == {"queued"}
