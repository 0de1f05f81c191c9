"""Keeping `run_part` up to date with the trials that are inserted."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import Connection, case
from sqlalchemy.dialects import postgresql, sqlite

from db.table_run_parts import RUN_PART

Part = tuple[str, str, str]


@dataclass
class RunParts:
    """What a transaction adds: per run, machine and build the number of trials, and when they began."""

    _added: dict[Part, tuple[int, datetime, datetime]] = field(default_factory=dict)

    def add(self, part: Part, trials: int, first: datetime, last: datetime) -> None:
        """Count trials that began between `first` and `last`."""
        known, earliest, latest = self._added.get(part, (0, first, last))
        self._added[part] = (known + trials, min(earliest, first), max(latest, last))

    def write(self, connection: Connection) -> None:
        """Add it all to what is stored."""
        if not self._added:
            return
        rows = [
            {
                "run_id": run_id,
                "machine_id": machine_id,
                "build_id": build_id,
                "trials": trials,
                "first_seen_at": first,
                "last_seen_at": last,
            }
            for (run_id, machine_id, build_id), (trials, first, last) in self._added.items()
        ]
        connection.execute(_upsert(connection), rows)


def _upsert(connection: Connection) -> sqlite.Insert | postgresql.Insert:
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    statement = insert(RUN_PART)
    offered, stored = statement.excluded, RUN_PART.c
    return statement.on_conflict_do_update(
        index_elements=["run_id", "machine_id", "build_id"],
        set_={
            "trials": stored.trials + offered.trials,
            "first_seen_at": case(
                (stored.first_seen_at < offered.first_seen_at, stored.first_seen_at),
                else_=offered.first_seen_at,
            ),
            "last_seen_at": case(
                (stored.last_seen_at > offered.last_seen_at, stored.last_seen_at),
                else_=offered.last_seen_at,
            ),
        },
    )
