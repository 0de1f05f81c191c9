"""For every test: databases on SQLite and PostgreSQL, new and gone afterwards, and a temporary folder."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, settings

import compilewatch.db.service.integrity
import compilewatch.db.store.trial_writer
import compilewatch.db.store.trials
from compilewatch.db.engine.repository import latest_moment
from compilewatch.db.engine.schema import VERSION_TABLE
from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.engine.tables import METADATA
from compilewatch.db.store.trial_writer import bring_up
from tests.made_once import MadeOnce, import_histories, made_once
from tests.postgres import Unavailable, postgres_server

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# a busy machine must not fail a property: speed is measured in tests/qa/benchmarks/
settings.register_profile("compilewatch", deadline=None, max_examples=12)
settings.register_profile("thorough", deadline=None, max_examples=500)
# a mutant is tried some thousand times over: few examples, always the same, and none made smaller
settings.register_profile(
    "mutants",
    deadline=None,
    max_examples=5,
    derandomize=True,
    database=None,
    phases=(Phase.explicit, Phase.generate),
)
settings.register_profile("fuzz", deadline=None, max_examples=5_000)
settings.load_profile(os.environ.get("COMPILEWATCH_HYPOTHESIS_PROFILE", "compilewatch"))


@pytest.fixture(scope="session", autouse=True)
def _own_temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What this process of tests and all it starts have as TMPDIR: the locks of devices are there.

    Two processes of tests beside each other then wait for no device of the other.
    """
    tmp_path_factory.getbasetemp()  # stays where pytest has it, to look into after a failure
    with (
        tempfile.TemporaryDirectory(prefix="compilewatch-tests-", ignore_cleanup_errors=True) as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        Path(folder).chmod(0o755)  # servers and tests that are another user find the way
        patch.setenv("TMPDIR", folder)
        # torch puts /tmp into it where a module of tests asks for its caches while it is imported.
        patch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
        # Where tests run beside each other their runner sets it: tables of a pipe would be narrow.
        patch.delenv("COLUMNS", raising=False)
        patch.setattr(tempfile, "tempdir", folder)
        yield


LIMITED = (
    compilewatch.db.store.trial_writer,
    compilewatch.db.store.trials,
    compilewatch.db.service.integrity,
)
"""Where `latest_moment` is read."""


@pytest.fixture(scope="session", autouse=True)
def _any_day() -> Iterator[None]:
    """Records of tests are of fixed days, whatever day it is; tests of the limit itself take it away."""
    with pytest.MonkeyPatch.context() as patch:
        for module in LIMITED:
            patch.setattr(module, "latest_moment", lambda _connection: datetime(2999, 1, 1, tzinfo=UTC))
        yield


@pytest.fixture
def today(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit as it is outside of tests: nothing is measured after now."""
    for module in LIMITED:
        monkeypatch.setattr(module, "latest_moment", latest_moment)


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """Every user can enter it; pytest's own are private, and its next start makes them so again."""
    with tempfile.TemporaryDirectory(prefix="open-to-all-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A database on a PostgreSQL server where others can be created; skips with the command to type."""
    stack = contextlib.ExitStack()
    try:
        url = stack.enter_context(postgres_server())
    except Unavailable as reason:
        pytest.skip(f"needs PostgreSQL: {reason}")
    with stack:
        yield url


@contextlib.contextmanager
def postgres_database(server_url: str, template: str = "template0") -> Iterator[str]:
    """The URL of a new database, dropped afterwards even where a test left connections to it."""
    import psycopg

    name = f"compilewatch_test_{os.getpid()}_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE {name} TEMPLATE {template} ENCODING "UTF8"')
        # No test takes the server's power away, so no commit has to wait for the disk.
        connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    base, _, query = server_url.partition("?")
    try:
        yield f"{base.rpartition('/')[0]}/{name}" + (f"?{query}" if query else "")
    finally:
        with psycopg.connect(server_url, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _with_tables(url: str) -> None:
    """Make all tables, `run_case` of this edition too, which else the first trial of each copy makes anew."""
    with open_database(url, migrate=True) as database:
        bring_up(database)


@pytest.fixture(scope="session")
def _postgres_template(postgres_url: str) -> Iterator[str]:
    """The name of a database with all tables, to copy: quicker than migrating one for every test."""
    with postgres_database(postgres_url) as url:
        _with_tables(url)
        yield url.partition("?")[0].rpartition("/")[2]


_SHAPE = f"""
SELECT md5(string_agg(
    concat_ws(' ', c.relname, c.relkind, c.relacl, a.attname, a.atttypid, a.attnotnull), ','
    ORDER BY c.oid, a.attnum
)), (SELECT count(*) FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace),
    (SELECT count(*) FROM pg_trigger), (SELECT count(*) FROM pg_namespace),
    (SELECT max(version_num) FROM {VERSION_TABLE})
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid WHERE c.relnamespace = 'public'::regnamespace
"""
_OTHERS = "pid <> pg_backend_pid() AND datname = current_database()"
_EMPTY = (
    f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE {_OTHERS}",
    *(
        f'DELETE FROM "{table.name}"'
        for table in reversed(METADATA.sorted_tables)
        if table.name != "data_version"
    ),
    # What a page prepared for a version of the test before is not for this one.
    "UPDATE data_version SET version = version + 1",
    "SELECT setval(oid::regclass, 1, false) FROM pg_class WHERE relkind = 'S'",
)


class EmptiedDatabases:
    """PostgreSQL databases with all tables, of one test after another: a new one takes seven times as long.

    One whose tables a test changed is of no other test.
    """

    def __init__(self, new: Callable[[], str]) -> None:
        self._new = new
        self._free: list[str] = []
        self._shape: object = None

    @contextlib.contextmanager
    def one(self) -> Iterator[str]:
        """The URL of a database without a trial."""
        import psycopg

        url = self._free.pop() if self._free else self._new()
        if self._shape is None:  # all are copies of one
            with psycopg.connect(url) as connection:
                self._shape = connection.execute(_SHAPE).fetchone()
        yield url
        with contextlib.suppress(psycopg.Error), psycopg.connect(url, autocommit=True) as connection:
            if connection.execute(_SHAPE).fetchone() == self._shape:
                connection.execute(";".join(_EMPTY))
                self._free.append(url)


@pytest.fixture(scope="session")
def _emptied_databases(postgres_url: str, _postgres_template: str) -> Iterator[EmptiedDatabases]:
    with contextlib.ExitStack() as stack:
        yield EmptiedDatabases(
            lambda: stack.enter_context(postgres_database(postgres_url, _postgres_template))
        )


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> MadeOnce:
    """See `made_once`."""
    return partial(made_once, tmp_path_factory)


@pytest.fixture(scope="session")
def _sqlite_template(made: MadeOnce) -> Path:
    return made("template", _with_tables)


@pytest.fixture(scope="session")
def histories_of(made: MadeOnce) -> Callable[[str], Path]:
    """A copy of a database of the recorded histories that come with the code: `h100`, `cpu` or `both`."""
    return lambda name: made(f"history-{name}", partial(import_histories, name))


@pytest.fixture(params=["sqlite", "postgresql"], scope="module")
def backend(request: pytest.FixtureRequest) -> str:
    backend: str = request.param
    return backend


@pytest.fixture
def empty_postgres_url(postgres_url: str) -> Iterator[str]:
    """A PostgreSQL database without tables."""
    with postgres_database(postgres_url) as url:
        yield url


@pytest.fixture
def empty_database_url(backend: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """Where a database can be, on both backends: no file yet, or a PostgreSQL database without tables."""
    if backend == "sqlite":
        yield f"sqlite:///{tmp_path / 'empty.db'}"
    else:
        yield request.getfixturevalue("empty_postgres_url")


@pytest.fixture
def sqlite_url(tmp_path: Path, _sqlite_template: Path) -> str:
    """A SQLite database with all tables and no trial."""
    path = tmp_path / "compilewatch.db"
    shutil.copyfile(_sqlite_template, path)
    return f"sqlite:///{path}"


@pytest.fixture(scope="session")
def _stepped_template(made: MadeOnce) -> Path:
    return made("stepped", _with_a_step)


def _with_a_step(url: str) -> None:
    from compilewatch.db.store.trials import save_trials
    from tests.regression_cases import stepping_history

    with open_database(url, migrate=True) as database:
        save_trials(database, stepping_history(1.0, 1.4, builds=("2.12.0", "2.13.0")))


@pytest.fixture
def stepped(sqlite_url: str, _stepped_template: Path) -> str:
    """A SQLite database with a run of torch 2.12.0, and one of 2.13.0 whose compiled code takes 1.4 times."""
    shutil.copyfile(_stepped_template, sqlite_url.removeprefix("sqlite:///"))
    return sqlite_url


@pytest.fixture
def sqlite_database(sqlite_url: str) -> Iterator[Database]:
    """An open SQLite database, for tests whose subject does not depend on the backend."""
    with open_database(sqlite_url) as database:
        yield database


@pytest.fixture
def database_url(backend: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database with all tables and no trial, on both backends."""
    if backend == "sqlite":
        yield request.getfixturevalue("sqlite_url")
    else:
        emptied: EmptiedDatabases = request.getfixturevalue("_emptied_databases")
        with emptied.one() as url:
            yield url


@pytest.fixture
def postgres_database_url(_emptied_databases: EmptiedDatabases) -> Iterator[str]:
    """A PostgreSQL database with all tables and no trial."""
    with _emptied_databases.one() as url:
        yield url


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """An open, empty database, on both backends."""
    with open_database(database_url) as opened:
        yield opened


@pytest.fixture(scope="module")
def module_database(
    backend: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Database]:
    """An open, empty database, on both backends: to fill once with what all tests of a file only read."""
    with contextlib.ExitStack() as stack:
        if backend == "sqlite":
            path = tmp_path_factory.mktemp("module") / "compilewatch.db"
            shutil.copyfile(request.getfixturevalue("_sqlite_template"), path)
            url = f"sqlite:///{path}"
        else:
            emptied: EmptiedDatabases = request.getfixturevalue("_emptied_databases")
            url = stack.enter_context(emptied.one())
        yield stack.enter_context(open_database(url))


@pytest.fixture
def open_again(database_url: str) -> Iterator[Callable[[], Database]]:
    """Opens the test's database once more, as another part of the program would."""
    with contextlib.ExitStack() as stack:
        yield lambda: stack.enter_context(open_database(database_url))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Ends with its file: until then Playwright has a loop running, and `asyncio.run` takes no second one."""
    from tests.e2e.browser import CHROMIUM, INSTALL, chromium

    if not CHROMIUM.exists():
        pytest.skip(f"needs Chromium; as root: {INSTALL}")
    with chromium() as running:
        yield running
