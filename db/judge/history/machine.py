"""Everything that changed on one machine: the steps of all its series, those that belong together as one.

A series whose builds took turns has no points in time to search, but releases to compare.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from fnmatch import fnmatchcase

from pandas import DataFrame

from compilewatch.db.columns.metrics import MEASURED_METRICS, SUMMARY_COLUMNS
from compilewatch.db.judge.compare.sides import COMPONENTS, LIBRARIES, Selection, VerdictError
from compilewatch.db.judge.decide import MOVED
from compilewatch.db.judge.decide_series import as_direction, is_explained_step
from compilewatch.db.judge.history.counts import exact_events
from compilewatch.db.judge.history.events import CONDITION_COLUMNS, LABELS, find_cuts
from compilewatch.db.judge.history.series import steps_of
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.results import ChangeEvent, Comparison, Result, Row
from compilewatch.db.judge.sequence import Case, build_pairs, release_order, turns_of_each
from compilewatch.db.metrics.frames import with_plain_texts
from compilewatch.db.metrics.trend import series_points
from compilewatch.db.records.ids import identity
from compilewatch.db.records.trial import StrategyKind
from compilewatch.db.records.vocabulary import CauseClass, Metric, Verdict
from compilewatch.db.units import words

Compare = Callable[[Selection, Selection], Comparison]
"""The verdict on the second side against the first; raises VerdictError where there is none."""


class ReleaseStep(Result):
    """One metric of one case from a build to the next newer one that took turns with it."""

    base_build: str
    head_build: str
    base_torch: str
    head_torch: str
    row: Row


def release_comparisons(
    trials: DataFrame, compare: Compare, case: Case | None = None
) -> Iterator[tuple[str, str, Comparison, set[Case]]]:
    """The ids of each build that took turns and of the next older one that it did with, oldest release first,
    with the verdict between them and the cases for which it is the next, of all or of one `case`; nothing
    where no builds took turns. `trials` is a trials frame of one machine, which says what the builds are.
    """
    for (base, head), cases in build_pairs(trials).items():
        if case is not None and case not in cases:
            continue
        before, after = (Selection(name=build, build_ids=(build,)) for build in (base, head))
        try:
            yield base, head, compare(before, after), cases
        except VerdictError:
            # All trials of one of them were cut short: it has nothing to be judged by.
            continue


def release_steps(
    trials: DataFrame, compare: Compare, workload_id: str, strategy_id: str, metric: Metric
) -> tuple[ReleaseStep, ...]:
    """One metric of one case from each build to the next; empty where none took turns.

    `trials` is a trials frame of one machine, which says what the builds are.
    """
    torch = dict(zip(trials["build_id"].astype(str), trials["torch"].astype(str), strict=True))
    case = (workload_id, strategy_id)
    return tuple(
        ReleaseStep(base_build=base, head_build=head, base_torch=torch[base], head_torch=torch[head], row=row)
        for base, head, comparison, _ in release_comparisons(trials, compare, case)
        for row in comparison.with_requested().rows
        if row.case.ids == case and row.metric is metric
    )


def release_events(trials: DataFrame, compare: Compare) -> Iterator[ChangeEvent]:
    """What got worse or better from one release to the next, in every timed metric of every case.

    Builds that took turns have no moment of change, so an event has no time: those of one release belong
    together by its build.
    """
    case = ["workload_id", "strategy_id"]
    newest = trials[[*case, "series_id"]].drop_duplicates(case, keep="last").astype(str)
    series = {
        (workload, strategy): series_id for workload, strategy, series_id in newest.itertuples(index=False)
    }
    for _, head, comparison, cases in release_comparisons(trials, compare):
        for row in comparison.rows:
            moved = row.verdict in MOVED and row.case.ids in cases
            if not moved or row.p_value is None or row.base is None or row.head is None:
                continue
            series_id = series[row.case.ids]
            unique = {"series": series_id, "metric": row.metric.value, "build": head}
            yield ChangeEvent(
                event_id=identity(unique),
                series_id=series_id,
                metric=row.metric,
                machine_id=comparison.machine_id,
                workload=row.workload,
                strategy=row.strategy,
                strategy_kind=row.case.strategy_kind,
                build_id=head,
                index=0,
                announced_at=0,
                before=row.base,
                after=row.head,
                change=row.change,
                interval=row.interval,
                p_value=row.p_value,
                verdict=row.verdict,
                changed_components=comparison.changed_components,
                confounded=len(comparison.changed_components) > 1,
                reason=row.reason,
            )


# One event for series that move together: events of one machine, one direction, at one build.


class EventGroup(Result):
    """Series that changed together. `build_id` is the first build of the new level for most of them."""

    group_id: str
    machine_id: str | None
    verdict: Verdict
    build_id: str | None
    at: datetime | None
    events: tuple[ChangeEvent, ...]
    cause: CauseClass | None
    changed_components: tuple[str, ...]
    confounded: bool
    title: str


def group_events(events: Iterable[ChangeEvent], policy: Policy | None = None) -> tuple[EventGroup, ...]:
    """Group events of the same machine and direction whose changes lie at the same build, or within
    `history.group_days` of each other where the exact point is uncertain by a few nights. A case that is
    missing joins those that got worse.

    What a canary's step explains is an event of its own, with the canary; what is larger is another.
    Withdrawals are not grouped: each concerns one event only.
    """
    policy = policy or Policy()
    lanes: dict[tuple[str | None, Verdict], list[ChangeEvent]] = {}
    for event in events:
        if event.revises is None:
            lanes.setdefault((event.machine_id, as_direction(event)), []).append(event)
    groups = [
        _group(cluster, policy)
        for lane in lanes.values()
        for near in _clusters(lane, timedelta(days=policy.history.group_days))
        for cluster in _explained_apart(near, policy)
    ]
    return tuple(sorted(groups, key=lambda group: (group.at is None, group.at, group.group_id)))


def _clusters(lane: Sequence[ChangeEvent], reach: timedelta) -> list[list[ChangeEvent]]:
    """Single linkage along time; events without a time join by build."""
    timed = sorted((e for e in lane if e.at is not None), key=lambda e: (e.at, e.event_id))
    clusters: list[list[ChangeEvent]] = []
    for event in timed:
        last = clusters[-1][0].at if clusters else None
        if last is not None and event.at is not None and event.at - last <= reach:
            clusters[-1].append(event)
        else:
            clusters.append([event])
    by_build: dict[str | None, list[ChangeEvent]] = {}
    for event in lane:
        if event.at is None:
            by_build.setdefault(event.build_id or event.event_id, []).append(event)
    return clusters + list(by_build.values())


def _explained_apart(events: list[ChangeEvent], policy: Policy) -> list[list[ChangeEvent]]:
    """Events of one time and direction: those that the machine's canaries explain, then the others."""
    canaries = [event for event in events if _is_canary(event, policy)]
    if not canaries:
        return [events]
    moved = max(abs(event.log_step) for event in canaries)

    flags = [_is_canary(event, policy) or is_explained_step(event, moved, policy.history) for event in events]
    sorted_apart = [[e for e, flag in zip(events, flags, strict=True) if flag is f] for f in (True, False)]
    return [each for each in sorted_apart if each]


def _is_canary(event: ChangeEvent, policy: Policy) -> bool:
    return fnmatchcase(event.workload or "", policy.canary_workloads)


def _group(events: list[ChangeEvent], policy: Policy) -> EventGroup:
    builds = [event.build_id for event in events if event.build_id is not None]
    counts = Counter(builds)
    build = max(sorted(counts), key=counts.__getitem__) if builds else None
    core = [event for event in events if event.build_id == build] or events
    components = tuple(dict.fromkeys(name for event in core for name in event.changed_components))
    cause = _shared_cause(events, policy)
    return EventGroup(
        group_id=identity({"events": sorted(event.event_id for event in events)}),
        machine_id=events[0].machine_id,
        verdict=as_direction(events[0]),
        build_id=build,
        at=min((event.at for event in core if event.at is not None), default=None),
        events=tuple(events),
        cause=cause,
        changed_components=components,
        confounded=len(components) > 1,
        title=_title(events, cause),
    )


def _shared_cause(events: list[ChangeEvent], policy: Policy) -> CauseClass | None:
    """`machine` when the canary is among them; by latency: `eager` when eager series moved too, `compiler`
    when only compiled ones did. Without latency series `compiler` where compiled cases count differently.
    """
    if any(_is_canary(event, policy) for event in events):
        return CauseClass.MACHINE
    kinds = {event.strategy_kind for event in events if event.metric is Metric.LATENCY}
    if StrategyKind.EAGER.value in kinds:
        return CauseClass.EAGER
    counted = any(event.p_value is None and event.verdict is not Verdict.MISSING for event in events)
    return CauseClass.COMPILER if kinds or counted else None


def _title(events: list[ChangeEvent], cause: CauseClass | None) -> str:
    moved = [event for event in events if event.verdict is not Verdict.MISSING]
    parts = []
    if moved:
        metrics = ", ".join(sorted({words(event.metric.value) for event in moved}))
        parts.append(f"{_subject(moved)} {moved[0].verdict.value} in {metrics}")
    if len(moved) < len(events):
        missing = [event for event in events if event.verdict is Verdict.MISSING]
        parts.append(f"{_subject(missing)} missing")
    return "; ".join(parts) + (f", cause class {cause.value}" if cause else "")


def _subject(events: list[ChangeEvent]) -> str:
    series = {event.series_id or event.event_id for event in events}
    only = f"{events[0].workload or 'one series'} {events[0].strategy or ''}".strip()
    return f"{len(series)} series" if len(series) > 1 else only


def machine_history(
    trials: DataFrame, compare: Compare, policy: Policy | None = None
) -> tuple[EventGroup, ...]:
    """The grouped events of every series of one machine's trials frame, oldest first, then by release.

    Timed metrics change where `steps_of` finds a step (break-even follows from the others and has no
    event of its own), or from release to release where builds took turns; counts at every step. Flips between
    two modes are no events. `compare` gives the verdicts between releases. A step that both show is the
    release's.
    """
    policy = policy or Policy()
    turns = turns_of_each(trials)
    in_turns = set(trials.loc[turns, "series_id"].astype(str))
    events = [
        event.model_copy(update={"at": None})
        if event.verdict is not Verdict.MISSING and event.series_id in in_turns
        else event
        for event in exact_events(trials, policy)
    ]
    of_releases = [e for e in release_events(trials, compare) if e.metric is not Metric.BREAK_EVEN]
    known = {(event.series_id, event.metric, event.build_id, event.verdict) for event in of_releases}

    def is_known(event: ChangeEvent) -> bool:
        step = (event.series_id, event.metric, event.build_id, event.verdict)
        return bool(event.changed_components) and step in known

    for points in _histories(trials[~turns], policy):
        events += [event for event in _timed_events(points, policy) if not is_known(event)]
    events += of_releases
    rank = {build: number for number, build in enumerate(release_order(trials))}
    groups = group_events(events, policy)
    return tuple(sorted(groups, key=lambda g: (g.at is None, g.at or rank.get(g.build_id or "", -1))))


_NEEDED = {*LABELS, *COMPONENTS, LIBRARIES, *CONDITION_COLUMNS, *SUMMARY_COLUMNS.values()}
_NEEDED |= {"last_started_at", "point_suspect"}


def _histories(trials: DataFrame, policy: Policy) -> Iterator[DataFrame]:
    """The points of each series that has as many as a step needs, in the columns that are read."""
    points = series_points(trials)
    points = with_plain_texts(points[[name for name in points if name in _NEEDED]])
    counts = points.groupby("series_id")["series_id"].transform("size")
    enough = points[(counts >= policy.history.fewest_runs).to_numpy(dtype=bool)]
    yield from (series for _, series in enough.groupby("series_id", sort=True))


def _timed_events(points: DataFrame, policy: Policy) -> Iterator[ChangeEvent]:
    points = points.reset_index(drop=True)
    cuts = find_cuts(points)
    eager = bool((points["strategy_kind"] == StrategyKind.EAGER.value).all())
    for metric in MEASURED_METRICS:
        if (
            SUMMARY_COLUMNS[metric] not in points
            or metric is Metric.BREAK_EVEN
            or (eager and metric is not Metric.LATENCY)
        ):
            continue
        for event in steps_of(points, metric, policy, cuts):
            if event.verdict is not Verdict.INCONCLUSIVE:
                yield event
