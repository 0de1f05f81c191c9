"""Several processes on one database: nothing is lost, nothing is there twice, nothing is half there."""

from __future__ import annotations

import random
import time

from sqlalchemy import text

from compilewatch.db.engine.session import open_database
from compilewatch.db.queries.data_version import data_version
from compilewatch.db.queries.facets import machines
from compilewatch.db.queries.trials import latest_trials_frame, trial_records, trials_frame
from tests.db.processes import saver, sent


def version_of(url: str) -> int:
    with open_database(url) as database:
        return data_version(database)


def test_processes_that_save_at_once_lose_and_double_nothing(database_url: str) -> None:
    version = version_of(database_url)
    savers = [saver(database_url, f"process-{number}", count=15, shared=10) for number in range(4)]
    for process, reads in savers:
        assert len(list(sent(reads))) == 25
        process.join()
        assert process.exitcode == 0
    expected = {f"shared-{n}" for n in range(10)} | {
        f"process-{number}-{n}" for number in range(4) for n in range(15)
    }
    with open_database(database_url) as database:
        frame = trials_frame(database)
        assert len(frame) == len(expected)
        assert set(frame["trial_id"]) == expected
        assert machines(database)["trials"].tolist() == [len(expected)]
        assert data_version(database) == version + len(expected)
        assert len(latest_trials_frame(database)) == len(expected)


def test_a_killed_process_leaves_whole_trials_and_all_it_reported(database_url: str) -> None:
    generator, version = random.Random(1), version_of(database_url)
    reported: set[str] = set()
    for number in range(3):
        process, reads = saver(database_url, f"process-{number}", count=10_000)
        reported.add(reads.recv())
        time.sleep(generator.uniform(0, 0.2))
        process.kill()
        reported.update(sent(reads))
        process.join()
    with open_database(database_url) as database:
        stored = [trial.trial_id for trial in trial_records(database)]
        assert len(stored) == len(set(stored))
        assert reported <= set(stored)
        assert len(set(stored) - reported) <= 3
        assert machines(database)["trials"].tolist() == [len(stored)]
        with database.read() as connection:
            for table, per_trial in (("trial", 1), ("trial_detail", 1), ("trial_samples", 4)):
                rows = connection.scalar(text(f"SELECT count(*) FROM {table}"))
                assert rows == per_trial * len(stored), table
            if database.dialect == "sqlite":
                assert connection.scalar(text("PRAGMA integrity_check")) == "ok"
        assert data_version(database) == version + len(stored)
