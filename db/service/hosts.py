"""Measuring hosts, as their services describe them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from fnmatch import fnmatchcase

from sqlalchemy import null, select, update

from compilewatch.db.engine.repository import Repository
from compilewatch.db.engine.session import Database
from compilewatch.db.engine.tables import HOST, HOST_HEALTH, MACHINE
from compilewatch.db.records.hosts import SILENT_AFTER, HostHealth, HostState
from compilewatch.db.records.requests import RequestState, RunRequest
from compilewatch.db.service.fleet import fleet_workers
from compilewatch.db.service.schedules import names_of_machine

HOSTS = Repository(HostState, HOST)
"""Every host whose service ever spoke."""
HEALTHS = Repository(HostHealth, HOST_HEALTH)
"""Every host whose service or worker ever spoke."""


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
    for host in HOSTS.all(db):
        if host.seen_at >= oldest and (host.stopped_at is None or host.stopped_at < host.seen_at):
            devices = {part for device in host.devices or () for part in (device.name, device.uuid) if part}
            known[host.name] = names_of_machine(db, host.name) | devices
    for worker in fleet_workers(db):
        if worker.seen_at >= oldest and worker.stopped_at is None:
            known.setdefault(worker.host, names_of_machine(db, worker.host)).update(
                {worker.queue, worker.served}
            )
    return known


def save_host(db: Database, state: HostState) -> None:
    """Put down what a host's service says now, in the place of what it said before.

    One that asked no GPU leaves what was said of them, perhaps by a worker of the same host.
    """
    HOSTS.put(db, state, leave=("devices", "devices_read_at") if state.devices is None else ())


def note_host_stopped(db: Database, name: str, *, owner: str, at: datetime) -> None:
    """Say that the service `owner` ended as it should, unless another speaks for its host by now."""
    with db.write() as connection:
        connection.execute(
            update(HOST).where(HOST.c.name == name, HOST.c.owner == owner).values(stopped_at=at)
        )


# The same rows once more, for the connections of the fleet's queue, which speak PostgreSQL alone.
SAVE_HOST = """
INSERT INTO host (name, owner, started_at, seen_at, stopped_at, program_version, free_bytes, total_bytes,
                  devices, devices_read_at)
VALUES (%(name)s, %(owner)s, %(started_at)s, %(seen_at)s, NULL, %(program_version)s, %(free_bytes)s,
        %(total_bytes)s, %(devices)s::json, %(devices_read_at)s)
ON CONFLICT (name) DO UPDATE SET
    owner = excluded.owner, started_at = excluded.started_at, seen_at = excluded.seen_at, stopped_at = NULL,
    program_version = excluded.program_version, free_bytes = excluded.free_bytes,
    total_bytes = excluded.total_bytes,
    devices_read_at = coalesce(excluded.devices_read_at, host.devices_read_at),
    devices = CASE WHEN excluded.devices IS NULL THEN host.devices ELSE (
        SELECT coalesce(json_agg(known.device ORDER BY known.device ->> 'uuid'), '[]'::json)
        FROM (
            SELECT reported.value AS device FROM json_array_elements(excluded.devices) AS reported
            UNION ALL
            SELECT stored.value FROM json_array_elements(coalesce(host.devices, '[]'::json)) AS stored
            WHERE NOT %(is_first)s AND stored.value ->> 'uuid' NOT IN (
                SELECT reported.value ->> 'uuid' FROM json_array_elements(excluded.devices) AS reported
            )
        ) AS known
    ) END
"""
"""`devices` has the one GPU that the worker serves, of perhaps several of its host: the others stay,
unless it `is_first`, so that one that was taken out is forgotten. NULL leaves all as they are.
"""

NOTE_HOST_STOPPED = """
UPDATE host SET stopped_at = %(at)s WHERE name = %(name)s AND owner = %(owner)s
"""

SAVE_WORKER = """
INSERT INTO fleet_worker (owner, queue, host, served, started_at, seen_at, stopped_at, measured)
VALUES (%(owner)s, %(queue)s, %(host)s, %(served)s, now(), now(), NULL, %(measured)s)
ON CONFLICT (owner) DO UPDATE SET seen_at = now(), measured = excluded.measured
"""

NOTE_LAUNCHED = """
UPDATE fleet_launch SET worker = %(owner)s, worker_at = now() WHERE launch_id = (
    SELECT launch_id FROM fleet_launch
    WHERE queue = %(queue)s AND worker IS NULL AND (exit_code = 0 OR ended_at IS NULL)
        AND worker_due_at > now() - interval '1 day'
    ORDER BY launched_at DESC LIMIT 1 FOR UPDATE SKIP LOCKED
)
"""
"""A worker comes of the newest launch that still waits for one: older ones may have come to nothing."""

FORGET_WORKERS = """
DELETE FROM fleet_worker WHERE seen_at < now() - interval '7 days'
"""

NOTE_WORKER_STOPPED = """
UPDATE fleet_worker SET stopped_at = now(), measured = %(measured)s WHERE owner = %(owner)s
"""

SAVE_HEALTH = """
INSERT INTO host_health (host, seen_at, spool_trials, spool_bytes, database_errors)
VALUES (%(host)s, %(seen_at)s, %(spool_trials)s, %(spool_bytes)s, %(database_errors)s)
ON CONFLICT (host) DO UPDATE SET
    seen_at = excluded.seen_at, spool_trials = excluded.spool_trials, spool_bytes = excluded.spool_bytes,
    database_errors = excluded.database_errors
"""
