"""Saves so many trials a second, and says of each how long the save took.

Usage: python -m tests.qa.benchmarks.load_writer URL SECONDS TRIALS_PER_S. Prints one number of milliseconds
per line. Every 300 trials another run begins, with a build of its own, as a night's does.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import product

from compilewatch.db.engine.session import open_database
from compilewatch.db.records.trial import Trial
from compilewatch.db.store.trials import save_trial
from tests.builders import make_trial

TRIALS_PER_RUN = 300
WORKLOADS = ("bert-base", "resnet-50", "mlp", "elementwise")
STRATEGIES = ("eager", "default", "reduce-overhead", "max-autotune")
CASES = list(product(WORKLOADS, STRATEGIES))


def nights(count: int, before: datetime) -> Iterator[list[Trial]]:
    """The trials of `count` earlier runs, one a night and oldest first; the last is a day before `before`."""
    for run in range(count):
        began = before - timedelta(days=count - run)
        yield [
            _trial(f"2.98.{run}", f"night-{run:03d}", number, began + timedelta(seconds=number))
            for number in range(run * TRIALS_PER_RUN, (run + 1) * TRIALS_PER_RUN)
        ]


def _trial(build: str, run_id: str, number: int, started_at: datetime) -> Trial:
    workload, strategy = CASES[number % len(CASES)]
    return make_trial(
        workload=workload,
        strategy=strategy,
        build=build,
        trial_id=f"{run_id}-{number:06d}",
        run_id=run_id,
        started_at=started_at,
        seed=number,
    )


def main(url: str, seconds: str, trials_per_s: str) -> None:
    every_s, end = 1.0 / float(trials_per_s), time.monotonic() + float(seconds)
    number = 0
    with open_database(url) as database:
        while (began := time.monotonic()) < end:
            run = number // TRIALS_PER_RUN
            save_trial(database, _trial(f"2.99.{run}", f"load-{run:03d}", number, datetime.now(UTC)))
            took = time.monotonic() - began
            print(f"{took * 1000:.1f}", flush=True)
            time.sleep(max(0.0, every_s - took))
            number += 1


if __name__ == "__main__":
    main(*sys.argv[1:])
