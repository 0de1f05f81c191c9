"""Measuring hosts, as their services describe them."""

from __future__ import annotations

from sqlalchemy import null, select

from db.engine.session import Database
from db.queries.schedules import names_of_machine
from db.queries.selection import read_records
from db.records.schedules import HostState
from db.tables.trials import HOST, MACHINE


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
