"""Results whose file does not say when they were measured: those of two files never become one run unsaid."""

from __future__ import annotations

from typing import Self

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import RecordError, one_line
from compilewatch.db.interchange.read.repeats import counting, temporary_table
from compilewatch.db.queries.trials import cases_of_run
from compilewatch.db.records.ids import strategy_identity, workload_identity
from compilewatch.db.records.trial import Trial
from compilewatch.db.units import plural

_TABLE = (
    "CREATE TABLE result (run TEXT, which TEXT, file INTEGER, trial TEXT, "
    "PRIMARY KEY (run, which, file, trial)) WITHOUT ROWID"
)
_STORED = "an earlier import"
# What an earlier file has of a case, and the later one has not: with it in one run, it would be its repeat.
_OTHERS = """
SELECT mine.file, theirs.file, count(DISTINCT mine.which) FROM result AS mine JOIN result AS theirs
ON theirs.run = mine.run AND theirs.which = mine.which AND theirs.file < mine.file
WHERE mine.file >= ? AND NOT EXISTS (
    SELECT 1 FROM result AS same WHERE same.run = theirs.run AND same.which = theirs.which
    AND same.trial = theirs.trial AND same.file = mine.file
) GROUP BY mine.file, theirs.file ORDER BY mine.file, theirs.file LIMIT 1
"""


class ResultsOfOneMoment:
    """The results of one command that have their moment from an option or a folder. Use as a context.

    What a database has of their runs already counts as one file more. Memory does not grow with their number.
    """

    def __init__(self, db: Database | None) -> None:
        self._db = db
        self._files = [_STORED]
        self._first_of_path = 1
        self._runs: set[str] = set()
        with counting():
            self._results = temporary_table(_TABLE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._results.close()

    def begin(self) -> None:
        """The next path is read."""
        self._first_of_path = len(self._files)

    def add(self, trial: Trial, file: str) -> None:
        """Note a result of `file`, which belongs to the path that is read."""
        with counting():
            self._know(trial.run_id)
            if len(self._files) == self._first_of_path or self._files[-1] != file:
                self._files.append(file)
            case = f"{workload_identity(trial.workload)} {strategy_identity(trial.strategy)}"
            self._note(trial.run_id, case, len(self._files) - 1, trial.trial_id)

    def withdraw(self) -> None:
        """The path that was read brings nothing."""
        with counting():
            self._results.execute("DELETE FROM result WHERE file >= ?", (self._first_of_path,))

    def require_apart(self) -> None:
        """Raise RecordError where the path's files have other results of cases that a run has already."""
        with counting():
            found = self._results.execute(_OTHERS, (self._first_of_path,)).fetchone()
        if found is None:
            return
        mine, theirs, cases = found
        raise RecordError(
            f"{one_line(self._files[mine], 1_000)}: has other results of {plural(cases, 'case')} than "
            f"{one_line(self._files[theirs], 1_000)}, and one moment was named for both.",
            "Import each on its own, with its moment (--measured-at) or a name that keeps it apart (--label)"
            + (", or put it in place of that with --replace." if theirs == 0 else "."),
        )

    def _know(self, run: str) -> None:
        if run in self._runs:
            return
        self._runs.add(run)
        if self._db is None:
            return
        for workload, strategy, trial in cases_of_run(self._db, run):
            self._note(run, f"{workload} {strategy}", 0, trial)

    def _note(self, run: str, case: str, file: int, trial: str) -> None:
        self._results.execute("INSERT OR IGNORE INTO result VALUES (?, ?, ?, ?)", (run, case, file, trial))
