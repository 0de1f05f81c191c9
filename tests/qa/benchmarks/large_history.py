"""A long history on several machines, written by bulk insert: a million trials in minutes, ten in an hour.

1,440 series (48 workloads with 6 strategies on 5 machines), measured every night with a new build. The newest
eight nights have three trials a case, those before one. Each machine was away for some other nights. Records
are those of `tests.builders`, their figures drawn anew. Of more than 100,000 trials the newest so many are
drawn, and copied in SQL into as much time before them as it takes, with builds and runs of their own.

`python -m tests.qa.benchmarks.large_history sqlite:///FILE 1000000` writes one by hand.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import numpy as np
from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    func,
    insert,
    literal,
    literal_column,
    select,
    text,
    update,
)

from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.engine.tables import (
    BUILD,
    DATA_VERSION,
    LATEST,
    RUN,
    RUN_CASE,
    RUN_PART,
    TRIAL,
    TRIAL_DETAIL,
    TRIAL_SAMPLES,
)
from compilewatch.db.judge.compare.sides import VerdictError
from compilewatch.db.records.ids import build_identity
from compilewatch.db.records.trial import Build, Failure, FailureKind, Machine, Status, Task, Workload
from compilewatch.db.service.recording import record_comparison
from compilewatch.db.store.trial_rows import COUNTED, DIMENSIONS, dimension_row, trial_rows
from compilewatch.db.store.trial_writer import bring_up, sum_up
from compilewatch.db.verdicts.gateway import compare
from compilewatch.db.verdicts.sides import resolve_side
from tests.builders import MS, make_build, make_failure, make_machine, make_trial, make_workload

DRAWN = 100_000
DEVICES = ("NVIDIA H200", "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB", "NVIDIA L40S", "NVIDIA L4")
SLOWNESS = (1.0, 1.2, 1.9, 2.4, 5.0)
WORKLOADS = 48
SHARES = {
    "eager": 1.0,
    "default": 0.7,
    "reduce-overhead": 0.6,
    "max-autotune": 0.55,
    "default+dynamic": 0.75,
    "default+regional": 0.72,
}
SERIES_COUNT = len(DEVICES) * WORKLOADS * len(SHARES)
REPEATED_NIGHTS, REPEATS = 8, 3
FIRST_NIGHT = datetime(2024, 12, 20, 1, 0, tzinfo=UTC)
NIGHTS_AWAY = 5
FAILING_SHARE, SUSPECT_SHARE = 0.004, 0.01
REGRESSED_WORKLOADS = 6
POOL = 32
_PERCENTILES = {"latency_ns": 1.0, "latency_p05_ns": 0.99, "latency_p95_ns": 1.02, "latency_p99_ns": 1.05}
_OF_A_CALL = (
    *("first_call_ns", "until_steady_ns", "calls_until_steady"),
    *("time_to_first_result_ns", "process_tree_cpu_ns", "first_call_cpu_ns", "first_call_instructions"),
)


@dataclass(frozen=True)
class Night:
    """One run of every case on one machine."""

    machine: int
    build: int
    repeats: int

    @property
    def run_id(self) -> str:
        return f"night-{self.build:04d}-{self.machine}"

    @property
    def starts_at(self) -> datetime:
        return FIRST_NIGHT + timedelta(days=self.build, minutes=self.machine)


def nights(trials: int) -> list[Night]:
    """The runs that hold about `trials` trials, oldest first."""
    per_series = max(1, trials // SERIES_COUNT)
    repeated = min(REPEATED_NIGHTS, per_series // REPEATS)
    measured = per_series - repeated * (REPEATS - 1)
    away = NIGHTS_AWAY if measured > 2 * len(DEVICES) * NIGHTS_AWAY else 0
    found = []
    for machine in range(len(DEVICES)):
        gone = range(machine * away, (machine + 1) * away)
        mine = [build for build in range(measured + away) if build not in gone]
        found += [
            Night(machine, build, REPEATS if place >= measured - repeated else 1)
            for place, build in enumerate(mine)
        ]
    return sorted(found, key=lambda night: night.starts_at)


def make_builds(count: int) -> list[Build]:
    """Nightly builds: torch changes every night, the driver every half year."""
    return [
        make_build(
            f"2.{8 + night // 90}.0.dev{FIRST_NIGHT + timedelta(days=night):%Y%m%d}",
            driver=f"{560 + 10 * (night // 180)}.35",
        )
        for night in range(count)
    ]


def _machines() -> list[Machine]:
    return [make_machine(f"gpu-box-{n}", device_name=name) for n, name in enumerate(DEVICES)]


def _workloads() -> list[Workload]:
    return [
        make_workload(
            f"model-{n // 2:02d}{'-train' if n % 2 else ''}",
            task=Task.TRAINING if n % 2 else Task.INFERENCE,
            batch_size=8,
        )
        for n in range(WORKLOADS)
    ]


Values = dict[str, Any]


def _stored(strategy: str, seed: int) -> tuple[Values, list[Values]]:
    """What is stored of some trial beside its row, without its id: its details, its arrays of samples."""
    trial = make_trial(strategy=strategy, latency_ns=(5 + seed) * MS, seed=seed, samples=20)
    new = trial_rows(trial.model_copy(update={"warmup_ns": [], "control_warmup_ns": []}))
    return new.details, new.arrays


@dataclass
class _Tally:
    trials: int = 0
    failed_trials: int = 0
    first_seen_at: datetime | None = None
    last_seen_at: datetime | None = None

    def add(self, started_at: datetime, *, failed: bool) -> None:
        self.trials += 1
        self.failed_trials += failed
        self.first_seen_at = self.first_seen_at or started_at
        self.last_seen_at = started_at


@dataclass
class _History:
    """What trials share, prepared once, and what was counted of them."""

    nights: Sequence[Night]
    dimensions: dict[str, dict[str, dict[str, Any]]] = field(default_factory=lambda: defaultdict(dict))
    templates: dict[tuple[int, int, int], dict[str, Any]] = field(default_factory=dict)
    tallies: dict[tuple[str, str], _Tally] = field(default_factory=lambda: defaultdict(_Tally))

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(20261120)
        self.builds = make_builds(max(night.build for night in self.nights) + 1)
        self.build_ids = [build_identity(build) for build in self.builds]
        machines, workloads = _machines(), _workloads()
        cases = list(product(range(len(machines)), range(WORKLOADS), range(len(SHARES))))
        trials = [
            make_trial(
                machine=machines[machine],
                workload=workloads[workload],
                strategy=list(SHARES)[strategy],
                build=self.builds[0],
                suite="nightly",
                samples=20,
            )
            for machine, workload, strategy in cases
        ]
        for case, new in zip(cases, map(trial_rows, trials), strict=True):
            self.templates[case] = new.row
            for name in DIMENSIONS:
                row = dimension_row(name, new.trial, new.keys)
                self.dimensions[name].setdefault(row[f"{name}_id"], row)
        self.series_parts = {key: dict(row) for key, row in self.dimensions["series"].items()}
        build_row = next(iter(self.dimensions["build"].values()))
        self.dimensions["build"] = {
            key: build_row | {"build_id": key} | build.model_dump(exclude={"settings"})
            for key, build in zip(self.build_ids, self.builds, strict=True)
        }
        run_row = next(iter(self.dimensions["run"].values()))
        self.dimensions["run"] = {night.run_id: run_row | {"run_id": night.run_id} for night in self.nights}
        # how much compiling gains differs from workload to workload, and is the same on every machine
        self.eager_ns = np.exp(self.random.uniform(np.log(2), np.log(80), WORKLOADS)) * MS
        self.share = np.array(list(SHARES.values())) * self.random.normal(1, 0.1, (WORKLOADS, len(SHARES)))
        self.share[:, 0] = 1
        self.pools = [[_stored(name, seed) for seed in range(POOL)] for name in SHARES]
        failure: Failure = make_failure(FailureKind.OUT_OF_MEMORY)
        self.failed = trial_rows(make_trial(failure=failure)).details
        self.failed_row = {
            "status": Status.FAILED,
            "failure_kind": failure.kind,
            "failure_message": failure.message,
            **dict.fromkeys((*_PERCENTILES, *_OF_A_CALL, "control_latency_ns", "samples", "control_samples")),
        }

    def latency_factor(self, night: Night, workload: int) -> float:
        """Compiled code gets faster in the long run, and the newest build made some workloads slower."""
        newest = night.build == len(self.builds) - 1
        return (1 - 0.0003 * night.build) * (1.08 if newest and workload < REGRESSED_WORKLOADS else 1)

    def write(self, connection: Connection, night: Night) -> None:
        trials, details, samples = [], [], []
        cases = list(product(range(WORKLOADS), range(len(SHARES))))
        build_id = self.build_ids[night.build]
        factors = np.exp(self.random.normal(0, 0.012, (night.repeats, len(cases), 2)))
        chances = self.random.random((night.repeats, len(cases)))
        for repeat, (place, (workload, strategy)) in product(range(night.repeats), enumerate(cases)):
            position = repeat * len(cases) + place
            trial_id, pick = f"{night.run_id}-{position:04d}", (position + night.build) % POOL
            started_at = night.starts_at + timedelta(seconds=15 * position)
            eager_ns = float(self.eager_ns[workload]) * SLOWNESS[night.machine]
            noise = factors[repeat, place]
            row = self.templates[night.machine, workload, strategy] | {
                "trial_id": trial_id,
                "content_hash": trial_id,
                "build_id": build_id,
                "run_id": night.run_id,
                "started_at": started_at,
                "ended_at": started_at + timedelta(seconds=14),
                "suspect": bool(chances[repeat, place] > 1 - SUSPECT_SHARE),
            }
            if failed := bool(chances[repeat, place] < FAILING_SHARE):
                row |= self.failed_row
            else:
                latency_ns = eager_ns * float(self.share[workload, strategy] * noise[0])
                latency_ns *= self.latency_factor(night, workload) if strategy else 1
                row |= {name: latency_ns * share for name, share in _PERCENTILES.items()}
                if strategy:
                    row["control_latency_ns"] = eager_ns * float(noise[1])
                detail, arrays = self.pools[strategy][pick]
                samples += [array | {"trial_id": trial_id} for array in arrays]
            details.append((self.failed if failed else detail) | {"trial_id": trial_id})
            trials.append(row)
            self._count(row, failed=failed)
        for table, rows in ((TRIAL, trials), (TRIAL_DETAIL, details), (TRIAL_SAMPLES, samples)):
            connection.execute(insert(table), rows)

    def _count(self, row: dict[str, Any], *, failed: bool) -> None:
        parts = self.series_parts[row["series_id"]]
        keys = {**parts, "build_id": row["build_id"], "run_id": row["run_id"]}
        for name in COUNTED:
            self.tallies[name, keys[f"{name}_id"]].add(row["started_at"], failed=failed)

    def finish(self, connection: Connection) -> None:
        """Tallies, and of every series its newest run."""
        for name in COUNTED:
            table = DIMENSIONS[name]
            key = table.c[f"{name}_id"]
            for value in self.dimensions[name]:
                connection.execute(
                    update(table).where(key == value).values(**vars(self.tallies[name, value]))
                )
        parts = [
            {
                "run_id": night.run_id,
                "machine_id": list(self.dimensions["machine"])[night.machine],
                "build_id": self.build_ids[night.build],
                "trials": tally.trials,
                "first_seen_at": tally.first_seen_at,
                "last_seen_at": tally.last_seen_at,
            }
            for night in self.nights
            if (tally := self.tallies["run", night.run_id])
        ]
        connection.execute(insert(RUN_PART), parts)
        newest = {night.machine: night for night in self.nights}
        machines = {row["machine_id"]: n for n, row in enumerate(self.dimensions["machine"].values())}
        latest = [
            {
                "series_id": key,
                "run_id": night.run_id,
                "started_at": self.tallies["series", key].last_seen_at,
            }
            for key, parts in self.series_parts.items()
            if (night := newest[machines[parts["machine_id"]]])
        ]
        connection.execute(insert(LATEST), latest)


def write_history(url: str, trials: int) -> None:
    """Fill the empty database at `url`, and record what regressed in the newest build of each machine."""
    history, times = _History(nights(min(trials, DRAWN))), max(1, trials // DRAWN)
    with open_database(url, migrate=True) as database:
        with database.write() as connection:
            for name, table in DIMENSIONS.items():
                connection.execute(insert(table), list(history.dimensions[name].values()))
        for start in range(0, len(history.nights), 50):
            with database.write() as connection:
                for night in history.nights[start : start + 50]:
                    history.write(connection, night)
        with database.write() as connection:
            history.finish(connection)
            sum_up(connection, [])
        _record_regressions(database, history)
        for earlier in range(1, times):
            with database.write() as connection:
                _copy_into_the_past(connection, earlier, earlier * len(history.builds))
        with database.write() as connection:
            for name in ("machine", "workload", "strategy", "series"):
                table = DIMENSIONS[name]
                counts = {each: table.c[each] * times for each in ("trials", "failed_trials")}
                first = _before(connection, table.c.first_seen_at, (times - 1) * len(history.builds))
                connection.execute(update(table).values(first_seen_at=first, **counts))
            # last of all: a database that was written in part stays at version 0
            connection.execute(text("ANALYZE"))
            connection.execute(update(DATA_VERSION).values(version=times * len(history.nights)))


_COPIED = {BUILD: "build_id", RUN: "run_id", **dict.fromkeys((RUN_PART, RUN_CASE), "run_id")}
_COPIED |= dict.fromkeys((TRIAL, TRIAL_DETAIL, TRIAL_SAMPLES), "trial_id")
_OWN = ("build_id", "run_id", "trial_id", "content_hash")


def _copy_into_the_past(connection: Connection, number: int, days: int) -> None:
    """All that was drawn once more, as it was so many days earlier."""
    for table, name in _COPIED.items():
        key = table.c[name]
        drawn = key.not_like("past-%") if table is BUILD else key.like("night-%")
        copied = [_copied(connection, column, number, days) for column in table.c]
        connection.execute(insert(table).from_select(list(table.c), select(*copied).where(drawn)))


def _copied(connection: Connection, column: Column[Any], number: int, days: int) -> ColumnElement[Any]:
    if column.name in _OWN:
        return literal(f"past-{number:03d}-") + column
    if column.name == "torch":
        return literal(f"1.{100 - number}.") + column
    return (
        _before(connection, column, days)
        if isinstance(column.type, type(TRIAL.c.started_at.type))
        else column
    )


def _before(connection: Connection, moment: Column[Any], days: int) -> ColumnElement[Any]:
    if connection.dialect.name == "sqlite":
        return func.strftime("%Y-%m-%d %H:%M:%f000", moment, f"-{days} days", type_=moment.type)
    return moment - literal_column(f"INTERVAL '{days} days'")


def _record_regressions(database: Database, history: _History) -> None:
    base, head = (resolve_side(each, database) for each in ("previous", "latest"))
    for machine in history.dimensions["machine"]:
        try:
            comparison = compare(database, base, head, machine_id=machine)
        except VerdictError:
            continue
        record_comparison(database, comparison, at=history.nights[-1].starts_at)


def is_written(url: str) -> bool:
    """Whether the database at `url` is there and whole."""
    try:
        with open_database(url, migrate=True) as database:
            bring_up(database)
            return bool(database.scalars(DATA_VERSION.select().with_only_columns(DATA_VERSION.c.version))[0])
    except Exception:
        return False


if __name__ == "__main__":
    started = time.perf_counter()
    write_history(sys.argv[1], int(sys.argv[2]))
    print(f"{sys.argv[2]} trials written in {time.perf_counter() - started:.0f} s")
