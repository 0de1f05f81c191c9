"""How soon pages take up new data: a write alone at once, a stream of writes as fast as it is prepared."""

from __future__ import annotations

import time
from dataclasses import dataclass

import pytest

from dashboard.read.database import DATABASE_VARIABLE
from dashboard.read.refresh_throttle import LONGEST_S, RefreshThrottle
from dashboard.read.snapshots import REFRESH_THROTTLE, Snapshot, cached
from db.engine.session import open_database
from db.store.trials import save_trial
from tests.builders import make_trial

URL = "sqlite:///a.db"


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


def burn(processor_s: float) -> str:
    """Spend that much processor time; for `Pace.timed`."""
    end = time.thread_time() + processor_s
    while time.thread_time() < end:
        pass
    return "burnt"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def pace(clock: Clock) -> RefreshThrottle:
    return RefreshThrottle(share=100, clock=clock)


def test_a_write_that_comes_alone_is_taken_up_at_once(pace: RefreshThrottle) -> None:
    assert [pace.take(URL, version) for version in (7, 7, 8, 9)] == [7, 7, 8, 9]


def test_the_next_version_waits_for_what_the_last_one_cost(pace: RefreshThrottle, clock: Clock) -> None:
    assert pace.take(URL, 7) == 7
    assert pace.timed(burn)(0.02) == "burnt"
    assert pace.take(URL, 8) == 7
    clock.now += 1.9
    assert pace.take(URL, 9) == 7
    clock.now += 2.0
    assert pace.take(URL, 10) == 10
    assert pace.take(URL, 11) == 11


def test_nothing_waits_longer_than_the_longest(pace: RefreshThrottle, clock: Clock) -> None:
    pace.take(URL, 7)
    pace.timed(burn)(0.1)
    clock.now += LONGEST_S - 0.01
    assert pace.take(URL, 8) == 7
    clock.now += 0.01
    assert pace.take(URL, 8) == 8


def test_who_writes_here_sees_it_with_the_next_page(pace: RefreshThrottle) -> None:
    pace.take(URL, 7)
    pace.timed(burn)(0.02)
    pace.catch_up()
    pace.timed(burn)(0.02)
    assert pace.take(URL, 8) == 8


def test_another_database_waits_for_nothing(pace: RefreshThrottle) -> None:
    pace.take(URL, 7)
    pace.timed(burn)(0.02)
    assert pace.take("sqlite:///b.db", 3) == 3


def test_what_is_called_within_is_counted_once(pace: RefreshThrottle, clock: Clock) -> None:
    inner = pace.timed(burn)
    pace.take(URL, 7)
    pace.timed(lambda: inner(0.02))()
    clock.now += 3.9
    assert pace.take(URL, 8) == 8


def test_what_was_kept_is_forgotten_with_another_version(pace: RefreshThrottle) -> None:
    forgotten = []
    pace.at_another(lambda: forgotten.append("frames"))
    for version in (7, 7, 8):
        pace.take(URL, version)
    assert len(forgotten) == 2


def test_frames_of_earlier_versions_are_let_go(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a server over a database that is written to fills its memory with what nobody asks for."""
    monkeypatch.setenv(DATABASE_VARIABLE, sqlite_url)
    seen = []

    @cached
    def frame(snapshot: Snapshot) -> int:
        seen.append(snapshot.version)
        return snapshot.version

    first = Snapshot.now()
    assert frame(first) == frame(first)
    with open_database(sqlite_url) as database:
        save_trial(database, make_trial())
    REFRESH_THROTTLE.catch_up()
    second = Snapshot.now()
    assert second.version > first.version
    frame(second)
    frame(first)
    assert seen == [first.version, second.version, first.version]
