"""One event for series that move together: events of one machine, one direction, at one build."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from fnmatch import fnmatchcase

from db.identities import identity
from db.records import StrategyKind
from db.units import words
from db.verdicts.policy import Policy
from db.verdicts.results import ChangeEvent, Result
from db.verdicts.vocabulary import CauseClass, Metric, Verdict


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

    Withdrawals are not grouped: each concerns one event only.
    """
    policy = policy or Policy()
    lanes: dict[tuple[str | None, Verdict], list[ChangeEvent]] = {}
    for event in events:
        if event.revises is None:
            lanes.setdefault((event.machine_id, _direction(event)), []).append(event)
    groups = [
        _group(cluster, policy)
        for lane in lanes.values()
        for cluster in _clusters(lane, timedelta(days=policy.history.group_days))
    ]
    return tuple(sorted(groups, key=lambda group: (group.at is None, group.at, group.group_id)))


def _direction(event: ChangeEvent) -> Verdict:
    return Verdict.REGRESSED if event.verdict is Verdict.MISSING else event.verdict


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


def _group(events: list[ChangeEvent], policy: Policy) -> EventGroup:
    builds = [event.build_id for event in events if event.build_id is not None]
    build = max(sorted(set(builds)), key=builds.count) if builds else None
    core = [event for event in events if event.build_id == build] or events
    components = tuple(dict.fromkeys(name for event in core for name in event.changed_components))
    cause = _shared_cause(events, policy)
    return EventGroup(
        group_id=identity({"events": sorted(event.event_id for event in events)}),
        machine_id=events[0].machine_id,
        verdict=_direction(events[0]),
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
    if any(fnmatchcase(event.workload or "", policy.canary_workloads) for event in events):
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
        gone = [event for event in events if event.verdict is Verdict.MISSING]
        parts.append(f"{_subject(gone)} missing")
    return "; ".join(parts) + (f", cause class {cause.value}" if cause else "")


def _subject(events: list[ChangeEvent]) -> str:
    series = {event.series_id or event.event_id for event in events}
    only = f"{events[0].workload or 'one series'} {events[0].strategy or ''}".strip()
    return f"{len(series)} series" if len(series) > 1 else only
