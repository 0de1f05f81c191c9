"""The service without measuring: what it takes, how requests end, what it does when it is told to stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import CompilewatchError, ConfigError, DatabaseError
from compilewatch.db.records.hosts import JobReport, JobState
from compilewatch.db.records.requests import RequestKind, RequestSpec, RequestState, RunRequest
from compilewatch.db.service.jobs import save_report
from compilewatch.db.service.requests import cancel_request, new_request, run_request, save_request
from compilewatch.runner.cli.measure.schedule import _notify_compiled
from compilewatch.runner.config.settings import BuildSettings, ChannelSettings, Settings
from compilewatch.runner.plan import builds
from compilewatch.runner.plan.interpreter import InterpreterFacts
from compilewatch.runner.plan.plan import Plan, plan_request
from compilewatch.runner.plan.trial_spec import NO_DIAGNOSTICS, Diagnostics
from compilewatch.runner.process.execution import RunOutcome
from compilewatch.runner.service import keeper
from compilewatch.runner.service.keeper import LEASE_S, Abandoned, Outage, Patience
from compilewatch.runner.service.service import Service
from compilewatch.runner.service.serving import Here, Measures
from compilewatch.runner.service.timetable import Host
from tests.runner.webhook import webhook

NOW = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)
FACTS = InterpreterFacts(path="python", python="3.11.2", torch="2.13.0", cuda=None, hip=None, device_count=0)
DONE = RunOutcome(measured=4, failed=1, waiting=0, interrupted=False)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builds, "check_interpreter", lambda _python: FACTS)
    monkeypatch.setattr(keeper, "BEAT_S", 0.05)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data", service={"watch_builds": False})


def ask(database: Database, name: str, kind: RequestKind = RequestKind.MANUAL, **spec: Any) -> None:
    fields = {"workloads": ("elementwise",), "strategies": ("eager",)} | spec
    save_request(database, new_request(name, kind, RequestSpec(**fields), by="ann", at=NOW))


class Measuring:
    """Stands in for the executor at its seam: notes plans, and runs as long as it is told."""

    def __init__(self, *, patient: bool = False, error: CompilewatchError | None = None) -> None:
        self.plans: list[Plan] = []
        self.began_at: list[float] = []
        self.patient = patient
        self.error = error

    def __call__(self, plan: Plan, is_cancelled: Callable[[], bool]) -> RunOutcome:
        self.plans.append(plan)
        self.began_at.append(time.monotonic())
        if self.error is not None:
            raise self.error
        while self.patient:
            if is_cancelled():
                return RunOutcome(measured=1, failed=1, waiting=0, interrupted=True)
            time.sleep(0.01)
        return DONE


@contextmanager
def serving(
    database: Database,
    settings: Settings,
    measure: Measuring | Measures,
    judge: Callable[[Plan], None] = lambda _plan: None,
    **told: Callable[[list[JobState]], None],
) -> Iterator[threading.Event]:
    stop = threading.Event()
    host = Host("host", "host:1")
    measures = Here(measure) if isinstance(measure, Measuring) else measure
    service = Service(settings, database, measures, judge=judge, host=host, clock=lambda: NOW, **told)
    thread = threading.Thread(target=service.run, args=(stop,))
    thread.start()
    try:
        yield stop
    finally:
        stop.set()
        thread.join(20)
        assert not thread.is_alive()


def wait_for(database: Database, name: str, state: RequestState, seconds: float = 30) -> RunRequest:
    deadline = time.monotonic() + seconds
    while (request := run_request(database, name)).state is not state:
        assert time.monotonic() < deadline, request
        time.sleep(0.02)
    return request


def test_the_queue_is_worked_off_confirmations_first(database: Database, settings: Settings) -> None:
    for name, kind in (
        ("a", RequestKind.SCHEDULE),
        ("b", RequestKind.MANUAL),
        ("c", RequestKind.CONFIRMATION),
    ):
        ask(database, name, kind, label=name)
    measure = Measuring()
    with serving(database, settings, measure):
        done = wait_for(database, "a", RequestState.FINISHED)
    assert [plan.runs[0].label for plan in measure.plans] == ["c", "b", "a"]
    assert done.run_ids == (measure.plans[-1].runs[0].run_id,)
    assert [(event.state, event.note) for event in done.history[1:]] == [
        ("running", None),
        ("finished", "4 trials, 1 failed"),
    ]


def test_a_running_request_is_cancelled(database: Database, settings: Settings) -> None:
    ask(database, "one")
    measure = Measuring(patient=True)
    with serving(database, settings, measure) as stop:
        wait_for(database, "one", RequestState.RUNNING)
        cancel_request(database, "one", by="bob", at=NOW)
        cancelled = wait_for(database, "one", RequestState.CANCELLED)
        assert not stop.is_set()
    assert "bob" in {event.by for event in cancelled.history}


def test_people_hear_of_what_jobs_compile_after_ready(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `compilewatch serve` wires it, to a webhook that receives."""
    monkeypatch.setattr(keeper, "RECONCILE_S", 0.05)
    for number in range(8):
        report = JobReport(
            process=f"{number:032}",
            sequence=1,
            job="ranker",
            host=f"gpu-{number}",
            ready=True,
            compiles_after_ready=3 if number < 2 else 0,
            cost_after_ready_ns=9_000_000_000 if number < 2 else 0,
        )
        save_report(database, report, NOW - timedelta(minutes=2))
    with webhook() as receiving:
        channels = (ChannelSettings(name="team", webhook=receiving.address),)
        wired = settings.model_copy(update={"channel": channels})
        with serving(database, wired, Measuring(), notify_compiled=lambda job: _notify_compiled(job, wired)):
            deadline = time.monotonic() + 60
            while not receiving.messages:
                assert time.monotonic() < deadline
                time.sleep(0.02)
            # The loop looks again and again, and nobody is told twice.
            time.sleep(10 * keeper.BEAT_S)
    (message,) = receiving.messages
    assert message["title"] == "ranker compiled after ready on 2 of 8 hosts: 6 compilations, 18.0 s"


def test_a_service_that_stops_leaves_its_request_to_the_next(
    sqlite_database: Database, settings: Settings
) -> None:
    ask(sqlite_database, "one")
    with serving(sqlite_database, settings, Measuring(patient=True)):
        wait_for(sqlite_database, "one", RequestState.RUNNING)
    again = run_request(sqlite_database, "one")
    assert (again.state, again.owner, again.history[-1].note) == ("queued", None, "the service stopped")
    with serving(sqlite_database, settings, Measuring()):
        assert wait_for(sqlite_database, "one", RequestState.FINISHED).attempts == 2


def test_a_request_that_cannot_be_planned_says_why(sqlite_database: Database, settings: Settings) -> None:
    ask(sqlite_database, "one", workloads=("no-such",))
    ask(sqlite_database, "two")
    with serving(sqlite_database, settings, Measuring()):
        failed = wait_for(sqlite_database, "one", RequestState.FAILED)
        wait_for(sqlite_database, "two", RequestState.FINISHED)
    assert "no workload 'no-such'" in (failed.history[-1].note or "")


def test_a_database_that_goes_away_does_not_lose_the_request(
    sqlite_database: Database, settings: Settings
) -> None:
    ask(sqlite_database, "one")
    away = DatabaseError("No PostgreSQL server answers.", "Start the server.")
    with serving(sqlite_database, settings, Measuring(error=away)):
        failed = wait_for(sqlite_database, "one", RequestState.FAILED)
    assert [event.state for event in failed.history] == [
        "queued",
        *["running", "queued"] * 2,
        "running",
        "failed",
    ]


def test_a_database_that_goes_away_at_the_end_lets_nothing_be_measured_twice(
    sqlite_database: Database, settings: Settings
) -> None:
    ask(sqlite_database, "one")
    measure, judged = Measuring(), []

    def judge(plan: Plan) -> None:
        judged.append(plan)
        if len(judged) == 1:
            raise DatabaseError("No PostgreSQL server answers.", "Start the server.")

    with serving(sqlite_database, settings, measure, judge):
        wait_for(sqlite_database, "one", RequestState.FINISHED)
    assert (len(measure.plans), len(judged)) == (1, 2)


def test_requests_for_other_machines_wait(sqlite_database: Database, settings: Settings) -> None:
    ask(sqlite_database, "theirs", RequestKind.CONFIRMATION, machine="gpu-*")
    ask(sqlite_database, "ours", machine="ho*")
    with serving(sqlite_database, settings, Measuring()):
        wait_for(sqlite_database, "ours", RequestState.FINISHED)
    assert run_request(sqlite_database, "theirs").state is RequestState.QUEUED


class Elsewhere(Here):
    """Has workers that take a request per machine."""

    elsewhere = True

    def accepts(self, machine: str | None, host: Host) -> bool:
        return machine != host.name

    def has_room(self, request: RunRequest, under_way: Collection[RunRequest]) -> bool:
        return request.spec.machine not in {other.spec.machine for other in under_way}


def test_requests_for_several_machines_run_at_once_where_workers_measure(
    database: Database, settings: Settings
) -> None:
    for name, machine in (("a", "h200"), ("b", "h200"), ("c", "a100")):
        ask(database, name, machine=machine)
    with serving(database, settings, Elsewhere(Measuring(patient=True))):
        for name in ("a", "c"):
            wait_for(database, name, RequestState.RUNNING)
        beats = {name: run_request(database, name).beat for name in ("a", "c")}
        assert run_request(database, "b").state is RequestState.QUEUED
        cancel_request(database, "a", by="bob", at=NOW)
        wait_for(database, "a", RequestState.CANCELLED)
        wait_for(database, "b", RequestState.RUNNING)
        assert run_request(database, "c").beat > beats["c"]
    states = {name: run_request(database, name).state for name in ("b", "c")}
    assert states == {"b": RequestState.QUEUED, "c": RequestState.QUEUED}


def test_what_nobody_foresaw_ends_a_service_that_leaves_measuring_to_workers(
    sqlite_database: Database, settings: Settings
) -> None:
    def broken(plan: Plan, is_cancelled: Callable[[], bool]) -> RunOutcome:
        raise ZeroDivisionError(plan.runs[0].run_id, is_cancelled())

    ask(sqlite_database, "one")
    service = Service(settings, sqlite_database, Elsewhere(broken), host=Host("host", "host:1"))
    with pytest.raises(ZeroDivisionError):
        service.run(threading.Event())


class Refusing:
    """A database that `is_away`, as several threads of a service meet it."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.stop.set()
        self.outage = Outage()

    def fail(self, patience: Patience) -> None:
        patience.failed(DatabaseError("No PostgreSQL server answers.", "Start it."), self.stop)


def test_an_outage_is_said_once_by_all_threads_together(caplog: pytest.LogCaptureFixture) -> None:
    database = Refusing()
    taking, keeping = database.outage.patience(), database.outage.patience()
    with caplog.at_level("INFO", "compilewatch.schedule"):
        for patience in (taking, keeping, taking, keeping):
            database.fail(patience)
        taking.recovered()
        # Its try had begun while the database was away.
        database.fail(keeping)
        keeping.recovered()
        taking.recovered()
    assert [record.getMessage() for record in caplog.records] == [
        "No PostgreSQL server answers. Waiting for it.",
        "The database is back after 0 s.",
    ]


def test_a_request_whose_service_died_is_taken_over_after_the_lease(database: Database) -> None:
    from compilewatch.db.service.requests import beat_request, take_request

    ask(database, "one")
    take_request(database, owner="dead:1", at=NOW, fits=lambda _request: True)
    seconds = [0.0]
    watcher = Abandoned(database, owner="watcher:2", monotonic=lambda: seconds[0])
    assert watcher.check(NOW) == []
    seconds[0] = LEASE_S - 1
    beat_request(database, "one", owner="dead:1")
    assert watcher.check(NOW) == []
    seconds[0] = 2 * LEASE_S - 2
    assert watcher.check(NOW) == []
    watcher.forget()
    seconds[0] = 3 * LEASE_S
    assert watcher.check(NOW) == []
    seconds[0] = 4 * LEASE_S
    assert watcher.check(NOW) == ["one"]
    assert run_request(database, "one").state is RequestState.QUEUED


def test_a_plan_has_the_cases_asked_for_and_no_others(settings: Settings) -> None:
    cases = (("cnn", "default"), ("mlp-train", "eager"))
    plan = plan_request(settings, RequestSpec(cases=cases, trials=2))
    assert sorted({(trial.workload.name, trial.strategy.name) for trial in plan.trials}) == sorted(cases)
    assert len(plan.trials) == plan.runs[0].planned_trials == 4


def test_a_budget_leaves_out_the_last_rounds(settings: Settings, tmp_path: Path) -> None:
    builds = [BuildSettings(name=name, python=tmp_path / name) for name in ("old", "new")]
    settings = settings.model_copy(update={"build": tuple(builds)})
    spec = RequestSpec(workloads=("cnn", "elementwise"), strategies=("eager",), trials=3, budget_trials=8)
    plan = plan_request(settings, spec)
    assert [trial.round for trial in plan.trials] == [0] * 4 + [1] * 4
    assert [run.planned_trials for run in plan.runs] == [4, 4]
    only = plan_request(settings, spec.model_copy(update={"builds": ("new",)}))
    assert [run.build for run in only.runs] == ["new"]


def test_a_judge_that_fails_leaves_the_request_finished(
    sqlite_database: Database, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    def judge(plan: Plan) -> None:
        raise ValueError(f"no verdict on {len(plan.runs)} run")

    ask(sqlite_database, "one")
    ask(sqlite_database, "two")
    with serving(sqlite_database, settings, Measuring(), judge):
        wait_for(sqlite_database, "one", RequestState.FINISHED)
        wait_for(sqlite_database, "two", RequestState.FINISHED)
    assert "could not be judged" in caplog.text
    assert "no verdict on 1 run" in caplog.text


def test_a_request_may_ask_for_profiles_and_traces(settings: Settings) -> None:
    spec = RequestSpec(workloads=("cnn",), strategies=("default",), trials=2, profile=True, trace=True)
    first, second = plan_request(settings, spec).trials
    assert first.diagnostics == Diagnostics(
        profile=True, trace_into=settings.data_dir.absolute(), bisect_s=settings.run.bisect_s
    )
    assert second.diagnostics == NO_DIAGNOSTICS


@pytest.mark.parametrize("name", ["os:system", "hf:bert-base-uncased", "timm:resnet50"])
def test_a_request_names_what_is_configured_and_no_code(settings: Settings, name: str) -> None:
    with pytest.raises(ConfigError, match=f"code at '{name}'"):
        plan_request(settings, RequestSpec(workloads=(name,), strategies=("eager",)))


def test_cases_that_mean_nothing_here_are_refused(settings: Settings) -> None:
    with pytest.raises(ConfigError):
        plan_request(settings, RequestSpec(cases=(("cnn", "reduce-overhead"),)))
