"""What a service or worker says of itself for those who watch it: what waits on its disk, what failed it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from db.session import Database
from db.store_watch import save_health
from db.watch import HostHealth
from runner.spool import Spool


@dataclass
class ErrorCount:
    """How often the database failed this process; every thread adds to the same one."""

    database: int = 0


class Health:
    """Call `say` every few seconds; it writes each time."""

    def __init__(self, database: Database, host: str, spool: Spool, errors: ErrorCount) -> None:
        self._database = database
        self._host = host
        self._spool = spool
        self._errors = errors

    def say(self, now: datetime) -> None:
        """Raises DatabaseError."""
        save_health(
            self._database,
            HostHealth(
                host=self._host,
                seen_at=now,
                spool_trials=len(self._spool.waiting()),
                spool_bytes=self._spool.size_bytes(),
                database_errors=self._errors.database,
            ),
        )
