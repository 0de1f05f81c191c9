"""A runner in a process of its own, to be killed: it measures fake trials and says each that it finished."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import psutil

from compilewatch.runner.plan.trial_spec import TrialSpec
from compilewatch.runner.process import measured_process
from tests.qa.faults.clock import started
from tests.qa.faults.forked import FORKED
from tests.qa.faults.place import TIMEOUT_S, Place, Told, measure, spec_of

GRACE_S = 0.2


@dataclass
class RunnerProcess:
    """A running runner; `finished` are the trials it said so of, complete once it is gone."""

    process: BaseProcess
    pipe: int
    finished: list[str] = field(default_factory=list)

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def when_there_is_one(self, depth: int, within_s: float = 20.0) -> int:
        """A process `depth` generations below, once there is one: 1 is the guard, 2 the worker."""
        deadline = time.monotonic() + within_s
        while True:
            with contextlib.suppress(psutil.NoSuchProcess):
                found = [psutil.Process(self.pid)]
                for _ in range(depth):
                    found = [child for parent in found for child in parent.children()]
                if found:
                    return found[-1].pid
            assert time.monotonic() < deadline, "it never came"
            time.sleep(0.01)

    def wait(self, timeout_s: float = 60.0) -> int | None:
        """Until it is gone: its exit code, negative for a signal."""
        with os.fdopen(self.pipe) as told:
            self.process.join(timeout_s)
            assert self.process.exitcode is not None, "the runner hangs"
            self.finished = told.read().split()
        return self.process.exitcode

    def kill(self) -> None:
        """Kill it; where it has ended by itself that is what `wait` says."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


@contextlib.contextmanager
def running(
    place: Place,
    run_id: str,
    faults: Sequence[str],
    *,
    clock: Path | None = None,
    group: Path | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Iterator[RunnerProcess]:
    """A runner that measures one trial per fault; killed at the end where it still runs.

    `group` is the file by which it joins a cgroup, with all that it starts; `clock` is what sets the clock
    of it all (see `tests.qa.faults.clock`).
    """
    heard, told = FORKED.Pipe(duplex=False)
    specs = [spec_of(place, run_id, fault, timeout_s=timeout_s) for fault in faults]
    process = started(_run, (place, run_id, specs, told, group), clock)
    told.close()
    runner = RunnerProcess(process, os.dup(heard.fileno()))
    heard.close()
    try:
        yield runner
    finally:
        if process.is_alive():
            process.kill()
        process.join(30)
        process.close()


def _run(
    place: Place,
    run_id: str,
    specs: list[TrialSpec],
    told: Connection,
    group: Path | None,
) -> None:
    if group is not None:
        group.write_text(str(os.getpid()))
    tempfile.tempdir = str(place.scratch)
    measured_process.GRACE_S = GRACE_S
    measure(place, run_id, specs, Told(lambda trial: os.write(told.fileno(), f"{trial}\n".encode())))
