"""The way in: recognise a file, read it, store it whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from db.engine.session import Database
from db.errors import CompilewatchError, ConflictError, RecordError, one_line
from db.interchange.files.opening import InputFile, input_files, uploaded_files
from db.interchange.files.options import ImportOptions
from db.interchange.read.csv_mapping import unused_columns
from db.interchange.read.foreign_trials import MissingFactError
from db.interchange.read.formats import JOB_READERS, READERS, Format, detect, with_distinct_ids
from db.interchange.read.job_trials import JobProcess, job_trials
from db.records.trial import FailureKind, Status, Trial
from db.store.trial_rows import Batch, BatchMaker
from db.store.trials import dry_run_session, save_batches

# From batches to how many trials were new and how many known; stores nothing where it raises.
Save = Callable[[Iterable[Batch]], tuple[int, int]]

AUTO = "auto"
FIRST_ROWS = 5


@dataclass(slots=True)
class FileReport:
    """What one file, or folder of a job, brought, or why it brought nothing.

    `new` and `known` count trials, in a dry run those that would be. `unused` are the columns of a CSV that
    are no field, each with its first cell. `notes` are sentences on what was left out.
    """

    path: str
    formats: tuple[Format, ...] = ()
    new: int = 0
    known: int = 0
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
) -> ImportReport:
    """Store every file that can be read whole; a file with an error adds nothing and is reported.

    A second import of the same content adds nothing. With `dry_run` nothing is stored.
    """
    opened = [(str(path), partial(input_files, path)) for path in paths]
    return _import_all(db, opened, format, options or ImportOptions(), dry_run=dry_run)


def import_uploads(
    db: Database,
    uploads: Mapping[str, bytes],
    *,
    format: str = AUTO,
    options: ImportOptions | None = None,
    dry_run: bool = False,
) -> ImportReport:
    """As `import_paths` for files in memory, by their names; those that belong together lie side by side."""
    opened = [(one_line(name), partial(uploaded_files, name, uploads)) for name in uploads]
    return _import_all(db, opened, format, options or ImportOptions(), dry_run=dry_run)


def _import_all(
    db: Database,
    opened: Iterable[tuple[str, Callable[[], list[InputFile]]]],
    format_: str,
    options: ImportOptions,
    *,
    dry_run: bool,
) -> ImportReport:
    def report_of(save: Save) -> ImportReport:
        reports = [_import_one(save, *each, format_, options) for each in opened]
        return ImportReport(tuple(reports), dry_run)

    if not dry_run:
        return report_of(partial(save_batches, db))
    with dry_run_session(db) as save:
        return report_of(save)


def _import_one(
    save: Save, shown: str, files: Callable[[], list[InputFile]], format_: str, options: ImportOptions
) -> FileReport:
    formats: tuple[Format, ...] = ()
    recognised: list[tuple[InputFile, Format]] = []
    try:
        recognised = recognised_files(files, format_)
        formats = tuple(dict.fromkeys(name for _, name in recognised))
        report = FileReport(shown, formats)
        notes: list[str] = []
        trials = all_trials(recognised, options, notes)
        report.new, report.known = save(_observed(BatchMaker().batches(trials), report))
        report.unused, report.notes = _unused(recognised, options), tuple(notes)
        return report
    except MissingFactError as error:
        # What is missing may stand in a column that nobody has named.
        return FileReport(shown, formats, unused=_unused(recognised, options), error=error)
    except ConflictError as error:
        # The store knows the trial, not the file that it came from.
        return FileReport(shown, formats, error=ConflictError(f"{shown}: {error.message}", error.next_step))
    except CompilewatchError as error:
        return FileReport(shown, formats, error=error)


def _unused(recognised: list[tuple[InputFile, Format]], options: ImportOptions) -> dict[str, str]:
    unused: dict[str, str] = {}
    for file, name in recognised:
        if name == Format.CSV:
            with suppress(RecordError):
                unused |= unused_columns(file, options)
    return unused


def all_trials(
    recognised: list[tuple[InputFile, Format]], options: ImportOptions, notes: list[str]
) -> Iterator[Trial]:
    """Those of every file, then those of jobs, whose files are read together.

    Raises RecordError naming file, line and field, after which nothing that was yielded counts.
    """
    others = [each for each in recognised if each[1] not in JOB_READERS]
    of_jobs = [each for each in recognised if each[1] in JOB_READERS]
    yield from chain.from_iterable(_trials(*each, options) for each in others)
    yield from with_distinct_ids(job_trials(list(_processes(of_jobs, options, notes)), options))


def _processes(
    recognised: list[tuple[InputFile, Format]], options: ImportOptions, notes: list[str]
) -> Iterator[JobProcess]:
    """What each file of a job tells; a file beside others in which nothing was compiled is passed over."""
    for file, name in recognised:
        process = JOB_READERS[name](file, options)
        if not (process.log.compiled or process.cold_start):
            if len(recognised) == 1:
                raise RecordError(
                    f"{file.shown}: holds no compilation.", "Check that it is the file you meant."
                )
            continue
        if process.cut_off:
            notes.append(f"{file.shown}: ends inside a record, which was left out.")
        yield process


def _observed(batches: Iterable[Batch], report: FileReport) -> Iterator[Batch]:
    """Yields the batches and notes the first rows and the failures on the way."""
    empty = True
    for batch in batches:
        if empty:
            report.first = tuple(batch.records[:FIRST_ROWS])
        empty = False
        cancelled = batch.of_trials("failure_kind").count(FailureKind.CANCELLED)
        report.failed_trials += batch.of_trials("status").count(Status.FAILED) - cancelled
        yield batch
    if empty:
        raise RecordError(f"{report.path}: holds no result.", "Check that it is the file you meant.")


def _trials(file: InputFile, name: Format, options: ImportOptions) -> Iterator[Trial]:
    try:
        trials = READERS[name](file, options)
        yield from trials if name is Format.TRIAL else with_distinct_ids(trials)
    except RecursionError as error:
        # What json can read it may not be able to write again: each stops at a depth of its own.
        raise RecordError(
            f"{file.shown}: is nested too deeply.", "Check that it is the file you meant."
        ) from error


def recognised_files(files: Callable[[], list[InputFile]], format_: str) -> list[tuple[InputFile, Format]]:
    if format_ != AUTO and format_ not in list(Format):
        known = ", ".join((AUTO, *Format))
        raise RecordError(f"{format_}: is no format that can be imported.", f"Known are {known}.")
    return [(file, detect(file) if format_ == AUTO else Format(format_)) for file in files()]
