"""Which queue a machine selector means: a machine type, a host or one GPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from db.queries.hosts import measuring_hosts
from db.session import Database
from runner.fleet.names import is_direct, queue_of_device, queue_of_host

_LOOK_S = 10.0


class Places:
    """`queues` are the machine types that a service has workers for. Any number of threads may ask."""

    def __init__(
        self, database: Database, queues: Sequence[str], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._database = database
        self._queues = queues
        self._monotonic = monotonic
        self._read: tuple[float, dict[str, set[str]]] = (float("-inf"), {})

    def queue_of(self, machine: str | None) -> str | None:
        """The first that fits: a queue by its name ("host:box", "gpu:UUID"), a machine type by its name or
        its GPU's, else a host by name, machine id or GPU, the one heard of last first. None where `machine`
        means nobody here. Raises DatabaseError.
        """
        if machine is None:
            return self._queues[0]
        if is_direct(machine):
            return machine
        for queue in self._queues:
            if fnmatchcase(queue, machine) or queue == queue_of_device(machine):
                return queue
        for host, names in self._hosts().items():
            if any(fnmatchcase(name, machine) for name in names):
                return queue_of_host(host)
        return None

    def _hosts(self) -> dict[str, set[str]]:
        now = self._monotonic()
        read_at, hosts = self._read
        if now - read_at >= _LOOK_S:
            hosts = measuring_hosts(self._database)
            self._read = (now, hosts)
        return hosts
