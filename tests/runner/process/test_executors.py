"""One contract, two executors: in this process, and by a real worker through a real PostgreSQL."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.queries.records import trial_record, trial_records
from compilewatch.db.queries.selection import Filters
from compilewatch.db.records.trial import FailureKind
from compilewatch.db.service.fleet import stored_trials
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.config.sources import load_settings
from compilewatch.runner.fleet.dispatch import ProcrastinateExecutor
from compilewatch.runner.plan.plan import plan_run
from compilewatch.runner.plan.trial_spec import ENDED, Executor, Job, JobState
from compilewatch.runner.process.execution import LocalExecutor, jobs_of, run_jobs
from compilewatch.runner.process.spool import Spool
from tests.conftest import postgres_database
from tests.runner.fleet_processes import Host, wait_until, worker
from tests.runner.quick_measurement import configuration, interpreter

SLOW_S = 30.0


class Rig:
    """An executor, and the jobs it can measure."""

    def __init__(self, executor: Executor, database: Database, settings: Settings, slow: Settings) -> None:
        self.executor, self.database, self._settings, self._slow = executor, database, settings, slow

    def jobs(self, count: int = 1, *, slow: bool = False) -> list[Job]:
        settings = self._slow if slow else self._settings
        plan = plan_run(settings, device="cpu", trials=count, builds=settings.builds)
        return list(jobs_of(plan))

    def state(self, job: Job) -> JobState | None:
        return self.executor.status([job.job_id]).get(job.job_id)

    def ended(self, *jobs: Job) -> bool:
        states = self.executor.status([job.job_id for job in jobs])
        return len(states) == len(jobs) and all(state in ENDED for state in states.values())


def _settings(directory: Path, name: str, seconds: float) -> Settings:
    python = interpreter(directory / name, seconds=seconds)
    return load_settings(configuration(directory / name, python))


@pytest.fixture(scope="module")
def fleet(
    postgres_url: str, _postgres_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Host]]:
    """A database with a worker that waits, whose builds are "fake" and "slow"."""
    directory = tmp_path_factory.mktemp("fleet")
    with postgres_database(postgres_url, _postgres_template) as url:
        host = worker(directory / "host", url)
        slow_python = interpreter(directory / "slow", seconds=SLOW_S)
        text = host.config.read_text(encoding="utf-8")
        host.config.write_text(
            f'{text}\n[[build]]\nname = "slow"\npython = "{slow_python}"\n', encoding="utf-8"
        )
        host.start()
        try:
            yield url, host
        finally:
            host.stop()


@contextmanager
def _fleet_rig(url: str, host: Host) -> Iterator[Rig]:
    settings = load_settings(host.config)
    quick, slow = (settings.model_copy(update={"build": (build,)}) for build in settings.build)
    with open_database(url) as database:
        executor = ProcrastinateExecutor(database, url, queue="cpu")
        try:
            yield Rig(executor, database, quick, slow)
        finally:
            executor.close()


@contextmanager
def _local_rig(url: str, directory: Path) -> Iterator[Rig]:
    quick, slow = _settings(directory, "quick", 0.02), _settings(directory, "slow", SLOW_S)
    with open_database(url) as database:
        executor = LocalExecutor(database, Spool(directory / "spool"))
        try:
            yield Rig(executor, database, quick, slow)
        finally:
            executor.close()


@pytest.fixture(params=["local", "fleet"])
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rig]:
    if request.param == "local":
        with _local_rig(request.getfixturevalue("sqlite_url"), tmp_path) as made:
            yield made
    else:
        with _fleet_rig(*request.getfixturevalue("fleet")) as made:
            yield made


def test_a_job_is_measured_and_its_record_stored(rig: Rig) -> None:
    (job,) = rig.jobs()
    assert rig.state(job) is None
    rig.executor.submit([job])
    wait_until(lambda: rig.ended(job), 30, "it did not end")
    assert rig.state(job) is JobState.DONE
    stored = trial_record(rig.database, job.job_id)
    assert (stored.status, stored.samples_ns) == ("ok", [1000, 1100, 1200])
    assert rig.executor.trials(job.job_id) == [stored]


def test_a_job_that_is_known_is_left_alone(rig: Rig) -> None:
    (job,) = rig.jobs()
    rig.executor.submit([job])
    rig.executor.submit([job])
    wait_until(lambda: rig.ended(job), 30, "it did not end")
    rig.executor.submit([job])
    (other,) = rig.jobs()
    rig.executor.submit([other])
    wait_until(lambda: rig.ended(other), 30, "it did not end")
    runs = Filters(runs=(job.specs[0].run_id, other.specs[0].run_id))
    assert len(list(trial_records(rig.database, runs))) == 2


def test_jobs_go_in_the_order_in_which_they_were_submitted(rig: Rig) -> None:
    jobs = rig.jobs(3)
    rig.executor.submit(jobs)
    wait_until(lambda: rig.ended(*jobs), 30, "they did not end")
    run = Filters(runs=(jobs[0].specs[0].run_id,))
    stored = sorted(trial_records(rig.database, run), key=lambda trial: trial.started_at)
    assert [trial.trial_id for trial in stored] == [job.job_id for job in jobs]


def test_a_queued_job_is_cancelled_without_a_record(rig: Rig) -> None:
    first, second = [*rig.jobs(slow=True), *rig.jobs()]
    rig.executor.submit([first, second])
    wait_until(lambda: rig.state(first) is JobState.RUNNING, 30, "it did not begin")
    rig.executor.cancel([second.job_id])
    assert rig.state(second) is JobState.CANCELLED
    rig.executor.cancel([first.job_id])
    wait_until(lambda: rig.ended(first), 15, "it did not end")
    assert stored_trials(rig.database, [second.job_id]) == set()


def test_a_running_job_is_cancelled_and_says_so(rig: Rig) -> None:
    (job,) = rig.jobs(slow=True)
    rig.executor.submit([job])
    wait_until(lambda: rig.state(job) is JobState.RUNNING, 30, "it did not begin")
    time.sleep(1.5)
    rig.executor.cancel([job.job_id])
    took = wait_until(lambda: rig.ended(job), 15, "it did not end")
    assert took < 10
    assert rig.state(job) is JobState.CANCELLED
    (trial,) = rig.executor.trials(job.job_id)
    assert trial.failure.kind is FailureKind.CANCELLED
    (after,) = rig.jobs()
    rig.executor.submit([after])
    wait_until(lambda: rig.ended(after), 30, "the next job did not run")
    assert rig.state(after) is JobState.DONE


def test_ids_that_are_not_known_are_passed_over(rig: Rig) -> None:
    rig.executor.cancel(["none-such"])
    assert rig.executor.status(["none-such"]) == {}
    assert rig.executor.trials("none-such") == []
    wait_until(lambda: rig.executor.capacity() == 1, 20, "nobody is there to measure")


class Heard:
    """A progress that remembers."""

    def __init__(self) -> None:
        self.started: list[int] = []
        self.finished: list[str] = []

    def trial_started(self, number: int, workload: str, strategy: str, build: str | None) -> None:
        self.started.append(number)

    def phase(self, name: str) -> None:
        assert name

    def trial_finished(self, trial: object) -> None:
        self.finished.append(trial.trial_id)  # type: ignore[attr-defined]


def test_a_plan_is_worked_off_and_told(rig: Rig) -> None:
    jobs, heard = rig.jobs(3), Heard()
    assert run_jobs(jobs, rig.executor, heard, lambda: False) == (3, 0)
    assert sorted(heard.started) == [1, 2, 3]
    assert sorted(heard.finished) == sorted(job.job_id for job in jobs)


def test_working_off_ends_when_cancelled(rig: Rig) -> None:
    jobs, stop = [*rig.jobs(slow=True), *rig.jobs(2)], threading.Event()
    threading.Timer(3, stop.set).start()
    measured, failed = run_jobs(jobs, rig.executor, Heard(), stop.is_set)
    assert (measured, failed) in {(1, 1), (0, 0)}


@pytest.mark.slow
def test_one_worker_a_gpu(fleet: tuple[str, Host], tmp_path: Path) -> None:
    url, first = fleet
    wait_until(lambda: "Waiting for trials of cpu" in first.said(), 30, "it did not start")
    second = worker(tmp_path / "host", url)
    # Of the same host: where its locks are.
    second.environment["TMPDIR"] = first.environment["TMPDIR"]
    second.start()
    assert second.process.wait(30) == 2
    assert "Another worker serves cpu on this host." in second.said()
    assert first.stop() == 0
