"""Reads of measuring hosts."""

from __future__ import annotations

from sqlalchemy import null, select

from db.hosts import HostState
from db.queries.schedule import names_of_machine
from db.session import Database
from db.tables import HOST, MACHINE


def hosts(db: Database) -> list[HostState]:
    """Every host whose service ever spoke, by name."""
    with db.read() as connection:
        rows = connection.execute(select(HOST).order_by(HOST.c.name)).mappings()
        return [HostState.model_validate(dict(row)) for row in rows]


def measuring_hosts(db: Database) -> dict[str, set[str]]:
    """Everything each host is called where something is or was measured, the one heard of last first.

    A service that leaves measuring to others asks no GPU of its host.
    """
    heard = select(HOST.c.name).where(HOST.c.devices.is_not(null())).order_by(HOST.c.seen_at.desc())
    measured = select(MACHINE.c.name).distinct().order_by(MACHINE.c.name)
    with db.read() as connection:
        names = dict.fromkeys([*connection.scalars(heard), *connection.scalars(measured)])
    return {name: names_of_machine(db, name) for name in names}
