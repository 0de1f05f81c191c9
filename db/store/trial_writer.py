"""Writing trials in one transaction: what is new is inserted, what follows from it is kept up to date."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select

from compilewatch.db.engine.moments import latest_moment, wrong_moment
from compilewatch.db.engine.writing import bump_data_version, upsert
from compilewatch.db.errors import RecordError
from compilewatch.db.queries.cases.run_cases import WorkloadOfRun
from compilewatch.db.queries.records import load_trials
from compilewatch.db.records.trial import Trial
from compilewatch.db.store.conflicts import conflict
from compilewatch.db.store.run_cases import sum_up
from compilewatch.db.store.tallies import Tallies
from compilewatch.db.store.trial_rows import DIMENSIONS, TrialRows, dimension_row, trial_rows
from compilewatch.db.tables.trials import TRIAL, TRIAL_DETAIL, TRIAL_SAMPLES

TRIALS_OF_A_BATCH = 1000
_STORED_HASHES = select(TRIAL.c.trial_id, TRIAL.c.content_hash).where(
    TRIAL.c.trial_id.in_(bindparam("trial_ids", expanding=True))
)


class TrialWriter:
    """Saves trials inside one transaction; `finish` must be called before it commits."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._tallies = Tallies()
        self._touched: set[WorkloadOfRun] = set()
        self._written: set[tuple[str, str]] = set()
        self._latest_moment = latest_moment(connection)

    def save_all(self, trials: Iterable[Trial], batch: int = TRIALS_OF_A_BATCH) -> tuple[int, int]:
        """As `save`, of `batch` trials after the other."""
        new = known = 0
        remaining = iter(trials)
        while some := list(islice(remaining, batch)):
            added = self.save(some)
            new, known = new + added, known + len(some) - added
        return new, known

    def save(self, trials: Sequence[Trial]) -> int:
        """Insert the trials that are not stored yet: how many these are.

        Raises ConflictError for a trial whose id is stored with different content, RecordError for a new one
        of a moment at which nothing can have been measured.
        """
        rows = [trial_rows(trial) for trial in trials]
        asked = {"trial_ids": [trial.trial_id for trial in trials]}
        stored: dict[str, str] = {
            row.trial_id: row.content_hash for row in self._connection.execute(_STORED_HASHES, asked)
        }
        new, doubtful = [], []
        for each in rows:
            content, trial_id = each.row["content_hash"], each.trial.trial_id
            if trial_id not in stored:
                stored[trial_id] = content
                new.append(each)
            elif stored[trial_id] != content:
                doubtful.append(each.trial)
        self._insert(new)
        for trial in doubtful:
            # Hashes of equal trials may differ, too.
            error = conflict(trial, next(load_trials(self._connection, [trial.trial_id])))
            if error is not None:
                raise error
        return len(new)

    def finish(self) -> None:
        """Write what follows from the inserted trials, and the next data version."""
        self._tallies.write(self._connection)
        sum_up(self._connection, self._touched)
        bump_data_version(self._connection)

    def _insert(self, new: Sequence[TrialRows]) -> None:
        dimensions: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for each in new:
            self._require_moment(each.trial)
            for name, key in zip(DIMENSIONS, each.keys, strict=True):
                if (name, key) not in self._written:
                    self._written.add((name, key))
                    dimensions[name].append(dimension_row(name, each.trial, each.keys))
            self._tallies.add(each)
            self._touched.add((each.keys.run, each.keys.workload))
        for name, table in DIMENSIONS.items():
            if rows := dimensions[name]:
                statement = upsert(self._connection, table)
                self._connection.execute(
                    statement.on_conflict_do_nothing(index_elements=[f"{name}_id"]), rows
                )
        for table, of_table in (
            (TRIAL, [each.row for each in new]),
            (TRIAL_DETAIL, [each.details for each in new]),
            (TRIAL_SAMPLES, [array for each in new for array in each.arrays]),
        ):
            if of_table:
                self._connection.execute(insert(table), of_table)

    def _require_moment(self, trial: Trial) -> None:
        wrong = wrong_moment(trial.started_at, trial.ended_at, self._latest_moment)
        if wrong is not None:
            raise RecordError(
                f"Trial {trial.trial_id} {wrong}.",
                "Correct the record, or the clock of the host that measured it.",
            )
