"""What a service tells about its host: that it lives, the room on its disk, the state of its GPUs."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pynvml

from db import __version__
from db.hosts import HostDevice, HostState
from db.session import Database
from db.store_hosts import note_host_stopped, save_host
from runner.device_state import nvml_query, reasons_in_words
from runner.schedule.timetable import Host

SAY_S = 30.0


class HostFacts:
    """Call `say` every few seconds: it writes now and then, and asks the GPUs only between measurements."""

    def __init__(
        self,
        database: Database,
        host: Host,
        data_dir: Path,
        *,
        clock: Callable[[], datetime],
        monotonic: Callable[[], float] = time.monotonic,
        devices: Callable[[], tuple[HostDevice, ...]] | None = None,
    ) -> None:
        self._database = database
        self._host = host
        self._data_dir = data_dir
        self._clock = clock
        self._monotonic = monotonic
        self._read_devices = devices or read_devices
        self._started_at = clock()
        self._said = float("-inf")
        self._devices: tuple[HostDevice, ...] | None = None
        self._devices_read_at: datetime | None = None

    def say(self, *, idle: bool) -> None:
        """Put the facts down if they are old. Raises DatabaseError."""
        if self._monotonic() - self._said < SAY_S:
            return
        if idle:
            self._devices, self._devices_read_at = self._read_devices(), self._clock()
        free, total = disk_room(self._data_dir)
        state = HostState(
            name=self._host.name,
            owner=self._host.owner,
            started_at=self._started_at,
            seen_at=self._clock(),
            program_version=__version__,
            free_bytes=free,
            total_bytes=total,
            devices=self._devices,
            devices_read_at=self._devices_read_at,
        )
        save_host(self._database, state)
        self._said = self._monotonic()

    def stopped(self) -> None:
        """Say that the service ended as it should. Raises DatabaseError."""
        note_host_stopped(self._database, self._host.name, owner=self._host.owner, at=self._clock())


def disk_room(data_dir: Path) -> tuple[int | None, int | None]:
    """Free and total bytes where the service writes; None where the disk does not tell."""
    try:
        existing = next(path for path in (data_dir.resolve(), *data_dir.resolve().parents) if path.exists())
        room = shutil.disk_usage(existing)
    except OSError:
        return None, None
    return room.free, room.total


def read_devices() -> tuple[HostDevice, ...]:
    """Every GPU that NVML shows; none without a driver."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ()
    count = nvml_query("nvmlDeviceGetCount") or 0
    handles = [nvml_query("nvmlDeviceGetHandleByIndex", index) for index in range(count)]
    return tuple(_device(handle) for handle in handles if handle is not None)


def _device(handle: Any) -> HostDevice:
    memory = nvml_query("nvmlDeviceGetMemoryInfo", handle)
    rates = nvml_query("nvmlDeviceGetUtilizationRates", handle)
    reasons = nvml_query("nvmlDeviceGetCurrentClocksEventReasons", handle)
    if reasons is None:
        reasons = nvml_query("nvmlDeviceGetCurrentClocksThrottleReasons", handle)
    ecc = nvml_query(
        "nvmlDeviceGetTotalEccErrors",
        handle,
        pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
        pynvml.NVML_VOLATILE_ECC,
    )
    return HostDevice(
        name=_text(nvml_query("nvmlDeviceGetName", handle)),
        uuid=_text(nvml_query("nvmlDeviceGetUUID", handle)),
        temperature_c=nvml_query("nvmlDeviceGetTemperature", handle, pynvml.NVML_TEMPERATURE_GPU),
        power_w=_watts(nvml_query("nvmlDeviceGetPowerUsage", handle)),
        power_limit_w=_watts(nvml_query("nvmlDeviceGetEnforcedPowerLimit", handle)),
        sm_clock_mhz=nvml_query("nvmlDeviceGetClockInfo", handle, pynvml.NVML_CLOCK_SM),
        utilization_percent=None if rates is None else float(rates.gpu),
        used_bytes=None if memory is None else int(memory.used),
        total_bytes=None if memory is None else int(memory.total),
        throttle_reasons=None if reasons is None else tuple(reasons_in_words(int(reasons))),
        uncorrected_ecc_errors=ecc,
    )


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _watts(milliwatts: Any) -> float | None:
    return None if milliwatts is None else milliwatts / 1000
