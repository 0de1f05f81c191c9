"""What a worker says of its host, every half minute: that it lives, its disk, its GPU, its spool."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from procrastinate.exceptions import ConnectorException

from compilewatch import __version__
from compilewatch.db.service.hosts import (
    FORGET_WORKERS,
    NOTE_HOST_STOPPED,
    NOTE_LAUNCHED,
    NOTE_WORKER_STOPPED,
    SAVE_HEALTH,
    SAVE_HOST,
    SAVE_WORKER,
)
from compilewatch.runner.device.host import device_reading, disk_room
from compilewatch.runner.fleet.queue import PatientConnector, reason_of
from compilewatch.runner.process.spool import Spool

_LOG = logging.getLogger("compilewatch.fleet")
SAVE_INTERVAL_S = 30.0


@dataclass(frozen=True)
class WorkerPlace:
    """Where a worker is. `host` is its name, `owner` this process, `queue` its machine type, `gpu` a UUID,
    None for the CPU; `served` is the same as people write it: a GPU's number or UUID, or "cpu".
    """

    host: str
    owner: str
    queue: str
    gpu: str | None
    served: str
    data_dir: Path

    @property
    def device(self) -> str:
        """As torch names it."""
        return "cuda:0" if self.gpu else "cpu"


class HostWatch:
    """Call `save` now and then. The GPU is asked only between measurements, which it would disturb."""

    def __init__(
        self, place: WorkerPlace, connector: PatientConnector, clock: Callable[[], datetime] | None = None
    ) -> None:
        self._place = place
        self._connector = connector
        self._clock = clock or (lambda: datetime.now(UTC))
        self._started_at = self._clock()
        self._is_first = self._is_new = True
        self._trouble: str | None = None

    async def save(self, *, idle: bool) -> None:
        """Put it down. A database that is away is waited for, one that refuses is said once."""
        with self._refusal_logged():
            await self._save_host(idle=idle)
            await self._save_health()

    async def save_worker(self, measured: int) -> None:
        """Write that the worker lives and how many trials it has measured; as `save` otherwise."""
        with self._refusal_logged():
            await self._save_worker(measured)

    @contextmanager
    def _refusal_logged(self) -> Iterator[None]:
        try:
            yield
        except ConnectorException as error:
            if self._trouble != (reason := reason_of(error)):
                _LOG.warning("How this host is cannot be stored: %s.", reason)
            self._trouble = reason
        else:
            self._trouble = None

    async def stopped(self, measured: int) -> None:
        """Say that the worker ended as it should. Raises ConnectorException."""
        place = self._place
        await self._connector.execute_query_async(NOTE_WORKER_STOPPED, owner=place.owner, measured=measured)
        await self._connector.execute_query_async(
            NOTE_HOST_STOPPED, name=place.host, owner=place.owner, at=self._clock()
        )

    async def _save_worker(self, measured: int) -> None:
        place = self._place
        await self._connector.execute_query_async(
            SAVE_WORKER,
            owner=place.owner,
            queue=place.queue,
            host=place.host,
            served=place.served,
            measured=measured,
        )
        if self._is_new:
            await self._connector.execute_query_async(FORGET_WORKERS)
            await self._connector.execute_query_async(NOTE_LAUNCHED, owner=place.owner, queue=place.queue)
        self._is_new = False

    async def _save_host(self, *, idle: bool) -> None:
        reading = device_reading(self._place.device) if idle else None
        free, total = disk_room(self._place.data_dir)
        now = self._clock()
        is_read = idle and (reading is not None or self._place.device == "cpu")
        await self._connector.execute_query_async(
            SAVE_HOST,
            name=self._place.host,
            owner=self._place.owner,
            started_at=self._started_at,
            seen_at=now,
            program_version=__version__,
            free_bytes=free,
            total_bytes=total,
            devices=json.dumps([reading] if reading else []) if is_read else None,
            devices_read_at=now if is_read else None,
            is_first=self._is_first,
        )
        self._is_first = self._is_first and not is_read

    async def _save_health(self) -> None:
        spool = Spool(self._place.data_dir / "spool")
        await self._connector.execute_query_async(
            SAVE_HEALTH,
            host=f"{self._place.host}/{self._place.served}",
            seen_at=self._clock(),
            spool_trials=len(spool.waiting()),
            spool_bytes=spool.size_bytes(),
            database_errors=self._connector.errors,
        )
