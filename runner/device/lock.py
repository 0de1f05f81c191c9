"""One measured process at a time per device, over all runners of this host; and waiting for a while until
other processes leave a GPU: whoever stays makes the trial suspect.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import math
import os
import re
import shlex
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Annotated

import psutil
from pydantic import Field, FiniteFloat, ValidationError

from compilewatch.db.errors import CompilewatchError, one_line, printable
from compilewatch.db.records.fields import Record
from compilewatch.db.units import duration
from compilewatch.runner.device.state import nvml_handle, nvml_query

_POLL_S = 0.2
_MOST_BYTES = 4096
_LONGEST_S = 1e8
_HIGHEST_PID = 2**22
REPEATED_EVERY_S = 3.0
"""How often whoever waits is told who is in the way."""


class DeviceBusyError(CompilewatchError):
    """Another runner measures on this device."""


def default_lock_dir() -> Path:
    """Where root made it, every user of the host shares it, since they share the device."""
    return Path(tempfile.gettempdir()) / "compilewatch-locks"


def _refusal(path: Path, why: str) -> DeviceBusyError:
    named = shlex.quote(str(path))
    return DeviceBusyError(
        f"The locks in {path} cannot be used: {why}.",
        f"Let root make it for all users of this host (`rm -rf {named}; mkdir -m 1777 {named}`), or set"
        " TMPDIR to a folder of your own; runs of other users are then not waited for.",
    )


def _distrust(folder: os.stat_result) -> str | None:
    """Why somebody who is neither root nor we could change what the names in `folder` stand for, if so."""
    if folder.st_uid not in {0, os.geteuid()}:
        return f"the folder belongs to another user (uid {folder.st_uid})"
    if folder.st_mode & stat.S_IWOTH and not folder.st_mode & stat.S_ISVTX:
        return "everybody may delete files of others there (`chmod +t` ends that)"
    return None


def _open_folder(path: Path) -> int:
    """A descriptor of the folder of locks. A missing one is made: by root for all users, else for ourselves.

    Whatever else has its name stays as it is. Raises DeviceBusyError where it cannot be trusted.
    """
    made = False
    try:
        with contextlib.suppress(FileExistsError):
            path.mkdir(0o700)
            made = True
        # Its owner can be told of a folder that is closed to us, too.
        place = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            if why := _distrust(os.fstat(place)):
                raise _refusal(path, why)
            folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=place)
        finally:
            os.close(place)
        # Elsewhere the folder that was made may have been exchanged for another one of root's.
        if made and os.geteuid() == 0 and _distrust(path.parent.stat()) is None:
            os.fchmod(folder, 0o1777)
    except OSError as error:
        raise _refusal(path, error.strerror or str(error)) from error
    return folder


def _open(folder: int, name: str) -> int:
    """A descriptor of the file `name`, made for every user where it is missing. Raises OSError, also where
    the name stands for anything but a file with this one name.
    """
    while True:
        # Another user's file in a sticky directory must be opened without O_CREAT (fs.protected_regular).
        with contextlib.suppress(FileNotFoundError):
            return _open_present(folder, name)
        with contextlib.suppress(FileExistsError):
            descriptor = _create(folder, name)
            os.fchmod(descriptor, 0o666)
            return descriptor


def _create(folder: int, name: str) -> int:
    return os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder)


def _open_present(folder: int, name: str) -> int:
    descriptor = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_nlink <= 1:
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is no plain file")


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class LockHolder(Record):
    """Who measures. It is read from the lock's file, where anybody may write."""

    pid: Annotated[int, Field(ge=1, le=_HIGHEST_PID)]
    since_s: FiniteFloat
    what: str

    def text(self) -> str:
        """ "process 4242 measures gpt2 / default, since 09:12:31 (2.50 min)" """
        seconds = min(_LONGEST_S, max(0.0, time.time() - self.since_s))
        since = time.strftime("%H:%M:%S", time.localtime(time.time() - seconds))
        who = f"process {self.pid}"
        if not psutil.pid_exists(self.pid):
            who = f"what process {self.pid}, which has ended, left behind"
        return f"{who} measures {one_line(self.what)}, since {since} ({duration(round(seconds) * 1e9)})"


def _holder(descriptor: int) -> LockHolder | None:
    """Who wrote into the file, None where that is nobody."""
    try:
        return LockHolder.model_validate_json(os.pread(descriptor, _MOST_BYTES, 0))
    except (ValidationError, OSError):
        return None


def _write_holder(descriptor: int, what: str | None) -> None:
    # It only informs: on a full disk the lock is held all the same.
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        if what is not None:
            holder = LockHolder(pid=os.getpid(), since_s=time.time(), what=one_line(what))
            os.pwrite(descriptor, holder.model_dump_json().encode(), 0)


class _Queue:
    """Who came first to a lock: a file for each that waits, named after its time, locked while it lives."""

    def __init__(self, folder: int, lock: str) -> None:
        self._folder = folder
        self._pattern = re.compile(rf"{re.escape(lock)}\.queue\.\d{{20}}-\d+-\d+")
        self._mine = f"{lock}.queue.{time.monotonic_ns():020d}-{os.getpid()}-{threading.get_ident()}"
        self._descriptor = _create(folder, self._mine)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        # Others may look from now on: nobody of them can hold this lock before us.
        os.fchmod(self._descriptor, 0o666)

    def is_my_turn(self) -> bool:
        """Whether nobody who still waits came before."""
        with os.scandir(self._folder) as entries:
            names = [entry.name for entry in entries if self._pattern.fullmatch(entry.name)]
        return not any(self._waits(name) for name in names if name < self._mine)

    def _waits(self, name: str) -> bool:
        try:
            descriptor = _open_present(self._folder, name)
        except OSError:
            return False
        try:
            if not _try_lock(descriptor):
                return True
            # Whoever made it is gone.
            self._remove(name)
            return False
        finally:
            os.close(descriptor)

    def _remove(self, name: str) -> None:
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=self._folder)

    def leave(self) -> None:
        self._remove(self._mine)
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
    with contextlib.ExitStack() as opened:
        folder = _open_folder(directory)
        opened.callback(os.close, folder)
        try:
            descriptor = _open(folder, f"{name}.lock")
            opened.callback(os.close, descriptor)
            queue = _Queue(folder, name)
        except OSError as error:
            raise _refusal(directory, f"{name}: {error.strerror}") from error
        try:
            began, announced_at = time.monotonic(), -math.inf
            while not (queue.is_my_turn() and _try_lock(descriptor)):
                now = time.monotonic()
                holder = _holder(descriptor)
                who = holder.text() if holder else "another run is before this one"
                if should_stop() or (wait_s is not None and now - began >= wait_s):
                    raise busy or DeviceBusyError(
                        f"{device_id} is taken: {who}.",
                        "Wait for it to end (`run --wait 10m`), or measure on another device.",
                    )
                if now - announced_at >= REPEATED_EVERY_S:
                    on_wait(who)
                    announced_at = now
                time.sleep(_POLL_S)
        finally:
            queue.leave()
        _write_holder(descriptor, what)
        yield descriptor
        _write_holder(descriptor, None)


@contextlib.contextmanager
def device_locks(
    device_ids: Iterable[str],
    directory: Path,
    *,
    what: str,
    wait_s: float | None,
    should_stop: Callable[[], bool],
    on_wait: Callable[[str], None],
) -> Iterator[tuple[int, ...]]:
    """Hold the locks of all of `device_ids`, as `device_lock` does that of one; `wait_s` is for all together.
    Taken in one order everywhere, so that no two runs wait for each other.
    """
    ends = None if wait_s is None else time.monotonic() + wait_s
    with contextlib.ExitStack() as held:
        yield tuple(
            held.enter_context(
                device_lock(
                    each,
                    directory,
                    what=what,
                    wait_s=None if ends is None else max(0.0, ends - time.monotonic()),
                    should_stop=should_stop,
                    on_wait=on_wait,
                )
            )
            for each in sorted(set(device_ids))
        )


_IDLE_POLL_S = 0.5
_LONGEST_COMMAND = 100


def other_processes(device: str) -> set[int] | None:
    """The processes that compute on "cuda:N"; None for a CPU, or where NVML does not tell.

    Inside a container NVML lists none, which does not mean that none is there.
    """
    handle = nvml_handle(device)
    if handle is None:
        return None
    running = nvml_query("nvmlDeviceGetComputeRunningProcesses", handle)
    return None if running is None else {int(entry.pid) for entry in running} - {os.getpid()}


def described(pids: Collection[int]) -> str:
    """The first of them: "process 4242 (python train.py) since 09:12:31", and how many more."""
    pid, *others = sorted(pids)
    text = f"process {pid}"
    try:
        process = psutil.Process(pid)
        command = printable(" ".join(process.cmdline()))[:_LONGEST_COMMAND]
        text += f" ({command})" if command else ""
        text += time.strftime(" since %H:%M:%S", time.localtime(process.create_time()))
    except psutil.Error:
        # Of another user, of another container, or gone.
        pass
    return text + (f" and {len(others)} more" if others else "")


def wait_until_idle(
    device: str,
    wait_s: float,
    *,
    should_stop: Callable[[], bool] = lambda: False,
    on_wait: Callable[[str], None] = lambda _text: None,
    others: Callable[[str], Collection[int] | None] = other_processes,
) -> bool:
    """Wait up to `wait_s` while others compute on `device`: whether it is idle, as far as can be known.

    A trial is measured in any case, and its record says how many others there were (`device_state`).
    """
    began, announced_at = time.monotonic(), -REPEATED_EVERY_S
    while pids := others(device):
        now = time.monotonic() - began
        if should_stop() or now >= wait_s:
            return False
        if now - announced_at >= REPEATED_EVERY_S:
            on_wait(f"{described(pids)} computes on {device}")
            announced_at = now
        time.sleep(min(_IDLE_POLL_S, max(0.0, wait_s - now)))
    return True
