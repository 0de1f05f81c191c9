"""Launches where the scheduler is asked for its jobs: those that wait count, those that are gone do not."""

from __future__ import annotations

import itertools
import json
import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilewatch.db.engine.session import Database
from compilewatch.db.records.hosts import Launch, LaunchState
from compilewatch.db.service.fleet import ListedJobs, launches, matched
from compilewatch.runner.config.sections import LaunchSettings
from compilewatch.runner.config.sources import load_settings
from compilewatch.runner.fleet.launch import Launcher, count_jobs, is_due
from tests.runner.fleet.test_exit import queued
from tests.runner.fleet_processes import worker
from tests.runner.terminal import ROOT

HOUR = timedelta(hours=1)
A_MOMENT = timedelta(seconds=11)
"""After which the scheduler is asked again."""

SCHEDULER = """#!/bin/sh
cd "$(dirname "$0")"
if [ "$1" = submit ]; then
    echo job >>jobs
elif [ ! -e state ]; then
    echo
    cat jobs 2>/dev/null
    echo "squeue: a word beside the list" >&2
elif [ "$(cat state)" = hangs ]; then
    sleep 600
else
    cat state >&2
    exit 1
fi
"""


class Scheduler:
    """A program that submits and lists jobs, the launcher of a service, and a clock moved by hand."""

    def __init__(self, folder: Path, database: Database, url: str, *, trials: int, at_most: int) -> None:
        self.now = datetime.now(UTC)
        self.folder = folder
        program = folder / "scheduler.sh"
        program.write_text(SCHEDULER, encoding="utf-8")
        program.chmod(0o755)
        box = worker(folder / "box", url)
        submit, listed = (json.dumps([str(program), word]) for word in ("submit", "list"))
        with box.config.open("a", encoding="utf-8") as file:
            file.write(
                f"[fleet.launch.cpu]\ncommand = {submit}\njobs_command = {listed}\n"
                f"at_most = {at_most}\nstart_s = 600\ntimeout_s = 3\nbackoff_s = 60\n"
            )
        queued(box, database, url, trials)
        settings = load_settings(box.config)
        self._launcher = Launcher(settings, database, host="boss", stop=Event(), clock=lambda: self.now)

    def after(self, passed: timedelta) -> bool:
        """Whether the service launches a worker then."""
        self.now += passed
        return self._launcher.launch_if_due("cpu")

    def all_after(self, passed: timedelta) -> int:
        """How many workers the service launches then, in half a minute of looks."""
        return self.after(passed) + sum(self.after(A_MOMENT) for _ in range(3))

    def jobs(self) -> int:
        return len((self.folder / "jobs").read_text().split())

    def lose(self, jobs: int) -> None:
        """So many jobs end without having started."""
        (self.folder / "jobs").write_text("job\n" * (self.jobs() - jobs))

    def set_state(self, state: str) -> None:
        (self.folder / "state").write_text(state)


@pytest.fixture
def make_scheduler(
    tmp_path: Path, database: Database, postgres_database_url: str
) -> Callable[[int, int], Scheduler]:
    def make(trials: int, at_most: int) -> Scheduler:
        return Scheduler(tmp_path, database, postgres_database_url, trials=trials, at_most=at_most)

    return make


def test_jobs_that_wait_for_hours_are_not_launched_again(
    make_scheduler: Callable[[int, int], Scheduler], database: Database
) -> None:
    """Ten minutes is `start_s`; the jobs wait for hours."""
    scheduler = make_scheduler(9, 2)
    assert scheduler.all_after(timedelta()) == 2
    assert [scheduler.after(HOUR / 8) for _ in range(24)] == [False] * 24
    assert scheduler.jobs() == 2
    assert {each.state(scheduler.now) for each in launches(database)} == {LaunchState.PENDING}


def test_no_more_jobs_than_trials_wait(make_scheduler: Callable[[int, int], Scheduler]) -> None:
    scheduler = make_scheduler(1, 4)
    assert [scheduler.all_after(HOUR) for _ in range(3)] == [1, 0, 0]


def test_a_job_that_is_gone_without_its_worker_is_replaced_at_once(
    make_scheduler: Callable[[int, int], Scheduler], database: Database
) -> None:
    scheduler = make_scheduler(9, 3)
    assert scheduler.all_after(timedelta()) == 3
    scheduler.lose(2)
    assert [scheduler.after(A_MOMENT), scheduler.after(A_MOMENT), scheduler.after(A_MOMENT)] == [
        True,
        True,
        False,
    ]
    assert scheduler.jobs() == 3
    states = [each.state(scheduler.now) for each in launches(database)]
    assert (states.count(LaunchState.PENDING), states.count(LaunchState.NO_WORKER)) == (3, 2)


def test_jobs_that_all_end_at_once_are_not_replaced_for_ever(
    make_scheduler: Callable[[int, int], Scheduler],
) -> None:
    """A batch script with a mistake: one job at first, another at once, then a minute, two, four."""
    scheduler = make_scheduler(9, 1)
    launched = []
    for second in range(0, 660, 11):
        if scheduler.after(A_MOMENT):
            launched.append(second)
            scheduler.lose(1)
    waits = [later - earlier for earlier, later in itertools.pairwise(launched)]
    assert waits[0] == 11
    assert [60 <= waits[1] < 100, 120 <= waits[2] < 160, 240 <= waits[3] < 290] == [True] * 3
    assert len(launched) == 5


def test_jobs_that_nobody_launched_count_as_well(make_scheduler: Callable[[int, int], Scheduler]) -> None:
    scheduler = make_scheduler(9, 3)
    (scheduler.folder / "jobs").write_text("by hand\nby hand\n".replace(" ", "-"))
    assert scheduler.all_after(timedelta()) == 1
    assert scheduler.jobs() == 3


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ("slurm_load_jobs error: password=hunter2hunter2", "ended with 1. slurm_load_jobs error"),
        ("hangs", "Ended after 3 s."),
    ],
)
def test_where_the_scheduler_cannot_be_asked_launches_are_counted(
    make_scheduler: Callable[[int, int], Scheduler],
    database: Database,
    caplog: pytest.LogCaptureFixture,
    state: str,
    why: str,
) -> None:
    scheduler = make_scheduler(9, 1)
    scheduler.set_state(state)
    with caplog.at_level(logging.WARNING, "compilewatch.fleet"):
        # Ten minutes without a worker are a failure, which the next launch comes a minute after.
        assert [scheduler.after(timedelta(minutes=minutes)) for minutes in (0, 9, 1.2, 1)] == [
            True,
            False,
            False,
            True,
        ]
    assert "The jobs of cpu cannot be counted, launches are instead: " in caplog.text
    assert why in caplog.text
    for each in launches(database):
        assert "Jobs at the scheduler could not be counted: " in each.output
        assert why in each.output
    assert "hunter2" not in caplog.text + str(launches(database))
    (scheduler.folder / "state").unlink()
    assert scheduler.all_after(HOUR) == 0
    assert scheduler.jobs() == 2


def counted(*command: str) -> tuple[int | None, str]:
    return count_jobs(command, directory=ROOT, timeout_s=20, should_stop=Event().is_set)


def test_each_line_is_a_job_and_blank_ones_are_none() -> None:
    program = "import sys; print('\\n 1 \\n\\n2'); print('4711 is no job', file=sys.stderr); print(3, end='')"
    assert counted(sys.executable, "-c", program) == (3, "")
    assert counted(sys.executable, "-c", "print('job.batch/worker-7f3k2\\n' * 50_000)") == (50_000, "")
    assert counted("true") == (0, "")
    assert counted("/no/such/squeue") == (
        None,
        "/no/such/squeue cannot be started: No such file or directory.",
    )


START = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)


class Simulated:
    """Jobs, workers and launches as the database has them, on a clock of ten seconds a step."""

    def __init__(self, at_most: int, waiting: int) -> None:
        self.rules = LaunchSettings(command=("sbatch",), at_most=at_most, start_s=60, backoff_s=0)
        self.waiting, self.now = waiting, START
        self.launches: list[Launch] = []
        self.workers: set[str] = set()
        self.queued = self.submitted = 0

    def look(self) -> None:
        """The service launches what is due, a job of each launch."""
        in_s = timedelta(seconds=self.rules.start_s)
        listed = ListedJobs(self.queued + len(self.workers), self.now, self.now + in_s)
        for _ in range(self.rules.at_most + 2):
            self.launches, beyond = matched(self.launches, self.workers, listed)
            if is_due(
                self.rules,
                self.now,
                self.waiting,
                len(self.workers) + beyond,
                self.launches,
                are_listed=True,
            ):
                self.submitted += 1
                launch = Launch(
                    launch_id=str(self.submitted),
                    queue="q",
                    host="boss",
                    launched_at=self.now,
                    worker_due_at=self.now + in_s,
                    ended_at=self.now,
                    exit_code=0,
                )
                self.launches.insert(0, launch)
                self.queued += 1

    def start(self) -> None:
        """A worker comes of the newest launch that has none, as in SQL."""
        if self.queued:
            self.queued -= 1
            name = f"worker-{len(self.launches)}-{self.now}"
            self.workers.add(name)
            newest = next((n for n, each in enumerate(self.launches) if each.worker is None), None)
            if newest is not None:
                self.launches[newest] = self.launches[newest].model_copy(update={"worker": name})

    def end(self) -> None:
        if self.workers:
            self.workers.pop()

    def lose(self) -> None:
        self.queued -= bool(self.queued)


@given(
    st.integers(1, 4),
    st.integers(0, 8),
    st.lists(st.sampled_from(["start", "end", "lose", "wait"]), max_size=60),
)
def test_never_more_jobs_than_allowed_and_in_the_end_as_many(
    at_most: int, waiting: int, steps: list[str]
) -> None:
    simulated = Simulated(at_most, waiting)
    for step in steps:
        simulated.look()
        assert simulated.queued + len(simulated.workers) <= at_most
        simulated.now += timedelta(seconds=10)
        if step != "wait":
            getattr(simulated, step)()
    for _ in range(3):
        simulated.now += timedelta(seconds=10)
        simulated.look()
    assert simulated.queued + len(simulated.workers) >= min(at_most, waiting)
