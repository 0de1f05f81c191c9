"""How soon pages take up new data: a write alone at once, of a stream of writes one every few seconds."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from compilewatch.dashboard.read.database import DATABASE_VARIABLE
from compilewatch.dashboard.read.versions import (
    EVERY_S,
    REFRESH_THROTTLE,
    RefreshThrottle,
    cached,
    drawn_version,
    one_version,
)
from compilewatch.db.engine.session import open_database
from compilewatch.db.store.trials import save_trial
from tests.builders import make_trial

URL = "sqlite:///a.db"


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def throttle(clock: Clock) -> RefreshThrottle:
    return RefreshThrottle(clock=clock)


def test_of_a_stream_of_writes_one_is_taken_up_at_a_time(throttle: RefreshThrottle, clock: Clock) -> None:
    assert [throttle.take(URL, version) for version in (7, 7, 8)] == [7, 7, 7]
    clock.now += EVERY_S - 0.01
    assert throttle.take(URL, 9) == 7
    clock.now += 0.01
    assert [throttle.take(URL, version) for version in (10, 11)] == [10, 10]


def test_a_write_that_comes_alone_is_taken_up_at_once(throttle: RefreshThrottle, clock: Clock) -> None:
    throttle.take(URL, 7)
    clock.now += EVERY_S
    assert throttle.take(URL, 8) == 8


def test_who_writes_here_sees_it_with_the_next_page(throttle: RefreshThrottle) -> None:
    throttle.take(URL, 7)
    throttle.catch_up()
    assert throttle.take(URL, 8) == 8


def test_another_database_waits_for_nothing(throttle: RefreshThrottle) -> None:
    throttle.take(URL, 7)
    assert throttle.take("sqlite:///b.db", 3) == 3


def test_what_was_kept_is_forgotten_with_another_version() -> None:
    throttle, forgotten = RefreshThrottle(every_s=0), []
    throttle.at_another(lambda: forgotten.append("frames"))
    for version in (7, 7, 8):
        throttle.take(URL, version)
    assert len(forgotten) == 2


def test_frames_of_earlier_versions_are_let_go(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a server over a database that is written to fills its memory with what nobody asks for."""
    monkeypatch.setenv(DATABASE_VARIABLE, sqlite_url)
    seen = []

    @cached
    def frame() -> int:
        seen.append(drawn_version())
        return drawn_version()

    first = frame()
    assert frame() == first
    with one_version(), open_database(sqlite_url) as database:
        save_trial(database, make_trial())
        REFRESH_THROTTLE.catch_up()
        # What is drawn meanwhile is of one version.
        assert frame() == drawn_version() == first
    second = frame()
    assert second > first
    assert frame() == second
    assert seen == [first, second]
