"""A host as it is now: the room on its disk, the state of its GPUs, what its processes call themselves."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path
from typing import Any

import pynvml

from compilewatch.db.errors import CompilewatchError
from compilewatch.runner.device.state import (
    clock_event_reasons,
    nvml_handle,
    nvml_query,
    nvml_text,
    nvml_watts,
    reasons_in_words,
    uncorrected_ecc_errors,
    whole_device,
)

# Whether the disk has room for what a run writes.

MIN_FREE_BYTES = 500 * 2**20
"""A cold trial writes up to 150 MB of headers and kernels; those of several may lie there at once."""


def existing_part(path: Path) -> Path:
    """`path`, or the nearest directory above it that is there already."""
    return next(each for each in (path, *path.parents) if each.exists())


def require_space(data_dir: Path) -> None:
    """Raise CompilewatchError where a run would fail midway for want of disk space."""
    existing = existing_part(data_dir.resolve())
    free = shutil.disk_usage(existing).free
    if free < MIN_FREE_BYTES:
        raise CompilewatchError(
            f"Only {free // 2**20} MiB are free in {existing}; a run needs {MIN_FREE_BYTES // 2**20} MiB.",
            "Free space, or set data_dir and TMPDIR to another disk.",
        )


def disk_room(data_dir: Path) -> tuple[int | None, int | None]:
    """Free and total bytes where the service writes; None where the disk does not tell."""
    try:
        room = shutil.disk_usage(existing_part(data_dir.resolve()))
    except OSError:
        return None, None
    return room.free, room.total


def device_readings() -> list[dict[str, Any]]:
    """Every GPU that NVML shows, as `db.records.hosts.HostDevice`; none without a driver."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    count = nvml_query("nvmlDeviceGetCount") or 0
    handles = [nvml_query("nvmlDeviceGetHandleByIndex", index) for index in range(count)]
    return [_reading(handle) for handle in handles if handle is not None]


def device_reading(device: str) -> dict[str, Any] | None:
    """One GPU, such as "cuda:0"; None for the CPU or where NVML does not show it."""
    handle = nvml_handle(device)
    return None if handle is None else _reading(handle)


def _reading(handle: Any) -> dict[str, Any]:
    memory = nvml_query("nvmlDeviceGetMemoryInfo", handle)
    rates = nvml_query("nvmlDeviceGetUtilizationRates", handle)
    whole = whole_device(handle)
    reasons = clock_event_reasons(whole)
    return {
        "name": nvml_text("nvmlDeviceGetName", handle),
        "uuid": nvml_text("nvmlDeviceGetUUID", handle),
        "temperature_c": nvml_query("nvmlDeviceGetTemperature", whole, pynvml.NVML_TEMPERATURE_GPU),
        "power_w": nvml_watts("nvmlDeviceGetPowerUsage", handle),
        "power_limit_w": nvml_watts("nvmlDeviceGetEnforcedPowerLimit", whole),
        "sm_clock_mhz": nvml_query("nvmlDeviceGetClockInfo", whole, pynvml.NVML_CLOCK_SM),
        "utilization_percent": None if rates is None else float(rates.gpu),
        "used_bytes": None if memory is None else int(memory.used),
        "total_bytes": None if memory is None else int(memory.total),
        "throttle_reasons": None if reasons is None else reasons_in_words(reasons),
        "uncorrected_ecc_errors": uncorrected_ecc_errors(whole),
    }


def owner_of(host: str) -> str:
    """This process of `host`: "box:4711:9f3c". Process ids come again, in containers at once."""
    return f"{host}:{os.getpid()}:{secrets.token_hex(2)}"
