"""History points as rows of the trend chart, and what its axes show."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np
import pandas as pd

from dashboard.charts.figures import FIGURES, Figure
from db import units

MOST_POINTS = 750
"""So many are drawn, the newest: 150 nights of five strategies. Above that marks cover each other."""
_DENSE_POINTS = 300
# The time axis covers at least this much, the value axis at least this share of its value.
_SHORTEST = timedelta(hours=1)
_FLATTEST = 0.1

# What one point of each axis is.
POINT_WORDS = {"time": "run", "torch": "build"}


class Window(NamedTuple):
    """The ends of the time axis and of the value axis, and whether points lie so close that marks are small
    and have no whiskers: the band and the line say the rest.
    """

    first: datetime
    last: datetime
    low: float
    high: float
    dense: bool = False


def needed(metric: str) -> list[str]:
    """The columns of points that this module reads for a figure: few of a hundred, so rows move quickly."""
    figure = FIGURES[metric]
    return list(
        dict.fromkeys(
            [
                *("run_id", "build_id", "workload", "strategy", "last_started_at", "point_suspect"),
                *("counted_trials", figure.column, *figure.band, *(figure.interval or ())),
            ]
        )
    )


def natural_axis(points: pd.DataFrame) -> str:
    """`time`, or `torch` where only that sets the builds apart.

    Builds that took turns were measured at the same time, so over time they stand one above the other.
    `points` of one machine, by run.
    """
    runs = points.groupby("run_id").agg(began=("first_started_at", "min"), ended=("last_started_at", "max"))
    runs = runs.sort_values("began")
    took_no_turns = runs["began"] > runs["ended"].cummax().shift()
    occasions = int(took_no_turns.sum()) + 1
    return "torch" if points["build_id"].nunique() > occasions else "time"


def in_order(points: pd.DataFrame, axis: str, builds: Sequence[str]) -> pd.DataFrame:
    """`points` by time, or by version where the axis is `torch`; `builds` are all build ids, oldest first.

    Builds that one run measured by turns are told apart by version alone, so they break ties of the run.
    """
    rank = {build_id: position for position, build_id in enumerate(builds)}
    of_point, measured = points["build_id"].factorize()
    version = np.array([rank.get(build_id, math.nan) for build_id in measured])[of_point]
    if axis == "torch":
        return points.assign(_version=version).sort_values(["_version", "last_started_at"], kind="stable")
    of_run = points.groupby("run_id")["last_started_at"].transform("max")
    return points.assign(_of_run=of_run, _version=version).sort_values(["_of_run", "_version"], kind="stable")


def frame(points: pd.DataFrame, metric: str, build_names: Mapping[str, str]) -> pd.DataFrame:
    """Points of one workload as chart rows: `at`, `build`, `strategy`, `value`, `low`, `high` and texts.

    `points` are rows of `db.metrics.trend.series_points`. Rows without the figure are left out; the page says
    which they are.
    """
    figure = FIGURES[metric]
    rows = points[points[figure.column].notna()]
    if not figure.eager_too:
        rows = rows[rows["strategy"] != "eager"]
    rows = rows.tail(MOST_POINTS)
    value = rows[figure.column].astype(float) / figure.divisor
    low, high = (_end(rows[column], figure.divisor, value) for column in figure.band)
    return pd.DataFrame(
        {
            "at": rows["last_started_at"].dt.tz_localize(None),
            "build": rows["build_id"].map(dict(build_names)),
            "strategy": rows["strategy"],
            "value": value,
            "low": low,
            "high": high,
            "suspect": rows["point_suspect"].map({True: "suspect", False: "trusted"}),
            "value_text": [figure.say(item) for item in rows[figure.column].tolist()],
            "interval_text": _interval_texts(rows, figure),
            "when_text": [units.moment(moment) for moment in rows["last_started_at"]],
            "trials_text": [units.count(item) for item in rows["counted_trials"].tolist()],
            "run_id": rows["run_id"],
            "workload": rows["workload"],
        }
    )


def unseen(points: pd.DataFrame, rows: pd.DataFrame, axis: str) -> str:
    """Says that `rows`, made of `points`, leave out the oldest runs or builds; empty where they do not."""
    key = "build_id" if axis == "torch" else "run_id"
    drawn = points.loc[rows.index, key].nunique()
    every = points[key].nunique()
    if len(rows) < MOST_POINTS or drawn == every:
        return ""
    return f"The newest {drawn} of {every} {POINT_WORDS[axis]}s are drawn."


def _end(column: pd.Series, divisor: float, otherwise: pd.Series) -> pd.Series:
    return (column.astype("Float64") / divisor).fillna(otherwise).astype(float)


def _interval_texts(rows: pd.DataFrame, figure: Figure) -> list[str]:
    if figure.interval is None:
        return [units.MISSING] * len(rows)
    pairs = zip(*(rows[column].tolist() for column in figure.interval), strict=True)
    return [units.interval(low, high, figure.say) for low, high in pairs]


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
    )


def finding(rows: pd.DataFrame, metric: str, workload: str, axis: str) -> str:
    """The newest value of the leading strategy and how it moved since the point before.

    `rows` as `frame` returns them, in the order of `in_order`.
    """
    figure = FIGURES[metric]
    if rows.empty:
        return f"No {figure.word.lower()} of {workload} is known"
    compiled = rows[rows["strategy"] != "eager"]
    rows = compiled if not compiled.empty else rows
    last = rows.groupby("strategy").tail(1)
    leading = last.sort_values("value", ascending=not figure.higher_is_better).iloc[0]
    text = f"{leading['strategy']} on {workload}: {figure.word.lower()} {leading['value_text']}"
    mine = rows[rows["strategy"] == leading["strategy"]]
    if len(mine) < 2:
        return text
    before = mine.iloc[-2]
    change = leading["value"] / before["value"] - 1 if before["value"] else 0.0
    since = f"{before['build']}" if before["build"] != leading["build"] else f"the {POINT_WORDS[axis]} before"
    return f"{text}, {units.percent(change, signed=True)} since {since}"
