"""What a fleet costs: a worker at rest, the wait before a queued trial, dispatch over running it by hand."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

from db.engine.session import open_database
from runner.config.sources import load_settings
from runner.fleet.executor import ProcrastinateExecutor
from runner.plan.environment import worker_environment
from runner.plan.jobs import ENDED, Job
from runner.plan.plan import plan_run
from runner.plan.trial_spec import TrialSpec
from runner.process.execution import jobs_of
from runner.process.measured_process import WORKER, ProcessRole, worker_specification
from tests.runner.fleet_processes import Host, service, wait_until, worker
from tests.runner.terminal import COMMAND, ROOT, environment

REST_S = float(os.environ.get("COMPILEWATCH_BENCHMARK_REST_S", "60"))
STARTS = int(os.environ.get("COMPILEWATCH_BENCHMARK_STARTS", "10"))
TRIALS = int(os.environ.get("COMPILEWATCH_BENCHMARK_TRIALS", "6"))

EAGER_IMPORTS = (
    "import importlib, runner.cli.app as app;"
    "[importlib.import_module(place.partition(':')[0]) for place in app._PLACES.values()]"
)


@contextmanager
def started(host: Host) -> Iterator[Host]:
    host.start()
    try:
        yield host
    finally:
        host.stop()


def tree(pid: int) -> list[psutil.Process]:
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]


def at_rest(host: Host, seconds: float) -> tuple[float, float]:
    """Resident MB of a process and its children, and the share of a core they use over `seconds`."""
    processes = tree(host.pid)
    before = sum(sum(process.cpu_times()[:2]) for process in processes)
    time.sleep(seconds)
    after = sum(sum(process.cpu_times()[:2]) for process in processes)
    resident = sum(process.memory_info().rss for process in tree(host.pid))
    return resident / 2**20, (after - before) / seconds


@pytest.mark.benchmark
@pytest.mark.timeout(600)
def test_a_worker_and_a_service_at_rest(
    tmp_path: Path, postgres_database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with (
        started(worker(tmp_path / "worker", postgres_database_url)) as waiting,
        started(service(tmp_path / "service", postgres_database_url)) as serving,
    ):
        wait_until(lambda: "Waiting for trials" in waiting.said(), 120, "the worker did not start")
        wait_until(lambda: "Serving" in serving.said(), 120, "the service did not start")
        time.sleep(5)
        with capsys.disabled():
            for name, host in (("worker", waiting), ("service", serving)):
                resident_mb, share = at_rest(host, REST_S)
                print(f"\n{name} at rest: {resident_mb:.1f} MB resident, {share:.2%} of a core", end="")
        print()


@pytest.mark.benchmark
@pytest.mark.timeout(600)
def test_how_soon_a_queued_trial_begins(
    tmp_path: Path, postgres_database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    host = worker(tmp_path / "worker", postgres_database_url)
    host.config.write_text(host.config.read_text().replace("idle_s = 30", "idle_s = 1"), encoding="utf-8")
    settings = load_settings(host.config)
    with started(host), open_database(postgres_database_url) as database:
        executor = ProcrastinateExecutor(database, postgres_database_url, queue="cpu")
        wait_until(lambda: "Waiting for trials" in host.said(), 120, "the worker did not start")

        def begins_after_s() -> float:
            (job,) = jobs_of(plan_run(settings, device="cpu", trials=1, builds=settings.builds))
            asked_at = datetime.now(UTC)
            executor.submit([job])
            wait_until(lambda: executor.status([job.job_id])[job.job_id] in ENDED, 60, host.said())
            (trial,) = executor.trials(job.job_id)
            return (trial.started_at - asked_at).total_seconds()

        at_rest_s, warm_s = [], []
        for _ in range(STARTS):
            time.sleep(2.5)
            at_rest_s.append(begins_after_s())
            warm_s.append(begins_after_s())
        executor.close()
    with capsys.disabled():
        for name, times in (("at rest", at_rest_s), ("just after another", warm_s)):
            print(f"\nfrom queued to begun, worker {name}: median {statistics.median(times):.2f} s,", end="")
            print(f" longest {max(times):.2f} s of {len(times)}")


def by_hand(spec: TrialSpec, scratch: Path) -> None:
    """The measured process as a shell would start it: nothing of the supervisor, the queue or the spool."""
    told = worker_specification(
        spec, ProcessRole(scratch), sample_device=False, artifacts=scratch / "artifacts"
    )
    variables = worker_environment(scratch, threads=spec.threads, extra=spec.worker_env)
    reading, writing = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-I", str(WORKER), str(writing)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=[writing],
        env=variables,
    ) as process:
        os.close(writing)
        process.stdin.write(told.line())
        process.stdin.flush()
        with os.fdopen(reading, "rb") as pipe:
            *_, last = pipe.read().splitlines()
        assert json.loads(last)["record"]["status"] == "ok"


@pytest.mark.benchmark
@pytest.mark.timeout(1800)
def test_dispatch_over_running_the_worker_by_hand(
    tmp_path: Path, postgres_database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    host = worker(tmp_path / "worker", postgres_database_url)
    text = host.config.read_text(encoding="utf-8")
    text = text.replace(
        f'python = "{tmp_path / "worker" / "build" / "python"}"', f'python = "{sys.executable}"'
    )
    text = text.replace('workloads = ["elementwise"]', 'workloads = ["cnn"]').replace(
        '"eager"]', '"default"]'
    )
    host.config.write_text(text, encoding="utf-8")
    settings = load_settings(host.config)

    def jobs(count: int) -> list[Job]:
        return list(jobs_of(plan_run(settings, device="cpu", trials=count, builds=settings.builds)))

    hand_s, fleet_s = [], []
    with started(host), open_database(postgres_database_url) as database:
        executor = ProcrastinateExecutor(database, postgres_database_url, queue="cpu")

        def measured_s(count: int) -> float:
            queued = jobs(count)
            began = time.monotonic()
            executor.submit(queued)
            ids = [job.job_id for job in queued]
            wait_until(lambda: all(s in ENDED for s in executor.status(ids).values()), 900, host.said())
            return time.monotonic() - began

        measured_s(1)
        for number in range(TRIALS):
            (job,) = jobs(1)
            began = time.monotonic()
            by_hand(job.specs[0], tmp_path / f"hand-{number}")
            hand_s.append(time.monotonic() - began)
            fleet_s.append(measured_s(2) / 2)
        executor.close()
    ratio = statistics.median(fleet / hand for fleet, hand in zip(fleet_s, hand_s, strict=True))
    with capsys.disabled():
        print(f"\na trial by hand: median {statistics.median(hand_s):.2f} s")
        print(f"a queued trial: median {statistics.median(fleet_s):.2f} s, median ratio {ratio:.3f}")


@pytest.mark.benchmark
def test_how_soon_commands_start(capsys: pytest.CaptureFixture[str]) -> None:
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "all commands imported": [sys.executable, "-W", "ignore", "-c", EAGER_IMPORTS],
        **{
            f"compilewatch {name} --help": [*COMMAND, name, "--help"]
            for name in ("worker", "schedule", "dashboard", "run")
        },
        "compilewatch --version": [*COMMAND, "--version"],
    }
    with capsys.disabled():
        for name, command in commands.items():
            times = []
            for _ in range(5):
                began = time.monotonic()
                subprocess.run(command, cwd=ROOT, env=environment(), check=True, capture_output=True)
                times.append(time.monotonic() - began)
            print(f"\n{name}: best {min(times):.2f} s, median {statistics.median(times):.2f} s", end="")
        print()
