"""Opening a database: SQLite by default, PostgreSQL for teams, one code path for both."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import URL, Connection, Engine, Executable, create_engine, make_url, text
from sqlalchemy.exc import ArgumentError

from compilewatch.db.engine.record_tables import JsonText
from compilewatch.db.engine.schema import SchemaState, require_current, schema_state, upgrade
from compilewatch.db.engine.sqlite import (
    create_file,
    explained,
    remove_file,
    require_usable_file,
    sqlite_engine,
)
from compilewatch.db.errors import DatabaseError

# PostgreSQL: connections to a server.

# A server or a network that went away without a word is noticed within a minute, not after the two hours of
# the system's own default; libpq, "Parameter Key Words".
_LOST_AFTER = {
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}


def postgresql_engine(address: URL, options: dict[str, Any]) -> Engine:
    """An engine for writing. Raises DatabaseError where the driver is not installed."""
    defaults = {
        "connect_timeout": 10,
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


DEFAULT_URL = "sqlite:///compilewatch.db"
_DRIVERS = {"sqlite": "sqlite", **dict.fromkeys(("postgresql", "postgres"), "postgresql+psycopg")}


def _to_json(value: object) -> str:
    """What a JSON column is sent; parts of a record arrive written already."""
    return value if isinstance(value, JsonText) else json.dumps(value, allow_nan=False)


_ENGINE_OPTIONS: dict[str, Any] = {"json_serializer": _to_json}


class Database:
    """An open database. Reads and writes happen in `with` blocks that are one transaction each.

    `url` is the address as it may be shown: without its password. Safe to share between threads, not across
    a fork.
    """

    def __init__(self, url: URL, *, reader: Engine, writer: Engine | None) -> None:
        self.url = _shown(url)
        self.dialect: Literal["sqlite", "postgresql"] = (
            "sqlite" if reader.dialect.name == "sqlite" else "postgresql"
        )
        self._reader = reader
        self._writer = writer

    def __repr__(self) -> str:
        return f"Database({self.url!r})"

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """One writing transaction: commits on leaving the block, rolls back on an exception.

        On SQLite it holds the write lock from the start, so what it reads stays true until it commits.
        Raises DatabaseError where the database is locked, full, damaged, away, or opened read-only.
        """
        with explained(self.url), self._writable().begin() as connection:
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One reading transaction: all reads in the block see the same data, and none can write.

        Raises DatabaseError where the database is damaged or away.
        """
        with explained(self.url), self._reader.connect() as connection:
            yield connection

    def rows(self, statement: Executable) -> list[Any]:
        """What one statement reads, in a transaction of its own."""
        with self.read() as connection:
            return list(connection.execute(statement))

    def scalars(self, statement: Executable) -> list[Any]:
        """As `rows`, of each the first column."""
        with self.read() as connection:
            return list(connection.scalars(statement))

    def vacuum(self) -> None:
        """Give back the space of what was deleted and refresh the planner's statistics; nothing else changes.

        On SQLite writers wait until it has ended. Raises DatabaseError as `write` does.
        """
        with explained(self.url), self._writable().connect() as connection:
            # VACUUM runs outside of any transaction, and SQLAlchemy begins one with its first statement.
            driver = connection.connection.driver_connection
            assert driver is not None
            if self.dialect == "postgresql":
                driver.autocommit = True
            for statement in ("VACUUM", "ANALYZE"):
                driver.execute(statement)
            if self.dialect == "postgresql":
                driver.autocommit = False

    def _writable(self) -> Engine:
        if self._writer is None:
            raise DatabaseError(
                f"The database {self.url} is open for reading only.", "Open it for writing to change it."
            )
        return self._writer

    def size_bytes(self) -> int:
        """What the database takes on the disk, without SQLite's log."""
        pages = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
        server = "SELECT pg_database_size(current_database())"
        return int(self.scalars(text(pages if self.dialect == "sqlite" else server))[0])

    def close(self) -> None:
        self._reader.dispose()
        if self._writer is not None:
            self._writer.dispose()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_database(url: str = DEFAULT_URL, *, migrate: bool = False, read_only: bool = False) -> Database:
    """Open the database at `url`.

    With `migrate` a missing SQLite file is created and an older schema upgraded; without it both are errors.
    With `read_only` nothing is ever written, not even where the file could be.

    Raises DatabaseError for an address that is none, a missing driver, directory or server, a file that is no
    database or cannot be written, and a schema older or newer than this release's. A failed call leaves no
    file behind and changes nothing.
    """
    address = _parse(url)
    if address.get_backend_name() == "sqlite":
        return _open_sqlite(address, migrate=migrate and not read_only, read_only=read_only)
    return _open_postgresql(address, migrate=migrate and not read_only, read_only=read_only)


def _parse(url: str) -> URL:
    try:
        address = make_url(url)
        kind = address.get_backend_name()
    except ArgumentError:
        raise DatabaseError(
            "The address of the database is not one.",
            f"Write sqlite:///FILE or postgresql://USER@HOST/NAME, for instance {DEFAULT_URL}.",
        ) from None
    driver = _DRIVERS.get(kind)
    if driver is None:
        raise DatabaseError(
            f"Databases of the kind {kind!r} are not supported.",
            "Use sqlite:///FILE or postgresql://USER@HOST/NAME.",
        )
    return address.set(drivername=driver)


def shown_address(url: str) -> str:
    """`url` as it may be shown, without its password. Raises DatabaseError where it is no address."""
    try:
        return _shown(make_url(url))
    except ArgumentError:
        raise DatabaseError("The address of the database is not one.", "Correct database_url.") from None


def _shown(address: URL) -> str:
    if address.database is not None:
        # The name of a file need not be UTF-8.
        address = address.set(database=address.database.encode(errors="backslashreplace").decode())
    return address.render_as_string(hide_password=True)


def sqlite_file(url: str) -> Path | None:
    """The file of the database at `url`, None for a server. Raises DatabaseError where it is no address."""
    address = _parse(url)
    return _file_of(address) if address.get_backend_name() == "sqlite" else None


def _file_of(address: URL) -> Path:
    if address.database in (None, "", ":memory:") or address.query or address.host:
        raise DatabaseError(
            f"{_shown(address)} names no file, or more than a file.",
            f"Write three slashes and the file's path, for instance {DEFAULT_URL}.",
        )
    return Path(address.database or "").absolute()


def _open_sqlite(address: URL, *, migrate: bool, read_only: bool) -> Database:
    path = _file_of(address)
    created = migrate and create_file(path)
    try:
        require_usable_file(path, writable=not read_only)
        database = Database(
            address,
            reader=sqlite_engine(path, "read", _ENGINE_OPTIONS, read_only=read_only),
            writer=None if read_only else sqlite_engine(path, "write", _ENGINE_OPTIONS),
        )
        _bring_up(database, sqlite_engine(path, "upgrade", {}) if migrate else None)
    except BaseException:
        if created:
            remove_file(path)
        raise
    return database


def _open_postgresql(address: URL, *, migrate: bool, read_only: bool) -> Database:
    engine = postgresql_engine(address, _ENGINE_OPTIONS)
    # The same connections, for transactions that see one snapshot and cannot write.
    reader = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    database = Database(address, reader=reader, writer=None if read_only else engine)
    _bring_up(database, engine if migrate else None)
    return database


def _bring_up(database: Database, upgrader: Engine | None) -> None:
    """Upgrade the schema where an engine for it is given; close the database unless it is current then."""
    try:
        if upgrader is not None:
            with database.read() as connection:
                is_current = schema_state(connection) is SchemaState.CURRENT
            if not is_current:
                with explained(database.url), upgrader.begin() as connection:
                    upgrade(connection, database.url)
        with database.read() as connection:
            require_current(connection, database.url)
    except BaseException:
        database.close()
        raise
