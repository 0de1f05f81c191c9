"""Real services and workers on one PostgreSQL, each in its own directory as if on a host of its own."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.runner.quick_measurement import configuration, interpreter
from tests.runner.terminal import ROOT, environment

FLEET = """
[fleet]
queues = ["cpu"]
heartbeat_s = 0.5
stalled_s = 3
idle_s = 30
"""


@functools.cache
def _ways_to_a_name() -> list[str]:
    """A program that runs another under a host name of its own; none where the kernel refuses."""
    for way in (["unshare", "--uts"], ["unshare", "--user", "--map-root-user", "--uts"]):
        with contextlib.suppress(OSError):
            if subprocess.run([*way, "true"], capture_output=True, check=False).returncode == 0:
                return way
    return []


def own_name(name: str) -> list[str]:
    """What to put before a command so that it believes to be on the host `name`; nothing where refused."""
    way = _ways_to_a_name()
    return [*way, "sh", "-c", 'hostname "$0" && exec "$@"', name] if way else []


class Host:
    """A directory with a configuration, locks and a spool of its own, and the process that runs there."""

    def __init__(
        self, directory: Path, url: str, *command: str, seconds: float = 0.02, rounds: int = 1
    ) -> None:
        self.directory = directory
        self.gpu = f"GPU-{directory.name}"
        python = interpreter(directory / "build", gpu=self.gpu, seconds=seconds)
        self.config = configuration(directory, python, FLEET, rounds=rounds)
        (directory / "tmp").mkdir(exist_ok=True)
        self._command = [*own_name(directory.name), sys.executable, "-m", "compilewatch.runner", *command]
        self.environment = environment(
            COMPILEWATCH_DATABASE_URL=url,
            COMPILEWATCH_CONFIG=str(self.config),
            TMPDIR=str(directory / "tmp"),
        )
        self.log = directory / "log.txt"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        return self.process.pid

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self._command, cwd=ROOT, env=self.environment, stdout=log, stderr=log
            )

    def restart_if_dead(self) -> bool:
        """As a service manager does."""
        if self.process.poll() is None:
            return False
        self.start()
        return True

    def stop(self, number: int = signal.SIGTERM, timeout_s: float = 30) -> int:
        if self.process.poll() is None:
            os.kill(self.process.pid, number)
        return self.process.wait(timeout_s)

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")


def worker(directory: Path, url: str, **options: float) -> Host:
    return Host(directory, url, "worker", "--gpu", "cpu", **options)  # type: ignore[arg-type]


def service(directory: Path, url: str, **options: float) -> Host:
    return Host(directory, url, "schedule", **options)  # type: ignore[arg-type]


def wait_until(condition: Callable[[], bool], seconds: float, what: str, every_s: float = 0.05) -> float:
    """Wait for `condition`: how long it took. Fails with `what` after `seconds`."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, what
        time.sleep(every_s)
    return time.monotonic() - began


def is_alive(pid: int) -> bool:
    """A process that ended and waits for its parent is not alive."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
