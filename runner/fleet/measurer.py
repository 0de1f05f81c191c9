"""What a worker was given, measured and stored in a thread beside the one that listens to the queue.

A thread for each job may end: a measured process does not die with it. Its guard waits for the end of this
process by a pipe, and sets PR_SET_PDEATHSIG, which fires at the end of the *thread* that forked, for its own
child alone (`runner.process.guard`).
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime
from threading import Event, Thread
from typing import TypeVar

from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.errors import CompilewatchError, ConflictError, DatabaseError, RecordError
from compilewatch.db.records.trial import Failure, FailureKind, Trial
from compilewatch.db.service.fleet import stored_trials
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.device.lock import DeviceBusyError
from compilewatch.runner.device.state import device_facts
from compilewatch.runner.fleet.message import Message, job_of, read_message, specs_without_code
from compilewatch.runner.fleet.names import LONGEST_WAIT_S, MOST_ATTEMPTS
from compilewatch.runner.plan.cancellation import PreparationCancelledError, cancellable
from compilewatch.runner.plan.host_stacks import HostStacks
from compilewatch.runner.process.execution import measure_job
from compilewatch.runner.process.record import unmeasured
from compilewatch.runner.process.spool import NotPersistedError, Spool, persist, store_waiting

T = TypeVar("T")


def in_thread(work: Callable[[], T], name: str) -> asyncio.Future[T]:
    """`work` in a thread of its own, which ends with this process if not before.

    Wait with `asyncio.wait`, which leaves it alone when it is cancelled itself. Not `asyncio.to_thread`: a
    program does not end before such a thread does.
    """
    ended: Future[T] = Future()
    ended.set_running_or_notify_cancel()

    def run() -> None:
        try:
            ended.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised again where somebody asks for the result
            ended.set_exception(error)

    Thread(target=run, name=name, daemon=True).start()
    waited = asyncio.wrap_future(ended)
    # Of work that was given up nobody asks how it ended, and asyncio would complain.
    waited.add_done_callback(lambda future: future.cancelled() or future.exception())
    return waited


_LOG = logging.getLogger("compilewatch.fleet")
_FIRST_WAIT_S = 1.0


class Equipment:
    """What the trials of this host need, each made when it is first wanted.

    It is read once for trials that follow each other. `put_away` after an idle while: the next trial has what
    was edited or upgraded meanwhile, and a worker at rest holds no connection.
    """

    def __init__(self, read_settings: Callable[[], Settings]) -> None:
        self._read_settings = read_settings

    @functools.cached_property
    def settings(self) -> Settings:
        """This host's configuration. Raises ConfigError."""
        return self._read_settings()

    @functools.cached_property
    def database(self) -> Database:
        """One for the life of the worker, with connections while it is used. Raises DatabaseError, and as
        `settings` does.
        """
        return open_database(self.settings.database_url)

    @functools.cached_property
    def host_stacks(self) -> HostStacks:
        """The builds of this host. Raises as `settings` does."""
        return HostStacks.read(self.settings)

    def put_away(self) -> None:
        """Forget what was read, and end the connections that nobody uses."""
        vars(self).pop("settings", None)
        vars(self).pop("host_stacks", None)
        if "database" in vars(self):
            self.database.close()


class Measurement:
    """One job, from the queue's message to its records: `start`, then `wait` until it `is_stored`."""

    def __init__(self, equipment: Equipment, device: str, content: object, attempts: int) -> None:
        """`device` as torch names it, `content` a message of the queue, begun `attempts` times before."""
        self._equipment = equipment
        self._device = device
        self._content = content
        self._attempts = attempts
        self._cancelled, self._dropped = Event(), Event()
        self._ended: asyncio.Future[bool] | None = None
        self.database_errors = 0
        """How often the database failed it."""

    def start(self) -> None:
        """`run` it in a thread."""
        self._ended = in_thread(self.run, "measuring")

    async def wait(self, timeout_s: float | None = None) -> None:
        """Until it has ended, `timeout_s` at most; not at all where it was not started."""
        if self._ended is not None:
            await asyncio.wait({self._ended}, timeout=timeout_s)

    def is_stored(self) -> bool:
        """What `run` returned or raised."""
        return self._ended is not None and self._ended.result()

    def cancel(self) -> None:
        """End what is measured; it is stored as cancelled."""
        self._cancelled.set()

    def drop(self) -> None:
        """Give it up unrecorded: another worker begins it again."""
        self._dropped.set()

    @property
    def is_dropped(self) -> bool:
        """Whether it was given up."""
        return self._dropped.is_set()

    def run(self) -> bool:
        """Measure and store it: False where it was dropped before.

        Raises CompilewatchError where nothing can be recorded.
        """
        message = read_message(self._content)
        if not self._until(self._has_database):
            return False
        if stored_trials(self._equipment.database, message.trial_ids) == set(message.trial_ids):
            return True
        trials = self._trials(message)
        return not self.is_dropped and all(self.store(trial) for trial in trials)

    def _should_end(self) -> bool:
        return self._cancelled.is_set() or self._dropped.is_set()

    def _trials(self, message: Message) -> list[Trial]:
        if self._attempts >= MOST_ATTEMPTS:
            why = f"It was begun {self._attempts} times, and each time its worker died."
            return self._unmeasured(message, FailureKind.CRASH, why)
        equipment = self._equipment
        try:
            with cancellable(self._should_end):
                job = job_of(
                    message,
                    equipment.settings,
                    device=self._device,
                    host_stacks=lambda: equipment.host_stacks,
                )
        except PreparationCancelledError:
            return []
        except CompilewatchError as error:
            return self._unmeasured(message, FailureKind.UNSUPPORTED, str(error))
        _LOG.info("%s begins.", job.specs[0].case, extra={"trial_id": job.job_id, "run_id": message.run_id})
        try:
            return measure_job(job, on_phase=lambda _phase: None, is_cancelled=self._should_end)
        except DeviceBusyError:
            if self._should_end():
                return []
            raise

    def _unmeasured(self, message: Message, kind: FailureKind, why: str) -> list[Trial]:
        _LOG.warning("%s is not measured: %s", message.workloads[0].name, why)
        failure = Failure(kind=kind, phase=None, message=why)
        specs = specs_without_code(message, device=self._device, threads=self._equipment.settings.threads)
        facts, now = device_facts(self._device), datetime.now(UTC)
        return [unmeasured(spec, failure, at=now, device=facts) for spec in specs]

    def store(self, trial: Trial) -> bool:
        """Wait until the trial is in the database: False where it was dropped before. Of each trouble one
        line.
        """
        database, spool = self._equipment.database, Spool(self._equipment.settings.data_dir / "spool")
        has_warned = False
        on_disk = False

        def is_stored() -> bool:
            nonlocal has_warned, on_disk
            try:
                if on_disk:
                    store_waiting(database, spool)
                    return True
                stored = persist(trial, database, spool)
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

        return self._until(is_stored)

    def _has_database(self) -> bool:
        """Whether it answers; the worker says already that it does not."""
        try:
            return self._equipment.database is not None
        except DatabaseError:
            return False

    def _until(self, is_done: Callable[[], bool]) -> bool:
        """Try `is_done` again and again, at most 15 s apart: False where it is dropped first."""
        wait_s = _FIRST_WAIT_S
        while not is_done():
            self.database_errors += 1
            if self._dropped.wait(wait_s):
                return False
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)
        return True
