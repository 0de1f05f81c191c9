"""Why cases of a comparison changed, from the profiles and compiler facts that both sides have."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, func, select

from compilewatch.db.cause.compiler_change import SourceChange, compiler_changes, source_changes
from compilewatch.db.cause.memory_change import memory_sentences
from compilewatch.db.cause.profile_change import is_disturbed
from compilewatch.db.cause.sentences import Cause, Watched, cause_between, host_sentence
from compilewatch.db.engine.session import Database
from compilewatch.db.engine.tables import SERIES, TRIAL, TRIAL_DETAIL
from compilewatch.db.judge.compare.recorded_regressions import Regression
from compilewatch.db.judge.decide import MOVED
from compilewatch.db.judge.results import BuildSide, Comparison, Row
from compilewatch.db.records.evidence import CompilerFacts, Memory
from compilewatch.db.records.sampling_facts import Profile, Trace
from compilewatch.db.records.vocabulary import Metric, WhoMoved
from compilewatch.db.units import plural

Case = tuple[str, str]
"""Workload and strategy, by id."""
_NEWEST = 5
"""So many profiles of a case are looked through for one that nothing disturbed."""
STEP_METRICS = (Metric.LATENCY, Metric.DEVICE_TIME, Metric.SPEEDUP, Metric.DEVICE_SPEEDUP)
"""What profiles explain."""


@dataclass(frozen=True)
class ToExplain:
    """What is to be explained: whether a step takes longer on the head side, and whose step."""

    slower: bool
    eager: bool


@dataclass(frozen=True)
class Explanation:
    """Why a case changed, what the compiler did differently, that the head's GPU waits for the host, and what
    memory is held for where its peak moved, each as far as records show it.
    """

    cause: Cause | None
    compiler: tuple[str, ...]
    host: str = ""
    memory: tuple[str, ...] = ()

    @property
    def sentences(self) -> list[str]:
        """For people, the cause first."""
        lines = [self.cause.sentence] if self.cause and self.cause.sentence else []
        if self.compiler:
            lines.append(f"The compiler did differently: {'; '.join(self.compiler)}.")
        return [*lines, *filter(None, (self.host, *self.memory))]


def explanations(database: Database, comparison: Comparison) -> dict[Case, Explanation]:
    """Of every case that changed, in the order of the rows; those of which nothing is known are absent."""
    sides = comparison.base, comparison.head
    by_case = _explained(database, sides, comparison.machine_id, _changed(comparison.rows))
    return {case: each for case, each in by_case.items() if each.sentences}


def _changed(rows: Iterable[Row]) -> dict[Case, list[Row]]:
    """The rows that say that a case changed, by case, in their order."""
    by_case: dict[Case, list[Row]] = {}
    for row in rows:
        if row.verdict in MOVED:
            by_case.setdefault(row.case.ids, []).append(row)
    return by_case


def _moved(changed: Mapping[Case, Sequence[Row]]) -> dict[Case, ToExplain]:
    """What is to be explained of each case, by the first row that says something of its time."""
    moved = {case: next(filter(None, map(moved_of, rows)), None) for case, rows in changed.items()}
    return {case: what for case, what in moved.items() if what is not None}


def _explained(
    database: Database,
    sides: tuple[BuildSide, BuildSide],
    machine_id: str | None,
    changed: Mapping[Case, Sequence[Row]],
) -> dict[Case, Explanation]:
    moved = _moved(changed)
    before, after = _profiled_sides(database, sides, machine_id, moved)
    causes_by_case = _causes(before, after, moved)
    peaks = [case for case, rows in changed.items() if any(row.metric is Metric.PEAK_MEMORY for row in rows)]
    facts = _newest_parts(database, TRIAL_DETAIL.c.compiler, sides, machine_id, changed)
    memory = _newest_parts(database, TRIAL_DETAIL.c.memory, sides, machine_id, peaks)
    compiled = {
        case: tuple(compiler_changes(*map(CompilerFacts.model_validate, each)))
        for case, each in facts.items()
    }
    held = {case: tuple(memory_sentences(*map(Memory.model_validate, each))) for case, each in memory.items()}
    return {
        case: Explanation(
            causes_by_case.get(case),
            compiled.get(case, ()),
            _host(after.get(case), moved.get(case)),
            held.get(case, ()),
        )
        for case in changed
    }


def _host(profiled: _Profiled | None, moved: ToExplain | None) -> str:
    """Of the step that moved."""
    side = profiled and (profiled.eager if moved and moved.eager else profiled.own)
    return host_sentence(side.side, side.timed_ns) if side else ""


def traced_changes(database: Database, comparison: Comparison) -> dict[Case, list[SourceChange]]:
    """How the generated code of every case that changed differs, by the newest trace of each side; one
    without a trace on both sides, or with the same code, is absent.
    """
    sides, wanted = (comparison.base, comparison.head), _changed(comparison.rows)
    traced = _newest_parts(database, TRIAL_DETAIL.c.trace, sides, comparison.machine_id, wanted)
    by_case = {}
    for case, parts in traced.items():
        base, head = (Trace.model_validate(part).sources for part in parts)
        if base and head and (changes := list(source_changes(base, head))):
            by_case[case] = changes
    return by_case


def explained_case(
    database: Database, base: BuildSide, head: BuildSide, machine_id: str | None, rows: Sequence[Row]
) -> list[str]:
    """Why one case changed, in sentences, by the verdicts `rows` on it; nothing where it did not."""
    by_case = _explained(database, (base, head), machine_id, _changed(rows))
    return [sentence for each in by_case.values() for sentence in each.sentences]


def causes(database: Database, comparison: Comparison) -> dict[Case, Cause]:
    """Of every case whose time moved, why; only where profiles of both sides show it."""
    base, head, moved = comparison.base, comparison.head, _moved(_changed(comparison.rows))
    return causes_between(database, base, head, comparison.machine_id, moved)


def explanation_lines(
    comparison: Comparison, by_case: Mapping[Case, Explanation], *, most: int, rest_in: str
) -> list[str]:
    """The explanations of a comparison, a sentence a line with its case; of many cases the first `most`, and
    where the others are.
    """
    names = _named_cases(comparison)
    shown = list(by_case.items())[:most]
    lines = [
        f"{names[case].workload} / {names[case].strategy}: {sentence}"
        for case, explanation in shown
        for sentence in explanation.sentences
    ]
    if rest := len(by_case) - len(shown):
        lines.append(f"Why {plural(rest, 'more case')} changed: see {rest_in}.")
    return lines


def _named_cases(comparison: Comparison) -> dict[Case, Row]:
    return {row.case.ids: row for row in comparison.rows}


def explanation_documents(
    comparison: Comparison, by_case: Mapping[Case, Explanation]
) -> list[dict[str, Any]]:
    """The explanations of a comparison as documents have them, with the names of their cases."""
    names = _named_cases(comparison)
    return [
        {
            "workload": names[case].workload,
            "strategy": names[case].strategy,
            "compiler": list(each.compiler),
            "host": each.host or None,
            "memory": list(each.memory),
            **(each.cause.to_json() if each.cause else {"sentence": None}),
        }
        for case, each in by_case.items()
    ]


def _newest_parts(
    database: Database,
    column: ColumnElement[Any],
    sides: Sequence[BuildSide],
    machine_id: str | None,
    cases: Collection[Case],
) -> dict[Case, tuple[Any, Any]]:
    """That part of the newest trial of each side that has it, of the cases of which both sides have one."""
    before, after = _newest_of_sides(database, column, sides, machine_id, cases)
    both = [case for case in cases if case in before and case in after]
    return {case: (before[case][0].part, after[case][0].part) for case in both}


def _newest_of_sides(
    database: Database,
    column: ColumnElement[Any],
    sides: Sequence[BuildSide],
    machine_id: str | None,
    cases: Collection[Case],
    *,
    most: int = 1,
) -> tuple[dict[Case, list[_Part]], dict[Case, list[_Part]]]:
    """`_newest` of both sides, the base first."""
    if not cases or machine_id is None:
        return {}, {}
    base, head = sides
    of_cases = and_(
        SERIES.c.machine_id == machine_id, SERIES.c.workload_id.in_({workload for workload, _ in cases})
    )
    with database.read() as connection:
        before, after = (
            _newest(connection, column, and_(of_cases, of_side), most)
            for of_side in (_of(base, head), _of(head, base))
        )
    return before, after


def moved_of(row: Row) -> ToExplain | None:
    """What a row says of the time of a step; None where it says nothing of it."""
    if row.metric not in STEP_METRICS:
        return None
    eager = row.who_moved is WhoMoved.EAGER
    change = row.eager_change if eager else row.compiled_change
    if change is None and row.metric in (Metric.LATENCY, Metric.DEVICE_TIME):
        change = row.change
    return None if not change else ToExplain(change > 0, eager)


def recorded_explanations(database: Database, regressions: Sequence[Regression]) -> list[list[str]]:
    """Why the case of each recorded regression changed, in sentences; none where nothing is known of it."""
    events: dict[Any, list[Regression]] = {}
    for each in regressions:
        events.setdefault((each.machine_id, each.base_key, each.head_key), []).append(each)
    sentences: dict[str, list[str]] = {}
    for event in events.values():
        first = event[0]
        changed = _changed(each.row for each in event)
        explained = _explained(database, (first.base, first.head), first.machine_id, changed)
        for each in event:
            case = each.row.case.ids
            if case in explained:
                sentences[each.regression_id] = explained[case].sentences
    return [sentences.get(each.regression_id, []) for each in regressions]


def causes_between(
    database: Database,
    base: BuildSide,
    head: BuildSide,
    machine_id: str | None,
    moved: Mapping[Case, ToExplain],
) -> dict[Case, Cause]:
    """Why the cases of `moved` changed between two sides; one for which profiles show nothing is absent."""
    before, after = _profiled_sides(database, (base, head), machine_id, moved)
    return _causes(before, after, moved)


def _profiled_sides(
    database: Database,
    sides: tuple[BuildSide, BuildSide],
    machine_id: str | None,
    cases: Collection[Case],
) -> tuple[dict[Case, _Profiled], dict[Case, _Profiled]]:
    column = TRIAL_DETAIL.c.profile
    before, after = _newest_of_sides(database, column, sides, machine_id, cases, most=_NEWEST)
    return _profiles(before), _profiles(after)


def _causes(
    before: Mapping[Case, _Profiled], after: Mapping[Case, _Profiled], moved: Mapping[Case, ToExplain]
) -> dict[Case, Cause]:
    by_case = {}
    for case, what in moved.items():
        if case in before and case in after:
            cause = _cause(before[case], after[case], what)
            if cause is not None:
                by_case[case] = cause
    return by_case


def _cause(before: _Profiled, after: _Profiled, moved: ToExplain) -> Cause | None:
    """None where the profiles show nothing, or the opposite of what was judged."""
    sides = [each.eager if moved.eager else each.own for each in (before, after)]
    if sides[0] is None or sides[1] is None:
        return None
    cause = cause_between(sides[0], sides[1])
    if cause is None or cause.sentence is None:
        return None
    return cause if (cause.change.after_ns > cause.change.before_ns) is moved.slower else None


class _Part(NamedTuple):
    """A part of a trial's record, and what its step and eager's take, in nanoseconds."""

    part: Any
    step_ns: float | None
    eager_ns: float | None


class _Profiled(NamedTuple):
    own: Watched
    eager: Watched | None


def _profiles(parts: Mapping[Case, list[_Part]]) -> dict[Case, _Profiled]:
    """The newest profile of every case that nothing disturbed, with the latency of its trial; where all were
    disturbed, the newest.
    """
    profiles = {case: [_profiled(row) for row in rows] for case, rows in parts.items()}
    return {
        case: next((each for each in some if not is_disturbed(each.own.side, each.own.timed_ns)), some[0])
        for case, some in profiles.items()
    }


def _profiled(row: _Part) -> _Profiled:
    profile = Profile.model_validate(row.part)
    control = profile.control
    eager = None if control is None else Watched(control, row.eager_ns)
    return _Profiled(Watched(profile.own, row.step_ns), eager)


def _newest(
    connection: Connection,
    column: ColumnElement[Any],
    of_trials: ColumnElement[bool],
    most: int,
) -> dict[Case, list[_Part]]:
    """Of every case among `of_trials` the newest trials that have a part of the record, `most` of them, the
    newest first: that part and their latencies.
    """
    order = (TRIAL.c.started_at.desc(), TRIAL.c.trial_id.desc())
    rank = func.row_number().over(partition_by=TRIAL.c.series_id, order_by=order).label("rank")
    ranked = (
        select(TRIAL.c.trial_id, TRIAL.c.series_id, rank)
        .join(SERIES, SERIES.c.series_id == TRIAL.c.series_id)
        .join(TRIAL_DETAIL, TRIAL_DETAIL.c.trial_id == TRIAL.c.trial_id)
        .where(of_trials, column.is_not(None))
        .subquery()
    )
    statement = (
        select(
            *(SERIES.c.workload_id, SERIES.c.strategy_id, column.label("part")),
            func.coalesce(TRIAL.c.wall_pipelined_ns, TRIAL.c.latency_ns).label("step_ns"),
            func.coalesce(TRIAL.c.control_wall_pipelined_ns, TRIAL.c.control_latency_ns).label("eager_ns"),
        )
        .select_from(ranked)
        .join(TRIAL, TRIAL.c.trial_id == ranked.c.trial_id)
        .join(SERIES, SERIES.c.series_id == ranked.c.series_id)
        .join(TRIAL_DETAIL, TRIAL_DETAIL.c.trial_id == ranked.c.trial_id)
        .where(ranked.c.rank <= most)
        .order_by(ranked.c.rank)
    )
    newest: dict[Case, list[_Part]] = {}
    for row in connection.execute(statement):
        part = _Part(row.part, row.step_ns, row.eager_ns)
        newest.setdefault((row.workload_id, row.strategy_id), []).append(part)
    return newest


def _of(side: BuildSide, other: BuildSide) -> ColumnElement[bool]:
    """The trials of a side: of its builds, whichever run; of its runs where both sides have one build."""
    builds = TRIAL.c.build_id.in_(side.build_ids)
    same = set(side.build_ids) & set(other.build_ids)
    return and_(builds, TRIAL.c.run_id.in_(side.run_ids)) if same else builds
