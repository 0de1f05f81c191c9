"""Everything that changed on one machine: the steps of all its series, those that belong together as one."""

from __future__ import annotations

from collections.abc import Iterator

from pandas import DataFrame

from db.metrics.trend import series_points
from db.records import StrategyKind
from db.verdicts.count_history import exact_events
from db.verdicts.grouping import EventGroup, group_events
from db.verdicts.history import judge_series
from db.verdicts.policy import Policy
from db.verdicts.releases import Compare, release_events
from db.verdicts.results import ChangeEvent
from db.verdicts.sequence import builds_took_turns, release_order
from db.verdicts.vocabulary import MEASURED_METRICS, SUMMARY_COLUMNS, Metric, Verdict


def machine_history(
    trials: DataFrame, compare: Compare, policy: Policy | None = None
) -> tuple[EventGroup, ...]:
    """The grouped events of every series of one machine's trials frame, oldest first, then by release.

    Timed metrics change where `judge_series` finds a step (break-even follows from the others and has no
    event of its own), or from release to release where builds took turns; counts at every step. Flips between
    two modes are no events. `compare` gives the verdicts between releases.
    """
    policy = policy or Policy()
    events = list(exact_events(trials, policy))
    if builds_took_turns(trials):
        events = [e if e.verdict is Verdict.MISSING else e.model_copy(update={"at": None}) for e in events]
        of_releases = release_events(trials, compare)
        events += [event for event in of_releases if event.metric is not Metric.BREAK_EVEN]
    for _, series in trials.groupby("series_id", sort=True):
        if not builds_took_turns(series):
            events += _timed_events(series, policy)
    rank = {build: number for number, build in enumerate(release_order(trials))}
    groups = group_events(events, policy)
    return tuple(sorted(groups, key=lambda g: (g.at is None, g.at or rank.get(g.build_id or "", -1))))


def _timed_events(series: DataFrame, policy: Policy) -> Iterator[ChangeEvent]:
    points = series_points(series, resamples=1)
    eager = bool((series["strategy_kind"] == StrategyKind.EAGER.value).all())
    for metric in MEASURED_METRICS:
        if (
            SUMMARY_COLUMNS[metric] not in points
            or metric is Metric.BREAK_EVEN
            or (eager and metric is not Metric.LATENCY)
        ):
            continue
        for event in judge_series(points, metric, policy).events:
            if event.verdict is not Verdict.INCONCLUSIVE:
                yield event
