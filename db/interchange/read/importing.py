"""The way in: recognise a file, read it, store it whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import CompilewatchError, ConflictError, RecordError, one_line
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.read.formats import AUTO, Format
from compilewatch.db.interchange.read.process import Read, ReadingProcess
from compilewatch.db.records.trial import FailureKind, Status, Trial
from compilewatch.db.store.dry_run import dry_run_session
from compilewatch.db.store.removal import Writing, writing_of

__all__ = ["AUTO", "FileReport", "ImportReport", "Writing", "import_paths", "import_uploads"]

# From trials to how many trials were new, known, and taken out; changes nothing where it raises.
Save = Callable[[Iterable[Trial]], tuple[int, int, int]]

FIRST_ROWS = 5


@dataclass(slots=True)
class FileReport:
    """What one file, or folder of a job, brought, or why it brought nothing.

    `new`, `known` and `removed`, those taken out, count trials, in a dry run those that would be. `unused`
    are the columns of a CSV that are no field, each with its first cell. `notes` are sentences on what was
    left out.
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
    """One entry per named path, in the order given."""

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

    A second import of the same content adds nothing. With `dry_run` nothing is stored. `Writing.REMOVE` takes
    out what the same files, with the same options, brought.
    """
    told = options or ImportOptions()
    return _import_all(db, map(str, paths), {}, format, told, dry_run=dry_run, writing=writing)


def import_uploads(
    db: Database,
    uploads: Mapping[str, bytes],
    *,
    format: str = AUTO,
    options: ImportOptions | None = None,
    dry_run: bool = False,
) -> ImportReport:
    """As `import_paths` for files in memory, by their names; those that belong together lie side by side."""
    told = options or ImportOptions()
    return _import_all(db, uploads, uploads, format, told, dry_run=dry_run, writing=Writing.ADD)


def _import_all(
    db: Database,
    paths: Iterable[str],
    uploads: Mapping[str, bytes],
    format_: str,
    options: ImportOptions,
    *,
    dry_run: bool,
    writing: Writing,
) -> ImportReport:
    with ExitStack() as stack, ReadingProcess() as process:
        rehearsals: list[Save] = []
        write = writing_of(writing)

        def save(trials: Iterable[Trial]) -> tuple[int, int, int]:
            if not dry_run:
                with db.write() as connection:
                    return write(connection, trials)
            if not rehearsals:
                # Not before there is something to store: other writers wait for its end.
                rehearsals.append(stack.enter_context(dry_run_session(db, write)))
            return rehearsals[0](trials)

        reports = [
            _import_one(save, path, partial(process.trials, path, uploads, format_), options)
            for path in paths
        ]
    return ImportReport(tuple(reports), dry_run)


def _import_one(
    save: Save,
    path: str,
    read_trials: Callable[[ImportOptions, Read], Generator[Trial]],
    options: ImportOptions,
) -> FileReport:
    read, report = Read(), FileReport(one_line(path, len(path)))
    try:
        with closing(read_trials(replace(options, notes=[]), read)) as told:
            # The first before anything is locked: what takes long to read often has none.
            trials = chain(list(islice(told, 1)), told)
            report.new, report.known, report.removed = save(_observed(trials, report))
    except ConflictError as error:
        # The store knows the trial, not the file that it came from.
        report = FileReport(report.path)
        report.error = ConflictError(f"{report.path}: {error.message}", error.next_step)
    except CompilewatchError as error:
        report = FileReport(report.path, error=error)
    report.formats, report.unused, report.notes = read.formats, read.unused, read.notes
    return report


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
