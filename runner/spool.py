"""Measured trials on disk until the database has them: one file each, replayed in order, stored once."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from db.errors import CompilewatchError, ConflictError, DatabaseError, RecordError
from db.records import Trial, parse_trial


@dataclass(frozen=True)
class Replay:
    """What a replay did: how many files were stored, and which were set aside in `bad/`."""

    stored: int
    rejected: tuple[Path, ...]


class Spool:
    """A directory of `<trial id>.json` files. Trial ids sort by time, so names give the order."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._bad = directory / "bad"

    def put(self, trial: Trial) -> Path:
        """Write `trial` so that it survives a crash of this process and of the machine.

        Raises CompilewatchError when the disk refuses.
        """
        path = self.directory / f"{trial.trial_id}.json"
        temporary = path.with_suffix(".tmp")
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            with temporary.open("w", encoding="utf-8") as file:
                file.write(trial.to_json())
                file.flush()
                os.fsync(file.fileno())
            temporary.rename(path)
            _sync_directory(self.directory)
        except OSError as error:
            raise CompilewatchError(
                f"A measured trial cannot be written to {self.directory}: {error.strerror}.",
                "Free space or set data_dir to a writable directory, then run again.",
            ) from error
        return path

    def waiting(self) -> list[Path]:
        """Files not yet stored, oldest first."""
        return sorted(self.directory.glob("*.json"))

    def replay(self, save: Callable[[Trial], object]) -> Replay:
        """Hand every waiting trial to the idempotent `save` and remove its file.

        A file that is no record, or whose id is taken by another one, goes to `bad/` with its reason. Raises
        DatabaseError as soon as `save` does; what still waits stays. Another process may replay the same
        files: what it stored meanwhile is passed over.
        """
        stored, rejected = 0, []
        for path in self.waiting():
            try:
                save(parse_trial(path.read_bytes(), where=path.name))
            except DatabaseError:
                raise
            except FileNotFoundError:
                continue
            except (RecordError, ConflictError) as error:
                rejected.append(self._set_aside(path, str(error)))
            else:
                path.unlink(missing_ok=True)
                stored += 1
        return Replay(stored, tuple(rejected))

    def _set_aside(self, path: Path, reason: str) -> Path:
        self._bad.mkdir(exist_ok=True)
        target = self._bad / path.name
        path.rename(target)
        target.with_suffix(".reason.txt").write_text(reason + "\n", encoding="utf-8")
        return target


def _sync_directory(directory: Path) -> None:
    """Make a rename in `directory` survive a power cut."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
