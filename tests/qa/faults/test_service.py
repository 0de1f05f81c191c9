"""`compilewatch schedule` killed or stopped at random moments while a schedule is due every second."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest

from compilewatch.db.records.requests import ATTEMPTS, UNFINISHED, FiringOutcome, RequestState
from compilewatch.db.records.trial import Status, Trial
from compilewatch.db.service.requests import requests, unended_runs
from compilewatch.db.service.schedules import firings
from tests.qa.faults.conftest import ROUNDS, Tally
from tests.qa.faults.invariants import expect_all_is_well
from tests.qa.faults.place import Place, database_of
from tests.qa.faults.service_process import LEASE_S, SCHEDULE, ServiceProcess, serving

_LONGEST_S = 2.0
_SHARE_STARTING = 0.2
_WORKED_OFF_WITHIN_S = 60.0
_ALL = 10_000


@pytest.mark.faults
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("somewhere", ["place", "server_place"], ids=["sqlite", "postgresql"])
def test_the_service_is_killed_with_a_firing_due(
    somewhere: str, request: pytest.FixtureRequest, tally: Tally, numbered: Callable[[str], str]
) -> None:
    place: Place = request.getfixturevalue(somewhere)
    chance = random.Random(20261121)
    acknowledged: list[str] = []
    cut_short = 0
    for _ in range(ROUNDS):
        with tally.fault("service", "kill -9 at a random moment, a firing due"):
            with serving(place, numbered("service")) as service:
                if chance.random() > _SHARE_STARTING:
                    service.wait_until_it_serves()
                time.sleep(chance.uniform(0.0, _LONGEST_S))
                service.send(signal.SIGKILL)
                assert service.wait() == -signal.SIGKILL
            acknowledged += service.acknowledged()
            cut_short += bool(_unfinished(place))
            expect_all_is_well(place, acknowledged)
            _expect_one_line_each(service)
    assert cut_short > ROUNDS // 4, "the kills came at moments in which nothing was to do"
    acknowledged += _worked_off(place, numbered("service"))
    stored = expect_all_is_well(place, acknowledged)
    _expect_each_firing_once(place, stored)


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_the_service_is_stopped_and_continued(
    place: Place, tally: Tally, numbered: Callable[[str], str]
) -> None:
    """For longer than a request waits for its service; another service has it by then."""
    chance = random.Random(7)
    acknowledged: list[str] = []
    for _ in range(ROUNDS):
        with tally.fault("service", "SIGSTOP until another has its request, then SIGCONT"):
            with serving(place, numbered("service")) as first, serving(place, numbered("service")) as second:
                first.wait_until_it_serves()
                second.wait_until_it_serves()
                time.sleep(chance.uniform(0.0, 1.0))
                first.send(signal.SIGSTOP)
                time.sleep(2 * LEASE_S)
                first.send(signal.SIGCONT)
                time.sleep(0.5)
                assert [service.stop() for service in (first, second)] == [0, 0]
            for service in (first, second):
                acknowledged += service.acknowledged()
                _expect_one_line_each(service)
            expect_all_is_well(place, acknowledged)
    acknowledged += _worked_off(place, numbered("service"))
    stored = expect_all_is_well(place, acknowledged)
    _expect_each_firing_once(place, stored)


def _unfinished(place: Place) -> list[RequestState]:
    with database_of(place) as database:
        return [request.state for request in requests(database, states=UNFINISHED)]


def _worked_off(place: Place, name: str) -> list[str]:
    """Let a service without a schedule take what is left: the trials it said that it measured."""
    deadline = time.monotonic() + _WORKED_OFF_WITHIN_S
    with serving(place, name, is_due=False) as service:
        while _unfinished(place):
            assert time.monotonic() < deadline, service.said()[-2000:]
            time.sleep(0.1)
        service.wait_until_it_serves()
        assert service.stop() == 0
    return service.acknowledged()


def _expect_one_line_each(service: ServiceProcess) -> None:
    """It says what happens in lines, and nothing of its inside."""
    assert "Traceback" not in service.said(), service.said()[-2000:]
    assert "defect" not in service.said()


def _expect_each_firing_once(place: Place, stored: dict[str, Trial]) -> None:
    """No firing is lost or claimed twice, each has one request, and each request was measured once."""
    with database_of(place) as database:
        fired = firings(database, SCHEDULE, limit=_ALL)
        asked = {request.request_id: request for request in requests(database, limit=_ALL)}
        times = [firing.fire_at for firing in fired]
        assert len(times) == len(set(times)) > ROUNDS // 4
        queued = [firing.request_id for firing in fired if firing.outcome is FiringOutcome.QUEUED]
        assert sorted(queued) == sorted(asked)
        span = (max(times) - min(times)) // timedelta(seconds=1)
        first = min(fired, key=lambda firing: firing.fire_at)
        assert sum(firing.firings for firing in fired) == span + first.firings
        for request in asked.values():
            assert request.attempts <= ATTEMPTS
            assert unended_runs(database, request.run_ids) == []
            if request.state is RequestState.FINISHED:
                _expect_whole(request.run_ids, stored)
            else:
                assert request.state is RequestState.FAILED
                assert request.attempts == ATTEMPTS
                assert request.history[-1].note


def _expect_whole(run_ids: Sequence[str], stored: dict[str, Trial]) -> None:
    trials = [trial for trial in stored.values() if trial.run_id in run_ids]
    assert [trial.status for trial in trials] == [Status.OK, Status.OK], run_ids
