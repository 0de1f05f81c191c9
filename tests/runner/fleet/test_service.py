"""A service that has its requests measured by a worker: routing, continuing, cancelling, from end to end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.queries.records import trial_records
from compilewatch.db.queries.selection import Filters
from compilewatch.db.records.hosts import HostState
from compilewatch.db.records.requests import RequestKind, RequestSpec, RequestState, RunRequest
from compilewatch.db.records.trial import FailureKind, Status
from compilewatch.db.service.fleet import announced_runs
from compilewatch.db.service.hosts import save_host
from compilewatch.db.service.requests import (
    cancel_request,
    end_request,
    new_request,
    note_runs,
    requests,
    run_request,
    save_request,
    take_request,
)
from compilewatch.db.service.schedules import names_of_machine
from compilewatch.db.store.trials import save_trial
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.config.sources import load_settings
from compilewatch.runner.fleet.dispatch import Attendance, Fleet, Places, ProcrastinateExecutor, jobs_with_ids
from compilewatch.runner.plan.trial_spec import JobState
from compilewatch.runner.process.execution import RunOutcome, announce
from tests.builders import make_machine, make_trial
from tests.runner.fleet_processes import service, wait_until, worker
from tests.runner.process.test_executors import Heard
from tests.runner.quick_measurement import configuration, interpreter

NOW = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)


def asked(name: str = "one", **spec: object) -> RunRequest:
    content = RequestSpec.model_validate({"suite": "quick"} | spec)
    return new_request(name, RequestKind.MANUAL, content, by="ann", at=NOW)


def no_executor(queue: str, priority: int) -> ProcrastinateExecutor:
    raise AssertionError("nothing is to be queued")


def make_fleet(
    settings: Settings,
    database: Database,
    executor: Callable[[str, int], ProcrastinateExecutor] = no_executor,
    stop: threading.Event | None = None,
    clock: Callable[[], datetime] = lambda: NOW,
) -> Fleet:
    stop = stop or threading.Event()
    return Fleet(settings, database, executor, progress=Heard(), stop=stop, clock=clock)


@pytest.mark.parametrize(
    ("machine", "queue"),
    [
        (None, "h200"),
        ("a100", "a100"),
        ("?100", "a100"),
        ("gpu:GPU-1", "gpu:GPU-1"),
        ("host:box", "host:box"),
        ("tpu", None),
    ],
)
def test_a_request_goes_where_its_selector_means(
    machine: str | None, queue: str | None, tmp_path: Path, sqlite_database: Database
) -> None:
    more = '[fleet]\nqueues = ["h200", "a100"]'
    settings = load_settings(configuration(tmp_path, interpreter(tmp_path / "build"), more))
    fleet = make_fleet(settings, sqlite_database)
    assert fleet.queue_of(asked(machine=machine)) == queue


def test_a_host_is_meant_by_all_its_names_where_something_is_measured(sqlite_database: Database) -> None:
    said: dict[str, Any] = {"owner": "x:1", "started_at": NOW, "program_version": "1"}
    for name, devices, hour in (("boss", None, 3), ("gpu-1", (), 2), ("gpu-2", (), 1)):
        save_host(
            sqlite_database, HostState(name=name, seen_at=NOW.replace(hour=hour), devices=devices, **said)
        )
    machine = make_machine("old").model_copy(update={"name": "old"})
    save_trial(sqlite_database, make_trial(machine=machine))
    places = Places(sqlite_database, ["nvidia-h200"])
    (machine_id,) = names_of_machine(sqlite_database, "old") - {"old", machine.device_name}
    for asked_for, queue in (
        ("gpu-2", "host:gpu-2"),
        ("gpu-*", "host:gpu-1"),
        ("boss", None),
        ("old", "host:old"),
        (machine_id, "host:old"),
        ("NVIDIA H200", "nvidia-h200"),
    ):
        assert places.queue_of(asked_for) == queue, asked_for


def test_one_request_per_queue_and_urgency_is_under_way(tmp_path: Path, sqlite_database: Database) -> None:
    more = '[fleet]\nqueues = ["h200", "a100"]'
    settings = load_settings(configuration(tmp_path, interpreter(tmp_path / "build"), more))
    fleet = make_fleet(settings, sqlite_database)
    under_way = [asked("nightly", machine="h200")]
    assert fleet.has_room(asked("other", machine="a100"), under_way)
    assert not fleet.has_room(asked("any"), under_way)
    urgent = asked("second-look").model_copy(update={"priority": 1000})
    assert fleet.has_room(urgent, under_way)
    assert not fleet.has_room(asked("third"), [urgent])


def test_that_no_worker_lives_is_said_once_and_not_at_once(caplog: pytest.LogCaptureFixture) -> None:
    clock, alive = [0.0], [0]

    class Capacity:
        def capacity(self) -> int:
            return alive[0]

    attendance = Attendance(Capacity(), "h200", patience_s=45, monotonic=lambda: clock[0])  # type: ignore[arg-type]

    def look(until: float) -> list[str]:
        caplog.clear()
        while clock[0] < until:
            clock[0] += 1
            attendance.check()
        return [record.getMessage() for record in caplog.records]

    with caplog.at_level("INFO", "compilewatch.fleet"):
        # As after an outage, from which the workers come back after the service.
        assert look(40) == []
        alive[0] = 1
        assert look(60) == []
        alive[0] = 0
        assert look(100) == []
        assert look(300) == ["No worker is alive; the trials of h200 wait for one."]
        alive[0] = 2
        assert look(400) == ["A worker is alive again."]


@pytest.fixture
def place(
    tmp_path: Path, postgres_database_url: str
) -> Iterator[tuple[Settings, Database, Callable[..., Fleet]]]:
    """A worker that waits, and services' fleets on its database; a stopped service's `stop` is set."""
    host = worker(tmp_path / "worker", postgres_database_url, seconds=0.3, rounds=4)
    settings = load_settings(host.config)
    host.start()
    with open_database(postgres_database_url) as database:

        def executor(queue: str, priority: int) -> ProcrastinateExecutor:
            return ProcrastinateExecutor(database, postgres_database_url, queue=queue, priority=priority)

        def fleet(stop: threading.Event) -> Fleet:
            return make_fleet(settings, database, executor, stop, lambda: datetime.now(UTC))

        yield settings, database, fleet
    host.stop()


def test_what_a_stopped_service_began_the_next_one_finishes(
    place: tuple[Settings, Database, Callable[..., Fleet]],
) -> None:
    settings, database, fleet = place
    request = asked()
    save_request(database, request)
    stop = threading.Event()
    first = fleet(stop)
    plan = first.plan(settings, request)
    threading.Timer(2, stop.set).start()
    left: RunOutcome = first.execute(plan, stop.is_set)
    assert left.interrupted
    second = fleet(threading.Event())
    again = second.plan(settings, request)
    assert again == plan
    whole = second.execute(again, lambda: False)
    assert (whole.measured, whole.failed, whole.interrupted) == (4, 0, False)
    assert announced_runs(database, [run.run_id for run in plan.runs]) == {plan.runs[0].run_id}
    assert sorted(trial.trial_id for trial in trial_records(database, Filters())) == sorted(
        spec.trial_id for spec in plan.trials
    )


@pytest.mark.parametrize("is_under_way", [True, False])
def test_cancelling_takes_what_is_queued_out_at_once(
    is_under_way: bool, tmp_path: Path, postgres_database_url: str
) -> None:
    settings = load_settings(worker(tmp_path / "worker", postgres_database_url, rounds=50).config)
    with open_database(postgres_database_url) as database:
        executor = ProcrastinateExecutor(database, postgres_database_url, queue="box")
        fleet = make_fleet(settings, database, lambda _queue, _priority: executor)
        states = {}
        for name in ("cancelled", "other"):
            save_request(database, asked(name))
            request = take_request(database, owner="boss:1", at=NOW, fits=lambda _request: True, counts=False)
            assert request is not None
            plan = fleet.plan(settings, request)
            note_runs(database, name, [run.run_id for run in plan.runs], owner="boss:1", at=NOW)
            announce(plan, database, NOW)
            jobs = list(jobs_with_ids(plan, request))
            executor.submit(jobs)
            states[name] = [job.job_id for job in jobs]
        if not is_under_way:
            # Its service stopped: nobody is there to hear of the cancellation.
            end_request(database, "cancelled", RequestState.QUEUED, owner="boss:1", at=NOW)
        cancel_request(database, "cancelled", by="ann", at=NOW)
        ended = {name: set(executor.status(ids).values()) for name, ids in states.items()}
        assert ended == {"cancelled": {JobState.CANCELLED}, "other": {JobState.QUEUED}}
        assert len(states["cancelled"]) >= 50
        executor.close()


def test_a_request_is_served_cancelled_and_recorded(tmp_path: Path, postgres_database_url: str) -> None:
    hosts = [
        service(tmp_path / "service", postgres_database_url, rounds=2),
        worker(tmp_path / "worker", postgres_database_url, seconds=0.5),
    ]
    with open_database(postgres_database_url) as database:
        save_request(database, asked("whole"))
        for host in hosts:
            host.start()
        try:

            def is_in(name: str, state: RequestState) -> Callable[[], bool]:
                return lambda: run_request(database, name).state is state

            wait_until(is_in("whole", RequestState.FINISHED), 60, hosts[0].said())
            (first, *_) = trial_records(database, Filters())
            # As a suspicion is looked at again: on the host that has it, with the build that was recorded.
            again = {"stacks": (first.build,), "machine": first.machine.name, "suite": None}
            save_request(database, asked("second", cases=(("elementwise", "eager"),), trials=1, **again))
            wait_until(is_in("second", RequestState.FINISHED), 60, hosts[0].said())
            gone = first.build.model_copy(update={"torch": "1.0.0"})
            again |= {"stacks": (gone,)}
            save_request(database, asked("gone", cases=(("elementwise", "eager"),), trials=1, **again))
            wait_until(is_in("gone", RequestState.FINISHED), 60, hosts[0].said())
            save_request(database, asked("long", trials=100))
            wait_until(lambda: len(list(trial_records(database, Filters()))) > 5, 60, hosts[1].said())
            cancel_request(database, "long", by="ann", at=datetime.now(UTC))
            wait_until(is_in("long", RequestState.CANCELLED), 30, hosts[0].said())
        finally:
            codes = [host.stop() for host in hosts]
        assert codes == [0, 0]
        whole = next(each for each in requests(database) if each.request_id == "whole")
        assert whole.history[-1].note == "2 trials, 0 failed"
        assert len(list(trial_records(database, Filters(runs=whole.run_ids)))) == 2
        (second,), (gone_trial,) = (
            list(trial_records(database, Filters(runs=run_request(database, name).run_ids)))
            for name in ("second", "gone")
        )
        assert (second.status, second.build.torch) == (Status.OK, first.build.torch)
        assert gone_trial.failure.kind is FailureKind.UNSUPPORTED
        assert "cannot be measured again on this host" in gone_trial.failure.message
