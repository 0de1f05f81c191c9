"""Measures one release after the other against the first, by turns, until each can be placed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

from packaging.version import Version
from pydantic import BaseModel, ConfigDict, Field

from compilewatch.db.columns.metrics import COUNTED_METRICS
from compilewatch.db.engine.session import Database
from compilewatch.db.errors import CompilewatchError
from compilewatch.db.judge.bisection import ReleasePlace, has_moved, place_of
from compilewatch.db.judge.compare.sides import Selection, VerdictError
from compilewatch.db.judge.results import Comparison, Row
from compilewatch.db.queries.selection import Filters
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.vocabulary import Metric
from compilewatch.db.units import percent, plural
from compilewatch.db.verdicts import gateway
from compilewatch.runner.config.settings import BuildSettings, Settings
from compilewatch.runner.plan.builds import (
    BuildError,
    distinct_releases,
    offered_versions,
    parsed_release,
    remove_build,
)
from compilewatch.runner.plan.interpreter import InterpreterError
from compilewatch.runner.plan.trial_spec import Diagnostics
from compilewatch.runner.process.saved_progress import SearchQuestion, SearchState
from compilewatch.runner.search.environments import announce, make_build, measure_interleaved


class Pair(NamedTuple):
    """Two runs that took turns: the first release's, and that of the release in question."""

    first: str
    other: str


class Step(BaseModel):
    """One release: the runs that measured it, or why it cannot be measured, and whether its environment was
    made for this.
    """

    model_config = ConfigDict(extra="forbid")

    runs: list[Pair] = []
    made: bool = False
    skipped: str | None = None


class Question(SearchQuestion):
    """Between which releases something changed, and in which case."""

    folder: ClassVar[str] = "bisect"

    good: str
    bad: str
    packages: tuple[str, ...]
    workload: str
    strategy: str
    metric: str | None
    device: str


class State(SearchState):
    """Steps by release."""

    question: Question
    steps: dict[str, Step] = Field(default={})

    def step(self, release: str) -> Step:
        """Of a release, a new one where it was not measured."""
        return self.steps.setdefault(release, Step())

    @property
    def measured(self) -> list[str]:
        """Releases with trials."""
        return [release for release, step in self.steps.items() if step.runs]


# What is searched for where the command names no metric: the first of these that moved between the ends.
_METRICS = (
    *(Metric.DEVICE_TIME, Metric.LATENCY, Metric.SPEEDUP, Metric.COMPILE_COST, Metric.PEAK_MEMORY),
    *COUNTED_METRICS,
)


@dataclass
class Measurer:
    """The trials of one search. `most_trials` a side of a release at most, `at_once` of them at a time."""

    database: Database
    settings: Settings
    state: State
    index_url: str | None
    at_once: int
    most_trials: int
    profile: bool
    discard: bool

    @property
    def question(self) -> Question:
        """What is searched for."""
        return self.state.question

    def whole(self) -> Row:
        """The change between both ends. Raises CompilewatchError where none is shown."""
        rows = self._rows_until(self.question.bad, decided=lambda rows: self._moved(rows) is not None)
        moved = self._moved(rows)
        if moved is None:
            metric = self.question.metric or "any metric"
            raise CompilewatchError(
                f"No change of {metric.replace('_', ' ')} is shown between torch {self.question.good} and "
                f"{self.question.bad}.",
                "Name a case that `compilewatch compare` calls changed, or allow more with --max-trials.",
            )
        return moved

    def place(self, release: str, whole: Row) -> ReleasePlace:
        """Where a release stands. One that cannot be installed or measured is skipped, with its reason."""
        step = self.state.step(release)
        if step.skipped is not None:
            return ReleasePlace.SKIPPED

        def placed(rows: Sequence[Row]) -> ReleasePlace:
            # The noise of other runs gives a single trial an interval too.
            return place_of(rows[0], whole) if self._trials(rows) >= self.at_once else ReleasePlace.OPEN

        try:
            rows = self._rows_until(release, lambda rows: placed(rows) is not ReleasePlace.OPEN, whole.metric)
        except (BuildError, InterpreterError) as error:
            step.skipped = error.message
            self._save()
            announce(f"torch {release} is skipped: {error.message}")
            return ReleasePlace.SKIPPED
        finally:
            if self.discard:
                self._remove(release)
        place = placed(rows)
        change = rows[0].change if rows else None
        shown = "" if change is None else f" ({percent(change, signed=True)} against {self.question.good})"
        where = f"{place.value} the change" if place is not ReleasePlace.OPEN else "not decided"
        announce(f"torch {release} is {where}{shown}.")
        return place

    def remove_ends(self) -> None:
        """With `discard`, the environments of both ends, where they were made for this."""
        if self.discard:
            for release in (self.question.good, self.question.bad):
                self._remove(release)

    def comparison(self, release: str) -> Comparison | None:
        """All trials of a release against those of the first that took turns with them; None without any."""
        pairs = self.state.step(release).runs
        base, head = (
            Selection(name=f"torch {name}", run_ids=tuple(pair[side] for pair in pairs))
            for side, name in enumerate((self.question.good, release))
        )
        cases = Filters(workloads=(self.question.workload,), strategies=(self.question.strategy, EAGER.name))
        try:
            return gateway.compare(self.database, base, head, cases, policy=self.settings.policy)
        except VerdictError:
            return None

    def rows(self, release: str, metric: Metric | None = None) -> list[Row]:
        """The verdicts on the case alone, on one metric or all."""
        comparison = self.comparison(release) if self.state.step(release).runs else None
        return [
            row
            for row in (comparison.rows if comparison else ())
            if row.strategy == self.question.strategy and metric in (None, row.metric)
        ]

    def _rows_until(
        self, release: str, decided: Callable[[Sequence[Row]], bool], metric: Metric | None = None
    ) -> list[Row]:
        rows = self.rows(release, metric)
        while not decided(rows) and self._trials(rows) < self.most_trials:
            before = self._trials(rows)
            self._measure(release)
            rows = self.rows(release, metric)
            if self._trials(rows) <= before:
                raise BuildError(f"The trials of torch {release} failed.", "See `compilewatch list runs`.")
        return rows

    @staticmethod
    def _trials(rows: Sequence[Row]) -> int:
        return max((min(row.trials) for row in rows), default=0)

    def _moved(self, rows: Sequence[Row]) -> Row | None:
        wanted = [Metric(self.question.metric)] if self.question.metric else _METRICS
        moved = {row.metric: row for row in rows if has_moved(row)}
        return next((moved[metric] for metric in wanted if metric in moved), None)

    def _measure(self, release: str) -> None:
        builds = [self._build(each) for each in (self.question.good, release)]

        def begin(run_ids: Sequence[str]) -> None:
            self.state.step(release).runs.append(Pair(*run_ids))
            self._save()

        sides = f"{self.question.good} and {release}"
        announce(f"Measuring torch {sides} by turns, {plural(self.at_once, 'trial')} a side.")
        measure_interleaved(
            self.database,
            self.settings,
            builds,
            [(self.question.workload, self.question.strategy)],
            trials=self.at_once,
            device=self.question.device,
            diagnostics=Diagnostics(profile=self.profile),
            begin=begin,
        )

    def _build(self, release: str) -> BuildSettings:
        build, is_new = make_build(
            [f"torch=={release}", *self.question.packages],
            self.settings,
            name=self._name(release),
            index_url=self.index_url,
            announced=f"Installing torch {release}.",
        )
        if is_new:
            self.state.step(release).made = True
            self._save()
        return build

    def _name(self, release: str) -> str:
        """With further packages it is another environment than that of `builds create`."""
        return f"torch-{release}" if not self.question.packages else f"torch-{release}-{self.question.key}"

    def _remove(self, release: str) -> None:
        step = self.state.step(release)
        if step.made:
            remove_build(self._name(release), self.settings)
            step.made = False
            self._save()

    def _save(self) -> None:
        self.state.save(self.settings.data_dir)


def releases_between(good: str, bad: str, *, index_url: str | None = None, early: bool = False) -> list[str]:
    """All releases from `good` to `bad`, both included, in the order of the search: `bad` may be the older
    one. Nightlies and candidates only with `early`.

    Raises CompilewatchError where they are the same, BuildError where pip offers none of one.
    """
    first, last = (parsed_release(each) for each in (good, bad))
    if Version(first) == Version(last):
        raise CompilewatchError("Both ends are the same release.", "Name two releases of torch.")
    found = offered_versions(Path(sys.executable), "torch", index_url=index_url, early=early)
    offered = distinct_releases(found)
    for end in (first, last):
        if Version(end) not in offered:
            newest = ", ".join(str(each) for each in offered[-5:])
            raise BuildError(
                f"pip finds no torch=={end} for this Python and platform.", f"It offers {newest}."
            )
    low, high = sorted((Version(first), Version(last)))
    between = [str(each) for each in offered if low <= each <= high]
    return between if Version(first) == low else between[::-1]
