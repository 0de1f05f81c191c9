"""Processes that compile, killed below a real torch: the compiler itself, and a worker of Inductor's pool."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from db.records import CacheState, FailureKind, Strategy, StrategyKind, Task
from runner.trial_spec import WorkloadSpec
from tests.faults.conftest import ROUNDS, Tally
from tests.faults.invariants import expect_all_is_well
from tests.faults.place import Place, measure, spec_of
from tests.runner.measuring import FIXTURES

_LOOK_EVERY_S = 0.01


@dataclass(frozen=True)
class _Case:
    backend: str
    target: str
    process: str
    """What the command line of the process to kill contains; of several the youngest."""
    path: Path


_CASES = {
    "the compiler": _Case("inductor", "workload_fixtures:relu_function", "cc1plus", FIXTURES),
    "a worker of Inductor's pool": _Case(
        "pooled", "pooled_workload:doubled", "compile_worker", Path(__file__).parent
    ),
}


@pytest.mark.faults
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("who", _CASES)
def test_what_compiles_is_killed(
    who: str, place: Place, tally: Tally, numbered: Callable[[str], str]
) -> None:
    chance = random.Random(who)
    acknowledged: list[str] = []
    for _ in range(max(2, ROUNDS // 3)):
        with tally.fault("compile worker", f"kill -9 of {who} below a real torch"):
            run_id = numbered("run")
            spec = spec_of(place, run_id, "none", **_real(_CASES[who]))
            with _killed(_CASES[who].process, chance.uniform(0.0, 0.2)) as killed:
                (trial,) = measure(place, run_id, [spec])
            assert killed, f"there was no {_CASES[who].process} to kill"
            assert trial.failure is not None
            assert trial.failure.kind is FailureKind.COMPILE_ERROR, trial.failure
            assert trial.failure.phase == "first_call"
            acknowledged.append(trial.trial_id)
            expect_all_is_well(place, acknowledged)


def _real(case: _Case) -> dict[str, object]:
    """What makes of a trial of the fake worker one of this interpreter's torch."""
    strategy = Strategy(
        name=case.backend, kind=StrategyKind.COMPILE, backend=case.backend, cache=CacheState.COLD
    )
    workload = WorkloadSpec(
        name=case.target.partition(":")[2],
        version="1",
        task=Task.FUNCTION,
        dtype="float32",
        target=case.target,
        kwargs={},
        path=(str(case.path),),
    )
    return {"workload": workload, "strategy": strategy, "interpreter": None, "timeout_s": 120.0}


@contextlib.contextmanager
def _killed(part: str, after_s: float) -> Iterator[list[int]]:
    """Kills the first process of a trial that looks like `part`, `after_s` after it was seen: whom it hit."""
    killed: list[int] = []
    over = threading.Event()

    def look() -> None:
        while not killed and not over.is_set():
            if found := _processes(part):
                time.sleep(after_s)
                with contextlib.suppress(psutil.NoSuchProcess):
                    found[-1].kill()
                    killed.append(found[-1].pid)
            over.wait(_LOOK_EVERY_S)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


def _processes(part: str) -> list[psutil.Process]:
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if part in " ".join(process.cmdline()):
                found.append(process)
    return sorted(found, key=lambda process: process.create_time())
