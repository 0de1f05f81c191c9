"""Real services: several on one database, and `compilewatch schedule` measuring and being stopped."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from compilewatch.db.engine.session import open_database
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trial_records
from compilewatch.db.records.requests import RequestState, ScheduleSpec
from compilewatch.db.service.requests import requests
from compilewatch.db.service.schedules import firings, measured_stacks, save_schedule
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.service.upkeep import fingerprints
from tests.runner.fleet_processes import wait_until
from tests.runner.terminal import COMMAND, ROOT, environment, in_this_process

FIRINGS = 4
CONFIG = """
[run]
trials = 1
samples = 10
relative_interval = 0.99
warmup_s = 0
suite = "quick"
canaries = false

[[workload]]
name = "gelu"
target = "mine:gelu"

[[workload]]
name = "patient"
target = "mine:patient"

[[suite]]
name = "quick"
workloads = ["gelu"]
strategies = ["eager"]

[[schedule]]
name = "nightly"
cron = "0 3 * * mon-fri"
timezone = "Europe/Berlin"
"""
MINE = """
import time
import torch

def gelu():
    return torch.nn.functional.gelu, (torch.ones(64, 64),)

def patient():
    time.sleep(60)
    return torch.nn.functional.gelu, (torch.ones(64, 64),)
"""


def test_two_processes_fire_every_second_exactly_once(postgres_database_url: str) -> None:
    with open_database(postgres_database_url) as database:
        started = datetime.now(UTC) - timedelta(seconds=1)
        save_schedule(database, "often", ScheduleSpec(cron="* * * * *"), at=started, from_config=True)
    command = [sys.executable, "-m", "tests.runner.scheduler_process", postgres_database_url]
    services = [
        subprocess.Popen([*command, name, str(FIRINGS)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for name in ("one", "two")
    ]
    said = [service.communicate(timeout=120)[0].split() for service in services]
    assert [service.returncode for service in services] == [0, 0]
    with open_database(postgres_database_url) as database:
        fired = firings(database, "often")
        asked = requests(database)
    times = [firing.fire_at for firing in fired]
    assert len(times) == len(set(times)) >= FIRINGS
    taken = Counter(request_id for lines in said for request_id in lines if request_id != "ready")
    assert set(taken.values()) == {1}
    queued = [firing.request_id for firing in fired if firing.request_id]
    assert sorted(queued) == sorted(request.request_id for request in asked)
    assert set(taken) <= set(queued)
    # Each firing stands for itself and those before it that nobody had: none is lost, none counted twice.
    assert sum(firing.firings for firing in fired) == (max(times) - started) // timedelta(seconds=1) + 1


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "compilewatch.toml").write_text(CONFIG, encoding="utf-8")
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    # Locks of the device live there: another run on this host must not keep these waiting.
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    return tmp_path


@contextmanager
def service(project: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [*COMMAND, "schedule"], cwd=project, env=environment(), stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def document(project: Path, *arguments: str) -> Any:
    result = in_this_process(*arguments, "--json", cwd=project)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def state_of(project: Path, request_id: str) -> str:
    rows = document(project, "request", "list", "--all")["rows"]
    return str(next(row["state"] for row in rows if row["request_id"] == request_id))


def workers(process: subprocess.Popen[str]) -> list[psutil.Process]:
    try:
        children = psutil.Process(process.pid).children(recursive=True)
        return [child for child in children if "worker/main.py" in " ".join(child.cmdline())]
    except psutil.NoSuchProcess:
        return []


def test_a_service_measures_what_is_asked_and_stops_when_it_is_told(project: Path) -> None:
    database = f"sqlite:///{project / 'compilewatch.db'}"
    asked = ("--suite", "quick"), ("-w", "patient", "-s", "eager")
    quick, slow = (document(project, "request", "create", *what)["rows"][0]["request_id"] for what in asked)
    with service(project) as process:
        with open_database(database, read_only=True) as opened:

            def states() -> dict[str, RequestState]:
                return {request.request_id: request.state for request in requests(opened)}

            wait_until(lambda: states()[quick] is RequestState.FINISHED, 120, "quick does not finish")
            wait_until(
                lambda: states()[slow] is RequestState.RUNNING and bool(workers(process)),
                120,
                "patient does not start",
            )
        measuring = workers(process)
        process.send_signal(signal.SIGTERM)
        # Alone within ten seconds.
        _, log = process.communicate(timeout=60)
    assert process.returncode == 0, log
    assert "Traceback" not in log
    assert [worker for worker in measuring if worker.is_running()] == []
    assert state_of(project, slow) == "queued"
    with open_database(database, read_only=True) as opened:
        trials = {trial.workload.name: trial for trial in trial_records(opened, Filters())}
        known = measured_stacks(opened, trials["gelu"].machine.name)
        assert [astuple(found) in known for found in fingerprints(Settings(), on_gpu=False).values()] == [
            True
        ]
    assert trials["gelu"].status == "ok"
    assert trials["patient"].failure.kind == "cancelled"
    assert in_this_process("request", "cancel", slow, cwd=project).returncode == 0
    assert state_of(project, slow) == "cancelled"


def test_schedules_are_listed_paused_and_resumed(project: Path) -> None:
    (row,) = document(project, "schedule", "list")["rows"]
    assert (row["name"], row["state"], row["suite"]) == ("nightly", "active", "quick")
    following = [datetime.fromisoformat(at) for at in row["next_firings_at"]]
    assert len(following) == 5
    assert all(at.weekday() < 5 for at in following)
    assert "nightly is paused" in in_this_process("schedule", "pause", "nightly", cwd=project).stdout
    assert "paused already" in in_this_process("schedule", "pause", "nightly", cwd=project).stdout
    (row,) = document(project, "schedule", "list")["rows"]
    assert (row["state"], row["next_firings_at"]) == ("paused", [])
    assert "nightly is active" in in_this_process("schedule", "resume", "nightly", cwd=project).stdout
    unknown = in_this_process("schedule", "pause", "weekly", cwd=project)
    assert unknown.returncode == 2
    assert "There is no schedule 'weekly'." in unknown.stderr


def test_a_request_for_what_is_not_there_is_refused(project: Path) -> None:
    result = in_this_process("request", "create", "--suite", "quik", cwd=project)
    assert (result.returncode, "Did you mean quick" in result.stderr) == (2, True)
    assert in_this_process("request", "cancel", "nothing", cwd=project).returncode == 2
