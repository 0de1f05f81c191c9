"""PostgreSQL: connections to a server."""

from __future__ import annotations

from typing import Any

from sqlalchemy import URL, Engine, create_engine

from db.errors import DatabaseError

_CONNECT_TIMEOUT_S = 10
# A server or a network that went away without a word is noticed within a minute, not after the two hours of
# the system's own default; libpq, "Parameter Key Words".
_LOST_AFTER = {
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}


def postgresql_engine(address: URL, options: dict[str, Any]) -> Engine:
    """An engine for writing; `reading` makes one for reading of it.

    Raises DatabaseError where the driver is not installed.
    """
    defaults = {
        "connect_timeout": _CONNECT_TIMEOUT_S,
        "application_name": "compilewatch",
        "options": "-c timezone=UTC",
        **_LOST_AFTER,
    }
    arguments = {key: value for key, value in defaults.items() if key not in address.query}
    try:
        # A pooled connection may have outlived a restart of the server: each is tried before it is used.
        return create_engine(address, connect_args=arguments, pool_pre_ping=True, **options)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "psycopg":
            raise
    except ImportError:
        # psycopg without libpq raises a plain ImportError.
        pass
    raise DatabaseError(
        "The PostgreSQL driver psycopg is not installed.", "Run `pip install 'compilewatch[postgres]'`."
    )


def reading(engine: Engine) -> Engine:
    """The same connections, for transactions that see one snapshot and cannot write."""
    return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
