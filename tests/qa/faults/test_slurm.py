"""Workers as jobs of a real Slurm, launched by the service, pre-empted, cancelled and killed.

make test-slurm prints what docs/measured/fleet.md records.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.queries.records import trial_records
from compilewatch.db.queries.selection import Filters
from compilewatch.db.records.hosts import LaunchState
from compilewatch.db.records.requests import UNFINISHED, RequestKind, RequestSpec, RequestState
from compilewatch.db.service.fleet import fleet_workers, has_queue, launches, queue_lengths
from compilewatch.db.service.requests import new_request, requests, save_request
from tests.qa.faults.slurm_cluster import KILL_WAIT_S, Cluster, Unavailable, slurm_cluster
from tests.runner.fleet_processes import Host, service, wait_until
from tests.runner.terminal import ROOT

TRIALS = int(os.environ.get("COMPILEWATCH_TEST_SLURM_TRIALS", "200"))
TRIAL_S = 0.3
IDLE_S = 5
FAULT_EVERY_S = 4.0
FAULTS = 45
AT_MOST = 2
OVER_WITHIN_S = 700.0

# Both nodes are this host: a name and a folder of its own make each one a host.
_WORKER = """#!/bin/sh
node={folder}/$SLURMD_NODENAME
mkdir -p "$node/tmp"
export TMPDIR="$node/tmp" COMPILEWATCH_DATA_DIR="$node/data"
exec unshare --uts sh -c 'hostname "$0" && exec "$@"' "$SLURMD_NODENAME" \\
    {python} -m compilewatch.runner worker --gpu cpu --exit-when-idle {idle_s}
"""
_LAUNCH = """
[fleet.launch.cpu]
command = {command}
jobs_command = ["squeue", "--noheader", "--partition", "low", "--format", "%i"]
at_most = {at_most}
start_s = 120
backoff_s = 2

[policy.confirm]
budget_trials = 0
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with contextlib.ExitStack() as stack:
        try:
            cluster = stack.enter_context(slurm_cluster(tmp_path / "slurm"))
        except Unavailable as reason:
            pytest.skip(str(reason))
        yield cluster


def boss_of(cluster: Cluster, folder: Path, url: str, *, seconds: float) -> Host:
    """A service that can reach Slurm; its trials take `seconds`."""
    boss = service(folder / "boss", url, seconds=seconds)
    boss.environment.update(cluster.environment)
    return boss


def batch_of(folder: Path, *options: str) -> list[str]:
    """The command that submits a worker."""
    script = folder / "worker.sh"
    script.write_text(_WORKER.format(folder=folder, python=sys.executable, idle_s=IDLE_S), encoding="utf-8")
    return [
        *("sbatch", "--parsable", "--partition", "low", "--chdir", str(ROOT), *options),
        *("--output", str(folder / "job-%j.log"), str(script)),
    ]


def preempt(cluster: Cluster, job: str) -> None:
    """Submit a job of a second to the partition that may take the node of `job`."""
    node = cluster.ask("squeue", "-h", "-j", job, "-o", "%N")
    urgent = ("--partition", "high", "--nodelist", node, "--output", "/dev/null", "--wrap", "sleep 1")
    cluster.ask("sbatch", *urgent)


def faults(cluster: Cluster, done: Iterator[bool], seed: int) -> Counter[str]:
    """Pre-empt, kill or cancel a worker every few seconds, `FAULTS` times at most, until it is done."""
    chance, injected = random.Random(seed), Counter[str]()
    kinds = itertools.cycle(("pre-empted", "killed", "cancelled"))
    while not next(done):
        assert len(cluster.jobs("low", "pending,configuring,running")) <= AT_MOST
        running = cluster.jobs("low", "running") if injected.total() < FAULTS else []
        if running:
            kind, job = next(kinds), chance.choice(running)
            with contextlib.suppress(subprocess.CalledProcessError):
                if kind == "pre-empted":
                    preempt(cluster, job)
                elif kind == "killed":
                    cluster.ask("scancel", "--signal=KILL", "--full", job)
                else:
                    cluster.ask("scancel", job)
                injected[kind] += 1
        time.sleep(FAULT_EVERY_S)
    return injected


@pytest.mark.slurm
@pytest.mark.timeout(880)
def test_no_trial_is_lost_or_doubled_whatever_slurm_does_to_its_job(
    cluster: Cluster, tmp_path: Path, postgres_database_url: str
) -> None:
    url = postgres_database_url
    with open_database(url) as database:
        for number in (1, 2):
            spec = RequestSpec(suite="quick", trials=TRIALS // 2)
            request = new_request(f"request-{number}", RequestKind.MANUAL, spec, by="x", at=datetime.now(UTC))
            save_request(database, request)
        boss = boss_of(cluster, tmp_path, url, seconds=TRIAL_S)
        with boss.config.open("a", encoding="utf-8") as file:
            batch = json.dumps(batch_of(tmp_path, "--no-requeue"))
            file.write(_LAUNCH.format(command=batch, at_most=AT_MOST))
        boss.start()
        began = time.monotonic()

        def is_done() -> Iterator[bool]:
            while True:
                assert time.monotonic() - began < OVER_WITHIN_S, report(database, cluster, boss)
                yield not requests(database, states=UNFINISHED)

        try:
            injected = faults(cluster, is_done(), seed=1)
            took_s = time.monotonic() - began
            given_back_s = wait_until(
                lambda: not cluster.jobs("low"), IDLE_S + KILL_WAIT_S + 30, report(database, cluster, boss)
            )
        finally:
            assert boss.stop() == 0, boss.log.read_text()[-3000:]
        trials = list(trial_records(database, Filters()))
        outcomes = Counter(trial.failure.kind.value if trial.failure else "ok" for trial in trials)
        workers, brought = fleet_workers(database), launches(database, limit=1000)
        states = Counter(each.state(datetime.now(UTC)).value for each in brought)
        print(f"\n{TRIALS} trials in {took_s:.0f} s: {dict(outcomes)}; {dict(injected)}")
        print(f"{len(workers)} workers; launches: {dict(states)}")
        print(f"idle for {IDLE_S} s, all allocations given back {given_back_s:.1f} s after the last request")
        assert len(trials) == len({trial.trial_id for trial in trials}) == TRIALS
        assert outcomes == {"ok": TRIALS}
        assert {request.state for request in requests(database)} == {RequestState.FINISHED}
        assert queue_lengths(database) == {}
        assert TRIALS < 200 or min(injected.values()) >= 3
        assert states[LaunchState.STARTED.value] >= (3 if TRIALS >= 200 else 1)


@pytest.mark.slurm
def test_a_job_that_slurm_requeues_goes_on_with_the_trial_it_put_back(
    cluster: Cluster, tmp_path: Path, postgres_database_url: str
) -> None:
    boss = boss_of(cluster, tmp_path, postgres_database_url, seconds=2)
    with open_database(postgres_database_url) as database:
        spec = RequestSpec(suite="quick", trials=4)
        save_request(database, new_request("one", RequestKind.MANUAL, spec, by="x", at=datetime.now(UTC)))
        boss.start()
        batch = batch_of(tmp_path, "--requeue")
        environment = boss.environment | {"COMPILEWATCH_DATABASE_URL": postgres_database_url}
        submitted = subprocess.run(batch, env=environment, capture_output=True, text=True, check=True)
        job = submitted.stdout.strip()
        try:

            def stored() -> int:
                return len(list(trial_records(database, Filters())))

            wait_until(lambda: stored() >= 1, 60, report(database, cluster, boss))
            preempt(cluster, job)
            wait_until(lambda: job in cluster.jobs("low", "pending"), 60, "it was not requeued")
            # Slurm lets a requeued job wait for two minutes.
            cluster.ask("scontrol", "update", f"JobId={job}", "StartTime=now")
            wait_until(lambda: not requests(database, states=UNFINISHED), 90, report(database, cluster, boss))
            wait_until(lambda: not cluster.jobs("low"), 60, "its node is not given back")
        finally:
            boss.stop()
        trials = list(trial_records(database, Filters()))
        first, second = sorted(fleet_workers(database), key=lambda each: each.started_at)
        assert [trial.failure for trial in trials] == [None] * 4
        assert first.measured + second.measured == 4
        assert first.stopped_at is not None


def report(database: Database, cluster: Cluster, boss: Host) -> str:
    """What a person wants to know where it does not end."""
    # The first service makes the queue's tables, seconds after its start.
    waiting = queue_lengths(database) if has_queue(database) else {}
    lines = [boss.log.read_text()[-2000:], cluster.ask("squeue"), str(waiting)]
    lines += [f"{each.launched_at} {each.exit_code} {each.output}" for each in launches(database)]
    return "\n".join(lines)
