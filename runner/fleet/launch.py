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
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import takewhile
from pathlib import Path
from threading import Event, Thread
from typing import IO, NamedTuple

from ulid import ULID

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import DatabaseError
from compilewatch.db.records.hosts import ON_THEIR_WAY, OUTPUT_CHARACTERS, Launch, LaunchState
from compilewatch.db.service.fleet import ListedJobs, claim_launch, demand, end_launch
from compilewatch.runner.config.scrub import scrub
from compilewatch.runner.config.sections import LaunchSettings
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.fleet.names import LONGEST_WAIT_S

_LOG = logging.getLogger("compilewatch.fleet")
_LOOK_EVERY_S = 2.0
_LIST_EVERY_S = 10.0
_LIST_AGAIN_S = 60.0
_LONGEST_BACKOFF_S = 3600.0
_END_WITHIN_S = 5.0
_JOIN_S = 2 * _END_WITHIN_S
_TICK_S = 0.1
_TAIL_BYTES = 4 * OUTPUT_CHARACTERS


def is_due(
    rules: LaunchSettings,
    now: datetime,
    waiting: int,
    workers: int,
    launches: Sequence[Launch],
    *,
    are_listed: bool = False,
) -> bool:
    """Whether one more worker is to be launched for a queue in which `waiting` trials wait.

    Workers that live and launches whose worker may still come count as one each, against `at_most` and the
    waiting trials. After a failure the next launch waits `backoff_s`, doubled for each failure before it.
    Where jobs `are_listed`, the first `at_most` in a row that end without a worker are replaced at once.
    """
    states = [launch.state(now) for launch in launches]
    wanted = min(rules.at_most, waiting) - workers - sum(state in ON_THEIR_WAY for state in states)
    return wanted > 0 and not _backs_off(rules, now, launches, are_listed=are_listed)


def _backs_off(rules: LaunchSettings, now: datetime, launches: Sequence[Launch], *, are_listed: bool) -> bool:
    """Whether the newest launches failed, the last of them lately. `launches` are newest first."""
    ended = [launch for launch in launches if launch.state(now) not in ON_THEIR_WAY]
    failures = list(takewhile(lambda launch: launch.state(now) is not LaunchState.STARTED, ended))
    if not failures:
        return False
    last = failures[0]
    has_no_worker = last.state(now) is LaunchState.NO_WORKER
    failed_at = last.worker_due_at if has_no_worker else last.ended_at
    doublings = len(failures) - 1 - rules.at_most * (has_no_worker and are_listed)
    if failed_at is None or doublings < 0:
        return False
    wait_s = min(rules.backoff_s * 2.0 ** min(doublings, 20), _LONGEST_BACKOFF_S)
    return now < failed_at + timedelta(seconds=wait_s)


def run_command(
    command: Sequence[str], *, directory: Path, timeout_s: float, should_stop: Callable[[], bool]
) -> tuple[int | None, str]:
    """Its exit code and the last of what it printed; no code where it could not be started or was ended."""
    ended = _run(command, directory, timeout_s, should_stop, subprocess.STDOUT)
    return ended.code, "\n".join(filter(None, (ended.printed.text(), ended.why)))


def count_jobs(
    command: Sequence[str], *, directory: Path, timeout_s: float, should_stop: Callable[[], bool]
) -> tuple[int | None, str]:
    """How many lines `command` prints, blank ones left out; where it fails None, and one line why."""
    ended = _run(command, directory, timeout_s, should_stop, subprocess.PIPE)
    if ended.code == 0 and ended.printed.is_whole:
        return ended.printed.lines, ""
    why = ended.why or f"{command[0]} ended with {ended.code}."
    text = ended.errors.text() or ended.printed.text()
    return None, " ".join(filter(None, (why, text.rpartition("\n")[2])))


class _Output:
    """The last of what is printed to a stream, and how many of its lines are not blank."""

    def __init__(self) -> None:
        self.lines = 0
        self.is_whole = False
        self._tail = bytearray()

    def read(self, stream: IO[bytes]) -> None:
        """Read until the last process that has the stream open closes it."""
        rest = b""
        while data := os.read(stream.fileno(), 65_536):
            self._tail += data
            del self._tail[:-_TAIL_BYTES]
            *lines, rest = (rest[-_TAIL_BYTES:] + data).split(b"\n")
            self.lines += sum(bool(line.strip()) for line in lines)
        self.lines += bool(rest.strip())
        self.is_whole = True
        stream.close()

    def text(self) -> str:
        """Without tokens and addresses."""
        return scrub(bytes(self._tail).decode("utf-8", errors="replace")).strip()


@dataclass(frozen=True)
class _Ended:
    """What became of a command: no code where it could not be started or was ended, and then `why`."""

    code: int | None = None
    why: str = ""
    printed: _Output = field(default_factory=_Output)
    errors: _Output = field(default_factory=_Output)


def _run(
    command: Sequence[str],
    directory: Path,
    timeout_s: float,
    should_stop: Callable[[], bool],
    errors_to: int,
) -> _Ended:
    """Run `command`, for `timeout_s` at most; its errors go to a pipe of their own or to its output."""
    try:
        process = subprocess.Popen(
            list(command),
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors_to,
            start_new_session=True,
        )
    except OSError as error:
        return _Ended(why=f"{command[0]} cannot be started: {error.strerror}.")
    ended = _Ended()
    readers = [
        Thread(target=output.read, args=(stream,), name="launch-output", daemon=True)
        for output, stream in ((ended.printed, process.stdout), (ended.errors, process.stderr))
        if stream is not None
    ]
    for reader in readers:
        reader.start()
    deadline = time.monotonic() + timeout_s
    while process.poll() is None and time.monotonic() < deadline and not should_stop():
        time.sleep(_TICK_S)
    why = "" if process.poll() is not None else _end(process, timeout_s, is_late=not should_stop())
    # What the command left in the background may hold its output open. A listing counts if it is whole.
    for reader in readers:
        reader.join(_TICK_S if errors_to == subprocess.STDOUT else _END_WITHIN_S)
    return replace(ended, code=None if why else process.returncode, why=why)


def _end(process: subprocess.Popen[bytes], timeout_s: float, *, is_late: bool) -> str:
    """End the command with its children: why."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_END_WITHIN_S)
            break
    return f"Ended after {timeout_s:g} s." if is_late else "Ended with the service."


class _Listing(NamedTuple):
    """What `jobs_command` said: how many jobs, or None and `why`; it is believed until `until`."""

    jobs: int | None
    why: str
    listed_at: datetime
    until: datetime


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
        self._listings: dict[str, _Listing] = {}

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
        rules = self._settings.fleet.launch[queue]
        stalled_s = self._settings.fleet.stalled_s
        silence = timedelta(seconds=stalled_s)
        listing = None
        if rules.jobs_command:
            waiting, workers = demand(self._database, queue, stalled_s, self._clock() - silence)
            if workers >= min(rules.at_most, waiting):
                return False
            listing = self._listing(queue, rules.jobs_command, rules.timeout_s)
            if self._stop.is_set():
                return False
        now, due_in = self._clock(), timedelta(seconds=rules.timeout_s + rules.start_s)
        launch = Launch(
            launch_id=str(ULID()), queue=queue, host=self._host, launched_at=now, worker_due_at=now + due_in
        )
        jobs = None
        if listing is not None and listing.jobs is not None:
            jobs = ListedJobs(listing.jobs, listing.listed_at, listing.listed_at + due_in)
        if not claim_launch(
            self._database,
            launch,
            partial(is_due, rules, now, are_listed=jobs is not None),
            stalled_s=stalled_s,
            alive_after=now - silence,
            jobs=jobs,
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
        if listing is not None and listing.jobs is None:
            output += f"\nJobs at the scheduler could not be counted: {listing.why}"
        end_launch(self._database, launch.launch_id, at=self._clock(), exit_code=code, output=output)
        return True

    def _listing(self, queue: str, command: Sequence[str], timeout_s: float) -> _Listing:
        """The jobs at the scheduler of `queue`, as they were seconds ago at most, or why they are unknown."""
        known, now = self._listings.get(queue), self._clock()
        if known is not None and now < known.until:
            return known
        count, why = count_jobs(
            command,
            directory=self._settings.project_root,
            timeout_s=timeout_s,
            should_stop=self._stop.is_set,
        )
        if count is None:
            _LOG.warning("The jobs of %s cannot be counted, launches are instead: %s", queue, why)
        again_s = _LIST_EVERY_S if count is not None else _LIST_AGAIN_S
        until = self._clock() + timedelta(seconds=again_s)
        self._listings[queue] = _Listing(count, why, now, until)
        return self._listings[queue]


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
