"""What machines and builds are called, beside their ids."""

from __future__ import annotations

from sqlalchemy import select

from compilewatch.db.engine.session import Database
from compilewatch.db.tables.run_parts import RUN_PART
from compilewatch.db.tables.trials import MACHINE, SERIES, TRIAL


def machine_names(db: Database) -> list[tuple[str, str]]:
    """Name and id of every machine, and its name with that of its device, as pages write it."""
    columns = (MACHINE.c.machine_id, MACHINE.c.name, MACHINE.c.device_name)
    rows = db.rows(select(*columns).order_by(MACHINE.c.machine_id))
    return [(text, key) for key, name, device in rows for text in (f"{name} ({device})", name)]


def former_machine_names(db: Database) -> list[tuple[str, str]]:
    """Name and id of every machine for each name that it was measured under and that none has now."""
    called = (
        select(TRIAL.c.machine_name)
        .join(SERIES, SERIES.c.series_id == TRIAL.c.series_id)
        .where(TRIAL.c.run_id == RUN_PART.c.run_id, SERIES.c.machine_id == RUN_PART.c.machine_id)
        .limit(1)
        .scalar_subquery()
    )
    rows = db.rows(select(RUN_PART.c.machine_id, called.label("name")).distinct())
    now = {name for name, _ in machine_names(db)}
    return sorted((row.name, row.machine_id) for row in rows if row.name and row.name not in now)
