"""What a worker does for its host beside measuring: tells how it is, sees upgrades, keeps to its hours."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from procrastinate.exceptions import ConnectorException

from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.errors import DatabaseError
from compilewatch.db.queries.records import trial_records
from compilewatch.db.queries.selection import Filters
from compilewatch.db.records.requests import RequestKind, RequestSpec, RequestState
from compilewatch.db.records.trial import Build, Status
from compilewatch.db.service.hosts import HEALTHS, HOSTS, SAVE_HOST
from compilewatch.db.service.requests import new_request, requests, run_request, save_request
from compilewatch.db.store.trials import save_trial
from compilewatch.runner.config.sections import ServiceSettings
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.fleet.host_watch import WorkerPlace
from compilewatch.runner.fleet.listener import PERIOD_S, Chores, Listener, do_chores, log_loop_error
from compilewatch.runner.fleet.measurer import Equipment, Measurement
from compilewatch.runner.fleet.queue import conninfo_of
from compilewatch.runner.plan.cancellation import check_cancelled
from compilewatch.runner.process.spool import Spool
from tests.builders import make_trial
from tests.runner.fleet.test_exit import queued
from tests.runner.fleet_processes import Host, service, wait_until, worker
from tests.runner.quick_measurement import upgrade

NOW = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)


def with_short_idleness(host: Host) -> Host:
    """What is done once the worker has been idle for a while is done after a second."""
    text = host.config.read_text(encoding="utf-8").replace("idle_s = 30", "idle_s = 1")
    host.config.write_text(text.replace("watch_builds = false", "watch_builds = true"), encoding="utf-8")
    return host


def test_a_worker_tells_how_its_host_is(tmp_path: Path, postgres_database_url: str) -> None:
    host = worker(tmp_path / "box", postgres_database_url)
    spool = host.directory / "data" / "spool"
    spool.mkdir(parents=True)
    (spool / "waiting.json").write_text("{}", encoding="utf-8")
    with open_database(postgres_database_url) as database:
        host.start()
        try:
            wait_until(lambda: bool(HEALTHS.all(database)), 60, host.said())
            (state,), (health,) = HOSTS.all(database), HEALTHS.all(database)
        finally:
            assert host.stop() == 0
        (stopped,) = HOSTS.all(database)
    assert health.host == f"{state.name}/cpu"
    assert (health.spool_trials, health.spool_bytes, health.database_errors) == (1, 2, 0)
    assert state.owner.startswith(f"{state.name}:")
    assert (state.devices, state.stopped_at) == ((), None)
    assert state.free_bytes is not None
    assert abs(datetime.now(UTC) - state.seen_at) < timedelta(minutes=2)
    assert stopped.stopped_at is not None
    assert stopped.stopped_at >= stopped.seen_at


def test_each_worker_of_a_host_tells_of_its_gpu_alone(postgres_database_url: str) -> None:
    def say(*devices: str, is_first: bool = False, asked: bool = True) -> None:
        content: dict[str, Any] = {
            "name": "box",
            "owner": "box:1",
            "started_at": NOW,
            "seen_at": NOW,
            "program_version": "1",
            "free_bytes": 1,
            "total_bytes": 2,
            "devices": json.dumps([{"uuid": name, "name": "H200"} for name in devices]) if asked else None,
            "devices_read_at": NOW if asked else None,
            "is_first": is_first,
        }
        with psycopg.connect(conninfo_of(postgres_database_url)) as connection:
            connection.execute(SAVE_HOST, content)

    def told(database: Database) -> list[str | None] | None:
        (state,) = HOSTS.all(database)
        return None if state.devices is None else [device.uuid for device in state.devices]

    with open_database(postgres_database_url) as database:
        say(asked=False)
        assert told(database) is None
        say("GPU-2")
        say("GPU-1")
        assert told(database) == ["GPU-1", "GPU-2"]
        say("GPU-1")
        say(asked=False)
        assert told(database) == ["GPU-1", "GPU-2"]
        say("GPU-3", is_first=True)
        assert told(database) == ["GPU-3"]


@pytest.mark.slow
def test_a_new_torch_on_a_workers_host_is_measured_there(tmp_path: Path, postgres_database_url: str) -> None:
    box = with_short_idleness(worker(tmp_path / "box", postgres_database_url))
    boss = service(tmp_path / "service", postgres_database_url)
    with open_database(postgres_database_url) as database:

        def ended(name: str) -> Callable[[], bool]:
            return lambda: run_request(database, name).state is RequestState.FINISHED

        spec = RequestSpec(suite="quick")
        save_request(database, new_request("first", RequestKind.MANUAL, spec, by="ann", at=NOW))
        box.start()
        boss.start()
        try:
            wait_until(ended("first"), 90, boss.said())
            assert box.stop() == 0
            assert len(requests(database)) == 1
            upgrade(box.directory / "build" / "python", "2.14.0")
            box.start()
            wait_until(lambda: len(requests(database)) == 2, 60, box.said())
            (asked,) = [each for each in requests(database) if each.kind is RequestKind.UPGRADE]
            wait_until(ended(asked.request_id), 90, boss.said())
        finally:
            codes = [host.stop() for host in (box, boss)]
        old, new = sorted(trial_records(database, Filters()), key=lambda trial: trial.started_at)
    assert codes == [0, 0]
    assert (old.build.torch, new.build.torch) == ("2.13.0", "2.14.0")
    assert (old.machine.name, new.machine.name) == (asked.asked_by.partition(":")[0],) * 2
    assert (asked.spec.suite, asked.spec.machine) == ("quick", f"host:{old.machine.name}")
    assert asked.history[0].note == f"never measured on {old.machine.name}: torch 2.14.0 (cpu)"


@pytest.mark.slow
def test_a_worker_that_was_idle_sees_what_was_upgraded_meanwhile(
    tmp_path: Path, postgres_database_url: str
) -> None:
    """A recorded build is found among those of the host, which are read once for trials in a row."""
    box = with_short_idleness(worker(tmp_path / "box", postgres_database_url))

    def statuses() -> list[Status]:
        trials = sorted(trial_records(database, Filters()), key=lambda trial: trial.started_at)
        return [trial.status for trial in trials]

    with open_database(postgres_database_url) as database:
        box.start()
        try:
            for number, release in enumerate(("2.13.0", "2.14.0"), start=1):
                upgrade(box.directory / "build" / "python", release)
                recorded = {"stacks": (Build(torch=release, torch_variant="cpu"),), "suite": None}
                cases = (("elementwise", "eager"),)
                queued(box, database, postgres_database_url, 1, release, cases=cases, **recorded)
                wait_until(lambda number=number: len(statuses()) == number, 60, box.said())  # type: ignore[misc]
                time.sleep(2)
        finally:
            assert box.stop() == 0
        assert statuses() == [Status.OK, Status.OK], box.said()


def test_the_hourly_work_stores_what_waits_and_deletes_old_traces(
    sqlite_database: Database, tmp_path: Path
) -> None:
    settings = Settings(data_dir=tmp_path, service=ServiceSettings(watch_builds=False, keep_traces_days=1))
    trial = make_trial()
    Spool(tmp_path / "spool").put(trial)
    old = tmp_path / "traces" / "T1"
    old.mkdir(parents=True)
    os.utime(old, (0, 0))
    do_chores(settings, sqlite_database, host="box", owner="box:1", now=NOW)
    assert [stored.trial_id for stored in trial_records(sqlite_database, Filters())] == [trial.trial_id]
    assert not old.exists()


def test_a_record_that_another_worker_was_quicker_with_is_no_failure(
    sqlite_database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The disk is full as well, so that the second record cannot be set aside."""
    (tmp_path / "spool").write_text("no directory", encoding="utf-8")
    equipment = Equipment(lambda: Settings(data_dir=tmp_path))
    equipment.database = sqlite_database
    trial = make_trial()
    save_trial(sqlite_database, trial)
    again = trial.model_copy(update={"started_at": trial.started_at + timedelta(seconds=1)})
    assert Measurement(equipment, "cpu", None, 0).store(again)
    assert "measured by two workers" in caplog.text
    (stored,) = trial_records(sqlite_database, Filters())
    assert stored.started_at == trial.started_at


def test_a_trial_given_up_while_the_database_is_away_waits_on_disk_and_the_errors_count(
    sqlite_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise DatabaseError("The database is away.")

    equipment = Equipment(lambda: Settings(data_dir=tmp_path))
    equipment.database = sqlite_database
    trial = make_trial()
    dropped, later = (Measurement(equipment, "cpu", None, 0) for _ in range(2))
    dropped.drop()
    with monkeypatch.context() as patch:
        patch.setattr("compilewatch.runner.process.spool.save_trial", away)
        assert not dropped.store(trial)
    assert dropped.database_errors == 1
    assert [path.stem for path in Spool(tmp_path / "spool").waiting()] == [trial.trial_id]
    assert later.store(trial)
    assert later.database_errors == 0
    assert [stored.trial_id for stored in trial_records(sqlite_database, Filters())] == [trial.trial_id]


def test_nothing_counts_as_stalled_right_after_an_outage(tmp_path: Path) -> None:
    place = WorkerPlace(host="box", owner="box:1", queue="cpu", gpu=None, served="cpu", data_dir=tmp_path)

    async def reap(*, after_outage: bool) -> list[str]:
        listener = Listener(Settings(), place)
        asked: list[str] = []

        class Manager:
            def __getattr__(self, name: str) -> Callable[..., Any]:
                async def answer(**_: object) -> list[object]:
                    asked.append(name)
                    return []

                return answer

        listener._app = SimpleNamespace(job_manager=Manager())  # type: ignore[assignment]
        if after_outage:
            listener._connector._note_away(ConnectorException("gone"))
            listener._connector._note_back()
        await listener._reap_once()
        return asked

    assert asyncio.run(reap(after_outage=True)) == []
    assert asyncio.run(reap(after_outage=False)) == ["get_stalled_jobs", "delete_old_jobs"]


def test_what_the_queue_refuses_afterwards_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    async def refuse() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(log_loop_error)
        loop.call_exception_handler({"message": "never retrieved", "exception": ConnectorException("no job")})

    asyncio.run(refuse())
    assert [record.getMessage() for record in caplog.records] == [
        "The queue did not take how a job ended (no job)."
    ]


def test_the_hourly_work_is_done_soon_after_the_start_and_hourly() -> None:
    clock, done = [0.0], []
    work: list[None] = []

    async def look_at(*moments: float) -> None:
        chores = Chores(lambda: work.append(None), first_s=15, monotonic=lambda: clock[0])
        for clock[0] in moments:
            await asyncio.gather(chores.if_due(), chores.if_due())
            done.append(len(work))

    asyncio.run(look_at(0, 14, 15, 16, 15 + PERIOD_S - 1, 15 + PERIOD_S))
    assert done == [0, 0, 1, 1, 1, 2]


def test_hourly_work_that_a_worker_must_give_up_ends_and_is_due_again_soon() -> None:
    begun, ended = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        try:
            while True:
                check_cancelled()
                time.sleep(0.02)
        finally:
            ended.set()

    async def give_up() -> float:
        clock = [20.0]
        chores = Chores(work, first_s=15, monotonic=lambda: clock[0])
        clock[0] = 40.0
        working = asyncio.create_task(chores.if_due())
        await asyncio.to_thread(begun.wait, 10)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        return chores.due_in_s()

    assert asyncio.run(give_up()) == 15
    assert ended.wait(10)


def test_hourly_work_that_fails_is_logged_and_is_due_in_an_hour(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise OSError("no such disk")

    async def do_it() -> float:
        clock = [0.0]
        chores = Chores(fail, first_s=15, monotonic=lambda: clock[0])
        clock[0] = 15.0
        await chores.if_due()
        return chores.due_in_s()

    assert asyncio.run(do_it()) == PERIOD_S
    assert "no such disk" in caplog.text
