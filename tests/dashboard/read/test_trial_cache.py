"""What is kept between data versions equals what a read from nothing gives, whatever was written between."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dashboard.read.trial_cache import TrialCache
from db.engine.session import Database, open_database
from db.metrics.eligibility import without_canaries
from db.metrics.trend import series_points
from db.queries.filters import Filters
from db.queries.run_parts import measured_builds
from db.queries.trials import trials_frame
from db.records.trial import FailureKind, Task, Trial
from db.store.retention import compact_samples
from db.store.trials import save_trials
from tests.builders import MS, START, make_device_state, make_trial

WORKLOADS = ("bert-base", "mlp", "canary-gemm")
STRATEGIES = ("eager", "default", "max-autotune")
MACHINES = ("gpu-box-3", "gpu-box-4")
BUILDS = ("2.11.0", "2.12.0", "2.13.0")
READS = 3


class Writes:
    """A lab that measures tonight, adds to a run that is under way, and imports its past out of order."""

    def __init__(self, seed: int) -> None:
        self.choice = random.Random(seed)
        self.runs: list[tuple[str, str, datetime]] = []
        self.trials = 0

    def next(self, database: Database) -> None:
        self.choice.choice((self._tonight, self._tonight, self._more, self._past, self._forget))(database)

    def _tonight(self, database: Database) -> None:
        self._run(database, START + timedelta(days=len(self.runs)))

    def _past(self, database: Database) -> None:
        self._run(database, START - timedelta(days=self.choice.randrange(1, 40)))

    def _more(self, database: Database) -> None:
        if self.runs:
            run_id, machine, start = self.choice.choice(self.runs)
            save_trials(database, self._of(run_id, machine, start, self.choice.randrange(1, 6)))

    def _forget(self, database: Database) -> None:
        compact_samples(database, START + timedelta(days=self.choice.randrange(-30, 10)))

    def _run(self, database: Database, start: datetime) -> None:
        run_id, machine = f"run-{len(self.runs)}", self.choice.choice(MACHINES)
        self.runs.append((run_id, machine, start))
        save_trials(database, self._of(run_id, machine, start, self.choice.randrange(4, 24)))

    def _of(self, run_id: str, machine: str, start: datetime, count: int) -> list[Trial]:
        return [self._trial(run_id, machine, start) for _ in range(count)]

    def _trial(self, run_id: str, machine: str, start: datetime) -> Trial:
        self.trials += 1
        choice = self.choice
        other: dict[str, Any] = {}
        if choice.random() < 0.1:
            other["device_state"] = make_device_state(suspect=True)
        if choice.random() < 0.3:
            other["control_samples_ns"] = []
        return make_trial(
            workload=choice.choice(WORKLOADS),
            strategy=choice.choice(STRATEGIES),
            machine=machine,
            # Some runs measure two builds by turns.
            build=choice.choice(BUILDS[:2] if len(run_id) % 2 else BUILDS[2:]),
            run_id=run_id,
            trial_id=f"trial-{self.trials:05d}",
            started_at=start + timedelta(minutes=choice.randrange(600)),
            latency_ns=choice.uniform(6, 9) * MS,
            control_latency_ns=choice.uniform(10, 14) * MS,
            samples=3,
            failure=FailureKind.TIMEOUT if choice.random() < 0.1 else None,
            seed=self.trials,
            **other,
        )

    def filters(self, database: Database) -> Filters:
        """A question as pages ask it."""
        choice = self.choice
        since = START + timedelta(days=choice.randrange(-20, 8), hours=choice.randrange(24))
        builds = measured_builds(database)
        return Filters(
            machines=(self.machine_id(database),) if choice.random() < 0.7 else (),
            builds=(choice.choice(builds),) if builds and choice.random() < 0.3 else (),
            workloads=("mlp",) if choice.random() < 0.3 else (),
            tasks=(Task.INFERENCE,) if choice.random() < 0.2 else (),
            suites=("nightly",) if choice.random() < 0.1 else (),
            since=since if choice.random() < 0.4 else None,
            until=since + timedelta(days=7) if choice.random() < 0.3 else None,
        )

    def machine_id(self, database: Database) -> str:
        known = sorted(set(trials_frame(database)["machine_id"]))
        return self.choice.choice(known) if known else "none"


def points_anew(database: Database, filters: Filters) -> pd.DataFrame:
    trials = trials_frame(database, filters)
    return series_points(trials if filters.workloads else without_canaries(trials), by="run")


Reads = dict[str, tuple[Callable[[Filters], pd.DataFrame], Callable[[Filters], pd.DataFrame]]]


def reads(kept: TrialCache, database: Database) -> Reads:
    """Every read by its name: what is kept, and the same from nothing."""
    return {
        "trials": (
            lambda filters: kept.trials(database, filters),
            lambda filters: trials_frame(database, filters),
        ),
        "points": (
            lambda filters: kept.points(database, filters),
            lambda filters: points_anew(database, filters),
        ),
    }


def _check_random_writes(database: Database, seed: int, writes_made: int) -> None:
    writes, kept = Writes(seed), TrialCache()
    questions = [Filters()]
    for _ in range(writes_made):
        writes.next(database)
        questions = [*questions[-4:], writes.filters(database)]
        for _ in range(READS):
            filters = writes.choice.choice(questions)
            name, (read, anew) = writes.choice.choice(list(reads(kept, database).items()))
            found, expected = read(filters), anew(filters)
            pd.testing.assert_frame_equal(found, expected, check_exact=True, obj=f"{name} of {filters}")


@pytest.mark.parametrize(
    ("seed", "writes_made"),
    [
        (0, 10),
        (1, 10),
        *(
            pytest.param(seed, 30, marks=[pytest.mark.slow, pytest.mark.timeout(900)])
            for seed in range(100, 120)
        ),
    ],
)
def test_what_is_kept_equals_a_read_from_nothing(
    sqlite_database: Database, seed: int, writes_made: int
) -> None:
    _check_random_writes(sqlite_database, seed, writes_made)


def test_rows_that_are_too_many_are_read_again(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.read.trial_cache.MOST_ROWS", 10)
    _check_random_writes(sqlite_database, 7, writes_made=4)


def test_a_database_put_in_the_place_of_another_is_read_anew(empty_url: str, tmp_path: Path) -> None:
    """The same run with as many trials at the same time, of other figures, as after a restored backup."""
    kept, found = TrialCache(), []
    for place, latency_ns in enumerate((8 * MS, 9 * MS)):
        copy = tmp_path / f"{place}.db"
        shutil.copyfile(empty_url.removeprefix("sqlite:///"), copy)
        with open_database(f"sqlite:///{copy}") as other:
            save_trials(other, [make_trial(trial_id="one", latency_ns=latency_ns, spread=0)])
            if place == 0:
                save_trials(other, [make_trial(trial_id="two", started_at=START + timedelta(days=1))])
            first = kept.trials(other, Filters(until=START))
            found.append(float(first["latency_ns"].iloc[0]))
    assert found == [8 * MS, 9 * MS]
