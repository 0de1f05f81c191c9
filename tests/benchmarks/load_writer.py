"""Saves a trial every tenth of a second, and says of each how long the save took.

Usage: python -m tests.benchmarks.load_writer URL SECONDS. Prints one number of milliseconds per line.
"""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime

from db.session import open_database
from db.store import save_trial
from tests.builders import make_trial

EVERY_S = 0.1


def main(url: str, seconds: str) -> None:
    end = time.monotonic() + float(seconds)
    number = 0
    with open_database(url) as database:
        while (began := time.monotonic()) < end:
            number += 1
            now = datetime.now(UTC)
            save_trial(database, make_trial(trial_id=f"load-{number:06d}", run_id="load", started_at=now))
            took = time.monotonic() - began
            print(f"{took * 1000:.1f}", flush=True)
            time.sleep(max(0.0, EVERY_S - took))


if __name__ == "__main__":
    main(*sys.argv[1:])
