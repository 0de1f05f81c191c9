"""Two services and three workers on one PostgreSQL, and one of their processes killed every two seconds.

make test-slow PYTEST_ARGS="tests/qa/faults/test_fleet_chaos.py -s" prints what docs/measured/fleet.md
records.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.queries.records import trial_records
from compilewatch.db.queries.selection import Filters
from compilewatch.db.records.requests import UNFINISHED, RequestKind, RequestSpec, RequestState
from compilewatch.db.records.trial import Trial
from compilewatch.db.service.fleet import has_queue, queue_lengths
from compilewatch.db.service.requests import new_request, requests, save_request
from tests.runner.fleet_processes import Host, service, wait_until, worker

TRIALS = 200
REQUESTS = 2
KILL_EVERY_S = 2.0
CHAOS_S = float(os.environ.get("COMPILEWATCH_TEST_CHAOS_S", "180"))
CALM_S = 240.0
TRIAL_S = 0.5


def processes_of(hosts: list[Host]) -> list[psutil.Process]:
    """Services, workers and everything below them."""
    found = []
    for host in hosts:
        with contextlib.suppress(psutil.NoSuchProcess):
            root = psutil.Process(host.pid)
            found += [root, *root.children(recursive=True)]
    return found


def left_over(directory: Path) -> list[str]:
    """Processes that were started for these hosts, whoever is their parent by now."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if str(directory) in process.environ().get("TMPDIR", "") and process.status() != "zombie":
                found.append(" ".join(process.cmdline()))
    return found


def kind_of(process: psutil.Process) -> str:
    try:
        line = " ".join(process.cmdline())
    except psutil.Error:
        return "other"
    names = {
        "schedule": "service",
        "runner worker": "worker",
        "guard.py": "guard",
        "/build/python": "measured process",
    }
    return next((name for part, name in names.items() if part in line), "other")


def overlaps(trials: list[Trial]) -> list[tuple[str, str]]:
    """Pairs of trials on one host that ran at the same time, from their records."""
    found = []
    ordered = sorted(trials, key=lambda trial: (trial.machine.name, trial.started_at))
    for _, mine in itertools.groupby(ordered, key=lambda trial: trial.machine.name):
        for before, after in itertools.pairwise(mine):
            assert before.ended_at is not None
            if after.started_at < before.ended_at:
                found.append((before.trial_id, after.trial_id))
    return found


@pytest.fixture
def hosts(tmp_path: Path, postgres_database_url: str) -> Iterator[list[Host]]:
    workers = [worker(tmp_path / f"gpu-{n}", postgres_database_url, seconds=TRIAL_S) for n in (1, 2, 3)]
    services = [service(tmp_path / f"service-{n}", postgres_database_url) for n in (1, 2)]
    started = [*services, *workers]
    for host in started:
        # Trials whose worker died each time failed, and the judge would have them measured again.
        with host.config.open("a", encoding="utf-8") as file:
            file.write("\n[policy.confirm]\nbudget_trials = 0\n")
        host.start()
    try:
        yield started
    finally:
        for host in started:
            host.stop(signal.SIGKILL)


def kill_for(hosts: list[Host], seconds: float, seed: int) -> Counter[str]:
    """Kill a random process every two seconds, and start services and workers again as systemd would."""
    chance, killed = random.Random(seed), Counter[str]()
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        victims = [process for process in processes_of(hosts) if kind_of(process) != "other"]
        if victims:
            victim = chance.choice(victims)
            killed[kind_of(victim)] += 1
            with contextlib.suppress(psutil.NoSuchProcess):
                victim.kill()
        until = time.monotonic() + KILL_EVERY_S
        while time.monotonic() < until:
            for host in hosts:
                host.restart_if_dead()
            time.sleep(0.1)
    return killed


def is_queued(database: Database) -> bool:
    """Whether the services have handed over everything; the first trials may be done by then."""
    queued = sum(queue_lengths(database).values()) if has_queue(database) else 0
    return queued + sum(1 for _ in trial_records(database, Filters())) == TRIALS


def is_over(database: Database) -> bool:
    return not requests(database, states=UNFINISHED) and not (
        has_queue(database) and any(queue_lengths(database).values())
    )


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_trial_has_one_record_whatever_dies(
    hosts: list[Host], tmp_path: Path, postgres_database_url: str
) -> None:
    with open_database(postgres_database_url) as database:
        for number in range(REQUESTS):
            spec = RequestSpec(suite="quick", trials=TRIALS // REQUESTS)
            asked = datetime.now(UTC)
            save_request(
                database, new_request(f"request-{number}", RequestKind.MANUAL, spec, by="chaos", at=asked)
            )
        wait_until(lambda: is_queued(database), 90, "the trials were not queued")
        began = time.monotonic()
        killed = kill_for(hosts, CHAOS_S, seed=1)
        measured_meanwhile = sum(1 for _ in trial_records(database, Filters()))
        while not is_over(database):
            assert time.monotonic() - began < CHAOS_S + CALM_S, (
                [(each.request_id, each.state, each.owner, each.history[-1]) for each in requests(database)],
                queue_lengths(database),
            )
            for host in hosts:
                host.restart_if_dead()
            time.sleep(0.2)
        took = time.monotonic() - began
        for host in hosts:
            assert host.stop() == 0, host.said()[-3000:]
        trials = list(trial_records(database, Filters()))
        states = Counter(request.state for request in requests(database))
        queue = queue_lengths(database)
    twice = [
        path.name for host in hosts for path in (host.directory / "data" / "spool" / "bad").glob("*.json")
    ]
    waiting = [path for host in hosts for path in (host.directory / "data" / "spool").glob("*.json")]
    print(f"\n{sum(killed.values())} kills in {CHAOS_S:.0f} s: {dict(killed)}; over after {took:.0f} s")
    outcomes = Counter(trial.failure.kind.value if trial.failure else "ok" for trial in trials)
    print(f"{len(trials)} records, {measured_meanwhile} of them among the kills: {dict(outcomes)}")
    print(f"measured twice, the second record set aside: {len(twice)}")
    assert len(trials) == len({trial.trial_id for trial in trials}) == TRIALS
    assert states == {RequestState.FINISHED: REQUESTS}
    assert overlaps(trials) == []
    assert (queue, waiting) == ({}, [])
    assert left_over(tmp_path) == []
