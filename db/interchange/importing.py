"""The way in: recognise a file, read it, store it whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, Self

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import CompilewatchError, ConflictError, RecordError, one_line
from compilewatch.db.interchange.files.opening import files_below
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.formats import AUTO, Format, UnreadError
from compilewatch.db.interchange.process import Read, ReadingProcess
from compilewatch.db.interchange.reading import counting, temporary_table
from compilewatch.db.queries.trials import cases_of_run
from compilewatch.db.records.ids import strategy_identity, workload_identity
from compilewatch.db.records.trial import FailureKind, Status, Trial
from compilewatch.db.store.removal import Writing, writing_of
from compilewatch.db.store.trials import dry_run_session
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


__all__ = ["AUTO", "FileReport", "ImportReport", "Writing", "import_paths", "import_uploads"]

# From trials to how many trials were new, known, and taken out; changes nothing where it raises.
Save = Callable[[Iterable[Trial]], tuple[int, int, int]]

FIRST_ROWS = 5


@dataclass(slots=True)
class FileReport:
    """What one file, or folder of a job, brought, or why it brought nothing.

    Without formats and without an error it is no result, but lies among some. `new`, `known` and `removed`,
    those taken out, count trials, in a dry run those that would be. `unused` are the columns of a CSV that
    are no field, each with its first cell. `notes` are sentences on what was left out.
    """

    path: str
    formats: tuple[Format, ...] = ()
    new: int = 0
    known: int = 0
    removed: int = 0
    failed_trials: int = 0
    first: tuple[Trial, ...] = ()
    unused: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    error: CompilewatchError | None = None

    def as_json(self) -> dict[str, Any]:
        """The entry of `import --json` for this file."""
        return {
            "path": self.path,
            "formats": [str(name) for name in self.formats],
            "new": self.new,
            "known": self.known,
            "removed": self.removed,
            "failed_trials": self.failed_trials,
            "first": [trial.model_dump(mode="json", by_alias=True) for trial in self.first],
            "unused_columns": list(self.unused),
            "notes": list(self.notes),
            "error": str(self.error) if self.error else None,
        }


@dataclass(frozen=True, slots=True)
class ImportReport:
    """One entry per named path, in the order given; of a folder one per file in it."""

    files: tuple[FileReport, ...]
    dry_run: bool

    @property
    def new(self) -> int:
        """Trials that were not stored before, of all files."""
        return sum(file.new for file in self.files)

    @property
    def known(self) -> int:
        """Trials that were stored already, of all files."""
        return sum(file.known for file in self.files)

    @property
    def removed(self) -> int:
        """Trials that were taken out, of all files."""
        return sum(file.removed for file in self.files)

    @property
    def errors(self) -> tuple[CompilewatchError, ...]:
        """Why files brought nothing, in their order."""
        return tuple(file.error for file in self.files if file.error)

    def as_json(self) -> dict[str, Any]:
        """The document that `import --json` prints."""
        return {
            "schema": "compilewatch.import/1",
            "dry_run": self.dry_run,
            "new": self.new,
            "known": self.known,
            "files": [file.as_json() for file in self.files],
        }


def import_paths(
    db: Database,
    paths: Sequence[Path],
    *,
    format: str = AUTO,
    options: ImportOptions | None = None,
    dry_run: bool = False,
    writing: Writing = Writing.ADD,
) -> ImportReport:
    """Store every file that can be read whole; a file with an error adds nothing and is reported.

    Of a folder all files are read, and what is no result is passed over, unless everything is.
    A second import of the same content adds nothing. With `dry_run` nothing is stored. `Writing.REMOVE` takes
    out what the same files, with the same options, brought.
    """
    reports: list[FileReport] = []
    with _Import(db, format, options or ImportOptions(), dry_run=dry_run, writing=writing) as files:
        for path in paths:
            try:
                below = files_below(path)
            except RecordError as error:
                reports.append(FileReport(one_line(str(path), 1_000), error=error))
                continue
            found = [files.read(str(each), below=None if below == [path] else path) for each in below]
            if below != [path] and any(each.formats for each in found):
                found = list(map(_passed_over, found))
            reports += found
    return ImportReport(tuple(reports), dry_run)


def _passed_over(report: FileReport) -> FileReport:
    """That of a file beside results: what is none itself is no error."""
    if not isinstance(report.error, UnreadError):
        return report
    note = f"{report.error.message.removesuffix('.')}: passed over."
    return FileReport(report.path, notes=(*report.notes, note))


def import_uploads(
    db: Database,
    uploads: Mapping[str, bytes],
    *,
    format: str = AUTO,
    options: ImportOptions | None = None,
    dry_run: bool = False,
    writing: Writing = Writing.ADD,
) -> ImportReport:
    """As `import_paths` for files in memory, by their names; those that belong together lie side by side."""
    with _Import(db, format, options or ImportOptions(), dry_run=dry_run, writing=writing) as files:
        reports = [files.read(name, uploads) for name in uploads]
    return ImportReport(tuple(reports), dry_run)


class _Import:
    """One command: its files are read one after the other by one process. Use as a context."""

    def __init__(
        self,
        db: Database,
        format_: str,
        options: ImportOptions,
        *,
        dry_run: bool,
        writing: Writing = Writing.ADD,
    ) -> None:
        self._db, self._format, self._options, self._dry_run = db, format_, options, dry_run
        self._writing, self._write = writing, writing_of(writing)
        self._stack = ExitStack()
        self._rehearsal: Save | None = None
        self._process = self._stack.enter_context(ReadingProcess())
        # What is stored is replaced, or taken out.
        stored = db if writing is Writing.ADD else None
        self._one_moment = self._stack.enter_context(ResultsOfOneMoment(stored))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def read(self, path: str, uploads: Mapping[str, bytes] = {}, below: Path | None = None) -> FileReport:
        """What `path`, or the upload of that name, brings; `below` is the folder that was named instead."""
        read, report = Read(), FileReport(one_line(path, len(path)))
        options = replace(self._options, notes=[], undated={})
        self._one_moment.begin()
        try:
            with closing(
                self._process.trials(path, uploads, self._format, options, read, below=below)
            ) as readings:
                # The first before anything is locked: what takes long to read often has none.
                trials: Iterator[Trial] = chain(list(islice(readings, 1)), readings)
                if self._writing is not Writing.REMOVE:
                    trials = self._of_one_moment(trials, read)
                report.new, report.known, report.removed = self._save(_observed(trials, report))
        except ConflictError as error:
            # The store knows the trial, not the file that it came from.
            report = FileReport(report.path)
            report.error = ConflictError(f"{report.path}: {error.message}", error.next_step)
        except CompilewatchError as error:
            report = FileReport(report.path, error=error)
        if report.error is not None:
            self._one_moment.withdraw()
        report.formats, report.unused, report.notes = read.formats, read.unused, read.notes
        return report

    def _save(self, trials: Iterable[Trial]) -> tuple[int, int, int]:
        if not self._dry_run:
            with self._db.write() as connection:
                return self._write(connection, trials)
        if self._rehearsal is None:
            # Not before there is something to store: other writers wait for its end.
            self._rehearsal = self._stack.enter_context(dry_run_session(self._db, self._write))
        return self._rehearsal(trials)

    def _of_one_moment(self, trials: Iterable[Trial], read: Read) -> Iterator[Trial]:
        for trial in trials:
            if trial.run_id in read.undated:
                self._one_moment.add(trial, read.undated[trial.run_id])
            yield trial
        self._one_moment.require_apart()


def _observed(trials: Iterable[Trial], report: FileReport) -> Iterator[Trial]:
    """Yields the trials and notes the first rows and the failures on the way."""
    first: list[Trial] = []
    for trial in trials:
        if len(first) < FIRST_ROWS:
            first.append(trial)
            report.first = tuple(first)
        cancelled = trial.failure is not None and trial.failure.kind is FailureKind.CANCELLED
        report.failed_trials += trial.status is Status.FAILED and not cancelled
        yield trial
    if not first:
        raise RecordError(f"{report.path}: holds no result.", "Check that it is the file you meant.")
