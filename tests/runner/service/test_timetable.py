"""When schedules fire: clock steps, daylight saving, sleep, pauses, several services, a database away."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import DatabaseError
from compilewatch.db.records.requests import RequestState, ScheduleSpec
from compilewatch.db.service.requests import end_request, queue, take_request
from compilewatch.db.service.schedules import MISSED_ROWS, SCHEDULES, firings, pause_schedule, resume_schedule
from compilewatch.runner.service.timetable import UPCOMING_FIRINGS, Host, Timetable
from tests.runner.fake_clock import FakeClock, SteppedScheduler

START = datetime(2026, 11, 20, 22, 10, tzinfo=UTC)
HOURLY = ScheduleSpec(cron="0 * * * *", suite="smoke")
Start = Callable[..., Timetable]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    clock = FakeClock(START)
    clock.install(monkeypatch)
    return clock


@pytest.fixture
def start(sqlite_database: Database, clock: FakeClock) -> Start:
    """Starts one more service on the test's database."""

    def start(name: str = "host", database: Any = sqlite_database, **configured: ScheduleSpec) -> Timetable:
        timetable = Timetable(
            database, SteppedScheduler(), Host(name, f"{name}:1"), configured or {"hourly": HOURLY}, clock
        )
        timetable.start()
        return timetable

    return start


def at(hour: int, minute: int = 0, day: int = 20) -> datetime:
    return START.replace(day=day, hour=hour, minute=minute)


def fired(database: Database, name: str = "hourly") -> list[tuple[datetime, str, int]]:
    """(when, outcome, how many it stands for), oldest first."""
    stored = reversed(firings(database, name, limit=10_000))
    return [(each.fire_at, each.outcome.value, each.firings) for each in stored]


def missed(since: datetime, count: int) -> list[tuple[datetime, str, int]]:
    """The rows of so many hourly firings that nobody noticed."""
    return [(since + timedelta(hours=hour), "missed", 1) for hour in range(count)]


def finish_all(database: Database, now: datetime) -> None:
    while request := take_request(database, owner="me", at=now, fits=lambda _request: True):
        end_request(database, request.request_id, RequestState.FINISHED, owner="me", at=now)


def test_a_due_schedule_queues_its_suite_for_this_host(
    start: Start, clock: FakeClock, sqlite_database: Database
) -> None:
    timetable = start()
    assert [each.next_run_at for each in SCHEDULES.all(sqlite_database)] == [at(23)]
    clock.now = at(23, 0) + timedelta(seconds=3)
    timetable.reconcile()
    assert fired(sqlite_database) == [(at(23), "queued", 1)]
    (request,) = queue(sqlite_database)
    assert (request.kind, request.asked_by) == ("schedule", "schedule hourly")
    assert (request.spec.suite, request.spec.machine) == ("smoke", "host")
    timetable.reconcile()
    assert len(queue(sqlite_database)) == 1
    (planned,) = SCHEDULES.all(sqlite_database)
    assert planned.next_run_at == at(0, day=21)
    assert planned.upcoming == tuple(at(hour, day=21) for hour in range(UPCOMING_FIRINGS))


def test_asleep_over_three_firings_fires_once_and_misses_two(
    start: Start, clock: FakeClock, sqlite_database: Database
) -> None:
    timetable = start()
    clock.now = at(1, 20, day=21)
    timetable.reconcile()
    assert fired(sqlite_database) == [*missed(at(23), 2), (at(1, day=21), "queued", 1)]
    assert len(queue(sqlite_database)) == 1


def test_stopped_over_three_firings_fires_once_and_misses_two(
    start: Start, clock: FakeClock, sqlite_database: Database
) -> None:
    start().stop()
    clock.now = at(1, 20, day=21)
    start()
    assert fired(sqlite_database) == [*missed(at(23), 2), (at(1, day=21), "queued", 1)]


def test_a_silence_of_years_has_rows_for_its_newest_firings(
    start: Start, clock: FakeClock, sqlite_database: Database
) -> None:
    start().stop()
    hours = MISSED_ROWS + 50
    clock.now = at(23) + timedelta(hours=hours)
    start()
    stored = fired(sqlite_database)
    assert stored[:-1] == missed(at(23) + timedelta(hours=50), MISSED_ROWS)
    assert stored[-1] == (clock.now, "queued", 51)


def test_what_is_noticed_after_an_hour_is_missed(
    start: Start, clock: FakeClock, sqlite_database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    nightly = ScheduleSpec(cron="0 3 * * *")
    start(nightly=nightly).stop()
    clock.now = at(9, day=21)
    with caplog.at_level(logging.WARNING, "compilewatch.schedule"):
        start(nightly=nightly)
    assert fired(sqlite_database, "nightly") == [(at(3, day=21), "missed", 1)]
    assert queue(sqlite_database) == []
    assert "Schedule nightly missed its firing of 2026-11-21T03:00:00" in caplog.text


def test_a_clock_that_jumps_back_fires_nothing_twice(
    start: Start, clock: FakeClock, sqlite_database: Database
) -> None:
    timetable = start()
    for moment in (at(23, 1), at(22, 30), at(23, 1)):
        clock.now = moment
        timetable.reconcile()
    timetable.stop()
    clock.now = at(22, 30)
    restarted = start()
    clock.now = at(23, 1)
    restarted.reconcile()
    assert fired(sqlite_database) == [(at(23), "queued", 1)]
    finish_all(sqlite_database, clock.now)
    clock.now = at(0, 1, day=21)
    restarted.reconcile()
    assert [when for when, _, _ in fired(sqlite_database)] == [at(23), at(0, day=21)]


@pytest.mark.parametrize("restarts", [True, False])
def test_a_clock_that_once_ran_a_year_ahead_does_not_silence_a_schedule(
    start: Start, clock: FakeClock, sqlite_database: Database, restarts: bool
) -> None:
    timetable = start()
    clock.now = START.replace(year=2027)
    timetable.reconcile()
    finish_all(sqlite_database, clock.now)
    clock.now = START
    if restarts:
        timetable.stop()
        timetable = start()
    timetable.reconcile()
    clock.now = at(23, 1)
    timetable.reconcile()
    assert (at(23), "queued", 1) in fired(sqlite_database)


@pytest.mark.parametrize(
    ("begin", "expected"),
    [
        (datetime(2026, 10, 24, 12, tzinfo=UTC), ["10-25 00:30", "10-26 01:30"]),
        (datetime(2026, 3, 28, 12, tzinfo=UTC), ["03-29 01:30", "03-30 00:30"]),
    ],
    ids=["clocks go back", "clocks go forward"],
)
def test_daylight_saving_neither_skips_nor_doubles_a_night(
    start: Start, clock: FakeClock, sqlite_database: Database, begin: datetime, expected: list[str]
) -> None:
    clock.now = begin
    timetable = start(nightly=ScheduleSpec(cron="30 2 * * *", timezone="Europe/Berlin"))
    for quarter in range(1, 2 * 24 * 4):
        clock.now = begin + timedelta(minutes=15 * quarter)
        timetable.reconcile()
        finish_all(sqlite_database, clock.now)
    assert [f"{when:%m-%d %H:%M}" for when, _, _ in fired(sqlite_database, "nightly")] == expected
    assert {outcome for _, outcome, _ in fired(sqlite_database, "nightly")} == {"queued"}


def test_a_firing_while_the_last_one_is_measured_is_an_overrun(
    start: Start, clock: FakeClock, sqlite_database: Database
) -> None:
    timetable = start()
    for hour in (23, 24, 25):
        clock.now = at(0) + timedelta(hours=hour, seconds=1)
        timetable.reconcile()
    assert [outcome for _, outcome, _ in fired(sqlite_database)] == ["queued", "overrun", "overrun"]
    assert len(queue(sqlite_database)) == 1


def test_a_paused_schedule_is_silent_and_resumes_without_a_backlog(
    start: Start, clock: FakeClock, sqlite_database: Database
) -> None:
    timetable = start()
    pause_schedule(sqlite_database, "hourly", by="ann", at=clock.now)
    timetable.reconcile()
    clock.now = at(2, 30, day=21)
    timetable.reconcile()
    assert fired(sqlite_database) == []
    assert [each.next_run_at for each in SCHEDULES.all(sqlite_database)] == [None]
    resume_schedule(sqlite_database, "hourly", by="ann", at=clock.now)
    timetable.reconcile()
    assert fired(sqlite_database) == []
    clock.now = at(3, 0, day=21)
    timetable.reconcile()
    assert fired(sqlite_database) == [(at(3, day=21), "queued", 1)]


def test_two_services_fire_once(start: Start, clock: FakeClock, sqlite_database: Database) -> None:
    services = [start("host"), start("other")]
    clock.now = at(23, 0)
    for service in services:
        service.reconcile()
    assert fired(sqlite_database) == [(at(23), "queued", 1)]
    assert len(queue(sqlite_database)) == 1


def test_a_schedule_for_other_machines_is_left_to_them(
    start: Start, clock: FakeClock, sqlite_database: Database
) -> None:
    spec = HOURLY.model_copy(update={"machine": "gpu-*"})
    here, there = start("host", hourly=spec), start("gpu-7", hourly=spec)
    clock.now = at(23, 0)
    here.reconcile()
    assert fired(sqlite_database) == []
    there.reconcile()
    assert [request.spec.machine for request in queue(sqlite_database)] == ["gpu-*"]


@pytest.mark.parametrize("machine", [None, "h200", "tpu"])
def test_where_workers_measure_a_firing_is_for_them_and_not_for_the_services_host(
    machine: str | None, clock: FakeClock, sqlite_database: Database
) -> None:
    timetable = Timetable(
        sqlite_database,
        SteppedScheduler(),
        Host("boss", "boss:1"),
        {"hourly": HOURLY.model_copy(update={"machine": machine})},
        clock,
        elsewhere=lambda asked: asked in {None, "h200"},
    )
    timetable.start()
    clock.now = at(23, 0)
    timetable.reconcile()
    assert [request.spec.machine for request in queue(sqlite_database)] == [machine] * (machine != "tpu")


def test_a_schedule_that_left_the_configuration_fires_no_more(
    start: Start, clock: FakeClock, sqlite_database: Database
) -> None:
    start().stop()
    timetable = start(other=HOURLY)
    clock.now = at(23, 0)
    timetable.reconcile()
    assert fired(sqlite_database) == []
    assert len(fired(sqlite_database, "other")) == 1


class FailingDatabase:
    """A database that is away while `is_away`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.is_away = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    @contextmanager
    def write(self) -> Any:
        if self.is_away:
            raise DatabaseError("No PostgreSQL server answers.", "Start the server.")
        with self._database.write() as connection:
            yield connection


def test_a_firing_while_the_database_is_away_is_claimed_when_it_is_back(
    start: Start, clock: FakeClock, sqlite_database: Database
) -> None:
    failing = FailingDatabase(sqlite_database)
    timetable = start(database=failing)
    failing.is_away = True
    clock.now = at(23, 0)
    timetable.reconcile()
    assert fired(sqlite_database) == []
    failing.is_away = False
    clock.now = at(23, 10)
    timetable.reconcile()
    assert fired(sqlite_database) == [(at(23), "queued", 1)]


def test_a_firing_that_a_later_one_stands_for_is_not_claimed_any_more(
    start: Start, clock: FakeClock, sqlite_database: Database
) -> None:
    """As by a service that was stopped between being due and claiming, while another went on."""
    late = start("late")
    start("host")
    clock.now = at(0, 1, day=21)
    other = start("other")
    other.reconcile()
    assert fired(sqlite_database) == [*missed(at(23), 1), (at(0, day=21), "queued", 1)]
    finish_all(sqlite_database, clock.now)
    assert late.fire("hourly", at(23)) is None
    assert fired(sqlite_database) == [*missed(at(23), 1), (at(0, day=21), "queued", 1)]
    assert queue(sqlite_database) == []
