"""What a person sees while trials run, on standard error: a bar on a terminal, else one line per trial; and a
plan that is measured now with that shown, until Ctrl-C.
"""

from __future__ import annotations

import math
import os
import signal
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Event
from typing import Protocol, Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import one_line
from compilewatch.db.records.trial import Status, Trial
from compilewatch.db.units import capitalized, duration, words
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.output.tables import LONGEST_MESSAGE, PlainConsole, more_of
from compilewatch.runner.plan.durations import Case, Durations, TimeBudget
from compilewatch.runner.plan.plan import Plan
from compilewatch.runner.plan.trial_spec import Job
from compilewatch.runner.process.execution import RunOutcome, execute
from compilewatch.runner.process.spool import Spool, TravellingSpool
from compilewatch.runner.process.supervise import WAITING


def waiting_lines() -> Callable[[str], None]:
    """Say what a command waits for: each time on a terminal, once in a log."""
    is_announced = False

    def say(text: str) -> None:
        nonlocal is_announced
        if not is_announced or sys.stderr.isatty():
            print(f"compilewatch: {WAITING}: {text}", file=sys.stderr, flush=True)
        is_announced = True

    return say


_SILENT_S = 8.0


class UnderWay:
    """Says on standard error what is under way, at once, and how long it has been whenever nothing was said
    for a while: a command that is silent looks as if it hung.
    """

    def __init__(self, what: str, *, silent_s: float = _SILENT_S) -> None:
        self._what, self._silent_s = what, silent_s
        self._began = self._last_line_at = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="under way", daemon=True)

    def __enter__(self) -> Self:
        self.say(f"{capitalized(self._what)} ...")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def now(self, what: str) -> None:
        """Another thing is under way; nothing is said of it yet."""
        self._what, self._began = what, time.monotonic()

    def say(self, line: str) -> None:
        """Print `line`, which counts as not being silent."""
        print(line, file=sys.stderr, flush=True)
        self._last_line_at = time.monotonic()

    def _watch(self) -> None:
        while not self._over.wait(max(0.05, self._last_line_at + self._silent_s - time.monotonic())):
            now = time.monotonic()
            if now - self._last_line_at >= self._silent_s:
                self.say(f"{self._what}, {duration((now - self._began) * 1e9)} so far")


def uses_bar() -> bool:
    """A bar needs a terminal; NO_COLOR asks for plain text (https://no-color.org)."""
    return sys.stderr.isatty() and not os.environ.get("NO_COLOR")


CONTROL_SERIES = "the machine's control series"


class BarProgress(Progress):
    """Trials done, what runs now and in which phase, time elapsed and expected time left."""

    def __init__(self, total: int | None, time_left: TimeLeft) -> None:
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
        first = CONTROL_SERIES if time_left.has_control_series else "starting"
        self._task = self.add_task(first, total=total, phase="", left=time_left.text())

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
    """One plain line per finished trial, and one where nothing was said for a while; for logs and pipes."""

    def __init__(self, total: int | None, time_left: TimeLeft) -> None:
        self._total, self._time_left, self._number, self._waits = total, time_left, 0, False
        self._build: str | None = None
        self._case = CONTROL_SERIES if time_left.has_control_series else "the first trial"
        self._under_way = UnderWay(self._case)

    def __enter__(self) -> Self:
        self._under_way.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._under_way.__exit__()

    def trial_started(self, number: int, workload: str, strategy: str, build: str | None) -> None:
        self._time_left.started()
        # Where nobody knows how many there will be, those that were passed over have no number.
        self._number = self._number + 1 if self._total is None else number
        self._build = build
        self._case = f"{self._place()} {_name(workload, strategy, build)}"
        self._under_way.now(self._case)

    def phase(self, name: str) -> None:
        """Phases change too fast for lines; that it waits is said once."""
        is_waiting = name.startswith(WAITING)
        if is_waiting and not self._waits:
            self._under_way.say(f"compilewatch: {name}")
        self._waits = is_waiting
        self._under_way.now(f"{self._case}: {name if is_waiting else words(name)}")

    def trial_finished(self, trial: Trial) -> None:
        seconds = _seconds(trial)
        self._time_left.finished((trial.workload.name, trial.strategy.name), seconds)
        line = f"{_line(trial, seconds, self._build)} (about {self._time_left.text()} left)"
        self._under_way.say(f"{self._place()} {line}")
        self._case = CONTROL_SERIES
        self._under_way.now(self._case)

    def _place(self) -> str:
        return f"[{self._number}]" if self._total is None else f"[{self._number}/{self._total}]"


def run_progress(total: int | None, time_left: TimeLeft) -> BarProgress | LineProgress:
    """The progress display of `total` trials, None for as many as it takes, that fits standard error."""
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
        message = one_line(trial.failure.message.partition("\n")[0], LONGEST_MESSAGE)
        kind = words(trial.failure.kind.value)
        return f"{case}: failed ({kind}) after {elapsed}: {message} {more_of(trial.trial_id)}"
    samples = trial.latency_samples_ns
    latency = duration(statistics.median(samples)) if samples else "no samples"
    return f"{case}: {latency} per iteration, trial took {elapsed}"


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

    @property
    def has_control_series(self) -> bool:
        """Whether the machine's control series comes first."""
        return self._canaries

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
