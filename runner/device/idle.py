"""Waits for other processes to leave a GPU, for a while: whoever stays makes the trial suspect."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from runner.device.state import nvml_handle, nvml_query

_POLL_S = 0.5


def other_processes(device: str) -> int | None:
    """How many processes compute on "cuda:N"; None for a CPU, or where NVML does not tell.

    Inside a container NVML lists none, which does not mean that none is there.
    """
    handle = nvml_handle(device)
    if handle is None:
        return None
    running = nvml_query("nvmlDeviceGetComputeRunningProcesses", handle)
    return None if running is None else len({entry.pid for entry in running} - {os.getpid()})


def wait_until_idle(
    device: str,
    wait_s: float,
    *,
    should_stop: Callable[[], bool] = lambda: False,
    on_wait: Callable[[], None] = lambda: None,
    count: Callable[[str], int | None] = other_processes,
) -> bool:
    """Wait up to `wait_s` while others compute on `device`: whether it is idle, as far as can be known.

    A trial is measured in any case, and its record says how many others there were (`device_state`).
    """
    deadline = time.monotonic() + wait_s
    waiting = False
    while count(device):
        if should_stop() or time.monotonic() >= deadline:
            return False
        if not waiting:
            on_wait()
            waiting = True
        time.sleep(min(_POLL_S, max(0.0, deadline - time.monotonic())))
    return True
