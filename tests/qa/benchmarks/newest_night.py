"""More of a large history: what its newest machine measures next, as the store takes it."""

from __future__ import annotations

import uuid
from datetime import timedelta
from itertools import product

from compilewatch.db.engine.session import open_database
from compilewatch.db.queries.facets import builds, runs
from compilewatch.db.records.trial import Trial
from tests.builders import MS, make_build, make_machine, make_trial, make_workload
from tests.qa.benchmarks.large_history import DEVICES, SHARES


def night_of_newest_machine(url: str, *, cases: int | None = None) -> list[Trial]:
    """A run of every case with a build of its own, or the first `cases` more of the newest run and its build.

    The machine is the last of `large_history`, which measures last every night.
    """
    with open_database(url, read_only=True) as database:
        newest = runs(database, newest=1).iloc[0]
        known = builds(database)
    last = known.sort_values("last_seen_at").iloc[-1]
    begins = newest["last_seen_at"].to_pydatetime() + timedelta(minutes=1 if cases else 12 * 60)
    place = uuid.uuid4().hex[:12]
    build = make_build(
        str(last["torch"]) if cases else f"2.99.0.dev{begins:%Y%m%d%H%M%S}", driver=str(last["driver"])
    )
    names = [f"model-{n // 2:02d}{'-train' if n % 2 else ''}" for n in range(48)]
    machine = make_machine(f"gpu-box-{len(DEVICES) - 1}", device_name=DEVICES[-1])
    return [
        make_trial(
            workload=make_workload(
                name, task="training" if name.endswith("-train") else "inference", batch_size=8
            ),
            strategy=strategy,
            machine=machine,
            build=build,
            run_id=str(newest["run_id"]) if cases else f"night-{place}",
            trial_id=f"{place}-{number:04d}",
            started_at=begins + timedelta(seconds=15 * number),
            suite="nightly",
            latency_ns=12 * MS * SHARES[strategy],
            samples=20,
            seed=number,
        )
        for number, (name, strategy) in enumerate(list(product(names, SHARES))[:cases])
    ]
