"""Everything that changed on one machine: the steps of all its series, those that belong together as one."""

from __future__ import annotations

from pandas import DataFrame

from db.metrics.trend import series_points
from db.verdicts.count_history import exact_events
from db.verdicts.grouping import EventGroup, group_events
from db.verdicts.history import judge_series
from db.verdicts.policy import Policy
from db.verdicts.results import ChangeEvent
from db.verdicts.sequence import in_reading_order
from db.verdicts.vocabulary import MEASURED_METRICS, Metric, Verdict


def machine_history(trials: DataFrame, policy: Policy | None = None) -> tuple[EventGroup, ...]:
    """The grouped events of every series of a trials frame, oldest first.

    Timed metrics change where `judge_series` finds a step (break-even follows from the others and has no
    event of its own), counts at every step. Flips between two modes are no events.
    """
    policy = policy or Policy()
    events: list[ChangeEvent] = list(exact_events(trials, policy))
    for _, series in trials.groupby("series_id", sort=True):
        points = in_reading_order(series_points(series, resamples=1), series)
        eager = bool((series["strategy_kind"] == "eager").all())
        for metric in MEASURED_METRICS:
            if metric is Metric.BREAK_EVEN or (eager and metric is not Metric.LATENCY):
                continue
            found = judge_series(points, metric, policy).events
            events += [event for event in found if event.verdict is not Verdict.INCONCLUSIVE]
    return group_events(events, policy)
