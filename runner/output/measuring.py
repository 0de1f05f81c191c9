"""A plan that is measured now, with its progress shown, until Ctrl-C."""

from __future__ import annotations

import math
import signal
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Event
from typing import Protocol

from compilewatch.db.engine.session import Database
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.output.progress import TimeLeft, run_progress
from compilewatch.runner.plan.durations import Durations, TimeBudget
from compilewatch.runner.plan.jobs import Job
from compilewatch.runner.plan.plan import Plan
from compilewatch.runner.process.execution import RunOutcome, execute
from compilewatch.runner.storage.spool import Spool, TravellingSpool


class Wanted(Protocol):
    """Whether a trial that is next is measured, within a budget."""

    def __call__(self, job: Job, *, budget: TimeBudget) -> bool: ...


@contextmanager
def stop_signal() -> Iterator[Event]:
    """An event that SIGINT and SIGTERM set while the block runs; the former handlers come back after it. So a
    run stops between two statements of ours, never in the middle of storing.
    """
    stop = Event()

    def request_stop(number: int, frame: object) -> None:  # noqa: ARG001
        stop.set()

    former = {number: signal.signal(number, request_stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def measure(
    plan: Plan,
    database: Database,
    settings: Settings,
    durations: Durations,
    seconds: float = math.inf,
    wait_s: float | None = None,
    *,
    wanted: Wanted | None = None,
    begun: Collection[str] = (),
) -> tuple[RunOutcome, TimeBudget]:
    """Measure and store every trial of `plan`, as `runner.process.execution.execute` does; Ctrl-C or
    SIGTERM ends it.

    Nothing is begun that is not expected to end within `seconds`; the budget says what was left out. Where
    `wanted` is given it decides of every trial whether it is measured, within that budget, and nobody knows
    how many there will be. Raises DeviceBusyError where a trial waited `wait_s` for the device.
    """
    cases = [(spec.workload.name, spec.strategy.name) for spec in plan.trials]
    directory = settings.fleet.spool_dir
    spool = TravellingSpool(directory) if directory else Spool(settings.data_dir / "spool")
    budget = TimeBudget(seconds, durations, canaries=plan.canaries)
    time_left = TimeLeft(cases, durations, budget.remaining_s, canaries=plan.canaries)
    total = len(cases) if wanted is None else None
    admits = budget.admits if wanted is None else partial(wanted, budget=budget)
    with stop_signal() as stop, run_progress(total, time_left) as progress:
        outcome = execute(
            plan,
            database,
            spool,
            progress=progress,
            is_cancelled=stop.is_set,
            admits=admits,
            wait_s=wait_s,
            begun=begun,
        )
    return outcome, budget
