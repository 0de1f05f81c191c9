"""Measures both builds of an attribution, as this host has them, then the hybrids of them, by turns, until
what each component carries is decided.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pandas import DataFrame
from pydantic import BaseModel, ConfigDict, Field

from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.engine.session import Database
from compilewatch.db.errors import CompilewatchError
from compilewatch.db.judge.bisection import has_moved
from compilewatch.db.judge.compare.attribution import CaseAttribution, Hybrid, attribute, hybrids_of
from compilewatch.db.judge.compare.sides import Selection, VerdictError
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.results import Row
from compilewatch.db.queries import facets
from compilewatch.db.queries.named import recorded_builds
from compilewatch.db.queries.run_parts import run_parts
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.ids import build_identity, identity
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import Build
from compilewatch.db.records.vocabulary import Metric
from compilewatch.db.units import plural
from compilewatch.db.verdicts import gateway
from compilewatch.db.verdicts.sides import resolve_side
from compilewatch.runner.config.settings import BuildSettings, Settings
from compilewatch.runner.plan.builds import BuildError, known_builds, remove_build
from compilewatch.runner.plan.durations import Case
from compilewatch.runner.plan.host_stacks import HostStacks, MissingBuildError
from compilewatch.runner.plan.interpreter import InterpreterError
from compilewatch.runner.process.saved_progress import SearchQuestion, SearchState
from compilewatch.runner.search.components import (
    Component,
    Environment,
    environment_of,
    python_of,
    require_same,
    requirements_of,
)
from compilewatch.runner.search.environments import announce, make_build, measure_interleaved

FIXED = ("driver", "os", "compiler")
"""Parts of a recorded build that one host has at one version only."""


@dataclass(frozen=True)
class Side:
    """A build of this host. `stored` are its trials, `recorded` what they were measured with; None where no
    trial is stored.
    """

    name: str
    build: BuildSettings
    stored: Selection | None
    recorded: Build | None


def side_of(name: str, settings: Settings, host: HostStacks, database: Database) -> Side:
    """The build of `host` that `name` stands for: one of `builds list`, else a side of `compare`.

    Raises NotFoundError for an unknown name, MissingBuildError where no build here has that software.
    """
    known = known_builds(settings)
    if name in known:
        mine = _stored_ids(known[name], host, database)
        of_build = recorded_builds(database, mine)
        of_name = Selection(name=name, build_ids=mine) if mine else None
        return Side(name, known[name], of_name, of_build[0] if of_build else None)
    stored = resolve_side(name, database)
    ids = stored.build_ids or tuple(map(str, run_parts(database, stored.run_ids)["build_id"].unique()))
    recorded = recorded_builds(database, ids)
    return Side(name, host.build_like(recorded[0], but=FIXED), stored, recorded[0])


def _stored_ids(build: BuildSettings, host: HostStacks, database: Database) -> tuple[str, ...]:
    """The recorded builds that this build of the host is, with today's driver, kernel and compiler."""
    ids = []
    for build_id in facets.builds(database)["build_id"]:
        for recorded in recorded_builds(database, [str(build_id)]):
            try:
                counterpart = host.build_like(recorded)
            except MissingBuildError:
                continue
            if counterpart.name == build.name:
                ids.append(str(build_id))
    return tuple(ids)


def fixed_differences(base: Side, head: Side) -> list[str]:
    """What differs between the stored trials and cannot be swapped on one host, as "driver 570 to 580"."""
    if base.recorded is None or head.recorded is None:
        return []
    pairs = ((part, getattr(base.recorded, part), getattr(head.recorded, part)) for part in FIXED)
    return [f"{part} {old} to {new}" for part, old, new in pairs if old and new and old != new]


@dataclass(frozen=True)
class FixedShare:
    """What changed in one case with the parts that one host cannot swap, by stored trials of `build`, the
    rest of which both sides share.
    """

    build: Build
    row: Row


def fixed_shares(
    database: Database, base: Side, head: Side, metric: Metric, policy: Policy, cases: Collection[Case] = ()
) -> list[FixedShare]:
    """The verdicts on stored trials of one build with the base's driver, kernel and compiler, and with the
    head's: of the base's other parts, then of the head's. Of `cases`, all of them where none is named. Empty
    where nobody measured either build with both, on hosts of the same hardware.
    """
    if base.recorded is None or head.recorded is None:
        return []
    builds = [base.recorded, head.recorded]
    shares: list[FixedShare] = []
    for build in builds[: 1 if _without_fixed(builds[0]) == _without_fixed(builds[1]) else 2]:
        ids = [build_identity(_with_fixed(build, side)) for side in builds]
        if len(recorded_builds(database, ids)) == len(set(ids)):
            first, last = (
                Selection(name=side.name, build_ids=(mine,))
                for side, mine in zip((base, head), ids, strict=True)
            )
            rows = _rows(database, first, last, metric, policy, cases)
            shares += [FixedShare(build, row) for row in rows]
    return shares


def _with_fixed(build: Build, of: Build) -> Build:
    return build.model_copy(update={part: getattr(of, part) for part in FIXED})


def _without_fixed(build: Build) -> Build:
    """And without what people call it."""
    return build.model_copy(update=dict.fromkeys((*FIXED, "label")))


def _rows(
    database: Database,
    first: Selection,
    last: Selection,
    metric: Metric,
    policy: Policy,
    cases: Collection[Case],
) -> list[Row]:
    try:
        comparison = gateway.compare(database, first, last, policy=policy)
    except VerdictError:
        # Measured on hosts of other hardware, or with no case in common.
        return []
    rows = [row for row in comparison.rows if row.metric is metric]
    return [row for row in rows if not cases or (row.workload, row.strategy) in cases]


def moved_cases(
    database: Database, base: Side, head: Side, metric: Metric, policy: Policy, strategies: Sequence[str]
) -> list[Case]:
    """The cases that moved between what is stored of both, of these strategies where named.

    Raises CompilewatchError where nothing is stored or nothing moved.
    """
    if base.stored is None or head.stored is None:
        missing = base if base.stored is None else head
        raise CompilewatchError(
            f"No trial of {missing.name} is stored, so nobody knows which cases moved.",
            "Name the cases with -w and -s, or measure both with `compilewatch run --build`.",
        )
    filters = Filters(strategies=tuple(strategies))
    comparison = gateway.compare(database, base.stored, head.stored, filters, policy=policy)
    moved = [
        (row.workload, row.strategy) for row in comparison.rows if row.metric is metric and has_moved(row)
    ]
    if not moved:
        raise CompilewatchError(
            f"{METRICS[metric].name} moved in no stored case between {base.name} and {head.name}.",
            "Name a case with -w and -s to measure it anyway.",
        )
    return moved


class Question(SearchQuestion):
    """What is to be attributed; `base` and `head` are what is installed there, by package."""

    folder: ClassVar[str] = "attribute"

    base: dict[str, str]
    head: dict[str, str]
    builds: tuple[str, str]
    cases: tuple[tuple[str, str], ...]
    metric: str
    device: str


class Batch(BaseModel):
    """Runs that took turns, by hybrid: the components at the head's version, in order."""

    model_config = ConfigDict(extra="forbid")

    hybrids: list[list[str]]
    runs: list[str]

    def by_hybrid(self) -> dict[Hybrid, str]:
        """The run of each hybrid."""
        return {frozenset(names): run for names, run in zip(self.hybrids, self.runs, strict=True)}


class Skipped(BaseModel):
    """A hybrid that cannot be measured, and why."""

    model_config = ConfigDict(extra="forbid")

    hybrid: list[str]
    reason: str


class State(SearchState):
    """`ends` are runs of base and head alone, `mixed` those with the hybrids; `made` are environments made
    for this.
    """

    question: Question
    ends: list[Batch] = Field(default=[])
    mixed: list[Batch] = Field(default=[])
    skipped: list[Skipped] = Field(default=[])
    made: list[str] = Field(default=[])

    def reason(self, hybrid: Hybrid) -> str | None:
        """Why it cannot be measured, None where that is not known."""
        return next((each.reason for each in self.skipped if frozenset(each.hybrid) == hybrid), None)


@dataclass
class Measurer:
    """The trials of one attribution. `most_trials` of a case a build at most, `at_once` of them at a time."""

    database: Database
    settings: Settings
    state: State
    base: Environment
    head: Environment
    components: Sequence[Component]
    index_url: str | None
    at_once: int
    most_trials: int

    @property
    def names(self) -> list[str]:
        """Of the components."""
        return [each.name for each in self.components]

    @property
    def policy(self) -> Policy:
        """That of the settings, its level shared out over the times that the trials may be judged."""
        return self.settings.policy.shared_over(math.ceil(self.most_trials / self.at_once))

    def moved(self) -> list[Row]:
        """The cases that move between both builds, measured afresh."""
        ends = [(frozenset[str](), self.base.build), (frozenset(self.names), self.head.build)]

        def still_open() -> list[Case]:
            rows = self._end_rows()
            moved = {(row.workload, row.strategy) for row in rows if has_moved(row)}
            trials = {(row.workload, row.strategy): min(row.trials) for row in rows}
            return [
                case
                for case in self.state.question.cases
                if case not in moved and trials.get(case, 0) < self.most_trials
            ]

        self._measure_until(self.state.ends, ends, still_open, "both builds")
        return [row for row in self._end_rows() if has_moved(row)]

    def attributions(self, cases: Sequence[Case]) -> list[CaseAttribution]:
        """What each component carries of `cases`. One component carries all: nothing more is measured."""
        if len(self.components) == 1:
            return self._attributed(self.state.ends, cases)
        builds = self._hybrids()

        def still_open() -> list[Case]:
            known = {
                (each.workload, each.strategy): each for each in self._attributed(self.state.mixed, cases)
            }
            rounds = self._trials(self.state.mixed)
            return [
                case
                for case in cases
                if rounds.get(case, 0) < self.most_trials
                and not (case in known and known[case].rounds >= self.at_once and known[case].decided)
            ]

        self._measure_until(self.state.mixed, builds, still_open, plural(len(builds), "build"))
        return self._attributed(self.state.mixed, cases)

    def failures(self, case: Case) -> dict[Hybrid, str]:
        """Hybrids of which no trial of `case` has a value, with the newest reason."""
        frame = self._frame(self.state.mixed)
        runs = {run: hybrid for batch in self.state.mixed for hybrid, run in batch.by_hybrid().items()}
        mine = frame[(frame["workload"] == case[0]) & (frame["strategy"] == case[1])]
        reasons: dict[Hybrid, str] = {}
        for hybrid in dict.fromkeys(runs.values()):
            trials = mine[[runs[str(run)] == hybrid for run in mine["run_id"]]]
            if len(trials) and trials["latency_ns"].isna().all():
                message = str(trials["failure_message"].iloc[-1]).partition("\n")[0]
                reasons[hybrid] = f"its trials failed: {message}"
        return reasons

    def title(self, hybrid: Hybrid) -> str:
        """A hybrid in words: "torch 2.13.0 and transformers 4.44.2"."""
        parts = []
        for each in self.components:
            side = self.head if each.name in hybrid else self.base
            version = side.version(each.name)
            parts.append(f"{each.name} {version}" if version else f"{each.name} of {side.build.name}")
        return " and ".join(parts)

    def remove_made(self) -> None:
        """The environments that were made for this."""
        for name in list(self.state.made):
            remove_build(name, self.settings)
            self.state.made.remove(name)
            self._save()

    def _measure_until(
        self,
        batches: list[Batch],
        builds: Sequence[tuple[Hybrid, BuildSettings]],
        still_open: Callable[[], list[Case]],
        what: str,
    ) -> None:
        def begin(run_ids: Sequence[str]) -> None:
            hybrids = [[name for name in self.names if name in hybrid] for hybrid, _ in builds]
            batches.append(Batch(hybrids=hybrids, runs=list(run_ids)))
            self._save()

        while cases := still_open():
            before = self._trials(batches)
            how_many = plural(self.at_once, "trial")
            announce(f"Measuring {plural(len(cases), 'case')} with {what} by turns, {how_many} a build.")
            measure_interleaved(
                self.database,
                self.settings,
                [build for _, build in builds],
                cases,
                trials=self.at_once,
                device=self.state.question.device,
                begin=begin,
            )
            if self._trials(batches) == before:
                raise BuildError("No trial could be measured.", "See `compilewatch list runs`.")

    def _hybrids(self) -> list[tuple[Hybrid, BuildSettings]]:
        """Everything that can be measured, the base first and the head last."""
        base, *mixed, head = hybrids_of(self.names)
        made = [(hybrid, self._hybrid(hybrid)) for hybrid in mixed]
        return [
            (base, self.base.build),
            *((hybrid, build) for hybrid, build in made if build is not None),
            (head, self.head.build),
        ]

    def _hybrid(self, hybrid: Hybrid) -> BuildSettings | None:
        if self.state.reason(hybrid) is not None:
            return None
        try:
            requirements = requirements_of(hybrid, self.components, self.base, self.head)
            build, is_new = make_build(
                requirements,
                self.settings,
                name=f"hybrid-{identity({'requirements': requirements})}",
                base=python_of(hybrid, self.base, self.head),
                index_url=self.index_url,
                look_up=False,
                announced=f"Installing {self.title(hybrid)}.",
            )
            if is_new:
                self.state.made.append(build.name)
                self._save()
            require_same(environment_of(build, self.settings), requirements)
        except (BuildError, InterpreterError) as error:
            self.state.skipped.append(Skipped(hybrid=sorted(hybrid), reason=error.message))
            self._save()
            announce(f"{self.title(hybrid)} is skipped: {error.message}")
            return None
        return build

    def _end_rows(self) -> list[Row]:
        """The verdicts on the trials of both builds alone."""
        if not self.state.ends:
            return []
        first, last = (
            Selection(name=side.build.name, run_ids=tuple(batch.runs[place] for batch in self.state.ends))
            for place, side in ((0, self.base), (-1, self.head))
        )
        question = self.state.question
        cases = Filters(
            workloads=tuple({workload for workload, _ in question.cases}),
            strategies=tuple({strategy for _, strategy in question.cases} | {EAGER.name}),
        )
        try:
            comparison = gateway.compare(self.database, first, last, cases, policy=self.policy)
        except VerdictError:
            return []
        wanted = Metric(question.metric)
        mine = [row for row in comparison.rows if (row.workload, row.strategy) in question.cases]
        return [row for row in mine if row.metric is wanted]

    def _attributed(self, batches: Sequence[Batch], cases: Sequence[Case]) -> list[CaseAttribution]:
        runs = [batch.by_hybrid() for batch in batches]
        metric = Metric(self.state.question.metric)
        attributions = attribute(self._frame(batches), runs, self.names, self.policy, metric)
        return [each for each in attributions if (each.workload, each.strategy) in cases]

    def _frame(self, batches: Sequence[Batch]) -> DataFrame:
        runs = tuple(run for batch in batches for run in batch.runs)
        return trials_frame(self.database, Filters(runs=runs or ("none",)))

    def _trials(self, batches: Sequence[Batch]) -> dict[Case, int]:
        """How many trials of each case were stored of the build that has most, failed ones too."""
        frame = self._frame(batches)
        place = {run: number for batch in batches for number, run in enumerate(batch.runs)}
        counts: dict[Case, Counter[int]] = defaultdict(Counter)
        columns = (frame["run_id"], frame["workload"], frame["strategy"])
        for run, workload, strategy in zip(*columns, strict=True):
            counts[str(workload), str(strategy)][place[str(run)]] += 1
        return {case: max(mine.values()) for case, mine in counts.items()}

    def _save(self) -> None:
        self.state.save(self.settings.data_dir)
