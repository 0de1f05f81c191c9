"""Where a history changed its level, as the judge finds it: rings and labels on the chart, and sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from compilewatch.dashboard.charts import style
from compilewatch.db import units
from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.judge.compare.sides import COMPONENTS, LIBRARIES
from compilewatch.db.judge.history.events import CONDITION_COLUMNS
from compilewatch.db.judge.history.series import judge_series
from compilewatch.db.judge.policy import HistoryPolicy, Policy
from compilewatch.db.judge.results import ChangeEvent, Row
from compilewatch.db.judge.sequence import with_turns
from compilewatch.db.records.vocabulary import Metric, Verdict

NEEDED = tuple(
    dict.fromkeys(
        (
            *("series_id", "workload", "strategy", "strategy_id", "strategy_kind", "run_id", "build_id"),
            "point_suspect",
            *("first_started_at", "last_started_at", *CONDITION_COLUMNS, *COMPONENTS, LIBRARIES),
        )
    )
)
"""The columns of points that are read here, beside that of the figure; those of the build may be missing."""
_COLUMNS = ["at", "value", "label", "place", "says", "moment", "build", "run_id"]
_WORDS = {Verdict.REGRESSED: "worse", Verdict.IMPROVED: "better"}
_MOST_SENTENCES = 5
_MOST_NAMED = 2
# Labels nearer to each other than these shares of the axes would be written over each other.
_LABEL_WIDTH, _LABEL_HEIGHT = 0.17, 0.07
_RING_PX2 = 300


class Changes(NamedTuple):
    """The frame `changes` of the chart, the newest of its rows in sentences, and the last one for a title,
    empty where the level never changed.
    """

    frame: pd.DataFrame
    notes: list[str]
    last: str


_NONE = Changes(pd.DataFrame(columns=_COLUMNS), [], "")


class _Series:
    """Points of one series, equal to another where a judgement of them would be. It lets go of them once they
    are taken, so that what is kept of a judgement is small.
    """

    def __init__(self, identity: tuple[object, ...], take: Callable[[], pd.DataFrame]) -> None:
        self.identity = identity
        self._take: Callable[[], pd.DataFrame] | None = take

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Series) and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)

    def points(self) -> pd.DataFrame:
        """The points, once."""
        assert self._take is not None
        points, self._take = self._take(), None
        return points


def over(
    points: pd.DataFrame,
    rows: pd.DataFrame,
    metric: str,
    policy: Policy,
    turns: frozenset[tuple[str, str]] = frozenset(),
) -> Changes:
    """What the judge announces of the points that are drawn over time, each strategy by itself.

    `points` of one workload, `rows` what `trend_rows.frame` draws of them. A level changes over time: nothing
    is told of runs and builds that took `turns`, nor of flips between two modes.
    """
    if rows.empty:
        return _NONE
    column = METRICS[metric].column
    points = with_turns(points[[name for name in (*NEEDED, column) if name in points]], turns)
    points = points.iloc[points.index.get_loc(rows.index[0]) :]
    events: dict[object, ChangeEvent] = {}
    names, drawn_strategies = points["strategy"].array, set(rows["strategy"])
    for places in map(np.asarray, points.groupby("strategy_id", sort=False).indices.values()):
        if names[places[0]] not in drawn_strategies:
            continue
        for event in _events(_series(points, places, column), Metric(metric), policy.history):
            events[points.index[places[event.index]]] = event
    drawn = rows.loc[rows.index.isin(list(events))]
    first, last = rows["at"].min(), rows["at"].max()
    span = max((last - first).total_seconds(), 1.0)
    across = [(at - first).total_seconds() / span for at in drawn["at"]]
    frame = _frame(drawn, [events[key] for key in drawn.index], rows, across)
    return Changes(frame, _newest_first(_sentences(frame)), _last(frame))


def between(
    points: pd.DataFrame, rows: pd.DataFrame, verdict_rows: Mapping[object, Row], names: Mapping[str, str]
) -> Changes:
    """Those of the verdicts, by the index of the newer of `points`, that say worse or better; `rows` are the
    points that are drawn. Where a break-even became never there is no place for a ring: a sentence says so.
    `names` are those of builds by id.
    """
    changes = {key: row for key, row in verdict_rows.items() if row.verdict in _WORDS}
    if not changes:
        return _NONE
    drawn, order = rows[rows.index.isin(list(changes))], list(dict.fromkeys(rows["build"]))
    across = [order.index(build) / max(len(order) - 1, 1) for build in drawn["build"]]
    frame = _frame(drawn, [changes[key] for key in drawn.index], rows, across)
    sentences = dict(zip(drawn.index, _sentences(frame), strict=True))
    mine = points[points.index.isin(list(changes))]
    columns = (mine[name].tolist() for name in ("last_started_at", "build_id"))
    for key, moment, build_id in zip(mine.index, *columns, strict=True):
        row = changes[key]
        text = f"{row.strategy} {_change(row)}: {row.reason}"
        sentences.setdefault(key, f"{moment:%Y-%m-%d %H:%M} UTC, {names[build_id]}: {text}")
    return Changes(frame, _newest_first([sentences[key] for key in mine.index]), "")


def _series(points: pd.DataFrame, places: NDArray[np.intp], column: str) -> _Series:
    values = points[column].to_numpy(dtype=np.float64, na_value=np.nan)[places]
    left_out = [points[name].to_numpy(dtype=np.bool_)[places] for name in ("point_suspect", "by_turns")]
    runs, builds = (tuple(points[name].array.take(places).tolist()) for name in ("run_id", "build_id"))
    first = tuple(points[name].array[places[0]] for name in ("series_id", "machine_id"))
    return _Series(
        (first, runs, builds, values.tobytes(), np.stack(left_out).tobytes()), lambda: points.take(places)
    )


# A new night changes the series of a workload once each; a trial of another workload changes none of them.
@lru_cache(maxsize=64)
def _events(series: _Series, metric: Metric, rules: HistoryPolicy) -> tuple[ChangeEvent, ...]:
    history = judge_series(series.points(), metric, Policy(history=rules))
    return tuple(event for event in history.events if event.verdict in _WORDS)


def _frame(
    drawn: pd.DataFrame, events: Sequence[ChangeEvent | Row], rows: pd.DataFrame, across: Sequence[float]
) -> pd.DataFrame:
    """A row per change, oldest first; of labels that would touch, the newest one is written. `across`: how
    far along the axis each stands, 0 to 1.
    """
    low, high = rows["value"].min(), rows["value"].max()
    height = max(high - low, abs(high) * 0.05, 1e-12)
    marks: list[dict[str, object]] = []
    written: list[tuple[float, float]] = []
    columns = (drawn[name].tolist() for name in ("at", "value", "strategy", "when_text", "build", "run_id"))
    for at, value, strategy, moment, build, run_id, event, x in reversed(
        list(zip(*columns, events, across, strict=True))
    ):
        y = (value - low) / height
        free = all(abs(x - a) > _LABEL_WIDTH or abs(y - b) > _LABEL_HEIGHT for a, b in written)
        if free:
            written.append((x, y))
        change = _change(event)
        marks.append(
            {
                "at": at,
                "value": value,
                "label": f"{'▲' if _rises(event) else '▼'} {change}" if free else "",
                "place": _place(rises=_rises(event), at_the_end=x > 1 - _LABEL_WIDTH),
                "says": f"{strategy} {change}: {event.reason}",
                "moment": moment,
                "build": build,
                "run_id": run_id,
            }
        )
    return pd.DataFrame(marks[::-1], columns=_COLUMNS)


def _change(event: ChangeEvent | Row) -> str:
    """ "+12.3 %, worse"; of what has no share, "never, worse", "from never, better" and "from 0, worse"."""
    before, after = _sides(event)
    if event.change is not None:
        size = units.percent(event.change, signed=True)
    elif after == units.NEVER:
        size = units.NEVER
    else:
        size = f"from {units.NEVER if before == units.NEVER else 0}"
    return f"{size}, {_WORDS[event.verdict]}"


def _rises(event: ChangeEvent | Row) -> bool:
    """A count that was 0 has risen; a number after never is less."""
    return _sides(event)[0] != units.NEVER if event.change is None else event.change > 0


def _sides(event: ChangeEvent | Row) -> tuple[float | str | None, float | str | None]:
    return (event.base, event.head) if isinstance(event, Row) else (event.before, event.after)


def _place(*, rises: bool, at_the_end: bool) -> str:
    """Beside a step there is room right of it on the side it came from, left of it on the side it goes to."""
    if at_the_end:
        return "above left" if rises else "below left"
    return "below right" if rises else "above right"


def _sentences(frame: pd.DataFrame) -> list[str]:
    columns = (frame[name].tolist() for name in ("moment", "build", "says"))
    return [f"{moment}, {build}: {says}" for moment, build, says in zip(*columns, strict=True)]


def _newest_first(sentences: Sequence[str]) -> list[str]:
    """The newest of these changes in their sentences, and how many more there are."""
    earlier = len(sentences) - _MOST_SENTENCES
    more = [f"{units.plural(earlier, 'earlier change')} of level: see the rings."] if earlier > 0 else []
    return [*sentences[::-1][:_MOST_SENTENCES], *more]


def _last(frame: pd.DataFrame) -> str:
    """ "last change: default -15.1 %, worse on 2026-11-14", and what else changed in the same run."""
    if frame.empty:
        return ""
    moment = frame["moment"].iloc[-1]
    together = frame[frame["run_id"] == frame["run_id"].iloc[-1]]["says"].str.partition(":")[0].tolist()
    more = f" and {len(together) - _MOST_NAMED} more" if len(together) > _MOST_NAMED else ""
    return f"last change: {', '.join(together[:_MOST_NAMED])}{more} on {moment.partition(' ')[0]}"


def rings(axis: str) -> alt.Chart:
    """A ring around the first point of each new level in the frame `changes`."""
    mark = style.inked("changes").mark_point(
        shape="circle", filled=False, size=_RING_PX2, strokeWidth=2, opacity=0.9
    )
    rings: alt.Chart = mark.encode(
        **_at(axis),
        stroke=style.ink_stroke(),
        tooltip=style.text_tooltip(says="Change of level", moment="Run", build="Build"),
    )
    return rings


def labels(axis: str) -> list[alt.Chart]:
    """How large each change was, beside its ring, and where there is room in a word."""
    sizes = "replace(datum.label, /, (better|worse)$/, '')"
    text = alt.ExprRef(expr=f"width < {style.PHONE_PX} ? {sizes} : datum.label")
    sides: tuple[tuple[str, Literal["left", "right"], int], ...] = (
        ("right", "left", 8),
        ("left", "right", -8),
    )
    heights: tuple[tuple[str, Literal["top", "bottom"], int], ...] = (
        ("above", "bottom", -11),
        ("below", "top", 11),
    )
    return [
        style.inked("changes")
        .transform_filter(f"datum.place == '{height} {side}'")
        .mark_text(align=align, baseline=baseline, dx=dx, dy=dy, fontSize=12, fontWeight=600, text=text)
        .encode(**_at(axis), fill=style.ink_fill())
        for side, align, dx in sides
        for height, baseline, dy in heights
    ]


def _at(axis: str) -> dict[str, alt.X | alt.Y]:
    x = alt.X("build:O") if axis == "torch" else alt.X("at:T")
    return {"x": x, "y": alt.Y("value:Q")}
