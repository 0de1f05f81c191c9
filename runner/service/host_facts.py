"""What a service tells about its host: that it lives, the room on its disk, the state of its GPUs."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from compilewatch import __version__
from compilewatch.db.engine.session import Database
from compilewatch.db.records.hosts import HostDevice, HostState
from compilewatch.db.service.hosts import note_host_stopped, save_host
from compilewatch.runner.device.host import device_readings, disk_room
from compilewatch.runner.service.timetable import Host

SAVE_INTERVAL_S = 30.0


class HostFacts:
    """Call `save` every few seconds: it writes now and then, and asks the GPUs only between measurements."""

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
        self._saved_at = float("-inf")
        self._devices: tuple[HostDevice, ...] | None = None
        self._devices_read_at: datetime | None = None

    def save(self, *, idle: bool) -> None:
        """Put the facts down if they are old. Raises DatabaseError."""
        if self._monotonic() - self._saved_at < SAVE_INTERVAL_S:
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
        self._saved_at = self._monotonic()

    def stopped(self) -> None:
        """Say that the service ended as it should. Raises DatabaseError."""
        note_host_stopped(self._database, self._host.name, owner=self._host.owner, at=self._clock())


def read_devices() -> tuple[HostDevice, ...]:
    """Every GPU that NVML shows; none without a driver."""
    return tuple(HostDevice.model_validate(reading) for reading in device_readings())
