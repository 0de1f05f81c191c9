"""Processes that compile, killed below a real torch: the compiler itself, and a worker of Inductor's pool."""

from __future__ import annotations

import contextlib
import random
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from compilewatch.db.records.trial import CacheState, FailureKind, Strategy, StrategyKind, Task
from compilewatch.runner.plan.trial_spec import WorkloadSpec
from tests.qa.faults.conftest import ROUNDS, Tally
from tests.qa.faults.invariants import expect_all_is_well
from tests.qa.faults.place import Place, measure, spec_of
from tests.runner.measuring import FAST_COMPILE, FIXTURES

_LOOK_EVERY_S = 0.01
_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class _Case:
    backend: str
    target: str
    process: str
    """Pattern of the command line of the process to kill; of several the youngest."""
    path: Path
    kinds: frozenset[FailureKind] = frozenset({FailureKind.COMPILE_ERROR})


_CASES = {
    "the compiler": _Case("inductor", "workload_fixtures:relu_function", r"cc1plus .*\.main\.cpp", FIXTURES),
    "a worker of Inductor's pool": _Case(
        "pooled",
        "pooled_workload:doubled",
        "_inductor/compile_worker",
        Path(__file__).parent,
        # Where the whole pool goes at once, torch waits for it until the trial's time is up.
        frozenset({FailureKind.COMPILE_ERROR, FailureKind.TIMEOUT}),
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
    for _ in range(max(2, ROUNDS // 6)):
        with tally.fault("compile worker", f"kill -9 of {who} below a real torch"):
            run_id = numbered("run")
            spec = spec_of(place, run_id, "none", **_real(_CASES[who]))
            with _killed(_CASES[who].process, chance.uniform(0.0, 0.2)) as killed:
                (trial,) = measure(place, run_id, [spec])
            assert killed, f"there was no {_CASES[who].process} to kill"
            assert trial.failure.kind in _CASES[who].kinds, trial.failure
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
    return {
        "workload": workload,
        "strategy": strategy,
        "interpreter": None,
        "timeout_s": _TIMEOUT_S,
        # With these what is compiled first is the kernel, not a question to the compiler.
        "worker_env": FAST_COMPILE,
    }


@contextlib.contextmanager
def _killed(pattern: str, after_s: float) -> Iterator[list[int]]:
    """Kills the youngest process of a trial like `pattern`, `after_s` after there is one: whom it hit."""
    killed: list[int] = []
    over = threading.Event()

    def look() -> None:
        while not killed and not over.is_set():
            if _processes(pattern):
                time.sleep(after_s)
                for process in _processes(pattern)[-1:]:
                    with contextlib.suppress(psutil.NoSuchProcess):
                        process.kill()
                        killed.append(process.pid)
            over.wait(_LOOK_EVERY_S)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


def _processes(pattern: str) -> list[psutil.Process]:
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE and re.search(pattern, " ".join(process.cmdline())):
                found.append(process)
    return sorted(found, key=lambda process: process.create_time())
