"""Opening a database: what works, and one sentence for everything that does not."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest
from sqlalchemy import text

from compilewatch.db.engine.schema import HEAD, VERSION_TABLE
from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.errors import DatabaseError
from compilewatch.db.queries.data_version import data_version
from compilewatch.db.queries.trials import trial_record
from compilewatch.db.store.trials import save_trial
from tests.builders import make_trial

ROOT = Path(__file__).parents[3]


def refused(url: str, **options: bool) -> DatabaseError:
    with pytest.raises(DatabaseError) as caught:
        open_database(url, **options)
    assert caught.value.next_step
    assert "\n" not in str(caught.value)
    return caught.value


class TestAddresses:
    @pytest.mark.parametrize(
        ("url", "says"),
        [
            ("compilewatch.db", "is not one"),
            ("", "is not one"),
            ("mysql://user@host/name", "'mysql' are not supported"),
            ("sqlite://", "names no file"),
            ("sqlite:///:memory:", "names no file"),
            ("sqlite:///x.db?mode=ro", "more than a file"),
        ],
    )
    @pytest.mark.parametrize("migrate", [False, True])
    def test_what_is_no_address_is_refused(self, url: str, says: str, migrate: bool) -> None:
        assert says in refused(url, migrate=migrate).message

    def test_a_password_is_never_shown(self) -> None:
        error = refused("postgresql://user:hunter2@127.0.0.1:1/name")
        assert "hunter2" not in str(error)
        assert "No PostgreSQL server answers" in error.message
        assert "hunter2" not in str(refused("mysql://user:hunter2@127.0.0.1:1/name"))
        assert "hunter2" not in str(refused("sqlite://user:hunter2@host/name"))

    def test_a_host_nobody_knows(self) -> None:
        assert "host" in refused("postgresql://user@compilewatch.invalid/name").message

    def test_a_missing_postgresql_database(self, postgres_url: str) -> None:
        url = postgres_url.rpartition("/")[0] + "/compilewatch_no_such_database"
        error = refused(url, migrate=True)
        assert "no database" in error.message
        assert "createdb" in error.next_step

    def test_a_missing_driver_names_the_extra(self, tmp_path: Path) -> None:
        (tmp_path / "psycopg.py").write_text("raise ModuleNotFoundError(name='psycopg')")
        program = (
            f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
            "from compilewatch.db.engine.session import open_database\n"
            "from compilewatch.db.errors import DatabaseError\n"
            "try: open_database('postgresql://user@127.0.0.1/name')\n"
            "except DatabaseError as error: print(error)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
        )
        assert "pip install 'compilewatch[postgres]'" in done.stdout


class TestFiles:
    def test_a_new_file_is_made_only_when_asked(self, tmp_path: Path) -> None:
        path = tmp_path / "new.db"
        assert "There is no database" in refused(f"sqlite:///{path}").message
        assert not path.exists()
        open_database(f"sqlite:///{path}", migrate=True).close()
        open_database(f"sqlite:///{path}").close()
        assert [file.name for file in tmp_path.iterdir()] == ["new.db"]

    def test_an_empty_file_says_what_to_do(self, tmp_path: Path) -> None:
        path = tmp_path / "empty.db"
        path.touch()
        assert "`compilewatch db upgrade`" in refused(f"sqlite:///{path}").next_step
        open_database(f"sqlite:///{path}", migrate=True).close()

    @pytest.mark.parametrize("migrate", [False, True])
    def test_a_missing_directory(self, tmp_path: Path, migrate: bool) -> None:
        error = refused(f"sqlite:///{tmp_path}/no/such/x.db", migrate=migrate)
        assert f"{tmp_path}/no/such does not exist" in error.message
        assert "mkdir -p" in error.next_step
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("migrate", [False, True])
    def test_a_file_in_place_of_a_directory(self, tmp_path: Path, migrate: bool) -> None:
        (tmp_path / "file").write_text("x")
        error = refused(f"sqlite:///{tmp_path}/file/x.db", migrate=migrate)
        assert "is not a directory" in error.message

    @pytest.mark.parametrize("migrate", [False, True])
    def test_a_directory_in_place_of_a_file(self, tmp_path: Path, migrate: bool) -> None:
        assert "is a directory" in refused(f"sqlite:///{tmp_path}", migrate=migrate).message

    @pytest.mark.parametrize("migrate", [False, True])
    def test_a_file_that_is_no_database_stays_as_it_is(self, tmp_path: Path, migrate: bool) -> None:
        path = tmp_path / "notes.txt"
        path.write_text("not a database, but longer than a header of one hundred bytes " * 9)
        before = path.read_bytes()
        assert "is not a database file" in refused(f"sqlite:///{path}", migrate=migrate).message
        assert path.read_bytes() == before
        assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]

    @pytest.mark.parametrize("migrate", [False, True])
    def test_the_database_of_another_program_stays_as_it_is(self, tmp_path: Path, migrate: bool) -> None:
        path = tmp_path / "other.db"
        with closing(sqlite3.connect(path)) as other, other:
            other.execute("CREATE TABLE bookmarks (url TEXT)")
        other.close()
        assert "another program" in refused(f"sqlite:///{path}", migrate=migrate).message
        with closing(sqlite3.connect(path)) as other, other:
            assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("bookmarks",)]
        other.close()

    def test_a_failed_creation_leaves_no_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("compilewatch.db.engine.session.upgrade", broken)
        with pytest.raises(KeyboardInterrupt):
            open_database(f"sqlite:///{tmp_path / 'x.db'}", migrate=True)
        assert list(tmp_path.iterdir()) == []

    def test_a_relative_path_means_the_directory_it_was_opened_in(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        with open_database("sqlite:///x.db", migrate=True) as database:
            monkeypatch.chdir("/")
            trial = make_trial()
            save_trial(database, trial)
            assert trial_record(database, trial.trial_id) == trial

    @pytest.mark.parametrize("name", ["with space.db", "per%cent.db", "what?.db", "hash#.db", "ünïcode.db"])
    def test_odd_names_of_files(self, tmp_path: Path, name: str) -> None:
        open_database(f"sqlite:///{tmp_path}/{quote(name)}", migrate=True).close()
        assert (tmp_path / name).exists()


# The interpreter may be readable for root alone, so everything is imported before the rights are gone.
UNPRIVILEGED = """
import os, sys
import alembic.command, alembic.config
from compilewatch.db.errors import DatabaseError
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.engine.session import open_database
os.setgroups([]); os.setgid(65534); os.setuid(65534)
for how, path in (argument.split(":", 1) for argument in sys.argv[1:]):
    try:
        database = open_database("sqlite:///" + path, migrate=how == "migrate", read_only=how == "read")
    except DatabaseError as error:
        print(" ".join(str(error).split()))
    else:
        with database:
            print(len(trials_frame(database)), "trials")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="drops privileges: run the tests as root to include it")
class TestPermissions:
    def test_what_a_user_without_any_rights_is_told(self, open_to_all: Path, sqlite_url: str) -> None:
        with open_database(sqlite_url) as database:
            save_trial(database, make_trial())
        known, hidden, new = (open_to_all / f"{name}.db" for name in ("known", "hidden", "new"))
        for path in (known, hidden):
            shutil.copyfile(sqlite_url.removeprefix("sqlite:///"), path)
        hidden.chmod(0o600)
        asked = (f"migrate:{new}", f"write:{known}", f"migrate:{known}", f"read:{known}", f"read:{hidden}")
        program = [sys.executable, "-W", "error", "-c", UNPRIVILEGED, *asked]
        done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.stderr == ""
        a_new, writing, migrating, reading, without = done.stdout.splitlines()
        for said in (a_new, writing, migrating):
            assert "cannot be written" in said
        assert not new.exists()
        assert reading == "1 trials"
        assert "cannot be read" in without


class TestSchema:
    def set_revision(self, database: Database, revision: str) -> None:
        with database.write() as connection:
            connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '{revision}'"))

    @pytest.mark.parametrize("options", [{}, {"migrate": True}, {"read_only": True}], ids=str)
    def test_a_newer_schema_is_refused_and_kept(
        self, database: Database, database_url: str, options: dict[str, bool]
    ) -> None:
        self.set_revision(database, "9999")
        error = refused(database_url, **options)
        assert "has schema 9999, which is newer than this release" in error.message
        assert "Install the release" in error.next_step
        with database.read() as connection:
            assert connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}")) == "9999"

    def test_an_older_schema_says_how_to_upgrade(
        self, database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As the release with the next migration finds what this one made."""
        monkeypatch.setattr("compilewatch.db.engine.schema.HEAD", "9998")
        error = refused(database_url)
        assert f"schema {HEAD}, this release needs 9998" in error.message
        assert error.next_step == "Run `compilewatch db upgrade`."

    def test_a_database_without_tables_says_how_to_make_them(self, empty_database_url: str) -> None:
        open_database(empty_database_url, migrate=True).close()
        open_database(empty_database_url).close()

    def test_an_empty_postgresql_database(self, empty_postgres_url: str) -> None:
        assert "is empty" in refused(empty_postgres_url).message


class TestTransactions:
    def test_reading_only_refuses_to_write(self, database: Database, database_url: str) -> None:
        trial = make_trial()
        save_trial(database, trial)
        with open_database(database_url, read_only=True) as reader:
            assert trial_record(reader, trial.trial_id) == trial
            with pytest.raises(DatabaseError, match="reading only"):
                save_trial(reader, make_trial())

    def test_a_reading_transaction_cannot_write(self, database: Database) -> None:
        version = data_version(database)
        with pytest.raises(DatabaseError, match="cannot be written"), database.read() as connection:
            connection.execute(text("UPDATE data_version SET version = -7"))
        assert data_version(database) == version

    def test_a_reading_transaction_sees_one_moment(
        self, database: Database, open_again: Callable[[], Database]
    ) -> None:
        other, version = open_again(), data_version(database)
        with database.read() as connection:
            before = connection.scalar(text("SELECT count(*) FROM trial"))
            save_trial(other, make_trial())
            assert connection.scalar(text("SELECT count(*) FROM trial")) == before
        assert data_version(database) == version + 1

    def test_a_writer_that_fails_leaves_nothing(self, database: Database) -> None:
        version = data_version(database)
        with contextlib.suppress(ZeroDivisionError), database.write() as connection:
            connection.execute(text("UPDATE data_version SET version = -7"))
            raise ZeroDivisionError
        assert data_version(database) == version

    def test_our_own_mistakes_are_not_explained_away(self, database: Database) -> None:
        with pytest.raises(Exception, match="no_such_table") as caught, database.read() as connection:
            connection.execute(text("SELECT * FROM no_such_table"))
        assert not isinstance(caught.value, DatabaseError)

    def test_a_locked_file_is_explained(
        self, sqlite_database: Database, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("compilewatch.db.engine.sqlite._BUSY_TIMEOUT_S", 0.05)
        impatient = open_database(sqlite_url)
        with (
            impatient,
            sqlite_database.write(),
            pytest.raises(DatabaseError, match="locked by another program"),
        ):
            save_trial(impatient, make_trial())

    def test_a_lost_connection_is_explained_and_the_next_one_works(
        self, postgres_url: str, empty_postgres_url: str
    ) -> None:
        with open_database(empty_postgres_url, migrate=True) as database:
            with pytest.raises(DatabaseError, match="did not answer"):
                self.read_while_the_server_ends_it(database, postgres_url)
            assert data_version(database) == 0

    def read_while_the_server_ends_it(self, database: Database, postgres_url: str) -> None:
        import psycopg

        with database.read() as connection:
            pid = connection.scalar(text("SELECT pg_backend_pid()"))
            with psycopg.connect(postgres_url, autocommit=True) as server:
                server.execute("SELECT pg_terminate_backend(%s)", [pid])
            connection.execute(text("SELECT 1"))

    def test_threads_share_a_database(self, database: Database) -> None:
        version, trials = data_version(database), [make_trial() for _ in range(12)]
        threads = [threading.Thread(target=save_trial, args=(database, trial)) for trial in trials]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert data_version(database) == version + 12
