"""What a person sees while trials run, on standard error: a bar on a terminal, else one line per trial."""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Callable
from typing import Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from compilewatch.db.records.trial import Status, Trial
from compilewatch.db.units import duration, words
from compilewatch.runner.output.failures import more_of
from compilewatch.runner.output.tables import PlainConsole
from compilewatch.runner.output.time_left import TimeLeft
from compilewatch.runner.process.supervise import WAITING


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
