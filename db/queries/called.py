"""What machines and builds are called, beside their ids."""

from __future__ import annotations

from sqlalchemy import select

from db.session import Database
from db.tables import BUILD, MACHINE


def machine_names(db: Database) -> list[tuple[str, str]]:
    """Name and id of every machine, and its name with that of its device, as pages write it."""
    columns = (MACHINE.c.machine_id, MACHINE.c.name, MACHINE.c.device_name)
    with db.read() as connection:
        rows = connection.execute(select(*columns).order_by(MACHINE.c.machine_id)).all()
    return [(text, key) for key, name, device in rows for text in (f"{name} ({device})", name)]


def build_names(db: Database) -> list[tuple[str, str]]:
    """The version of torch, alone and behind the word, and the id of every build."""
    with db.read() as connection:
        columns = (BUILD.c.build_id, BUILD.c.torch)
        rows = connection.execute(select(*columns).order_by(BUILD.c.build_id)).all()
    return [(text, key) for key, torch in rows for text in (f"torch {torch}", torch)]
