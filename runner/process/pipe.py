"""Start one guarded process, feed it, listen to it until it ends or its time is up."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

# What a measured process started and a guard that was killed could not end.

_LONGEST_S = 5.0
_PAUSE_S = 0.05


def end_orphans(scratch: Path) -> None:
    """Kill what has its TMPDIR in `scratch`, whoever its parent is by now, and delete the directory.

    The guard's own descendants cannot be listed any more: they have become init's.
    """
    deadline = time.monotonic() + _LONGEST_S
    while (orphans := list(_processes_of(scratch))) and time.monotonic() < deadline:
        for process in orphans:
            with contextlib.suppress(psutil.Error):
                process.kill()
        time.sleep(_PAUSE_S)
    shutil.rmtree(scratch, ignore_errors=True)


def _processes_of(scratch: Path) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        # Other users' processes do not tell, and dead ones have nothing to tell.
        with contextlib.suppress(psutil.Error):
            place = process.environ().get("TMPDIR")
            if place and Path(place).is_relative_to(scratch):
                yield process


GUARD = Path(__file__).with_name("guard.py")
LOG_TAIL_BYTES = 65_536
# A record of 50,000 samples and every list at its longest stays below 4 MB.
RECORD_LIMIT_BYTES = 32 * 1024 * 1024
_READ_BYTES = 1 << 16
_TICK_S = 0.2
_GUARD_EXTRA_S = 20.0
_SPREAD_S = 1.0
"""How far apart the processes of one job get the signal that ends them all, as a scheduler sends it."""


@dataclass
class ProcessOutcome:
    """How a process ended and what it left behind."""

    lines: list[bytes] = field(default_factory=list)
    """Complete lines from the record pipe."""
    unfinished: bytes = b""
    """What followed the last complete line."""
    record_overflow: bool = False
    log_tail: bytes = b""
    exit_code: int | None = None
    signal: int | None = None
    spawned_ns: int | None = None
    """Monotonic clock, just before the process was started."""
    tree_cpu_ns: int | None = None
    stopped: str | None = None
    """`timeout` or `cancelled` when we ended it."""
    guard_lost: bool = False
    terminated: bool = False
    """Whether it, or its guard, ended by SIGTERM."""


class _LineReader:
    """Splits a byte stream into lines, refusing more than `limit` bytes in all."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.lines: list[bytes] = []
        self.rest = bytearray()
        self.size = 0
        self.overflow = False

    def feed(self, data: bytes) -> list[bytes]:
        self.size += len(data)
        if self.overflow or self.size > self.limit:
            self.overflow = True
            self.rest.clear()
            return []
        if b"\n" not in data:
            self.rest += data
            return []
        *lines, rest = bytes(self.rest + data).split(b"\n")
        self.rest = bytearray(rest)
        self.lines += lines
        return lines


class GuardedProcess:
    """One `command` under the guard. Use `run()` once."""

    def __init__(
        self,
        command: list[str],
        *,
        environment: Mapping[str, str],
        scratch: Path,
        stdin: bytes,
        grace_s: float,
        locks: Sequence[int] = (),
        keep_scratch: bool = False,
        on_line: Callable[[bytes], bytes | None] = lambda _line: None,
    ) -> None:
        self._on_line = on_line
        self._records = _LineReader(RECORD_LIMIT_BYTES)
        self._status = _LineReader(_READ_BYTES)
        self._log = bytearray()
        self._grace_s = grace_s
        self._selector = selectors.DefaultSelector()
        self._open: set[int] = set()
        self._scratch = scratch
        place = [str(grace_s), str(scratch), "keep" if keep_scratch else "remove"]
        self._start(command, environment, place, stdin, locks)

    def _start(
        self,
        command: list[str],
        environment: Mapping[str, str],
        place: list[str],
        stdin: bytes,
        locks: Sequence[int],
    ) -> None:
        lifeline_read, self._lifeline = os.pipe()
        status_read, status_write = os.pipe()
        record_read, record_write = os.pipe()
        log_read, log_write = os.pipe()
        stdin_read, self._stdin = os.pipe()
        theirs = [lifeline_read, status_write, record_write, log_write, stdin_read]
        arguments = [str(lifeline_read), str(status_write), *place]
        placed = [part.replace("{record_fd}", str(record_write)) for part in command]
        passed = [lifeline_read, status_write, record_write, *locks]
        try:
            self._guard = subprocess.Popen(
                [sys.executable, "-I", "-S", str(GUARD), *arguments, *placed],
                stdin=stdin_read,
                stdout=log_write,
                stderr=log_write,
                env=dict(environment),
                pass_fds=passed,
                start_new_session=True,
            )
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        for descriptor, handler in (
            (status_read, self._status.feed),
            (record_read, self._on_record),
            (log_read, self._on_log),
        ):
            os.set_blocking(descriptor, False)
            self._selector.register(descriptor, selectors.EVENT_READ, handler)
            self._open.add(descriptor)
        self._status_fd = status_read
        self._send(stdin)

    def _send(self, data: bytes) -> None:
        # A worker that dies before reading its specification is reported by its exit, not by our EPIPE.
        with contextlib.suppress(BrokenPipeError):
            os.write(self._stdin, data)

    def _on_record(self, data: bytes) -> None:
        for line in self._records.feed(data):
            answer = self._on_line(line)
            if answer is not None:
                self._send(answer)

    def _on_log(self, data: bytes) -> None:
        self._log += data
        if len(self._log) > 2 * LOG_TAIL_BYTES:
            del self._log[:-LOG_TAIL_BYTES]

    def run(self, timeout_s: float, is_cancelled: Callable[[], bool] = lambda: False) -> ProcessOutcome:
        """Listen until the guard reports. Raises nothing for what the process does; ends it on Ctrl-C."""
        stopped = None
        try:
            deadline = time.monotonic() + timeout_s
            while self._status_fd in self._open and stopped is None:
                self._pump(min(_TICK_S, max(0.0, deadline - time.monotonic())))
                if is_cancelled():
                    stopped = "cancelled"
                elif time.monotonic() >= deadline:
                    stopped = "timeout"
            if stopped is not None and not self._status.lines:
                self._stop()
            else:
                stopped = None
            outcome = self._outcome(stopped)
            if stopped is None and _is_end_of_all(outcome, is_cancelled):
                outcome.stopped = "cancelled"
            return outcome
        except KeyboardInterrupt:
            self._stop()
            raise
        finally:
            self._close()

    def _pump(self, timeout_s: float) -> None:
        for key, _ in self._selector.select(timeout_s):
            try:
                data = os.read(key.fd, _READ_BYTES)
            except BlockingIOError:
                continue
            if data:
                key.data(data)
            else:
                self._forget(key.fd)

    def _forget(self, descriptor: int) -> None:
        self._selector.unregister(descriptor)
        self._open.discard(descriptor)
        os.close(descriptor)

    def _stop(self) -> None:
        """Ask the guard to end everything; do it ourselves when the guard does not answer."""
        with contextlib.suppress(ProcessLookupError):
            self._guard.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + self._grace_s + _GUARD_EXTRA_S
        while self._status_fd in self._open and time.monotonic() < deadline:
            self._pump(_TICK_S)
        if self._status_fd in self._open:
            kill_tree(self._guard.pid)

    def _outcome(self, stopped: str | None) -> ProcessOutcome:
        # The guard reports after the last process of the trial is gone, so what is left is in the pipes.
        while self._open:
            before = (self._records.size, len(self._log), len(self._open))
            self._pump(0.0)
            if before == (self._records.size, len(self._log), len(self._open)):
                break
        self._guard.wait()
        outcome = ProcessOutcome(
            lines=self._records.lines,
            unfinished=bytes(self._records.rest),
            record_overflow=self._records.overflow,
            log_tail=bytes(self._log[-LOG_TAIL_BYTES:]),
            stopped=stopped,
        )
        if not self._status.lines:
            outcome.guard_lost = True
            outcome.terminated = self._guard.returncode == -signal.SIGTERM
            end_orphans(self._scratch)
            return outcome
        status = json.loads(self._status.lines[0])
        outcome.exit_code, outcome.signal = status["exit_code"], status["signal"]
        outcome.terminated = status["stopped"] or outcome.signal == signal.SIGTERM
        outcome.spawned_ns, outcome.tree_cpu_ns = status["spawned_ns"], status["tree_cpu_ns"]
        return outcome

    def _close(self) -> None:
        for descriptor in tuple(self._open):
            self._forget(descriptor)
        self._selector.close()
        os.close(self._stdin)
        os.close(self._lifeline)
        if self._guard.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._guard.wait(self._grace_s + _GUARD_EXTRA_S)
        if self._guard.poll() is None:
            kill_tree(self._guard.pid)
            self._guard.wait()


def _is_end_of_all(outcome: ProcessOutcome, is_cancelled: Callable[[], bool]) -> bool:
    """Whether SIGTERM was meant for this process too, as when a scheduler takes its node back."""
    deadline = time.monotonic() + _SPREAD_S
    while outcome.terminated and time.monotonic() < deadline:
        if is_cancelled():
            return True
        time.sleep(_TICK_S / 4)
    return False


def kill_tree(pid: int) -> None:
    """SIGKILL to `pid` and every descendant, listed before a death re-parents any."""
    try:
        root = psutil.Process(pid)
        tree = [*root.children(recursive=True), root]
    except psutil.NoSuchProcess:
        return
    for process in tree:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(tree[:-1], timeout=5)
