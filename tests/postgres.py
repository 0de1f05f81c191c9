"""A PostgreSQL server for tests: the one named, the one that runs here, or one started for the purpose."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
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
        with own_server() as server:
            yield server.url


def _answers(url: str) -> bool:
    import psycopg

    try:
        psycopg.connect(url, connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True


class OwnServer:
    """A server that only this process uses; `stop` and `start` as if it crashed and came back."""

    def __init__(self, directory: Path, postgres: str, user: str | None) -> None:
        self._directory = directory
        self._user = user
        self._process: subprocess.Popen[bytes] | None = None
        data, port = directory / "data", _free_port()
        initdb = [
            Path(postgres).with_name("initdb"),
            "-D",
            data,
            "-U",
            "postgres",
            "-A",
            "trust",
            "--no-sync",
        ]
        subprocess.run(initdb, check=True, capture_output=True, user=user, cwd=directory)
        self._command = [postgres, "-D", data, "-p", str(port), "-h", "127.0.0.1", "-k", directory, "-F"]
        self.url = f"postgresql://postgres@127.0.0.1:{port}/postgres"

    def start(self) -> None:
        """Start and wait until it answers. Raises Unavailable."""
        with (self._directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=log, user=self._user, cwd=self._directory
            )
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not _answers(self.url):
            if self._process.poll() is not None or time.monotonic() > deadline:
                said = (self._directory / "log").read_text()[-500:]
                raise Unavailable(f"the server did not start: {said}")
            time.sleep(0.05)

    def stop(self, number: int = signal.SIGTERM) -> None:
        """SIGTERM waits for nobody's session here either; SIGQUIT is as good as pulling the plug."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT if number == signal.SIGTERM else number)
            self._process.wait(_START_TIMEOUT_S)


@contextlib.contextmanager
def own_server() -> Iterator[OwnServer]:
    """A new, empty server that runs. Raises Unavailable."""
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
        server = OwnServer(directory, found, user)
        server.start()
        yield server
    finally:
        if server is not None:
            server.stop()
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
