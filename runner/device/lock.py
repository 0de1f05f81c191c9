"""One measured process at a time per device, over all runners of this host."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from db.errors import CompilewatchError

_POLL_S = 0.2


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
            "Give another lock directory, one you may write to.",
        ) from error


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def device_lock(
    device_id: str,
    directory: Path,
    *,
    wait_s: float | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    on_wait: Callable[[], None] = lambda: None,
    busy: DeviceBusyError | None = None,
) -> Iterator[int]:
    """Hold the lock of `device_id` (a GPU's UUID, or "cpu") and yield its descriptor.

    Pass the descriptor to the measured process: an orphan that still uses the device then keeps the next
    runner out. Raises DeviceBusyError, or `busy` in its place, after `wait_s` (None: wait for ever) or when
    `should_stop` says so.
    """
    name = re.sub(r"[^A-Za-z0-9._-]", "_", device_id)
    descriptor = _open(directory / f"{name}.lock")
    try:
        deadline = None if wait_s is None else time.monotonic() + wait_s
        waiting = False
        while not _try_lock(descriptor):
            if not waiting:
                on_wait()
                waiting = True
            if should_stop() or (deadline is not None and time.monotonic() >= deadline):
                raise busy or DeviceBusyError(
                    f"Another run is measuring on {device_id}.",
                    "Wait for it to end, or measure on another device.",
                )
            time.sleep(_POLL_S)
        yield descriptor
    finally:
        os.close(descriptor)
