"""What a person sees while trials run, on standard error: a bar on a terminal, else one line per trial."""

from __future__ import annotations

import math
import os
import signal
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event
from typing import Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from db.engine.session import Database
from db.records.trial import Status, Trial
from db.units import duration, words
from runner.config.settings import Settings
from runner.output.failures import more_of
from runner.output.tables import PlainConsole
from runner.plan.durations import Case, Durations
from runner.plan.plan import Plan
from runner.plan.time_budget import TimeBudget
from runner.process.execution import RunOutcome, execute
from runner.process.supervise import WAITING
from runner.storage.spool import Spool, TravellingSpool


class TimeLeft:
    """Expected seconds left: what each waiting trial is expected to take and what lies between two of them,
    and as long for the machine's control series after the trials as before; at most `remaining_s`.
    """

    def __init__(
        self,
        cases: Sequence[Case],
        durations: Durations,
        remaining_s: Callable[[], float] = lambda: math.inf,
        *,
        canaries: bool = False,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._waiting = list(cases)
        self._durations = durations
        self._remaining_s = remaining_s
        self._canaries = canaries
        self._monotonic = monotonic
        self._mark = monotonic()
        self._canaries_s: float | None = None
        self._between_s: list[float] = []

    def started(self) -> None:
        """A trial begins."""
        if self._canaries_s is None:
            self._canaries_s = self._monotonic() - self._mark if self._canaries else 0.0
            self._mark = self._monotonic()

    def finished(self, case: Case, seconds: float) -> None:
        """A trial of `case` ended after `seconds`, which a wait for the device is no part of."""
        self._waiting.remove(case)
        self._durations.note(case, seconds)
        now = self._monotonic()
        self._between_s.append(max(0.0, now - self._mark - seconds))
        self._mark = now

    def seconds(self) -> float:
        """Of all trials that wait, the one that runs among them."""
        waiting = Counter(self._waiting)
        expected_s = sum(self._durations.expected_s(case) * count for case, count in waiting.items())
        if self._between_s:
            expected_s += statistics.median(self._between_s) * len(self._waiting)
        return min(expected_s + (self._canaries_s or 0.0), self._remaining_s())

    def text(self) -> str:
        """To the second: "1.53 min", "0 s"."""
        return duration(round(self.seconds()) * 1e9)


def waiting_lines() -> Callable[[str], None]:
    """Say what a command waits for: each time on a terminal, once in a log."""
    said = False

    def say(text: str) -> None:
        nonlocal said
        if not said or sys.stderr.isatty():
            print(f"compilewatch: {WAITING}: {text}", file=sys.stderr, flush=True)
        said = True

    return say


def uses_bar() -> bool:
    """A bar needs a terminal; NO_COLOR asks for plain text (https://no-color.org)."""
    return sys.stderr.isatty() and not os.environ.get("NO_COLOR")


class BarProgress(Progress):
    """Trials done, what runs now and in which phase, time elapsed and expected time left."""

    def __init__(self, total: int, time_left: TimeLeft) -> None:
        self._time_left = time_left
        self._build: str | None = None
        super().__init__(
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            TextColumn("[dim]{task.fields[phase]}"),
            TimeElapsedColumn(),
            TextColumn("about {task.fields[left]} left"),
            console=PlainConsole(stderr=True),
            transient=True,
        )
        self._task = self.add_task("starting", total=total, phase="", left=time_left.text())

    def trial_started(self, number: int, workload: str, strategy: str, build: str | None) -> None:  # noqa: ARG002
        self._time_left.started()
        self._build = build
        self.update(self._task, description=_name(workload, strategy, build), phase="")

    def phase(self, name: str) -> None:
        self.update(self._task, phase=words(name))

    def trial_finished(self, trial: Trial) -> None:
        seconds = _seconds(trial)
        self._time_left.finished((trial.workload.name, trial.strategy.name), seconds)
        if trial.failure is not None:
            self.console.print(_line(trial, seconds, self._build), markup=False, highlight=False)
        self.update(self._task, advance=1, left=self._time_left.text())


class LineProgress:
    """One plain line per finished trial, for logs and pipes."""

    def __init__(self, total: int, time_left: TimeLeft) -> None:
        self._total, self._time_left, self._number, self._waits = total, time_left, 0, False
        self._build: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def trial_started(self, number: int, workload: str, strategy: str, build: str | None) -> None:  # noqa: ARG002
        self._time_left.started()
        self._number, self._build = number, build

    def phase(self, name: str) -> None:
        """Phases change too fast for lines; that it waits is said once."""
        is_waiting = name.startswith(WAITING)
        if is_waiting and not self._waits:
            print(f"compilewatch: {name}", file=sys.stderr, flush=True)
        self._waits = is_waiting

    def trial_finished(self, trial: Trial) -> None:
        seconds = _seconds(trial)
        self._time_left.finished((trial.workload.name, trial.strategy.name), seconds)
        line = f"{_line(trial, seconds, self._build)} (about {self._time_left.text()} left)"
        print(f"[{self._number}/{self._total}] {line}", file=sys.stderr, flush=True)


def run_progress(total: int, time_left: TimeLeft) -> BarProgress | LineProgress:
    """The progress display of `total` trials that fits standard error."""
    return (BarProgress if uses_bar() else LineProgress)(total, time_left)


def _seconds(trial: Trial) -> float:
    """How long `trial` ran, without its wait for the device."""
    return 0.0 if trial.ended_at is None else (trial.ended_at - trial.started_at).total_seconds()


def _name(workload: str, strategy: str, build: str | None) -> str:
    return " · ".join(part for part in (workload, strategy, build) if part is not None)


def _line(trial: Trial, seconds: float, build: str | None) -> str:
    case = _name(trial.workload.name, trial.strategy.name, build)
    elapsed = duration(seconds * 1e9)
    if trial.status is Status.FAILED and trial.failure is not None:
        message = trial.failure.message.partition("\n")[0]
        kind = words(trial.failure.kind.value)
        return f"{case}: failed ({kind}) after {elapsed}: {message} {more_of(trial.trial_id)}"
    samples = trial.latency_samples_ns
    latency = duration(statistics.median(samples)) if samples else "no samples"
    return f"{case}: {latency} per iteration, trial took {elapsed}"


# Ctrl-C and SIGTERM stop a run between two statements of ours, never in the middle of storing.


@contextmanager
def stop_signal() -> Iterator[Event]:
    """An event that SIGINT and SIGTERM set while the block runs; the former handlers come back after it."""
    stop = Event()

    def request_stop(number: int, frame: object) -> None:  # noqa: ARG001
        stop.set()

    former = {number: signal.signal(number, request_stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


# What commands that measure now share: a plan is executed here, with its progress shown, until Ctrl-C.


def measure(
    plan: Plan,
    database: Database,
    settings: Settings,
    durations: Durations,
    seconds: float = math.inf,
    wait_s: float | None = None,
) -> tuple[RunOutcome, TimeBudget]:
    """Measure and store every trial of `plan`, as `runner.process.execution.execute` does; Ctrl-C or
    SIGTERM ends it.

    Nothing is begun that is not expected to end within `seconds`; the budget says what was left out. Raises
    DeviceBusyError where a trial waited `wait_s` for the device.
    """
    cases = [(spec.workload.name, spec.strategy.name) for spec in plan.trials]
    directory = settings.fleet.spool_dir
    spool = TravellingSpool(directory) if directory else Spool(settings.data_dir / "spool")
    budget = TimeBudget(seconds, durations, canaries=plan.canaries)
    time_left = TimeLeft(cases, durations, budget.remaining_s, canaries=plan.canaries)
    with stop_signal() as stop, run_progress(len(cases), time_left) as progress:
        outcome = execute(
            plan,
            database,
            spool,
            progress=progress,
            is_cancelled=stop.is_set,
            admits=budget.admits,
            wait_s=wait_s,
        )
    return outcome, budget
