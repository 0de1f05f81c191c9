"""The process beside a waiting worker that measures what the worker was given, and stores it.

    python -m runner.fleet.measurer PARENT DEVICE [CONFIG]

Takes one JSON object per line on standard input, `{"do": "measure", "message": ..., "attempts": N}` or
`{"do": "cancel"}`, and answers each measurement with one line. When standard input ends, or with SIGTERM,
what runs is given up unrecorded: another worker begins it again. Apart from the waiting worker, so that
waiting costs little.
"""

from __future__ import annotations

import functools
import json
import logging
import queue
import signal
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from db.engine.session import Database, open_database
from db.errors import CompilewatchError, ConflictError, DatabaseError, RecordError
from db.queries.fleet import stored_trials
from db.records.trial import Failure, FailureKind, Trial
from runner.config.settings import Settings
from runner.config.sources import load_settings
from runner.device.lock import DeviceBusyError
from runner.device.state import device_facts
from runner.fleet.lifeline import die_with
from runner.fleet.message import Message, job_of, read_message, specs_without_code
from runner.fleet.names import LONGEST_WAIT_S, MOST_ATTEMPTS
from runner.plan.host_stacks import HostStacks
from runner.process.local_executor import measure_job
from runner.process.record import unmeasured
from runner.service.logs import log_to_standard_error
from runner.storage.persistence import NotPersistedError, persist, store_waiting
from runner.storage.spool import Spool

_LOG = logging.getLogger("compilewatch.fleet")
_FIRST_WAIT_S = 1.0


class Inbox:
    """Reads standard input in a thread of its own."""

    def __init__(self) -> None:
        self.measurements: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.cancelled = threading.Event()
        self.dropped = threading.Event()
        threading.Thread(target=self._read, name="inbox", daemon=True).start()

    def _read(self) -> None:
        for line in sys.stdin:
            content = json.loads(line)
            if content["do"] == "cancel":
                self.cancelled.set()
            else:
                self.cancelled.clear()
                self.measurements.put(content)
        self.drop()

    def drop(self) -> None:
        """Give up what is measured now, and end."""
        self.dropped.set()
        self.measurements.put(None)

    def should_end(self) -> bool:
        """Whether what is measured now is cancelled or given up."""
        return self.cancelled.is_set() or self.dropped.is_set()


class Measurer:
    """One GPU's: measures one job after the other."""

    def __init__(self, settings: Settings, device: str, inbox: Inbox) -> None:
        self._settings = settings
        self._device = device
        self._inbox = inbox
        self._spool = Spool(settings.data_dir / "spool")
        self._database: Database | None = None
        # They are asked once in the short life of this process, not before each trial.
        self._host_stacks = functools.cache(lambda: HostStacks.read(settings))
        self._failures = 0

    def pop_failures(self) -> int:
        """How often the database failed since this was last asked."""
        failures, self._failures = self._failures, 0
        return failures

    def measure(self, content: dict[str, Any], attempts: int) -> str:
        """Measure and store one message: `stored`, or `dropped` where this process is to end.

        Raises CompilewatchError where nothing can be recorded.
        """
        message = read_message(content)
        database = self._opened()
        if database is None:
            return "dropped"
        if stored_trials(database, message.trial_ids) == set(message.trial_ids):
            return "stored"
        trials = self._trials(message, attempts)
        if self._inbox.dropped.is_set():
            return "dropped"
        for trial in trials:
            self._store(trial, database)
        return "stored"

    def _trials(self, message: Message, attempts: int) -> list[Trial]:
        if attempts >= MOST_ATTEMPTS:
            why = f"It was begun {attempts} times, and each time its worker died."
            return self._unmeasured(message, FailureKind.CRASH, why)
        try:
            job = job_of(message, self._settings, device=self._device, host_stacks=self._host_stacks)
        except CompilewatchError as error:
            return self._unmeasured(message, FailureKind.UNSUPPORTED, str(error))
        _LOG.info("%s begins.", job.specs[0].case, extra={"trial_id": job.job_id, "run_id": message.run_id})
        try:
            return measure_job(
                job, lock_dir=None, on_phase=lambda _phase: None, is_cancelled=self._inbox.should_end
            )
        except DeviceBusyError:
            if self._inbox.should_end():
                return []
            raise

    def _unmeasured(self, message: Message, kind: FailureKind, why: str) -> list[Trial]:
        _LOG.warning("%s is not measured: %s", message.workloads[0].name, why)
        failure = Failure(kind=kind, phase=None, message=why)
        specs = specs_without_code(message, device=self._device, threads=self._settings.threads)
        facts, now = device_facts(self._device), datetime.now(UTC)
        return [unmeasured(spec, failure, at=now, device=facts) for spec in specs]

    def _store(self, trial: Trial, database: Database) -> None:
        """Wait until the trial is in the database, or this process is to end. Of each trouble one line."""
        has_warned = False
        on_disk = False

        def is_stored() -> bool:
            nonlocal has_warned, on_disk
            try:
                if on_disk:
                    store_waiting(database, self._spool)
                    return True
                stored = persist(trial, database, self._spool)
            except DatabaseError:
                return False
            except ConflictError:
                _LOG.warning("Trial %s was measured by two workers; the first record counts.", trial.trial_id)
                return True
            except RecordError as error:
                _LOG.warning("Trial %s is not stored: %s", trial.trial_id, error)
                return True
            except NotPersistedError:
                if not has_warned:
                    _LOG.warning(
                        "Neither the spool nor the database takes trial %s. Waiting with it in memory.",
                        trial.trial_id,
                    )
                has_warned = True
                return False
            on_disk = True
            return stored

        self._until(is_stored)

    def _opened(self) -> Database | None:
        """The database, waited for, as the worker says already; None where this process is to end."""

        def opened() -> bool:
            try:
                self._database = self._database or open_database(self._settings.database_url)
            except DatabaseError:
                return False
            return True

        return self._database if self._until(opened) else None

    def _until(self, is_done: Callable[[], bool]) -> bool:
        """Try `is_done` again and again, at most 15 s apart: False where this process is to end first."""
        wait_s = _FIRST_WAIT_S
        while not is_done():
            self._failures += 1
            if self._inbox.dropped.wait(wait_s):
                return False
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)
        return True


def main(parent: str, device: str, config: str = "") -> None:
    """Measure what is asked on standard input, until it ends.

    `parent` is the process id of the waiting worker, `device` as torch names it, `config` a file or empty.
    """
    die_with(int(parent))
    settings = load_settings(Path(config) if config else None)
    log_to_standard_error(settings.service.log_format)
    inbox = Inbox()
    # A handler interrupts what may hold the locks of these events, so it must not touch them itself.
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=inbox.drop, daemon=True).start())
    measurer = Measurer(settings, device, inbox)
    while (request := inbox.measurements.get()) is not None:
        try:
            answer: dict[str, object] = {"ended": measurer.measure(request["message"], request["attempts"])}
        except CompilewatchError as error:
            answer = {"ended": "failed", "why": str(error)}
        answer["database_errors"] = measurer.pop_failures()
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
