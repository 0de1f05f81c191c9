"""Events of a history: boundaries put into words, with what changed in the build there.

A history cut into stretches that were measured under one set of conditions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from compilewatch.db.columns.metrics import METRICS, SUMMARY_COLUMNS
from compilewatch.db.judge.change_points import Boundary, examine_boundary
from compilewatch.db.judge.compare.sides import (
    COMPONENTS,
    LIBRARIES,
    METHOD_SETTINGS,
    as_text,
    changed_libraries,
    plain_settings,
)
from compilewatch.db.judge.decide_series import decide_step
from compilewatch.db.judge.modes import is_flip
from compilewatch.db.judge.policy import HistoryPolicy
from compilewatch.db.judge.results import ChangeEvent, Result
from compilewatch.db.judge.sentences import announced, counted, withdrawn
from compilewatch.db.metrics.groups import Bools, Floats, floats
from compilewatch.db.records.ids import identity
from compilewatch.db.records.vocabulary import Metric, Verdict

CONDITION_COLUMNS = ("machine_id", "workload_version", "threads", "settings", "timing_method")
"""Where one of these changes from one point to the next, the series is cut: what follows is another one."""


METHOD = "method"
"""What a cut names where the process compiles with another number of threads, or its allocator keeps memory
otherwise.
"""


class Cut(Result):
    """Where the conditions of measuring changed: at point `index`, in these fields."""

    index: int
    fields: tuple[str, ...]


@dataclass(frozen=True)
class Stretch:
    """Valid points of a series measured under one set of conditions: log values and their positions."""

    y: Floats
    position: list[int]


def find_cuts(points: DataFrame) -> list[Cut]:
    """Where conditions change from one row of `points` to the next, in order. Columns may be missing."""
    present = [name for name in CONDITION_COLUMNS if name in points]
    texts = {name: [as_text(each) for each in points[name]] for name in present if name != "settings"}
    if "settings" in present:
        texts[METHOD], texts["settings"] = _method_and_others(points["settings"].tolist())
    cuts = []
    for index in range(1, len(points)):
        fields = tuple(name for name, each in texts.items() if each[index] != each[index - 1])
        if fields:
            cuts.append(Cut(index=index, fields=fields))
    return cuts


def _method_and_others(settings: list[object]) -> tuple[list[str], list[str]]:
    """Of each the settings of the method, and the others, as text; most share one object."""
    known: dict[int, tuple[str, str]] = {}
    for each in settings:
        if id(each) not in known:
            plain = plain_settings(each)
            method = as_text({name: plain.pop(name, None) for name in METHOD_SETTINGS})
            known[id(each)] = method, as_text(plain)
    return [known[id(each)][0] for each in settings], [known[id(each)][1] for each in settings]


def cut_stretches(points: DataFrame, metric: Metric, cuts: list[Cut]) -> list[Stretch]:
    """The points between the cuts that have a value above 0, are not suspect and were not taken by turns
    with another build beside other runs; no stretch without any.
    """
    values = floats(points[SUMMARY_COLUMNS[metric]])
    valid = np.isfinite(values) & (values > 0)
    for left_out in ("point_suspect", "by_turns"):
        if left_out in points:
            valid &= ~points[left_out].to_numpy(dtype=np.bool_)
    edges = [0, *(cut.index for cut in cuts), len(points)]
    stretches = []
    for start, end in itertools.pairwise(edges):
        position = [start + int(i) for i in np.flatnonzero(valid[start:end])]
        if position:
            stretches.append(Stretch(np.log(values[position]), position))
    return stretches


def points_of_build(points: DataFrame, stretch: Stretch, build: str | None) -> Bools:
    """One flag per point of `stretch`: whether it is of that build; with `build` None, none is."""
    if build is None or "build_id" not in points:
        return np.zeros(len(stretch.y), dtype=np.bool_)
    return np.array([points["build_id"].iloc[i] == build for i in stretch.position], dtype=np.bool_)


def change_events(
    points: DataFrame, metric: Metric, stretch: Stretch, boundaries: list[Boundary], rules: HistoryPolicy
) -> list[ChangeEvent]:
    """One event per boundary, in order."""
    edges = [0, *(boundary.start for boundary in boundaries), len(stretch.y)]
    levels = [float(np.median(stretch.y[a:b])) for a, b in itertools.pairwise(edges)]
    events = []
    for number, boundary in enumerate(boundaries):
        index = stretch.position[boundary.start]
        before = stretch.position[boundary.start - 1]
        flips = is_flip(stretch.y[: edges[number + 2]], boundary.start, rules)
        changed = changed_between(points.iloc[before], points.iloc[index])
        events.append(
            ChangeEvent(
                event_id=_event_id(points, metric, index),
                metric=metric,
                **labels(points.iloc[index]),
                index=index,
                announced_at=stretch.position[-1],
                before=math.exp(levels[number]),
                after=math.exp(levels[number + 1]),
                change=math.expm1(boundary.difference),
                interval=_interval(boundary),
                p_value=boundary.p_value,
                verdict=decide_step(metric, boundary.difference, flips=flips),
                changed_components=changed,
                confounded=len(changed) > 1,
                reason=announced(metric, math.expm1(boundary.difference), changed, flips=flips),
            )
        )
    return events


def count_events(points: DataFrame, metric: Metric, cuts: Sequence[int]) -> list[ChangeEvent]:
    """Every step of a count from a point that knows it to the next, none across a point of `cuts`: nothing is
    estimated, so a step is an event at once.
    """
    values = floats(points[METRICS[metric].column]).tolist()
    known = [place for place, value in enumerate(values) if math.isfinite(value)]
    events = []
    for old, new in itertools.pairwise(known):
        before, after = values[old], values[new]
        if before == after or any(old < cut <= new for cut in cuts):
            continue
        changed = changed_between(points.iloc[old], points.iloc[new])
        events.append(
            ChangeEvent(
                event_id=_event_id(points, metric, new),
                metric=metric,
                **labels(points.iloc[new]),
                index=new,
                announced_at=new,
                before=before,
                after=after,
                change=after / before - 1.0 if before else None,
                interval=None,
                p_value=None,
                verdict=decide_step(metric, after - before),
                changed_components=changed,
                confounded=len(changed) > 1,
                reason=counted(metric, before, after, changed),
            )
        )
    return events


def _interval(boundary: Boundary) -> tuple[float, float]:
    """95 % interval of the step by its standard error, as relative change."""
    half = 1.96 * boundary.error
    return math.expm1(boundary.difference - half), math.expm1(boundary.difference + half)


LABELS = ("series_id", "machine_id", "workload", "strategy", "strategy_kind", "build_id", "run_id")
"""What an event says of a row of its series, beside the parts of its build."""
_Row = Mapping[str, Any] | Series


def labels(row: _Row) -> dict[str, Any]:
    """What the series is called and where the point stands, as far as its row says."""
    texts = {name: None if pd.isna(row.get(name)) else as_text(row[name]) for name in LABELS}
    return {**texts, "at": row.get("last_started_at")}


def changed_between(old: _Row, new: _Row) -> tuple[str, ...]:
    """Parts of the build that differ between two rows, libraries by their names."""
    parts = [name for name in COMPONENTS if name in new and as_text(old[name]) != as_text(new[name])]
    return (*parts, *changed_libraries(old.get(LIBRARIES), new.get(LIBRARIES)))


def _event_id(points: DataFrame, metric: Metric, index: int, revises: str | None = None) -> str:
    """Stable: the same change of the same series has the same id whenever it is found."""
    row = points.iloc[index]
    where = as_text(row["run_id"]) if "run_id" in points else str(index)
    series = as_text(row["series_id"]) if "series_id" in points else None
    return identity({"series": series, "metric": metric.value, "at": where, "revises": revises})


def evidence_against(
    event: ChangeEvent, window: Stretch, boundaries: list[Boundary], rules: HistoryPolicy
) -> Boundary | None:
    """Today's evidence on a known event if it speaks against it: no boundary near, no step in its place."""
    inside = [i for i, position in enumerate(window.position) if position >= event.index]
    if not inside:
        return None
    start = inside[0]
    if start < rules.minimum_segment or len(window.y) - start < rules.minimum_segment:
        return None
    if any(abs(window.position[b.start] - event.index) <= rules.quiet_points for b in boundaries):
        return None
    edges = [0, *(b.start for b in boundaries), len(window.y)]
    left, right = max(e for e in edges if e < start), min(e for e in edges if e > start)
    today = examine_boundary(window.y, left, start, right, rules)
    faded = abs(today.difference) < 0.5 * math.log1p(rules.minimum_effect)
    return today if faded or today.p_here > 0.05 else None


def in_place_of(points: DataFrame, event: ChangeEvent, flip: ChangeEvent) -> ChangeEvent:
    """`event`, which was announced as no more than a `flip` before."""
    named = _event_id(points, event.metric, event.index, revises=flip.event_id)
    return event.model_copy(update={"event_id": named, "revises": flip.event_id})


def withdrawal(points: DataFrame, metric: Metric, event: ChangeEvent, today: Boundary) -> ChangeEvent:
    """The event that takes `event` back, announced at the last point. `today`: what is left of its step."""
    last = len(points) - 1
    change = math.expm1(today.difference)
    return event.model_copy(
        update={
            "event_id": _event_id(points, metric, event.index, revises=event.event_id),
            "announced_at": last,
            "change": change,
            "interval": _interval(today),
            "p_value": today.p_value,
            "verdict": Verdict.INCONCLUSIVE,
            "revises": event.event_id,
            "reason": withdrawn(metric, change, last - event.announced_at),
        }
    )
