"""The real server in its own process, for tests that speak HTTP to it or drive a browser."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from compilewatch.db.records.access import Roles, SignIn
from tests.dashboard.conftest import DATABASE
from tests.dashboard.provider import CLIENT_ID, CLIENT_SECRET, FakeProvider, fake_provider

ROOT = Path(__file__).parents[2]
START_TIMEOUT_S = 90


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Served:
    """A running dashboard on 127.0.0.1."""

    port: int
    pid: int

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get(self, path: str, **headers: str) -> Answer:
        """The raw answer to a GET: nothing is followed, decoded or normalised."""
        return self.ask("GET", path, headers)

    def ask(
        self, method: str, path: str, headers: Mapping[str, str] = MappingProxyType({}), body: bytes = b""
    ) -> Answer:
        """The raw answer to any request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body=body or None, headers=named)
            answer = connection.getresponse()
            return Answer(
                answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
            )
        finally:
            connection.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def served(
    database_url: str, log: Path, *options: str, port: int | None = None, **environment: str
) -> Iterator[Served]:
    """The dashboard over `database_url` until the block ends; its output goes to `log`."""
    port = port or free_port()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "compilewatch.dashboard", "--port", str(port), *options],
            cwd=ROOT,
            env={**os.environ, DATABASE: database_url, **environment},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_until_up(port, process, log)
        yield Served(port, process.pid)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


def _wait_until_up(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise AssertionError(f"the dashboard ended with {process.returncode}: {log.read_text()[-2000:]}")
        try:
            if Served(port, process.pid).get("/_stcore/health").status == 200:
                return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(f"the dashboard did not start: {log.read_text()[-2000:]}")


@dataclass(frozen=True)
class SignInServer:
    """A dashboard that asks everybody to sign in, the provider it asks, and its database."""

    server: Served
    provider: FakeProvider
    url: str


@contextmanager
def served_with_sign_in(recorded_url: str, folder: Path, roles: Roles) -> Iterator[SignInServer]:
    """A dashboard over a copy of `recorded_url` that signs in by OpenID Connect; its log has no traceback."""
    port, url, log = free_port(), f"sqlite:///{folder / 'own.db'}", folder / "log"
    shutil.copyfile(recorded_url.removeprefix("sqlite:///"), folder / "own.db")
    with fake_provider() as provider:
        sign_in = SignIn(
            base_url=f"http://127.0.0.1:{port}",
            issuer=provider.issuer,
            client_id=CLIENT_ID,
            client_secret=CLIENT_SECRET,
            roles=roles,
        )
        with served(url, log, port=port, COMPILEWATCH_SIGN_IN=sign_in.revealed()) as running:
            yield SignInServer(running, provider, url)
        written = log.read_text()
        assert "Traceback" not in written, written[-4000:]
