"""Measured trials on disk until the database has them: one file each, replayed in order, stored once."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from compilewatch.db.engine.repository import CLOCK_SKEW, wrong_moment
from compilewatch.db.engine.session import Database
from compilewatch.db.errors import (
    CompilewatchError,
    ConflictError,
    DatabaseError,
    NotFoundError,
    RecordError,
    one_line,
    visible,
)
from compilewatch.db.interchange.files.opening import MAX_DOCUMENT_BYTES, RUNS_FOLDER
from compilewatch.db.part_files import part_of, remove_left_parts
from compilewatch.db.records.fields import (
    Count,
    Identifier,
    Name,
    Record,
    UtcDatetime,
    aware_utc,
    first_problem,
)
from compilewatch.db.records.requests import RunStatus
from compilewatch.db.records.trial import Trial, parse_trial
from compilewatch.db.store.trials import end_run, save_trial, start_run
from compilewatch.db.units import plural
from compilewatch.runner.plan.cancellation import check_cancelled

_LOG = logging.getLogger("compilewatch.runner")
_LONGEST_REASON = 500


@dataclass(frozen=True)
class Replay:
    """What a replay did: how many files were stored, and which were set aside, each said with its reason."""

    stored: int
    rejected: tuple[Path, ...]


class Announcement(Record):
    """That a run begins, as `db.store.trials.start_run` takes it."""

    run_id: Identifier
    suite: Name | None
    label: Name | None
    started_at: UtcDatetime
    planned_trials: Count | None


class Spool:
    """A directory of `<trial id>.json` files, and of `ends/<run id>.json` for the ends of runs.

    Trial ids sort by time, so names give the order.
    """

    travels = False
    """Whether its files stay, to be imported where the team's database is."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._bad = directory / "bad"
        self._ends = directory / "ends"
        self._stuck: set[Path] = set()

    def put(self, trial: Trial) -> Path:
        """Write `trial` so that it survives a crash of this process and of the machine.

        Raises CompilewatchError when the disk refuses; nothing of it stays there then.
        """
        path = self.directory / f"{trial.trial_id}.json"
        next_step = "Free space or set data_dir to a writable directory, then run again."
        with _refusal(f"A measured trial cannot be written to {self.directory}", next_step):
            _write(path, trial.to_json())
        return path

    def put_end(self, run_id: str, ended_at: datetime, status: str) -> None:
        """Write how a run ended, until the database takes it. Raises CompilewatchError like `put`."""
        content = {"ended_at": ended_at.isoformat(), "status": str(status)}
        next_step = "Free space or set data_dir to a writable directory."
        with _refusal(f"The end of a run cannot be written to {self._ends}", next_step):
            _write(self._ends / f"{run_id}.json", json.dumps(content))

    def waiting(self) -> list[Path]:
        """Files not yet stored, oldest first."""
        return sorted(self.directory.glob("*.json"))

    def size_bytes(self) -> int:
        """What waits here takes up. What another process stores meanwhile is passed over."""
        total = 0
        for path in self.waiting():
            with contextlib.suppress(OSError):
                total += path.lstat().st_size
        return total

    def waiting_ends(self) -> Iterator[tuple[str, datetime, RunStatus]]:
        """Run id, when and how it ended. A file that another process has stored meanwhile is passed over, and
        one that says no end goes to `bad/` with its reason.
        """
        for path in sorted(set(self._ends.glob("*.json")) - self._stuck):
            try:
                content = json.loads(_read(path))
                ended_at = aware_utc(datetime.fromisoformat(content["ended_at"]))
                end = path.stem, ended_at, RunStatus(content["status"])
            except FileNotFoundError:
                continue
            except RecordError as error:
                self._set_aside(path, str(error))
            except (ValueError, LookupError, TypeError, RecursionError) as error:
                self._set_aside(path, f"This is no end of a run ({type(error).__name__}: {error}).")
            else:
                yield end

    def remove_end(self, run_id: str) -> None:
        """Forget how the run ended: the database has it."""
        self._remove(self._ends / f"{run_id}.json")

    def replay(self, save: Callable[[Trial], object]) -> Replay:
        """Hand every waiting trial to the idempotent `save` and remove its file.

        A file that cannot be read, is no record, or whose id is taken by another one, goes to `bad/` with its
        reason; where it cannot be moved, this object leaves it where it is. Raises DatabaseError as soon as
        `save` does; what still waits stays. Another process may replay the same files: what it stored
        meanwhile is passed over.
        """
        stored, rejected = 0, []
        for directory in (self.directory, self._ends):
            remove_left_parts(directory)
        for path in self.waiting():
            if path in self._stuck:
                continue
            try:
                save(parse_trial(_read(path), where=path.name))
            except DatabaseError:
                raise
            except FileNotFoundError:
                continue
            except (RecordError, ConflictError) as error:
                rejected += self._set_aside(path, str(error))
            else:
                self._remove(path)
                stored += 1
        return Replay(stored, tuple(rejected))

    def _set_aside(self, path: Path, reason: str) -> list[Path]:
        """Move a file to `bad/` and say so; nothing where another process was quicker."""
        target = self._bad / path.name
        note = target.with_suffix(".reason.txt")
        try:
            self._bad.mkdir(parents=True, exist_ok=True)
            # First, so that no file is there without its reason.
            with contextlib.suppress(OSError):
                note.write_text(reason + "\n", encoding="utf-8", errors="replace")
            path.rename(target)
        except FileNotFoundError:
            if not target.exists():
                note.unlink(missing_ok=True)
            return []
        except OSError as error:
            self._stuck.add(path)
            why = f"{one_line(reason, _LONGEST_REASON)} It cannot be set aside ({error.strerror})"
            _LOG.warning("%s is left where it is: %s.", visible(str(path)), why)
            return [path]
        _LOG.warning("%s was set aside: %s", visible(str(target)), one_line(reason, _LONGEST_REASON))
        return [target]

    def _remove(self, path: Path) -> None:
        """Take away what the database has. Where that is refused it is stored once more later, as no news."""
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            self._stuck.add(path)
            _LOG.warning("%s is stored and cannot be removed: %s.", visible(str(path)), error.strerror)


class TravellingSpool(Spool):
    """Trials and runs of a host that reaches no database, for `compilewatch import DIRECTORY` elsewhere.

    What is replayed here goes to the database of one command, and the files stay. A folder `runs` marks it.
    """

    travels = True

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._runs = directory / RUNS_FOLDER
        self._fresh: list[Trial] = []

    def put(self, trial: Trial) -> Path:
        path = super().put(trial)
        self._fresh.append(trial)
        return path

    def put_run(self, announcement: Announcement) -> None:
        """Write that a run begins. Raises CompilewatchError where the disk refuses."""
        next_step = "Set [fleet] spool_dir to a directory that is writable here."
        with _refusal(f"Nothing can be written to {self.directory}", next_step):
            _write(self._runs / f"{announcement.run_id}.json", announcement.model_dump_json())

    def runs(self) -> list[Announcement]:
        """The runs that were begun. Raises RecordError for a file that announces none."""
        announcements = []
        for path in sorted(self._runs.glob("*.json")):
            if path.is_symlink() or not path.is_file():
                raise RecordError(f"{path}: is no file of its own.", "Take it away and import again.")
            try:
                announcements.append(Announcement.model_validate_json(_read(path)))
            except RecordError as error:
                raise RecordError(f"{path}: {error}", "Take the file away and import again.") from error
            except ValidationError as error:
                problem = first_problem(error, "all of it")
                raise RecordError(
                    f"{path}: announces no run ({problem}).", "Take the file away and import again."
                ) from None
        return announcements

    def waiting(self) -> list[Path]:
        return []

    def _set_aside(self, path: Path, reason: str) -> list[Path]:
        """The directory is somebody else's, links and all: nothing is moved or written there."""
        raise RecordError(f"{path}: {reason}", "Take the file away and import again.")

    def replay(self, save: Callable[[Trial], object]) -> Replay:
        fresh, self._fresh = self._fresh, []
        for trial in fresh:
            save(trial)
        return Replay(len(fresh), ())


@contextlib.contextmanager
def _refusal(message: str, next_step: str) -> Iterator[None]:
    """What the disk refuses inside, as one sentence."""
    try:
        yield
    except OSError as error:
        raise CompilewatchError(f"{message}: {error.strerror}.", next_step) from error


def _read(path: Path) -> bytes:
    """The content of a file. Raises FileNotFoundError, and RecordError for one that cannot be read or is no
    plain file of a bounded size.
    """
    try:
        # Without waiting: nobody may ever write into a pipe.
        opened = io.FileIO(path, opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))
        with io.BufferedReader(opened) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise RecordError("It is no plain file.")
            content = file.read(MAX_DOCUMENT_BYTES + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise RecordError(f"It cannot be read ({error.strerror}).") from error
    if len(content) > MAX_DOCUMENT_BYTES:
        raise RecordError(f"It has more than {MAX_DOCUMENT_BYTES // 2**20} MiB.")
    return content


def _write(path: Path, text: str) -> None:
    """The whole file under its name or nothing, also after a power cut. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with part_of(path) as part:
        with part.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        part.rename(path)
    _sync_directory(path.parent)


def _sync_directory(directory: Path) -> None:
    """Make a rename in `directory` survive a power cut."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_TAKE_AWAY = "Take its file in `ends` away and import again."


class NotPersistedError(CompilewatchError):
    """Neither the disk nor the database took a trial."""


def store_waiting(database: Database, spool: Spool) -> Replay:
    """Store every trial and every run's end that waits on disk. Raises DatabaseError, and
    PreparationCancelledError as `check_cancelled` does; the rest waits on.
    """

    def save(trial: Trial) -> None:
        check_cancelled()
        save_trial(database, trial)

    replay = spool.replay(save)
    if spool.travels:
        return replay
    for run_id, ended_at, status in spool.waiting_ends():
        try:
            end_run(database, run_id, ended_at, status)
        except NotFoundError:
            _LOG.warning("Run %s, whose end waited on disk, is not in the database.", run_id)
        spool.remove_end(run_id)
    return replay


def import_runs(spool: TravellingSpool, database: Database) -> None:
    """Store how the runs of a directory began and ended, which their trials do not say.

    Raises RecordError for a file that is none of ours, ConflictError for a run that began otherwise.
    """
    announced = {each.run_id: each for each in spool.runs()}
    ends = list(spool.waiting_ends())
    for run_id, ended_at, _ in ends:
        if run_id not in announced:
            raise RecordError(f"Run {run_id} ends in this directory and does not begin there.", _TAKE_AWAY)
        began = announced[run_id].started_at
        if problem := wrong_moment(began, max(began, ended_at), datetime.now(UTC) + CLOCK_SKEW):
            raise RecordError(f"Run {run_id} {problem}.", _TAKE_AWAY)
    for announcement in announced.values():
        start_run(database, **announcement.model_dump())
    for run_id, ended_at, status in ends:
        end_run(database, run_id, ended_at, status)


def persist(trial: Trial, database: Database, spool: Spool) -> bool:
    """Put `trial` on disk, from where it survives a crash, then store all that waits: False while it waits.

    A disk that refuses is passed over where the database takes the trial. Raises NotPersistedError where
    neither does: whoever measured the trial must not count it.
    """
    try:
        spool.put(trial)
    except CompilewatchError as refused:
        try:
            save_trial(database, trial)
        except DatabaseError as error:
            lost = f"{refused.message} {error.message} Trial {trial.trial_id} is lost."
            raise NotPersistedError(lost, refused.next_step) from error
        _LOG.warning("%s Trial %s went straight to the database.", refused.message, trial.trial_id)
        return True
    try:
        store_waiting(database, spool)
    except DatabaseError as error:
        waiting = plural(len(spool.waiting()), "trial")
        _LOG.warning("%s What waits in %s: %s.", error.message, spool.directory, waiting)
        return False
    return True


def note_end(run_id: str, ended_at: datetime, status: RunStatus, database: Database, spool: Spool) -> None:
    """Say how a run ended; where the database is away, the end waits on disk like a trial."""
    if spool.travels:
        spool.put_end(run_id, ended_at, status)
    try:
        end_run(database, run_id, ended_at, status)
    except DatabaseError as error:
        try:
            spool.put_end(run_id, ended_at, status)
        except CompilewatchError as refused:
            _LOG.warning("The end of run %s is lost: %s %s", run_id, error.message, refused.message)
        else:
            _LOG.warning("%s The end of run %s waits in %s.", error.message, run_id, spool.directory)
