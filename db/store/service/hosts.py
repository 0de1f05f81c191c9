"""Writes about measuring hosts: what their services say of themselves."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import update

from compilewatch.db.engine.session import Database
from compilewatch.db.records.service.hosts import HostState
from compilewatch.db.store.writing import upsert
from compilewatch.db.tables.trials import HOST


def save_host(db: Database, state: HostState) -> None:
    """Put down what a host's service says now, in the place of what it said before.

    One that asked no GPU leaves what was told of them, perhaps by a worker of the same host.
    """
    content = state.model_dump() | {
        "devices": None
        if state.devices is None
        else [device.model_dump(mode="json") for device in state.devices]
    }
    with db.write() as connection:
        statement = upsert(connection, HOST).values(**content)
        unchanged = ("devices", "devices_read_at") if state.devices is None else ()
        values = {name: value for name, value in content.items() if name not in unchanged}
        connection.execute(statement.on_conflict_do_update(index_elements=["name"], set_=values))


def note_host_stopped(db: Database, name: str, *, owner: str, at: datetime) -> None:
    """Say that the service `owner` ended as it should, unless another speaks for its host by now."""
    with db.write() as connection:
        connection.execute(
            update(HOST).where(HOST.c.name == name, HOST.c.owner == owner).values(stopped_at=at)
        )
