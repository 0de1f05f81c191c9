"""Where faults are injected: a database, a spool, scratch space, and the real runner over a fake torch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.records.requests import RunStatus
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import Strategy, Task, Trial
from compilewatch.db.store.trials import start_run
from compilewatch.runner.plan.trial_spec import Job, TorchSettings, TrialSpec, WorkloadSpec
from compilewatch.runner.process.execution import LocalExecutor, note_end, run_jobs
from compilewatch.runner.process.spool import Spool, store_waiting
from compilewatch.runner.worker.timing.sampling import SamplingPlan

FAKE_WORKER = Path(__file__).with_name("fake_worker.py")
# Short enough for a thousand trials, far longer than a fake worker that does not hang needs.
TIMEOUT_S = 8.0
LOCKS = "compilewatch-locks"
_numbers = count(1)


@dataclass(frozen=True)
class Place:
    """One installation: everything in it survives the processes that work in it."""

    url: str
    directory: Path

    @property
    def spool(self) -> Spool:
        return Spool(self.directory / "data" / "spool")

    @property
    def scratch(self) -> Path:
        """TMPDIR of every process of a trial, by which its orphans are known."""
        return self.directory / "scratch"

    @property
    def locks(self) -> Path:
        """Where every process whose TMPDIR is `scratch` has them by default."""
        return self.scratch / LOCKS

    def interpreter(self) -> Path:
        """An executable that stands where a build's Python would be."""
        path = self.directory / "python"
        if not path.exists():
            path.write_text(f"#!{sys.executable} -IS\n{FAKE_WORKER.read_text()}", encoding="utf-8")
            path.chmod(0o755)
        return path


def new_place(url: str, directory: Path) -> Place:
    place = Place(url, directory)
    place.scratch.mkdir(parents=True, exist_ok=True)
    place.interpreter()
    open_database(url, migrate=True).close()
    return place


def spec_of(place: Place, run_id: str, fault: str, **changes: object) -> TrialSpec:
    """A trial whose worker goes wrong as `fault` says."""
    fields: dict[str, object] = {
        "trial_id": f"{run_id}-{next(_numbers):06d}",
        "run_id": run_id,
        "suite": "faults",
        "label": None,
        "workload": WorkloadSpec(
            name="fake",
            version="1",
            task=Task.INFERENCE,
            dtype="float32",
            target="fake:fake",
            kwargs={"fault": fault},
        ),
        "strategy": Strategy(**EAGER.model_dump()),
        "device": "cpu",
        "threads": 1,
        "settings": TorchSettings(matmul_precision="highest"),
        "sampling": SamplingPlan(),
        "timeout_s": TIMEOUT_S,
        "seed": 0,
        "round": 0,
        "interpreter": place.interpreter(),
    }
    return TrialSpec.model_validate(fields | changes)


class Told:
    """What a person was told: every trial of which it was said that it is finished."""

    def __init__(self, tell: Callable[[str], object] = lambda _trial_id: None) -> None:
        self.trials: list[Trial] = []
        self._tell = tell

    def trial_started(self, number: int, workload: str, strategy: str, build: str | None) -> None:
        pass

    def phase(self, name: str) -> None:
        pass

    def trial_finished(self, trial: Trial) -> None:
        self.trials.append(trial)
        self._tell(trial.trial_id)


@contextmanager
def database_of(place: Place) -> Iterator[Database]:
    database = open_database(place.url)
    try:
        yield database
    finally:
        database.close()


def work(place: Place, database: Database, specs: Sequence[TrialSpec], told: Told) -> None:
    """Measure and keep the trials of a run that is announced."""
    executor = LocalExecutor(database, place.spool)
    try:
        run_jobs([Job((spec,)) for spec in specs], executor, told, lambda: False)
    finally:
        executor.close()


def measure(place: Place, run_id: str, specs: Sequence[TrialSpec], told: Told | None = None) -> list[Trial]:
    """What `compilewatch run` does with a plan, without a plan: announce, measure, store, end."""
    told = told or Told()
    with database_of(place) as database:
        store_waiting(database, place.spool)
        start_run(
            database,
            run_id=run_id,
            suite="faults",
            label=None,
            started_at=datetime.now(UTC),
            planned_trials=len(specs),
        )
        work(place, database, specs, told)
        note_end(run_id, datetime.now(UTC), RunStatus.FINISHED, database, place.spool)
    return told.trials
