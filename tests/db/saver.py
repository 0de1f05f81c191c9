"""A process that saves trials; the concurrency tests start several and kill some.

Usage: python -m tests.db.saver URL NAME COUNT SHARED. Saves SHARED trials that every such process saves too,
then COUNT of its own, one transaction each, and prints each id once the save has returned.
"""

from __future__ import annotations

import sys

from db.engine.session import open_database
from db.store.trials import save_trial
from tests.builders import START, make_trial


def main() -> None:
    url, name, count, shared = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    with open_database(url) as database:
        for trial_id in [f"shared-{n}" for n in range(shared)] + [f"{name}-{n}" for n in range(count)]:
            save_trial(database, make_trial(trial_id=trial_id, started_at=START))
            print(trial_id, flush=True)


if __name__ == "__main__":
    main()
