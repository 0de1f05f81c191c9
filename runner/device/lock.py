"""One measured process at a time per device, over all runners of this host."""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from compilewatch.db.errors import CompilewatchError, printable
from compilewatch.db.units import duration

_POLL_S = 0.2
_MOST_BYTES = 4096
_LONGEST_WHAT = 200
_LONGEST_S = 1e8
SAID_EVERY_S = 3.0
"""How often whoever waits is told who is in the way."""


class DeviceBusyError(CompilewatchError):
    """Another runner measures on this device."""


def default_lock_dir() -> Path:
    """Shared by every user of the host, since they share the device."""
    return Path(tempfile.gettempdir()) / "compilewatch-locks"


def _open(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(PermissionError):
            path.parent.chmod(0o1777)
        # Another user's file in a sticky directory must be opened without O_CREAT (fs.protected_regular).
        with contextlib.suppress(FileNotFoundError):
            return os.open(path, os.O_RDWR | os.O_NOFOLLOW)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        with contextlib.suppress(PermissionError):
            os.fchmod(descriptor, 0o666)
        return descriptor
    except OSError as error:
        raise DeviceBusyError(
            f"The lock file {path} cannot be opened: {error.strerror}.",
            "Set TMPDIR to a folder that you may write to.",
        ) from error


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@dataclass(frozen=True)
class LockHolder:
    """Who measures. It is read from the lock's file, where anybody may write."""

    pid: int
    since_s: float
    what: str

    def text(self) -> str:
        """ "process 4242 measures gpt2 / default, since 09:12:31 (2.50 min)" """
        seconds = min(_LONGEST_S, max(0.0, time.time() - self.since_s))
        since = time.strftime("%H:%M:%S", time.localtime(time.time() - seconds))
        who = f"process {self.pid}"
        if not psutil.pid_exists(self.pid):
            who = f"what process {self.pid}, which has ended, left behind"
        return f"{who} measures {self.what}, since {since} ({duration(round(seconds) * 1e9)})"


def _holder(descriptor: int) -> LockHolder | None:
    """Who wrote into the file, None where that is nobody."""
    try:
        content = json.loads(os.pread(descriptor, _MOST_BYTES, 0))
        what = printable(str(content["what"]))[:_LONGEST_WHAT]
        return LockHolder(int(content["pid"]), float(content["since_s"]), what)
    except (ValueError, KeyError, TypeError, OverflowError):
        return None


def _write_holder(descriptor: int, holder: LockHolder | None) -> None:
    os.ftruncate(descriptor, 0)
    if holder is not None:
        os.pwrite(descriptor, json.dumps(asdict(holder)).encode()[:_MOST_BYTES], 0)


class _Queue:
    """Who came first to a lock: a file for each that waits, named after its time, locked while it lives."""

    def __init__(self, directory: Path) -> None:
        self._mine = directory / f"{time.monotonic_ns():020d}-{os.getpid()}-{threading.get_ident()}"
        self._descriptor = _open(self._mine)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def is_my_turn(self) -> bool:
        """Whether nobody who still waits came before."""
        earlier = (entry for entry in self._mine.parent.iterdir() if entry.name < self._mine.name)
        return not any(map(self._waits, earlier))

    @staticmethod
    def _waits(entry: Path) -> bool:
        try:
            descriptor = os.open(entry, os.O_RDWR | os.O_NOFOLLOW)
        except OSError:
            return False
        try:
            if not _try_lock(descriptor):
                return True
            # Whoever made it is gone.
            with contextlib.suppress(OSError):
                entry.unlink()
            return False
        finally:
            os.close(descriptor)

    def leave(self) -> None:
        with contextlib.suppress(OSError):
            self._mine.unlink()
        os.close(self._descriptor)


@contextlib.contextmanager
def device_lock(
    device_id: str,
    directory: Path,
    *,
    what: str = "something",
    wait_s: float | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    on_wait: Callable[[str], None] = lambda _text: None,
    busy: DeviceBusyError | None = None,
) -> Iterator[int]:
    """Hold the lock of `device_id` (a GPU's UUID, or "cpu") to measure `what`, and yield its descriptor. Who
    comes first is served first.

    Pass the descriptor to the measured process: an orphan that still uses the device then keeps the next
    runner out. `on_wait` is told at once and every few seconds who has it. Raises DeviceBusyError, or `busy`
    in its place, after `wait_s` (None: wait for ever) or when `should_stop` says so.
    """
    name = re.sub(r"[^A-Za-z0-9._-]", "_", device_id)
    descriptor = _open(directory / f"{name}.lock")
    try:
        queue = _Queue(directory / f"{name}.queue")
        try:
            began, said_at = time.monotonic(), -math.inf
            while not (queue.is_my_turn() and _try_lock(descriptor)):
                now = time.monotonic()
                holder = _holder(descriptor)
                who = holder.text() if holder else "another run is before this one"
                if should_stop() or (wait_s is not None and now - began >= wait_s):
                    raise busy or DeviceBusyError(
                        f"{device_id} is taken: {who}.",
                        "Wait for it to end (`run --wait 10m`), or measure on another device.",
                    )
                if now - said_at >= SAID_EVERY_S:
                    on_wait(who)
                    said_at = now
                time.sleep(_POLL_S)
        finally:
            queue.leave()
        _write_holder(descriptor, LockHolder(os.getpid(), time.time(), what))
        yield descriptor
        _write_holder(descriptor, None)
    finally:
        os.close(descriptor)
