"""Why cases of a comparison changed, from the profiles and compiler facts that both sides have."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, func, select

from db.cause.compiler_change import compiler_changes
from db.cause.profile_change import is_disturbed
from db.cause.sentences import Cause, Watched, cause_between
from db.engine.session import Database
from db.judge.results import BuildSide, Comparison
from db.judge.results import Row as Judged
from db.judge.vocabulary import Metric, Verdict, WhoMoved
from db.records.evidence import CompilerFacts
from db.records.regressions import Regression
from db.records.sampling import Profile
from db.tables.trials import SERIES, TRIAL, TRIAL_DETAIL

Case = tuple[str, str]
"""Workload and strategy, by id."""
_NEWEST = 5
"""So many profiles of a case are looked through for one that nothing disturbed."""
_TIMED = (Metric.LATENCY, Metric.DEVICE_TIME, Metric.SPEEDUP, Metric.DEVICE_SPEEDUP)


@dataclass(frozen=True)
class Moved:
    """What is to be explained: whether a step takes longer on the head side, and whose step."""

    slower: bool
    eager: bool


@dataclass(frozen=True)
class Explanation:
    """Why a case changed, and what the compiler did differently, each as far as records show it."""

    cause: Cause | None
    compiler: tuple[str, ...]

    @property
    def sentences(self) -> list[str]:
        """For people, the cause first."""
        lines = [self.cause.sentence] if self.cause and self.cause.sentence else []
        if self.compiler:
            lines.append(f"The compiler did differently: {'; '.join(self.compiler)}.")
        return lines


def explanations(database: Database, comparison: Comparison) -> dict[Case, Explanation]:
    """Of every case that changed, in the order of the rows; those of which nothing is known are absent."""
    changed = {
        (row.case.workload_id, row.case.strategy_id): None
        for row in comparison.rows
        if row.verdict in (Verdict.REGRESSED, Verdict.IMPROVED)
    }
    by_case = causes(database, comparison)
    base, head = comparison.base, comparison.head
    compiled = _compiler_changes(database, base, head, comparison.machine_id, changed)
    return {
        case: Explanation(by_case.get(case), tuple(compiled.get(case, ())))
        for case in changed
        if case in by_case or compiled.get(case)
    }


def explained_case(
    database: Database, base: BuildSide, head: BuildSide, machine_id: str | None, rows: Sequence[Judged]
) -> list[str]:
    """Why one case changed, in sentences, by the verdicts `rows` on it; nothing where it did not."""
    changed = [row for row in rows if row.verdict in (Verdict.REGRESSED, Verdict.IMPROVED)]
    if not changed:
        return []
    case = changed[0].case.workload_id, changed[0].case.strategy_id
    moved = next(filter(None, map(moved_of, changed)), None)
    by_case = causes_between(database, base, head, machine_id, {case: moved} if moved else {})
    compiled = _compiler_changes(database, base, head, machine_id, [case])
    return Explanation(by_case.get(case), tuple(compiled.get(case, ()))).sentences


def causes(database: Database, comparison: Comparison) -> dict[Case, Cause]:
    """Of every case whose time moved, why; only where profiles of both sides show it."""
    moved: dict[Case, Moved] = {}
    for row in comparison.rows:
        if row.verdict in (Verdict.REGRESSED, Verdict.IMPROVED) and (what := moved_of(row)):
            moved.setdefault((row.case.workload_id, row.case.strategy_id), what)
    return causes_between(database, comparison.base, comparison.head, comparison.machine_id, moved)


def explanation_documents(
    comparison: Comparison, by_case: Mapping[Case, Explanation]
) -> list[dict[str, Any]]:
    """The explanations of a comparison as documents have them, with the names of their cases."""
    names = {(row.case.workload_id, row.case.strategy_id): row for row in comparison.rows}
    return [
        {
            "workload": names[case].workload,
            "strategy": names[case].strategy,
            "compiler": list(each.compiler),
            **(each.cause.to_json() if each.cause else {"sentence": None}),
        }
        for case, each in by_case.items()
    ]


def _compiler_changes(
    database: Database,
    base: BuildSide,
    head: BuildSide,
    machine_id: str | None,
    cases: Collection[Case],
) -> dict[Case, list[str]]:
    """What the compiler did differently, by the newest trial of each side that has compiler facts."""
    if not cases or machine_id is None:
        return {}
    workloads = {workload for workload, _ in cases}
    with database.read() as connection:
        before, after = (
            _newest(connection, TRIAL_DETAIL.c.compiler, _of(side, other), machine_id, workloads)
            for side, other in ((base, head), (head, base))
        )
    return {
        case: compiler_changes(
            CompilerFacts.model_validate(before[case][0].part),
            CompilerFacts.model_validate(after[case][0].part),
        )
        for case in cases
        if case in before and case in after
    }


def moved_of(row: Judged) -> Moved | None:
    """What a row says of the time of a step; None where it says nothing of it."""
    if row.metric not in _TIMED:
        return None
    eager = row.who_moved is WhoMoved.EAGER
    change = row.eager_change if eager else row.compiled_change
    if change is None and row.metric in (Metric.LATENCY, Metric.DEVICE_TIME):
        change = row.change
    return None if not change else Moved(change > 0, eager)


def recorded_causes(database: Database, regressions: Sequence[Regression]) -> dict[Case, Cause]:
    """Why the cases of recorded regressions between the same sides of one machine changed."""
    moved = {
        (each.row.case.workload_id, each.row.case.strategy_id): shift
        for each in regressions
        if (shift := moved_of(each.row))
    }
    first = regressions[0]
    return causes_between(database, first.base, first.head, first.machine_id, moved)


def causes_between(
    database: Database,
    base: BuildSide,
    head: BuildSide,
    machine_id: str | None,
    moved: Mapping[Case, Moved],
) -> dict[Case, Cause]:
    """Why the cases of `moved` changed between two sides; one for which profiles show nothing is absent."""
    if not moved or machine_id is None:
        return {}
    with database.read() as connection:
        before, after = (
            _profiles(connection, side, other, machine_id, {workload for workload, _ in moved})
            for side, other in ((base, head), (head, base))
        )
    by_case = {}
    for case, what in moved.items():
        if case in before and case in after:
            cause = _cause(before[case], after[case], what)
            if cause is not None:
                by_case[case] = cause
    return by_case


def _cause(before: _Profiled, after: _Profiled, moved: Moved) -> Cause | None:
    """None where the profiles show nothing, or the opposite of what was judged."""
    sides = [each.eager if moved.eager else each.own for each in (before, after)]
    if sides[0] is None or sides[1] is None:
        return None
    cause = cause_between(sides[0], sides[1])
    if cause is None or cause.sentence is None:
        return None
    return cause if (cause.change.after_ns > cause.change.before_ns) is moved.slower else None


class _Part(NamedTuple):
    """A part of a trial's record, and the trial's latencies in nanoseconds."""

    part: Any
    latency_ns: float | None
    control_latency_ns: float | None


class _Profiled(NamedTuple):
    own: Watched
    eager: Watched | None


def _profiles(
    connection: Connection, side: BuildSide, other: BuildSide, machine_id: str, workloads: Collection[str]
) -> dict[Case, _Profiled]:
    """The newest profile of every case on a side that nothing disturbed, with the latency of its trial; where
    all were disturbed, the newest.
    """
    newest = _newest(connection, TRIAL_DETAIL.c.profile, _of(side, other), machine_id, workloads)
    profiles = {case: [_profiled(row) for row in rows] for case, rows in newest.items()}
    return {
        case: next((each for each in some if not is_disturbed(each.own.side, each.own.timed_ns)), some[0])
        for case, some in profiles.items()
    }


def _profiled(row: _Part) -> _Profiled:
    profile = Profile.model_validate(row.part)
    control = profile.control
    eager = None if control is None else Watched(control, row.control_latency_ns)
    return _Profiled(Watched(profile.own, row.latency_ns), eager)


def _newest(
    connection: Connection,
    column: ColumnElement[Any],
    of_side: ColumnElement[bool],
    machine_id: str,
    workloads: Collection[str],
) -> dict[Case, list[_Part]]:
    """Of every case on a side the newest trials that have a part of the record, the newest first: that part
    and their latencies.
    """
    order = (TRIAL.c.started_at.desc(), TRIAL.c.trial_id.desc())
    rank = func.row_number().over(partition_by=TRIAL.c.series_id, order_by=order).label("rank")
    ranked = (
        select(TRIAL.c.trial_id, TRIAL.c.series_id, rank)
        .join(SERIES, SERIES.c.series_id == TRIAL.c.series_id)
        .join(TRIAL_DETAIL, TRIAL_DETAIL.c.trial_id == TRIAL.c.trial_id)
        .where(
            of_side,
            SERIES.c.machine_id == machine_id,
            SERIES.c.workload_id.in_(workloads),
            column.is_not(None),
        )
        .subquery()
    )
    statement = (
        select(
            *(SERIES.c.workload_id, SERIES.c.strategy_id, column.label("part")),
            *(TRIAL.c.latency_ns, TRIAL.c.control_latency_ns),
        )
        .select_from(ranked)
        .join(TRIAL, TRIAL.c.trial_id == ranked.c.trial_id)
        .join(SERIES, SERIES.c.series_id == ranked.c.series_id)
        .join(TRIAL_DETAIL, TRIAL_DETAIL.c.trial_id == ranked.c.trial_id)
        .where(ranked.c.rank <= _NEWEST)
        .order_by(ranked.c.rank)
    )
    newest: dict[Case, list[_Part]] = {}
    for row in connection.execute(statement):
        part = _Part(row.part, row.latency_ns, row.control_latency_ns)
        newest.setdefault((row.workload_id, row.strategy_id), []).append(part)
    return newest


def _of(side: BuildSide, other: BuildSide) -> ColumnElement[bool]:
    """The trials of a side: of its builds, whichever run; of its runs where both sides have one build."""
    builds = TRIAL.c.build_id.in_(side.build_ids)
    same = set(side.build_ids) & set(other.build_ids)
    return and_(builds, TRIAL.c.run_id.in_(side.run_ids)) if same else builds
