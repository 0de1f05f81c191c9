"""A PostgreSQL server for tests: the one named, the one that runs here, or one started for the purpose."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

URL_VARIABLE = "COMPILEWATCH_TEST_POSTGRES_URL"
LOCAL_URL = "postgresql://postgres@127.0.0.1:5432/postgres"
HOW_TO_INSTALL = "apt-get install -y postgresql && pip install 'compilewatch[postgres]'"
_START_TIMEOUT_S = 30


class Unavailable(Exception):
    """No server can be had; the message is what to type to change that."""


@contextlib.contextmanager
def postgres_server() -> Iterator[str]:
    """The URL of a database on a server where databases can be created. Raises Unavailable."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise Unavailable(f"psycopg is not installed: {HOW_TO_INSTALL}") from None
    named = os.environ.get(URL_VARIABLE)
    if named:
        yield named
    elif _answers(LOCAL_URL):
        yield LOCAL_URL
    else:
        with _own_server() as url:
            yield url


def _answers(url: str) -> bool:
    import psycopg

    try:
        psycopg.connect(url, connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True


@contextlib.contextmanager
def _own_server() -> Iterator[str]:
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    found = shutil.which("postgres") or (str(programs[-1]) if programs else None)
    if found is None:
        raise Unavailable(f"no PostgreSQL server: {HOW_TO_INSTALL}")
    user = _unprivileged_user()
    directory = Path(tempfile.mkdtemp(prefix="compilewatch-postgres-"))
    server = None
    try:
        if user is not None:
            os.chown(directory, pwd.getpwnam(user).pw_uid, -1)
        data, port = directory / "data", _free_port()
        initdb = [Path(found).with_name("initdb"), "-D", data, "-U", "postgres", "-A", "trust", "--no-sync"]
        subprocess.run(initdb, check=True, capture_output=True, user=user, cwd=directory)
        command = [found, "-D", data, "-p", str(port), "-h", "127.0.0.1", "-k", directory, "-F"]
        with (directory / "log").open("wb") as log:
            server = subprocess.Popen(command, stdout=log, stderr=log, user=user, cwd=directory)
        url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not _answers(url):
            if server.poll() is not None or time.monotonic() > deadline:
                raise Unavailable(f"the server did not start: {(directory / 'log').read_text()[-500:]}")
            time.sleep(0.05)
        yield url
    finally:
        if server is not None:
            server.terminate()
            server.wait(_START_TIMEOUT_S)
        shutil.rmtree(directory, ignore_errors=True)


def _unprivileged_user() -> str | None:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
