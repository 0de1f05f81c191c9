"""Waits for other processes to leave a GPU, for a while: whoever stays makes the trial suspect."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection

import psutil

from compilewatch.db.errors import printable
from compilewatch.runner.device.lock import SAID_EVERY_S
from compilewatch.runner.device.state import nvml_handle, nvml_query

_POLL_S = 0.5
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
    began, said_at = time.monotonic(), -SAID_EVERY_S
    while pids := others(device):
        now = time.monotonic() - began
        if should_stop() or now >= wait_s:
            return False
        if now - said_at >= SAID_EVERY_S:
            on_wait(f"{described(pids)} computes on {device}")
            said_at = now
        time.sleep(min(_POLL_S, max(0.0, wait_s - now)))
    return True
