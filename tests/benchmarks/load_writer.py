"""Saves a trial every tenth of a second, and says of each how long the save took.

Usage: python -m tests.benchmarks.load_writer URL SECONDS. Prints one number of milliseconds per line.
Every 300 trials another run begins, with a build of its own, as a night's does.
"""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from itertools import product

from db.session import open_database
from db.store import save_trial
from tests.builders import make_trial

EVERY_S = 0.1
TRIALS_PER_RUN = 300
WORKLOADS = ("bert-base", "resnet-50", "mlp", "elementwise")
STRATEGIES = ("eager", "default", "reduce-overhead", "max-autotune")
CASES = list(product(WORKLOADS, STRATEGIES))


def main(url: str, seconds: str) -> None:
    end = time.monotonic() + float(seconds)
    number = 0
    with open_database(url) as database:
        while (began := time.monotonic()) < end:
            run, (workload, strategy) = number // TRIALS_PER_RUN, CASES[number % len(CASES)]
            trial = make_trial(
                workload=workload,
                strategy=strategy,
                build=f"2.99.{run}",
                trial_id=f"load-{number:06d}",
                run_id=f"load-{run:03d}",
                started_at=datetime.now(UTC),
                seed=number,
            )
            save_trial(database, trial)
            took = time.monotonic() - began
            print(f"{took * 1000:.1f}", flush=True)
            time.sleep(max(0.0, EVERY_S - took))
            number += 1


if __name__ == "__main__":
    main(*sys.argv[1:])
