"""What a worker does for its host beside measuring: tells how it is, sees upgrades, keeps to its hours."""

from __future__ import annotations

import asyncio
import io
import json
import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from procrastinate.exceptions import ConnectorException

from db.engine.session import Database, open_database
from db.queries.filters import Filters
from db.queries.records import trial_records
from db.queries.schedules import host_healths, hosts, requests, run_request
from db.records.requests import RequestKind, RequestSpec, RequestState
from db.store.host_statements import SAVE_HOST
from db.store.requests import new_request, save_request
from db.store.trials import save_trial
from runner.config.sections import ServiceSettings
from runner.config.settings import Settings
from runner.fleet.host_watch import WorkerPlace
from runner.fleet.listener import PERIOD_S, Chores, Listener, WorkerSettings, log_loop_error
from runner.fleet.measurer import Inbox, Measurer
from runner.fleet.queue import conninfo_of
from runner.fleet.upkeep import do_chores
from runner.storage.spool import Spool
from tests.builders import make_trial
from tests.house.test_imports import loaded_by
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
            wait_until(lambda: bool(host_healths(database)), 60, host.said())
            (state,), (health,) = hosts(database), host_healths(database)
        finally:
            assert host.stop() == 0
        (stopped,) = hosts(database)
    assert health.host == f"{state.name}/cpu"
    assert (health.spool_trials, health.spool_bytes, health.database_errors) == (1, 2, 0)
    assert state.owner.startswith(f"{state.name}:")
    assert (state.devices, state.stopped_at) == ((), None)
    assert state.free_bytes is not None
    assert abs(datetime.now(UTC) - state.seen_at) < timedelta(minutes=2)
    assert stopped.stopped_at is not None
    assert stopped.stopped_at >= stopped.seen_at


def test_a_waiting_worker_holds_neither_pydantic_nor_sqlalchemy_nor_numpy() -> None:
    assert {"pydantic", "sqlalchemy", "numpy"}.isdisjoint(loaded_by("import runner.fleet.listener"))


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
        (state,) = hosts(database)
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
    sqlite_database: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The disk is full as well, so that the second record cannot be set aside."""
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    (tmp_path / "spool").write_text("no directory", encoding="utf-8")
    measurer = Measurer(Settings(data_dir=tmp_path), "cpu", Inbox())
    trial = make_trial()
    save_trial(sqlite_database, trial)
    again = trial.model_copy(update={"started_at": trial.started_at + timedelta(seconds=1)})
    measurer._store(again, sqlite_database)
    assert "measured by two workers" in caplog.text
    (stored,) = trial_records(sqlite_database, Filters())
    assert stored.started_at == trial.started_at


def test_nothing_counts_as_stalled_right_after_an_outage(tmp_path: Path) -> None:
    place = WorkerPlace(
        host="box", owner="box:1", queue="cpu", device="cpu", served="cpu", data_dir=str(tmp_path)
    )
    settings = WorkerSettings(
        conninfo="",
        queues=["cpu"],
        place=place,
        gpu=None,
        config="",
        lock_dir=str(tmp_path),
        heartbeat_s=5,
        stalled_s=30,
        idle_s=15,
        log_format="text",
    )

    async def reap(*, after_outage: bool) -> list[str]:
        listener = Listener(settings)
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


def counting_chores(tmp_path: Path, clock: list[float], program: str) -> tuple[Chores, Callable[[], int]]:
    log = tmp_path / "log"
    log.touch()
    command = [sys.executable, "-c", f"open({str(log)!r}, 'a').write('x'); {program}"]
    chores = Chores("", first_s=15, program=command, monotonic=lambda: clock[0])
    return chores, lambda: len(log.read_text(encoding="utf-8"))


def test_the_hourly_work_is_done_soon_after_the_start_and_hourly(tmp_path: Path) -> None:
    clock = [0.0]
    done = []

    async def look_at(*moments: float) -> None:
        chores, count = counting_chores(tmp_path, clock, "pass")
        for clock[0] in moments:
            await asyncio.gather(chores.if_due(), chores.if_due())
            done.append(count())

    asyncio.run(look_at(0, 14, 15, 16, 15 + PERIOD_S - 1, 15 + PERIOD_S))
    assert done == [0, 0, 1, 1, 1, 2]


def test_hourly_work_that_a_worker_must_give_up_ends_and_is_due_again_soon(tmp_path: Path) -> None:
    clock = [20.0]

    async def give_up() -> tuple[float, float]:
        chores, count = counting_chores(tmp_path, clock, "import time; time.sleep(60)")
        clock[0] = 40.0
        working = asyncio.create_task(chores.if_due())
        while not count():
            await asyncio.sleep(0.02)
        working.cancel()
        began = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await working
        return time.monotonic() - began, chores.due_in_s()

    took, due_in_s = asyncio.run(give_up())
    assert took < 10
    assert due_in_s == 15
