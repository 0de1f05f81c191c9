"""`compilewatch schedule` in a process of its own, to be killed and stopped: the real command, often due.

What differs from the real one are its times: a schedule fires every second where crontab knows minutes, and
a service that is not heard of loses its request after a second.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

from apscheduler.triggers.cron import CronTrigger

import compilewatch.runner.cli.judge.judging
import compilewatch.runner.cli.measure.schedule
import compilewatch.runner.regressions.log
import compilewatch.runner.service.service  # noqa: F401 - imported before the fork, as all that the command does later
from compilewatch.runner.cli.front import main
from compilewatch.runner.process import measured_process
from compilewatch.runner.service import keeper, timetable
from tests.qa.faults.clock import started
from tests.qa.faults.place import Place
from tests.qa.faults.runner_process import GRACE_S

SCHEDULE = "often"
LEASE_S = 1.0
_CONFIGURATION = """
data_dir = "{data}"

[run]
suite = "quick"
canaries = false
device = "cpu"
timeout_s = 100

[service]
watch_builds = false

[[build]]
name = "fake"
python = "{python}"

[[workload]]
name = "fake"
target = "fake:fake"
kwargs = {{ fault = "{fault}" }}

[[suite]]
name = "quick"
workloads = ["fake"]
strategies = ["eager"]
trials = 2
"""
_SCHEDULE = """
[[schedule]]
name = "{name}"
cron = "* * * * *"
"""


@dataclass(frozen=True)
class ServiceProcess:
    """A running service; what it says is in `log`."""

    process: BaseProcess
    log: Path

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def send(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def wait_until_it_serves(self, within_s: float = 60.0) -> None:
        deadline = time.monotonic() + within_s
        while "Serving" not in self.said():
            assert time.monotonic() < deadline, f"the service does not come up: {self.said()[-2000:]}"
            time.sleep(0.02)

    def wait(self, timeout_s: float = 60.0) -> int:
        """Until it is gone: its exit code, negative for a signal."""
        self.process.join(timeout_s)
        assert self.process.exitcode is not None, f"the service hangs: {self.said()[-2000:]}"
        return self.process.exitcode

    def stop(self) -> int:
        """As a service manager stops it: its exit code."""
        self.send(signal.SIGTERM)
        return self.wait()

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""

    def acknowledged(self) -> list[str]:
        """The trials of which it said that they are measured."""
        return re.findall(r"measured, trial (\S+)\.$", self.said(), re.MULTILINE)


@contextlib.contextmanager
def serving(
    place: Place,
    name: str,
    *,
    fault: str = "slow",
    is_due: bool = True,
    is_hasty: bool = True,
    clock: Path | None = None,
) -> Iterator[ServiceProcess]:
    """A service at `place`, killed at the end where it still runs.

    With `is_due` a schedule of it fires every second; without `is_hasty` its times are the real ones. `clock`
    is what sets its clock (see `tests.qa.faults.clock`).
    """
    directory = place.directory / "services" / name
    directory.mkdir(parents=True)
    (directory / "fake.py").write_text("def fake(fault):\n    return fault\n", encoding="utf-8")
    configuration = _CONFIGURATION.format(
        data=place.directory / "data", python=place.interpreter(), fault=fault
    )
    configuration += _SCHEDULE.format(name=SCHEDULE) if is_due else ""
    (directory / "compilewatch.toml").write_text(configuration, encoding="utf-8")
    log = directory / "log.txt"
    process = started(_serve, (place, directory, log, is_hasty), clock)
    try:
        yield ServiceProcess(process, log)
    finally:
        if process.is_alive():
            process.kill()
        process.join(30)
        process.close()


def _serve(place: Place, directory: Path, log: Path, is_hasty: bool) -> None:
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.environ["TMPDIR"] = tempfile.tempdir = str(place.scratch)
    measured_process.GRACE_S = GRACE_S
    if is_hasty:
        timetable.parse_cron = _every_second
        keeper.LEASE_S = LEASE_S
        keeper.BEAT_S = keeper.RECONCILE_S = 0.1
    os.chdir(directory)
    main(["schedule", "--db", place.url, "--config", str(directory / "compilewatch.toml")])


def _every_second(_cron: str, _timezone: str) -> CronTrigger:
    return CronTrigger(second="*", timezone="UTC")
