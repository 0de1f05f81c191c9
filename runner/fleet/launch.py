"""Scale from zero: a command of this host's configuration is run where trials wait and no worker lives."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import takewhile
from pathlib import Path
from threading import Event, Thread
from typing import IO

from ulid import ULID

from db.engine.session import Database
from db.errors import DatabaseError
from db.records.fleet import OUTPUT_CHARACTERS, Launch, LaunchState
from db.store.fleet import claim_launch, end_launch
from runner.config.sections import LaunchSettings
from runner.config.settings import Settings
from runner.fleet.names import LONGEST_WAIT_S
from runner.process.failure import scrub

_LOG = logging.getLogger("compilewatch.fleet")
_LOOK_EVERY_S = 2.0
_LONGEST_BACKOFF_S = 3600.0
_END_WITHIN_S = 5.0
_JOIN_S = 2 * _END_WITHIN_S
_TICK_S = 0.1
_ON_THEIR_WAY = (LaunchState.RUNNING, LaunchState.PENDING)
_TAIL_BYTES = 4 * OUTPUT_CHARACTERS


def is_due(
    rules: LaunchSettings, now: datetime, waiting: int, workers: int, launches: Sequence[Launch]
) -> bool:
    """Whether one more worker is to be launched for a queue in which `waiting` trials wait.

    Workers that live and launches whose worker may still come count as one each, against `at_most` and the
    waiting trials. After a failure the next launch waits `backoff_s`, doubled for each failure before it.
    """
    states = [launch.state(now) for launch in launches]
    wanted = min(rules.at_most, waiting) - workers - sum(state in _ON_THEIR_WAY for state in states)
    return wanted > 0 and not _backs_off(rules, now, launches)


def _backs_off(rules: LaunchSettings, now: datetime, launches: Sequence[Launch]) -> bool:
    """Whether the newest launches failed, the last of them lately. `launches` are newest first."""
    ended = [launch for launch in launches if launch.state(now) not in _ON_THEIR_WAY]
    failures = list(takewhile(lambda launch: launch.state(now) is not LaunchState.STARTED, ended))
    if not failures:
        return False
    last = failures[0]
    failed_at = last.worker_due_at if last.state(now) is LaunchState.NO_WORKER else last.ended_at
    wait_s = min(rules.backoff_s * 2.0 ** min(len(failures) - 1, 20), _LONGEST_BACKOFF_S)
    return failed_at is not None and now < failed_at + timedelta(seconds=wait_s)


def run_command(
    command: Sequence[str], *, directory: Path, timeout_s: float, should_stop: Callable[[], bool]
) -> tuple[int | None, str]:
    """Its exit code and the last of what it printed; no code where it could not be started or was ended."""
    try:
        process = subprocess.Popen(
            list(command),
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        return None, f"{command[0]} cannot be started: {error.strerror}."
    tail = bytearray()
    assert process.stdout is not None
    reader = Thread(target=_read, args=(process.stdout, tail), name="launch-output", daemon=True)
    reader.start()
    deadline = time.monotonic() + timeout_s
    while process.poll() is None and time.monotonic() < deadline and not should_stop():
        time.sleep(_TICK_S)
    why = "" if process.poll() is not None else _end(process, timeout_s, is_late=not should_stop())
    # What the command left in the background may hold its output open.
    reader.join(_TICK_S)
    text = scrub(bytes(tail).decode("utf-8", errors="replace")).strip()
    return None if why else process.returncode, "\n".join(filter(None, (text, why)))


def _read(stream: IO[bytes], tail: bytearray) -> None:
    while data := os.read(stream.fileno(), 65_536):
        tail += data
        del tail[:-_TAIL_BYTES]
    stream.close()


def _end(process: subprocess.Popen[bytes], timeout_s: float, *, is_late: bool) -> str:
    """End the command with its children: why."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_END_WITHIN_S)
            break
    return f"Ended after {timeout_s:g} s." if is_late else "Ended with the service."


class Launcher:
    """Looks after the queues of `[fleet.launch]`, until `stop`."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        *,
        host: str,
        stop: Event,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._settings = settings
        self._database = database
        self._host = host
        self._stop = stop
        self._clock = clock

    def run(self) -> None:
        """Launch what is due, every few seconds; a database that is away is waited for."""
        while not self._stop.wait(_LOOK_EVERY_S):
            try:
                for queue in self._settings.fleet.launch:
                    self.launch_if_due(queue)
            except DatabaseError as error:
                _LOG.warning("No worker can be launched: %s", error)
                # Workers have to be heard of again before anybody can say that none lives.
                self._stop.wait(LONGEST_WAIT_S + self._settings.fleet.heartbeat_s)

    def launch_if_due(self, queue: str) -> bool:
        """Run the command of `queue` if a worker is wanted there: whether it was. Raises DatabaseError."""
        rules, now = self._settings.fleet.launch[queue], self._clock()
        stalled_s = self._settings.fleet.stalled_s
        launch = Launch(
            launch_id=str(ULID()),
            queue=queue,
            host=self._host,
            launched_at=now,
            worker_due_at=now + timedelta(seconds=rules.timeout_s + rules.start_s),
        )
        if not claim_launch(
            self._database,
            launch,
            partial(is_due, rules, now),
            stalled_s=stalled_s,
            alive_after=now - timedelta(seconds=stalled_s),
        ):
            return False
        _LOG.info("Trials of %s wait. Launching a worker.", queue)
        code, output = run_command(
            rules.command,
            directory=self._settings.project_root,
            timeout_s=rules.timeout_s,
            should_stop=self._stop.is_set,
        )
        if code != 0:
            ended = "was ended" if code is None else f"ended with {code}"
            _LOG.warning("The launch for %s %s: %s", queue, ended, output.rpartition("\n")[2])
        end_launch(self._database, launch.launch_id, at=self._clock(), exit_code=code, output=output)
        return True


@contextmanager
def launching(settings: Settings, database: Database, host: str, stop: Event) -> Iterator[None]:
    """Launch workers beside what the block does, if the configuration says how."""
    if not settings.fleet.launch:
        yield
        return
    launcher = Launcher(settings, database, host=host, stop=stop)
    thread = Thread(target=launcher.run, name="launching", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(_JOIN_S)
