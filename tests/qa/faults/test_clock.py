"""Somebody sets the clock by an hour, forward or back, in the middle of a run and of a schedule."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from compilewatch.db.records.requests import FiringOutcome, RequestState
from compilewatch.db.records.trial import Status, Trial, parse_trial
from compilewatch.db.service.requests import requests
from compilewatch.db.service.schedules import firings
from tests.qa.faults.clock import set_clock
from tests.qa.faults.conftest import Tally
from tests.qa.faults.invariants import expect_all_is_well
from tests.qa.faults.place import Place, database_of
from tests.qa.faults.runner_process import running
from tests.qa.faults.service_process import SCHEDULE, ServiceProcess, serving

_ROUNDS = 3
_HOUR = timedelta(hours=1)
jumps = pytest.mark.parametrize("jump", [_HOUR, -_HOUR], ids=["forward", "back"])


@pytest.fixture(params=["place", "server_place"], ids=["sqlite", "postgresql"])
def somewhere(request: pytest.FixtureRequest) -> Place:
    place: Place = request.getfixturevalue(request.param)
    return place


@pytest.mark.faults
@pytest.mark.timeout(1200)
@jumps
def test_in_the_middle_of_a_run(
    somewhere: Place, jump: timedelta, tmp_path: Path, tally: Tally, numbered: Callable[[str], str]
) -> None:
    """Durations and deadlines come from the monotonic clock; the wall clock only labels."""
    clock = tmp_path / "clock"
    acknowledged: list[str] = []
    in_the_middle = 0
    for number in range(_ROUNDS):
        with tally.fault("clock of a run", f"set by {jump}"):
            with running(somewhere, numbered("run"), ["slow"] * 6, clock=clock) as runner:
                runner.when_there_is_one(2)
                time.sleep(0.3 * number)
                set_clock(clock, jump)
                assert runner.wait() == 0
            acknowledged += runner.finished
            assert len(runner.finished) == 6
            aside = _set_aside(somewhere, jump)
            stored = expect_all_is_well(somewhere, set(acknowledged) - aside.keys())
            of_run = [stored.get(trial) or aside[trial] for trial in runner.finished]
            assert {trial.status for trial in of_run} == {Status.OK}
            moments = [trial.started_at for trial in of_run]
            in_the_middle += max(moments) - min(moments) > _HOUR / 2
    assert in_the_middle > _ROUNDS // 3


@pytest.mark.faults
@pytest.mark.timeout(1200)
@jumps
def test_in_the_middle_of_a_schedule(
    somewhere: Place, jump: timedelta, tmp_path: Path, tally: Tally, numbered: Callable[[str], str]
) -> None:
    """No firing is done twice, what is being measured stays with its service, and the schedule goes on."""
    clock = tmp_path / "clock"
    acknowledged: list[str] = []
    for number in range(_ROUNDS):
        with tally.fault("clock of a service", f"set by {jump}"):
            with serving(somewhere, numbered("service"), clock=clock) as service:
                service.wait_until_it_serves()
                time.sleep(1.0 + 0.3 * number)
                set_clock(clock, jump)
                if _is_noticed(somewhere, jump):
                    _wait_until(service, lambda: "Set the clock of this host" in service.said())
                    set_clock(clock, timedelta(0))
                wanted = len(service.acknowledged()) + 2
                _wait_until(service, lambda wanted=wanted: len(service.acknowledged()) >= wanted)
                assert service.stop() == 0
            assert "Traceback" not in service.said(), service.said()[-2000:]
            acknowledged += service.acknowledged()
            expect_all_is_well(somewhere, set(acknowledged) - _set_aside(somewhere, jump).keys())
    with database_of(somewhere) as database:
        fired = firings(database, SCHEDULE, limit=10_000)
        asked = {request.request_id: request for request in requests(database, limit=10_000)}
    times = [firing.fire_at for firing in fired]
    assert len(times) == len(set(times))
    queued = [firing.request_id for firing in fired if firing.outcome is FiringOutcome.QUEUED]
    assert sorted(queued) == sorted(asked)
    assert {request.attempts for request in asked.values() if request.state is RequestState.FINISHED} == {1}


def _wait_until(service: ServiceProcess, is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 180.0
    while not is_so():
        assert time.monotonic() < deadline, service.said()[-2000:]
        time.sleep(0.1)


def _is_noticed(place: Place, jump: timedelta) -> bool:
    """Whether the database, whose own clock is right, refuses what is measured at an hour that is not yet."""
    return jump > timedelta(0) and place.url.startswith("postgresql")


def _set_aside(place: Place, jump: timedelta) -> dict[str, Trial]:
    """The trials that the database refused, with the reason beside each."""
    found = {path.stem: parse_trial(path.read_text()) for path in place.spool.directory.glob("bad/*.json")}
    for reason in place.spool.directory.glob("bad/*.reason.txt"):
        assert "not yet" in reason.read_text()
    assert not found or _is_noticed(place, jump)
    return found
