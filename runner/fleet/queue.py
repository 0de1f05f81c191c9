"""The queue's own side: connections that wait for a database that is away, and Procrastinate's tables."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import psycopg
from procrastinate import App, PsycopgConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.schema import SchemaManager

from compilewatch.runner.fleet.names import LONGEST_WAIT_S

_LOG = logging.getLogger("compilewatch.fleet")
_FIRST_WAIT_S = 0.5
_CONNECT_TIMEOUT_S = 10
_SCHEMA_LOCK = 4_022_250_974
"""Any number, the same everywhere: two programs that create the tables at once take turns."""

HAS_WAITING = """
SELECT EXISTS (
    SELECT 1 FROM procrastinate_jobs WHERE status = 'todo' AND queue_name = ANY(%(queues)s)
) AS has_waiting
"""

NO_ATTEMPT = "UPDATE procrastinate_jobs SET attempts = attempts - 1 WHERE id = %(job_id)s"
"""Takes off the attempt that the queue counts when a job comes back."""

T = TypeVar("T")


def conninfo_of(database_url: str) -> str:
    """The database's address as libpq takes it; SQLAlchemy's names the driver too."""
    scheme, _, rest = database_url.partition("://")
    return f"{scheme.partition('+')[0]}://{rest}"


def is_connection_lost(error: BaseException) -> bool:
    """Whether the server could not be reached, rather than refused what it was asked."""
    cause = error.__cause__
    return isinstance(error, ConnectorException) and isinstance(cause, psycopg.OperationalError)


def reason_of(error: BaseException) -> str:
    """Why the queue refused, in one line."""
    return str(error.__cause__ or error).partition("\n")[0]


class PatientConnector(PsycopgConnector):
    """Asks again, at most 15 s apart, while the server is away; says so once, and once when it is back.

    Procrastinate itself ends the worker where a heartbeat fails. After `give_up` nothing is asked again.
    """

    def __init__(self, conninfo: str) -> None:
        super().__init__(
            conninfo=conninfo,
            min_size=1,
            max_size=4,
            timeout=_CONNECT_TIMEOUT_S,
            kwargs={"application_name": "compilewatch worker", "connect_timeout": _CONNECT_TIMEOUT_S},
        )
        self._gave_up = asyncio.Event()
        self._away_since: float | None = None
        self._back_at = float("-inf")
        self.errors = 0
        """How often the database failed this worker."""

    def give_up(self) -> None:
        """Let what is asked now fail instead of waiting for the server."""
        self._gave_up.set()

    async def execute_query_async(self, query: Any, **arguments: Any) -> None:
        query_once = super().execute_query_async
        await self._patiently(lambda: query_once(query, **arguments))

    async def execute_query_one_async(self, query: Any, **arguments: Any) -> dict[str, Any]:
        query_once = super().execute_query_one_async
        return await self._patiently(lambda: query_once(query, **arguments))

    async def execute_query_all_async(self, query: Any, **arguments: Any) -> list[dict[str, Any]]:
        query_once = super().execute_query_all_async
        return await self._patiently(lambda: query_once(query, **arguments))

    async def listen_notify(self, on_notification: Any, channels: Any) -> None:
        listen = super().listen_notify
        await self._patiently(lambda: listen(on_notification, channels))

    async def _patiently(self, query_once: Callable[[], Awaitable[T]]) -> T:
        wait_s = _FIRST_WAIT_S
        while True:
            try:
                answer = await query_once()
            except ConnectorException as error:
                self.errors += 1
                if self._gave_up.is_set() or not is_connection_lost(error):
                    raise
                self._note_away(error)
            else:
                self._note_back()
                return answer
            try:
                await asyncio.wait_for(self._gave_up.wait(), wait_s)
            except TimeoutError:
                wait_s = min(2 * wait_s, LONGEST_WAIT_S)

    def _note_away(self, error: ConnectorException) -> None:
        if self._away_since is None:
            self._away_since = time.monotonic()
            _LOG.warning("The database is away (%s). Waiting for it.", reason_of(error))

    def _note_back(self) -> None:
        if self._away_since is not None:
            self._back_at = time.monotonic()
            _LOG.warning("The database is back after %.0f s.", self._back_at - self._away_since)
            self._away_since = None

    def back_for_s(self) -> float:
        """Since the last outage; without one, for ever."""
        return time.monotonic() - self._back_at


def create_tables(conninfo: str) -> None:
    """Make the queue's tables where they are missing. Raises psycopg.Error."""
    with psycopg.connect(conninfo, connect_timeout=_CONNECT_TIMEOUT_S) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_SCHEMA_LOCK,))
        table = connection.execute("SELECT to_regclass('procrastinate_jobs')").fetchone()
        if table is None or table[0] is None:
            connection.execute(SchemaManager.get_schema())
            _LOG.info("Made the tables of the queue.")


def open_app(connector: Any) -> App:
    """An application of Procrastinate without tasks; whoever works gives it one."""
    # Its own lines repeat each job's content and a traceback for each that is tried again.
    logging.getLogger("procrastinate").setLevel(logging.CRITICAL)
    return App(connector=connector)
