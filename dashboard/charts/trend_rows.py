"""History points as rows of the trend chart, and what its axes show."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from compilewatch.db import units
from compilewatch.db.columns.column import Column
from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.judge.results import Row
from compilewatch.db.metrics.groups import floats
from compilewatch.db.records.strategies import EAGER, sort_key
from compilewatch.db.records.trial import timing_text
from compilewatch.db.records.vocabulary import Metric, Verdict

# More than this in a row are told by the first and the last; of more groups the rest is counted.
_NAMED_EACH = 2
_MOST_GROUPS = 4


def stretches(points: pd.DataFrame, known: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Of each point how many points of its strategy before it have no number: a line connects equal ones.

    `points` of one workload in the order of the axis; `known` says which of them have a number.
    """
    missing = pd.Series(~known, dtype=np.int64).groupby(points["strategy"].to_numpy())
    return missing.cumsum().to_numpy()


def since_first(
    points: pd.DataFrame, rows: pd.DataFrame, metric: str, *, axis: str, names: Mapping[str, str]
) -> tuple[tuple[str, ...], str]:
    """Of `points` of one workload from the first of the chart's `rows` on the names of the builds, oldest
    version first, and in a sentence those without a number; at least one is drawn.

    `names` by build id, oldest first. On an axis of time nothing is said of what has no number.
    """
    since = points.loc[rows.index[0] :]
    measured = set(since["build_id"])
    builds = tuple(name for key, name in names.items() if key in measured)
    return builds, sentence(since, metric, names) if axis == "torch" else ""


def sentence(points: pd.DataFrame, metric: str, names: Mapping[str, str]) -> str:
    """ "No number: default never with torch 2.8.0 to torch 2.12.1." Empty where every point has one.

    `points` of one workload; `names` by build id, oldest first.
    """
    compiled = points[points["strategy"] != EAGER.name]
    missing = compiled[compiled[METRICS[metric].column].isna()]
    if missing.empty:
        return ""
    words = missing[metric] if metric == "break_even" else ["unknown"] * len(missing)
    builds_of: dict[tuple[str, str], set[str]] = {}
    for strategy, word, build in zip(missing["strategy"], words, missing["build_id"], strict=True):
        builds_of.setdefault((strategy, str(word)), set()).add(build)
    measured = set(points["build_id"])
    order = [key for key in names if key in measured]
    several = compiled["strategy"].nunique() > 1
    parts = [
        f"{f'{strategy} ' if several else ''}{word} with {_listed(order, builds, names)}"
        for (strategy, word), builds in sorted(builds_of.items(), key=lambda item: sort_key(item[0][0]))
    ]
    return f"No number: {'; '.join(parts)}."


def _listed(order: Sequence[str], wanted: set[str], names: Mapping[str, str]) -> str:
    """The `wanted` of the builds in `order`, neighbours together."""
    groups = [list(keys) for inside, keys in groupby(order, wanted.__contains__) if inside]
    texts = [
        f"{names[keys[0]]} to {names[keys[-1]]}"
        if len(keys) > _NAMED_EACH
        else ", ".join(names[key] for key in keys)
        for keys in groups[-_MOST_GROUPS:]
    ]
    left = sum(map(len, groups[:-_MOST_GROUPS]))
    return ", ".join(texts) + (f" and {left} older" if left else "")


MOST_POINTS = 750
"""So many are drawn, the newest: 150 nights of five strategies. Above that marks cover each other."""
_DENSE_POINTS = 300
# The time axis covers at least this much, the value axis at least this share of its value.
_SHORTEST = timedelta(hours=1)
_FLATTEST = 0.1

# An axis of ratios is stretched by this at most so that 1x is on it.
_MOST_FLATTENED = 3.0

# A verdict behind the change that it is on: a signed share is no "-62.7 % worse".
_CHANGE_WORDS = {
    Verdict.REGRESSED: ", worse",
    Verdict.IMPROVED: ", better",
    Verdict.UNCHANGED: " (unchanged)",
    Verdict.INCONCLUSIVE: " (undecided)",
    Verdict.NOT_COMPARABLE: " (not comparable)",
    Verdict.MISSING: " (missing)",
}

# What one point of each axis is.
POINT_WORDS = {"time": "run", "torch": "build"}


class Window(NamedTuple):
    """The ends of the time axis and of the value axis, and whether points lie so close that marks are small
    and have no whiskers: the band and the line say the rest. `least` is the smallest value above 0 that is
    drawn, 0 where none is: a logarithmic axis begins there.
    """

    first: datetime
    last: datetime
    low: float
    high: float
    dense: bool = False
    least: float = 0.0


def needed(metric: str) -> list[str]:
    """The columns of points that this module reads for a figure: few of a hundred, so rows move quickly."""
    figure = METRICS[metric]
    columns = (
        *("run_id", "build_id", "workload", "strategy", "last_started_at", "point_suspect", "first_look"),
        *("timing_method", "bound", "counted_trials", "break_even", figure.column),
        *(*(figure.band or ()), *(figure.interval or ())),
    )
    return list(dict.fromkeys(columns))


def in_order(points: pd.DataFrame, axis: str, builds: Sequence[str]) -> pd.DataFrame:
    """`points` by time, or by version where the axis is `torch`; `builds` are all build ids, oldest first.

    Builds that one run measured by turns are told apart by version alone, so they break ties of the run.
    """
    rank = {build_id: position for position, build_id in enumerate(builds)}
    version = points["build_id"].map(rank).to_numpy(dtype=np.float64, na_value=np.nan)
    moments = points["last_started_at"].dt.tz_localize(None)
    if axis == "torch":
        return points.take(np.lexsort((moments.to_numpy(), version)))
    latest = moments.groupby(points["run_id"]).transform("max")
    return points.take(np.lexsort((version, latest.to_numpy())))


def frame(
    points: pd.DataFrame, metric: str, build_names: Mapping[str, str], most: int | None = None
) -> pd.DataFrame:
    """Points of one workload as chart rows: `at`, `build`, `strategy`, `value`, `low`, `high` and texts.

    `points` are rows of `db.metrics.trend.series_points`. Rows without the figure are left out; the page says
    which they are, and `stretch` is another number after each, so that no line leads across it. Of more than
    `most`, else `MOST_POINTS`, the newest.
    """
    figure = METRICS[metric]
    stretch = stretches(points, points[figure.column].notna().to_numpy(dtype=np.bool_))
    drawn = np.flatnonzero(drawable(points, metric))[-(most or MOST_POINTS) :]
    rows = points[needed(metric)].take(drawn)
    value = floats(rows[figure.column]) / figure.divisor
    # What is the same in every trial has no ends across them.
    ends = figure.band or (figure.column, figure.column)
    low, high = (floats(rows[column]) / figure.divisor for column in ends)
    of_row, measured = rows["build_id"].array.factorize()
    return pd.DataFrame(
        {
            "at": rows["last_started_at"].dt.tz_localize(None).array,
            "build": pd.array([build_names.get(key) for key in measured], dtype="str").take(of_row),
            "strategy": rows["strategy"].array,
            "stretch": stretch[drawn],
            "value": value,
            "low": np.where(np.isnan(low), value, low),
            "high": np.where(np.isnan(high), value, high),
            "state": np.select(
                [rows["point_suspect"].to_numpy(np.bool_), rows["first_look"].to_numpy(np.bool_)],
                ["suspect", "first look"],
                "trusted",
            ),
            "value_text": [figure.write(item) for item in rows[figure.column].tolist()],
            "interval_text": _interval_texts(rows, figure),
            "when_text": [f"{at:%Y-%m-%d %H:%M} UTC" for at in rows["last_started_at"].tolist()],
            "trials_text": [units.count(item) for item in rows["counted_trials"].tolist()],
            "timing_text": [
                timing_text(*each) or units.MISSING
                for each in zip(rows["timing_method"].tolist(), rows["bound"].tolist(), strict=True)
            ],
            "run_id": rows["run_id"].array,
            "workload": rows["workload"].array,
        },
        index=rows.index,
    )


def drawable(points: pd.DataFrame, metric: str) -> NDArray[np.bool_]:
    """Which of `points` have the figure, eager's only where it has one of its own."""
    figure = METRICS[metric]
    shown = points[figure.column].notna().to_numpy(dtype=np.bool_)
    return shown if figure.eager_too else shown & (points["strategy"] != "eager").to_numpy(dtype=np.bool_)


def judgeable(points: pd.DataFrame, metric: str) -> NDArray[np.bool_]:
    """Which of `points` say something of the figure: those that are drawn, and a break-even that is never."""
    known = drawable(points, metric)
    if metric != Metric.BREAK_EVEN:
        return known
    is_never = points["break_even"].eq(units.NEVER).fillna(value=False).to_numpy(dtype=np.bool_)
    return known | is_never


def older_points(
    points: pd.DataFrame, rows: pd.DataFrame, axis: str, most: int | None = None, *, older: bool = False
) -> str:
    """Says that `rows`, made of `points`, leave out the oldest runs or builds; empty where they do not.
    `older` says that there are more than `points`.
    """
    if len(rows) < (most or MOST_POINTS):
        return ""
    key = "build_id" if axis == "torch" else "run_id"
    drawn, every = points.loc[rows.index, key].nunique(), points[key].nunique()
    if older:
        return f"Only the newest {drawn} {POINT_WORDS[axis]}s are drawn."
    return "" if drawn == every else f"The newest {drawn} of {every} {POINT_WORDS[axis]}s are drawn."


def _interval_texts(rows: pd.DataFrame, figure: Column) -> list[str]:
    if figure.interval is None:
        return [units.MISSING] * len(rows)
    columns = (*figure.interval, "counted_trials")
    ends = zip(*(rows[column].tolist() for column in columns), strict=True)
    return [units.interval(low, high, figure.write, trials=trials) for low, high, trials in ends]


def window(rows: pd.DataFrame) -> Window:
    """What the axes show: all points with some air, and never so little that noise fills the chart."""
    first, last = rows["at"].min(), rows["at"].max()
    air = max((last - first) * 0.04, (_SHORTEST - (last - first)) / 2)
    low, high = float(rows["low"].min()), float(rows["high"].max())
    middle = (low + high) / 2
    half = max((high - low) * 0.58, abs(middle) * _FLATTEST / 2)
    bottom = max(middle - half, 0.0) if low >= 0 else middle - half
    return Window(
        (first - air).floor("min").to_pydatetime(),
        (last + air).ceil("min").to_pydatetime(),
        float(f"{bottom:.3g}"),
        float(f"{middle + half:.3g}"),
        len(rows) >= _DENSE_POINTS,
        float(rows["low"].where(rows["low"] > 0).min(skipna=True)) if (rows["low"] > 0).any() else 0.0,
    )


def is_ratio(metric: str) -> bool:
    """Whether 1 means as fast as eager."""
    return METRICS[metric].unit == "x"


def with_eager(shown: Window, metric: str) -> Window:
    """`shown` with 1x in it, where that is a ratio and does not flatten what is drawn."""
    low, high = min(shown.low, 0.98), max(shown.high, 1.02)
    near = high - low <= _MOST_FLATTENED * (shown.high - shown.low)
    return shown._replace(low=low, high=high) if is_ratio(metric) and near else shown


def finding(
    rows: pd.DataFrame,
    metric: str,
    workload: str,
    verdicts: Mapping[object, Row],
    *,
    never_now: Collection[str] = (),
) -> str:
    """The newest value of the leading strategy, and the judge's change of it since the build before; with its
    build where the strategy is `never_now`, and has no number since.

    `rows` as `frame` returns them, not empty, in the order of `in_order`; `verdicts` those on the newest
    build by the index of their row. A change that nobody judged is not named: it may be noise.
    """
    figure = METRICS[metric]
    strategies, values = (rows[name].tolist() for name in ("strategy", "value"))
    compiled = [place for place, strategy in enumerate(strategies) if strategy != "eager"]
    newest = {strategies[place]: place for place in compiled or range(len(rows))}
    last = sorted(newest.values())
    by_value = pd.Series([values[place] for place in last], index=last)
    leading = int(by_value.sort_values(ascending=not figure.higher_is_better).index[0])
    strategy = strategies[leading]
    since = f" with {rows['build'].iloc[leading]}" if strategy in never_now else ""
    text = f"{strategy} on {workload}: {figure.name} {rows['value_text'].iloc[leading]}{since}"
    verdict = verdicts.get(rows.index[leading])
    earlier = [place for place in range(leading) if strategies[place] == strategy]
    if verdict is None or verdict.change is None or not earlier:
        return text
    change = units.percent(verdict.change, signed=True)
    return f"{text}, {change}{_CHANGE_WORDS[verdict.verdict]} since {rows['build'].iloc[earlier[-1]]}"
