"""The dashboard in a process of its own, to be killed while it starts and while it answers."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

import dashboard.__main__ as program
from dashboard.read.database import DATABASE_VARIABLE
from tests.dashboard.serving import free_port
from tests.faults.forked import FORKED
from tests.faults.place import Place

_UP_WITHIN_S = 60.0


@dataclass(frozen=True)
class DashboardProcess:
    """A dashboard that starts or answers on 127.0.0.1."""

    process: BaseProcess
    port: int
    log: Path

    def status(self, path: str) -> int | None:
        """Of the answer to a GET; None where there is none."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def wait_until_up(self) -> None:
        deadline = time.monotonic() + _UP_WITHIN_S
        while self.status("/healthz") != 200:
            assert self.process.is_alive(), self.log.read_text(encoding="utf-8")[-2000:]
            assert time.monotonic() < deadline, "the dashboard does not come up"
            time.sleep(0.05)

    def kill(self) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.join(30)
        assert self.process.exitcode == -signal.SIGKILL


@contextlib.contextmanager
def dashboard_of(place: Place, log: Path) -> Iterator[DashboardProcess]:
    """A dashboard of the place's database, killed at the end where it still runs."""
    port = free_port()
    process = FORKED.Process(target=_serve, args=(place, port, log))
    process.start()
    try:
        yield DashboardProcess(process, port, log)
    finally:
        if process.is_alive():
            process.kill()
        process.join(30)
        process.close()


def _serve(place: Place, port: int, log: Path) -> None:
    with log.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.environ["TMPDIR"] = tempfile.tempdir = str(place.scratch)
    os.environ[DATABASE_VARIABLE] = place.url
    sys.argv = ["compilewatch dashboard", "--port", str(port)]
    sys.exit(program.main())
