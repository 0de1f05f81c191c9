"""Measuring hosts, as their services describe them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from fnmatch import fnmatchcase

from sqlalchemy import null, select

from compilewatch.db.engine.session import Database
from compilewatch.db.queries.selection import read_records
from compilewatch.db.queries.service.fleet import fleet_workers
from compilewatch.db.queries.service.schedules import names_of_machine
from compilewatch.db.records.service.hosts import SILENT_AFTER, HostState
from compilewatch.db.records.service.requests import RequestState, RunRequest
from compilewatch.db.tables.trials import HOST, MACHINE


def hosts(db: Database) -> list[HostState]:
    """Every host whose service ever spoke, by name."""
    return read_records(db, HostState, select(HOST).order_by(HOST.c.name))


def measuring_hosts(db: Database) -> dict[str, set[str]]:
    """Everything each host is called where something is or was measured, the one heard of last first.

    A service that leaves measuring to others asks no GPU of its host.
    """
    statement = select(HOST.c.name).where(HOST.c.devices.is_not(null())).order_by(HOST.c.seen_at.desc())
    measured = select(MACHINE.c.name).distinct().order_by(MACHINE.c.name)
    with db.read() as connection:
        names = dict.fromkeys([*connection.scalars(statement), *connection.scalars(measured)])
    return {name: names_of_machine(db, name) for name in names}


def unserved(db: Database, requests: Iterable[RunRequest], at: datetime) -> dict[str, str]:
    """Of the queued ones among `requests` that no service or worker of `at` takes: id -> why, a sentence."""
    queued = [each for each in requests if each.state is RequestState.QUEUED]
    if not queued:
        return {}
    living = _living(db, at)
    named = {name for names in living.values() for name in names}
    waiting = {}
    for request in queued:
        machine = request.spec.machine
        if not living:
            where = f" for {machine}" if machine else ""
            waiting[request.request_id] = (
                f"No service runs{where}: it waits until `compilewatch schedule` runs on a measuring host."
            )
        elif machine is not None and not any(fnmatchcase(name, machine) for name in named):
            waiting[request.request_id] = (
                f"Nobody serves {machine}: it waits until a service or a worker runs there. "
                f"Now running: {', '.join(living)}."
            )
    return waiting


def _living(db: Database, at: datetime) -> dict[str, set[str]]:
    """What each host with a running service or worker is called, its queues among it."""
    oldest = at - SILENT_AFTER
    known = {}
    for host in hosts(db):
        if host.seen_at >= oldest and (host.stopped_at is None or host.stopped_at < host.seen_at):
            devices = {part for device in host.devices or () for part in (device.name, device.uuid) if part}
            known[host.name] = names_of_machine(db, host.name) | devices
    for worker in fleet_workers(db):
        if worker.seen_at >= oldest and worker.stopped_at is None:
            known.setdefault(worker.host, names_of_machine(db, worker.host)).update(
                {worker.queue, worker.served}
            )
    return known
