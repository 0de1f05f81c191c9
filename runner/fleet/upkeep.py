"""What a worker's host needs hourly: waiting trials stored, upgrades seen, old traces deleted."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from datetime import datetime
from threading import Event

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import CompilewatchError
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.fleet.names import queue_of_host
from compilewatch.runner.fleet.threads import in_thread
from compilewatch.runner.plan.cancellation import PreparationCancelledError, cancellable
from compilewatch.runner.process.trace import forget_traces
from compilewatch.runner.service.upkeep import request_where_changed
from compilewatch.runner.storage.persistence import store_waiting
from compilewatch.runner.storage.spool import Spool

_LOG = logging.getLogger("compilewatch.fleet")
PERIOD_S = 3600.0
_LONGEST_S = 300.0


def do_chores(settings: Settings, database: Database, *, host: str, owner: str, now: datetime) -> None:
    """Raises DatabaseError; what was done until then stays."""
    store_waiting(database, Spool(settings.data_dir / "spool"))
    if settings.service.watch_builds:
        request_where_changed(database, settings, host=host, machine=queue_of_host(host), owner=owner, at=now)
    forget_traces(settings.data_dir, settings.service.keep_traces_days, now)


class Chores:
    """`if_due` does `work` in a thread: first `first_s` after the start, then hourly.

    Not at once, so that a worker that has just come begins a trial first, and one that is started again and
    again measures all the same.
    """

    def __init__(
        self,
        work: Callable[[], None],
        *,
        first_s: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._work = work
        self._monotonic = monotonic
        self._retry_s = first_s
        self._due = monotonic() + first_s
        self._lock = asyncio.Lock()

    def due_in_s(self) -> float:
        """Seconds until it is due; 0 where it is."""
        return max(0.0, self._due - self._monotonic())

    async def if_due(self) -> None:
        """Have it done and wait for it, five minutes at most; cancelled, it ends and is due again soon."""
        async with self._lock:
            if self.due_in_s() > 0:
                return
            self._due = self._monotonic() + PERIOD_S
            cancelled = Event()
            try:
                working = in_thread(lambda: self._do(cancelled.is_set), "hourly work")
                _, late = await asyncio.wait({working}, timeout=_LONGEST_S)
                if late:
                    _LOG.warning("The hourly work took longer than %.0f s and is given up.", _LONGEST_S)
            except asyncio.CancelledError:
                self._due = self._monotonic() + self._retry_s
                raise
            finally:
                cancelled.set()

    def _do(self, is_cancelled: Callable[[], bool]) -> None:
        try:
            with cancellable(is_cancelled):
                self._work()
        except PreparationCancelledError:
            return
        except CompilewatchError as error:
            _LOG.warning("The hourly work of this host was not done: %s", error)
        except Exception:  # noqa: BLE001
            _LOG.exception("The hourly work of this host was not done.")
