"""Workers that end by themselves, are killed or lose their node: the trial, the lock and the queue."""

from __future__ import annotations

import contextlib
import signal
import time
from pathlib import Path

import psutil
import psycopg
import pytest

from compilewatch.db.engine.session import Database
from compilewatch.db.queries.records import trial_records
from compilewatch.db.queries.selection import Filters
from compilewatch.db.service.fleet import queue_lengths
from compilewatch.runner.config.sources import load_settings
from compilewatch.runner.fleet.dispatch import ProcrastinateExecutor, jobs_with_ids
from tests.runner.fleet.test_service import asked, make_fleet
from tests.runner.fleet_processes import Host, wait_until, worker

GRACE_S = 30.0
"""What Slurm and Kubernetes leave between SIGTERM and SIGKILL by default."""


def queued(
    host: Host, database: Database, url: str, trials: int, name: str = "wanted", **spec: object
) -> None:
    """Put the trials of one request into the queue, as a service does."""
    executor = ProcrastinateExecutor(database, url, queue="cpu")
    settings = load_settings(host.config)
    fleet = make_fleet(settings, database)
    request = asked(name, trials=trials, **spec)
    executor.submit(list(jobs_with_ids(fleet.plan(settings, request), request)))
    executor.close()


def stored(database: Database) -> list[str]:
    return [trial.trial_id for trial in trial_records(database, Filters())]


def ends_by_itself(host: Host, within_s: float) -> float:
    """Start a worker and wait until it has ended with 0: how long that took."""
    began = time.monotonic()
    host.start()
    try:
        assert host.process.wait(within_s) == 0, host.said()
    finally:
        host.stop(signal.SIGKILL)
    return time.monotonic() - began


@pytest.mark.slow
def test_a_worker_ends_after_so_many_trials_and_the_next_one_after_idleness(
    tmp_path: Path, database: Database, postgres_database_url: str
) -> None:
    url = postgres_database_url
    three = Host(tmp_path / "box", url, "worker", "--gpu", "cpu", "--max-trials", "3")
    queued(three, database, url, 5)
    ends_by_itself(three, 60)
    assert len(stored(database)) == 3
    assert queue_lengths(database) == {("cpu", "todo"): 2}
    rest = Host(tmp_path / "box", url, "worker", "--gpu", "cpu", "--exit-when-idle", "2")
    assert ends_by_itself(rest, 60) > 2
    assert len(set(stored(database))) == 5
    assert queue_lengths(database) == {}
    assert "Nothing to measure for" in rest.said()


def test_an_idle_worker_gives_its_node_back_while_the_database_is_away(tmp_path: Path) -> None:
    away = "postgresql://nobody@127.0.0.1:9/none"
    host = Host(tmp_path / "box", away, "worker", "--gpu", "cpu", "--exit-when-idle", "1")
    ends_by_itself(host, GRACE_S)
    assert "The queue cannot be used" in host.said()


@pytest.mark.parametrize("to_all", [True, False])
def test_a_worker_whose_node_is_taken_back_puts_its_trial_back(
    to_all: bool, tmp_path: Path, database: Database, postgres_database_url: str
) -> None:
    """Slurm sends SIGTERM to every process of a job, a terminal or Kubernetes to the first one."""
    url = postgres_database_url
    host = Host(tmp_path / "box", url, "worker", "--gpu", "cpu", "--exit-when-idle", "60", seconds=20)
    queued(host, database, url, 1)
    host.start()
    try:
        root = psutil.Process(host.pid)
        wait_until(lambda: "begins" in host.said() and len(below(root)) >= 3, 60, host.said())
        everything = below(root)
        for process in [*reversed(everything), root] if to_all else [root]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.terminate()
        assert host.process.wait(GRACE_S) == 0, host.said()
    finally:
        host.stop(signal.SIGKILL)
    assert stored(database) == []
    assert queue_lengths(database) == {("cpu", "todo"): 1}
    with psycopg.connect(url) as connection:
        # A node may be taken back any number of times: that is no attempt that failed.
        assert connection.execute("SELECT attempts FROM procrastinate_jobs").fetchall() == [(0,)]
    assert not any(process.is_running() for process in everything)


def test_a_killed_worker_leaves_no_process_and_the_next_one_begins_its_trial_again(
    tmp_path: Path, database: Database, postgres_database_url: str
) -> None:
    url = postgres_database_url
    host, other = (worker(tmp_path / name, url, seconds=3) for name in ("box", "other"))
    queued(host, database, url, 1)
    host.start()
    try:
        root = psutil.Process(host.pid)
        wait_until(lambda: "begins" in host.said() and len(below(root)) >= 3, 60, host.said())
        everything = below(root)
        host.stop(signal.SIGKILL)
        wait_until(lambda: not any(each.is_running() for each in everything), 20, "a process is left")
        assert stored(database) == []
        other.start()
        wait_until(lambda: len(stored(database)) == 1, 60, other.said())
    finally:
        host.stop(signal.SIGKILL)
        assert other.stop() == 0
    with psycopg.connect(url) as connection:
        # The queue counts what died and what was measured.
        assert connection.execute("SELECT attempts FROM procrastinate_jobs").fetchall() == [(2,)]


def below(root: psutil.Process) -> list[psutil.Process]:
    return root.children(recursive=True)
