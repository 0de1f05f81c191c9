"""History of one series: its changes of level, each announced once and never silently taken back; targets.

What the newest night of a series announces: strong evidence at once, weaker evidence when it lasts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy
from pandas import DataFrame

from compilewatch.db.columns.metrics import METRICS, SUMMARY_COLUMNS
from compilewatch.db.judge.change_points import (
    Boundary,
    autocorrelation,
    boundaries,
    candidates,
    examine_boundary,
    noise_scale,
    robust_deviation,
    standing_boundaries,
    stands,
)
from compilewatch.db.judge.compare.sides import as_text
from compilewatch.db.judge.decide import MOVED
from compilewatch.db.judge.decide_series import decide_drift
from compilewatch.db.judge.history.events import (
    Cut,
    Stretch,
    change_events,
    count_events,
    cut_stretches,
    evidence_against,
    find_cuts,
    in_place_of,
    points_of_build,
    withdrawal,
)
from compilewatch.db.judge.modes import two_modes
from compilewatch.db.judge.policy import HistoryPolicy, Policy, Target
from compilewatch.db.judge.results import ChangeEvent, Result
from compilewatch.db.judge.sentences import drifted
from compilewatch.db.judge.targets import AT_LEAST, Forecast, forecast_crossing
from compilewatch.db.metrics.groups import Bools, Floats, Ints, floats
from compilewatch.db.records.vocabulary import Metric, Verdict

SAME_PLACE = 3
"""Points by which a boundary may move from one night to the next and still be the same one."""


@dataclass(frozen=True)
class NightlyBoundaries:
    """Boundaries of a series up to its newest night: `strong` ones pass `nightly_p_value`, all of `standing`
    pass `lasting_p_value`, and those of them at the starts `lasting` did so for `lasting_nights` nights.
    """

    strong: list[Boundary]
    standing: list[Boundary]
    lasting: frozenset[int]


def nightly_boundaries(y: Floats, policy: HistoryPolicy) -> NightlyBoundaries:
    """Boundaries in the log values `y`, judged as of the last one."""
    starts = candidates(y[None], policy)
    strict, lenient = policy.at(policy.nightly_p_value), policy.at(policy.lasting_p_value)
    strong = _placed(y, standing_boundaries(y[None], starts, strict)[0], strict)
    (standing,) = standing_boundaries(y[None], starts, lenient)
    recent = [
        each.start
        for each in standing
        if len(y) - each.start <= policy.points_per_side
        and all(abs(each.start - other.start) > policy.quiet_points for other in strong)
    ]
    for night in range(1, policy.lasting_nights if recent else 0):
        then = [each.start for each in boundaries(y[:-night], lenient)]
        recent = [start for start in recent if any(abs(start - other) <= SAME_PLACE for other in then)]
    placed = _placed(y, standing, lenient)
    lasting = [new.start for old, new in zip(standing, placed, strict=True) if old.start in recent]
    return NightlyBoundaries(strong, placed, frozenset(lasting))


def _placed(y: Floats, boundaries: list[Boundary], policy: HistoryPolicy) -> list[Boundary]:
    """Every boundary where its two levels meet best, if ranks agree that it stands there more clearly."""
    placed: list[Boundary] = []
    edges = [*(each.start for each in boundaries), len(y)]
    for boundary, right in zip(boundaries, edges[1:], strict=True):
        left = placed[-1].start if placed else 0
        start = _meeting_point(y, left, boundary.start, right, policy)
        moved = examine_boundary(y, left, start, right, policy)
        better = moved.p_here < boundary.p_here and stands(moved, policy)
        placed.append(moved if better else boundary)
    return placed


def _meeting_point(y: Floats, left: int, start: int, right: int, policy: HistoryPolicy) -> int:
    """The split of the points from `left` up to `right` that leaves the smallest sum of squares, where points
    farther than a deviation beyond both levels count as that far: outliers do not move it.
    """
    before, after = y[left:start], y[start:right]
    levels = float(np.median(before)), float(np.median(after))
    deviation = robust_deviation(np.concatenate([before - levels[0], after - levels[1]]))
    near = np.clip(y[left:right], min(levels) - deviation, max(levels) + deviation)
    n, shortest = len(near), policy.minimum_segment
    if n < 2 * shortest:
        return start
    size = np.arange(shortest, n - shortest + 1)
    total = np.cumsum(near)
    step = total[size - 1] / size - (total[-1] - total[size - 1]) / (n - size)
    return left + int(size[np.argmax(step * step * size * (n - size))])


# Slow drift against a pinned reference: what no comparison of neighbours sees.


class Drift(Result):
    """How far the newest points stand from the reference. `total` is the whole relative change, `unexplained`
    what remains of it after the announced steps, with its interval and two-sided p.
    """

    total: float
    unexplained: float
    interval: tuple[float, float]
    p_value: float
    verdict: Verdict
    reason: str


def drift_from_reference(
    y: Floats, reference: Bools, steps: Floats, metric: Metric, policy: Policy
) -> Drift | None:
    """Compare the newest `policy.history.drift_points` points with the reference.

    `y`: log values of a series; `reference` flags the points of the pinned build, the oldest ones are taken
    where none is flagged; `steps`: per point the sum of all announced log steps up to it. None where either
    side would have fewer than three points or the sides would overlap.
    """
    size = policy.history.drift_points
    pinned = np.flatnonzero(reference)[:size] if reference.any() else np.arange(min(size, len(y)))
    newest = np.arange(max(len(y) - size, 0), len(y))
    if min(len(pinned), len(newest)) < 3 or pinned[-1] >= newest[0]:
        return None
    plain = y - steps
    total = float(np.mean(y[newest]) - np.mean(y[pinned]))
    slow = float(np.mean(plain[newest]) - np.mean(plain[pinned]))
    error = _error(plain, pinned, newest, policy)
    p_value = 2.0 * float(scipy.special.ndtr(-abs(slow) / error))
    half = float(scipy.special.ndtri(0.5 + policy.confidence / 2.0)) * error
    verdict = decide_drift(metric, slow, half, p_value, policy)
    against = "the reference build" if reference.any() else "the oldest points"
    return Drift(
        total=math.expm1(total),
        unexplained=math.expm1(slow),
        interval=(math.expm1(slow - half), math.expm1(slow + half)),
        p_value=p_value,
        verdict=verdict,
        reason=drifted(metric, math.expm1(slow), against, real=verdict in MOVED),
    )


def _error(plain: Floats, pinned: Ints, newest: Ints, policy: Policy) -> float:
    """Standard error of the difference of both means; neighbours that resemble each other count for less."""
    scale = max(noise_scale(plain), policy.noise_floor)
    before, after = plain[pinned], plain[newest]
    rho = autocorrelation(before, after, policy.history.autocorrelation_limit)
    widening = math.sqrt((1.0 + rho) / (1.0 - rho))
    return scale * widening * math.sqrt(1.0 / len(before) + 1.0 / len(after))


class Segment(Result):
    """A stretch at one level: points `start` to `end` (exclusive), `level` in the metric's unit."""

    start: int
    end: int
    level: float


class SeriesHistory(Result):
    """A judged series. `noise` is the run-to-run CV around the levels; `two_mode` says that the noise itself
    has two states; indexes are positions in the points given.
    """

    series_id: str | None
    metric: Metric
    points: int
    events: tuple[ChangeEvent, ...]
    segments: tuple[Segment, ...]
    cuts: tuple[Cut, ...]
    noise: float | None
    two_mode: bool
    drift: Drift | None


def steps_of(points: DataFrame, metric: Metric, policy: Policy, cuts: list[Cut]) -> Iterator[ChangeEvent]:
    """The events of `judge_series`, without what else is said of a series; `cuts` are those of `points`."""
    if metric not in policy.thresholds:
        yield from count_events(points, metric, [cut.index for cut in cuts])
        return
    for stretch in cut_stretches(points, metric, cuts):
        yield from change_events(
            points, metric, stretch, boundaries(stretch.y, policy.history), policy.history
        )


def judge_series(
    points: DataFrame, metric: Metric, policy: Policy | None = None, *, reference_build: str | None = None
) -> SeriesHistory:
    """Judge a series as it stands today.

    `points`: rows of `db.metrics.trend.series_points` of one series, oldest first. `reference_build` pins the
    build id that slow drift is measured against; without it the oldest points are the reference. Events carry
    `announced_at` of the last point: who announces night by night calls `judge_new_point`.
    """
    policy = policy or Policy()
    cuts = find_cuts(points)
    if metric not in policy.thresholds:
        return _counted(points, metric, cuts)
    events: list[ChangeEvent] = []
    segments: list[Segment] = []
    stretches = cut_stretches(points, metric, cuts)
    for stretch in stretches:
        changes = boundaries(stretch.y, policy.history)
        events += change_events(points, metric, stretch, changes, policy.history)
        segments += _segments(stretch, changes)
    last = stretches[-1] if stretches else Stretch(np.zeros(0), [])
    residual = _around_levels(last, segments)
    return SeriesHistory(
        series_id=as_text(points["series_id"].iloc[-1]) if "series_id" in points and len(points) else None,
        metric=metric,
        points=sum(len(stretch.y) for stretch in stretches),
        events=tuple(events),
        segments=tuple(segments),
        cuts=tuple(cuts),
        noise=robust_deviation(residual) if len(last.y) > 1 else None,
        two_mode=two_modes(residual, policy.history) is not None,
        drift=drift_from_reference(
            last.y, points_of_build(points, last, reference_build), _steps(last, events), metric, policy
        ),
    )


def _counted(points: DataFrame, metric: Metric, cuts: list[Cut]) -> SeriesHistory:
    """What is counted has no noise: every step is one, and nothing drifts."""
    return SeriesHistory(
        series_id=as_text(points["series_id"].iloc[-1]) if "series_id" in points and len(points) else None,
        metric=metric,
        points=int(np.isfinite(floats(points[SUMMARY_COLUMNS[metric]])).sum()),
        events=tuple(count_events(points, metric, [cut.index for cut in cuts])),
        segments=(),
        cuts=tuple(cuts),
        noise=None,
        two_mode=False,
        drift=None,
    )


def judge_new_point(
    points: DataFrame, metric: Metric, known: tuple[ChangeEvent, ...] = (), policy: Policy | None = None
) -> tuple[ChangeEvent, ...]:
    """Events that the last row of `points` brings to light, given those announced before.

    Nothing is announced within `quiet_points` of a known event. A known event that no longer stands becomes
    a new event that names it in `revises`, and so does a flip between two modes that turns out to be a
    change; the old one is never changed.
    """
    policy = policy or Policy()
    stretches = [] if metric not in policy.thresholds else cut_stretches(points, metric, find_cuts(points))
    if not stretches:
        return ()
    rules = policy.history
    last = stretches[-1]
    window = Stretch(last.y[-rules.window :], last.position[-rules.window :])
    revised = {event.revises for event in known}
    live = [event for event in known if event.event_id not in revised and event.revises is None]
    night = nightly_boundaries(window.y, rules)
    flips = [event for event in live if event.verdict is Verdict.INCONCLUSIVE]
    changes = [event for event in known if event not in flips]
    fresh: list[ChangeEvent] = []
    for event in _announced(points, metric, window, night, rules):
        again = _near(event, flips, rules)
        if _near(event, changes, rules) or (again and event.verdict is Verdict.INCONCLUSIVE):
            continue
        fresh.append(in_place_of(points, event, again[0]) if again else event)
    withdrawn = [
        withdrawal(points, metric, event, evidence)
        for event in live
        if (evidence := evidence_against(event, window, [*night.strong, *night.standing], rules)) is not None
    ]
    return (*fresh, *withdrawn)


def _announced(
    points: DataFrame, metric: Metric, window: Stretch, night: NightlyBoundaries, rules: HistoryPolicy
) -> list[ChangeEvent]:
    """The changes that the newest night shows, the strong ones and those that lasted, each once."""
    strong = change_events(points, metric, window, night.strong, rules)
    lasting = {window.position[start] for start in night.lasting}
    standing = change_events(points, metric, window, night.standing, rules)
    return strong + [
        event for event in standing if event.index in lasting and not _near(event, strong, rules)
    ]


def withdrawals(points: DataFrame, metric: Metric, policy: Policy | None = None) -> tuple[ChangeEvent, ...]:
    """The events that were announced night by night and taken back later, each naming the one it replaces.

    Follows from the points alone: replayed from the first one, every announcement comes again as it was.
    """
    known: tuple[ChangeEvent, ...] = ()
    for end in range(1, len(points) + 1):
        known += judge_new_point(points.iloc[:end], metric, known, policy)
    return tuple(
        event for event in known if event.revises is not None and event.verdict is Verdict.INCONCLUSIVE
    )


def _near(event: ChangeEvent, others: list[ChangeEvent], rules: HistoryPolicy) -> list[ChangeEvent]:
    return [each for each in others if abs(event.index - each.index) <= rules.quiet_points]


def _segments(stretch: Stretch, boundaries: list[Boundary]) -> list[Segment]:
    edges = [0, *(boundary.start for boundary in boundaries), len(stretch.y)]
    return [
        Segment(
            start=stretch.position[start],
            end=stretch.position[end - 1] + 1,
            level=math.exp(float(np.median(stretch.y[start:end]))),
        )
        for start, end in itertools.pairwise(edges)
    ]


def _around_levels(stretch: Stretch, segments: list[Segment]) -> Floats:
    """Log values less the level of their segment."""
    residual = stretch.y.copy()
    position = np.array(stretch.position)
    for segment in segments:
        inside = (position >= segment.start) & (position < segment.end)
        residual[inside] -= math.log(segment.level)
    return residual


def _steps(stretch: Stretch, events: list[ChangeEvent]) -> Floats:
    """Per point the sum of the announced log steps up to it."""
    steps = np.zeros(len(stretch.y))
    position = np.array(stretch.position)
    for event in events:
        if stretch.position[0] < event.index:
            steps[position >= event.index] += event.log_step
    return steps


_BESIDE = {Metric.LATENCY: ("latency_p95_ns", "throughput_per_s")}
"""Quantities that the history of another metric tells of too."""


@dataclass(frozen=True)
class TargetOutlook:
    """A limit on this series, and when it will be crossed as far as that can be said."""

    quantity: str
    limit: float
    at_least: bool
    forecast: Forecast


def target_outlooks(
    points: DataFrame, series: SeriesHistory, targets: tuple[Target, ...], policy: Policy
) -> list[TargetOutlook]:
    """Every limit on this series with its forecast, read from the points since the last change."""
    start = series.segments[-1].start if series.segments else 0
    newest = points.iloc[-1]
    outlooks = []
    for target in targets:
        if not target.fits(str(newest["workload"]), str(newest["strategy"])):
            continue
        for quantity in (METRICS[series.metric].column, *_BESIDE.get(series.metric, ())):
            limit = target.limits().get(quantity)
            if limit is not None:
                values = floats(points[quantity].iloc[start:])
                at_least = quantity in AT_LEAST
                forecast = _forecast(values[np.isfinite(values)], limit, at_least=at_least, policy=policy)
                outlooks.append(TargetOutlook(quantity, limit, at_least, forecast))
    return outlooks


def _forecast(values: Floats, limit: float, *, at_least: bool, policy: Policy) -> Forecast:
    """A limit of 0, nothing at all, is met or missed: no trend leads to it."""
    if limit > 0:
        return forecast_crossing(values[values > 0], limit, at_least=at_least, policy=policy)
    state = "missed" if values[-1:].sum() > 0 else "met"
    reason = f"{state} by the newest run" if len(values) else "unknown"
    return Forecast(points=None, slope_per_point=None, p_value=None, reason=reason)
