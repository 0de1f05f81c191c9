"""Runner, measured process and service stopped for longer than a minute, as by a laptop that sleeps."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from db.queries.facets import runs
from db.queries.service.schedules import requests
from db.records.requests import RequestKind, RequestSpec, RequestState
from db.records.trial import Status
from db.store.service.requests import new_request, save_request
from runner.service.keeper import LEASE_S
from tests.faults.conftest import Tally
from tests.faults.invariants import expect_all_is_well
from tests.faults.place import Place, database_of, new_place
from tests.faults.runner_process import running
from tests.faults.service_process import ServiceProcess, serving

# Longer than a request waits for a silent service, with ten seconds between two looks on a busy host.
_STOPPED_S = LEASE_S + 45.0


@pytest.mark.faults
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_is_stopped_for_a_minute_goes_on(place: Place, tally: Tally, tmp_path: Path) -> None:
    """All at the same time, each in a place of its own; the service's request is with another by then."""
    apart = [new_place(f"sqlite:///{tmp_path / name}.db", tmp_path / name) for name in ("process", "service")]
    slow = ["a second"] * 2
    with (
        # Long enough that the service is stopped before it is done, however busy the host is.
        serving(apart[1], "first", fault="ten seconds", is_due=False, is_hasty=False) as first,
        serving(apart[1], "second", fault="ten seconds", is_due=False, is_hasty=False) as second,
        contextlib.ExitStack() as stack,
    ):
        taker, waiter = _with_a_request(apart[1], first, second)
        taker.send(signal.SIGSTOP)
        runner = stack.enter_context(running(place, "runner", slow, timeout_s=300))
        runner.when_there_is_one(2)
        os.kill(runner.pid, signal.SIGSTOP)
        other = stack.enter_context(running(apart[0], "process", slow, timeout_s=300))
        measured = other.when_there_is_one(2)
        os.kill(measured, signal.SIGSTOP)
        time.sleep(_STOPPED_S)
        for pid in (taker.pid, runner.pid, measured):
            os.kill(pid, signal.SIGCONT)
        for who, each, at in (("runner", runner, place), ("measured process", other, apart[0])):
            with tally.fault(who, "SIGSTOP for more than a minute"):
                assert each.wait() == 0
                stored = expect_all_is_well(at, each.finished)
                assert [stored[trial].status for trial in each.finished] == [Status.OK] * len(slow)
        with tally.fault("service", "SIGSTOP for more than a minute"):
            _wait_until_finished(apart[1], waiter)
            assert [service.stop() for service in (first, second)] == [0, 0]
            expect_all_is_well(apart[1], [*first.acknowledged(), *second.acknowledged()])
            assert "sends no heartbeat any more" in _history(apart[1])
            assert "Traceback" not in first.said() + second.said()


def _with_a_request(
    place: Place, first: ServiceProcess, second: ServiceProcess
) -> tuple[ServiceProcess, ServiceProcess]:
    """Ask for something: the service that measures it, and the one that does not.

    While it measures it writes nothing: stopped amid a write it would hold the lock of the whole database.
    """
    with database_of(place) as database:
        spec = RequestSpec(suite="quick")
        asked = new_request("one", RequestKind.MANUAL, spec, by="ann", at=datetime.now(UTC))
        save_request(database, asked)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for taker, waiter in ((first, second), (second, first)):
            if "Request one of ann begins." in taker.said() and _is_measured(place):
                return taker, waiter
        time.sleep(0.05)
    pytest.fail(f"no service took it: {first.said()[-1000:]} {second.said()[-1000:]}")


def _is_measured(place: Place) -> bool:
    """Whether its run is announced, for a second already."""
    with database_of(place) as database:
        announced = not runs(database).empty
    time.sleep(1.0)
    return announced


def _wait_until_finished(place: Place, service: ServiceProcess) -> None:
    deadline = time.monotonic() + 120
    with database_of(place) as database:
        while [request.state for request in requests(database)] != [RequestState.FINISHED]:
            assert time.monotonic() < deadline, service.said()[-2000:]
            time.sleep(0.1)


def _history(place: Place) -> str:
    with database_of(place) as database:
        (request,) = requests(database)
    return "\n".join(event.note or "" for event in request.history)
