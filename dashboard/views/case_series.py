"""The history of one case on its machine, beside the evidence of a verdict on it."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from dashboard.charts import trend_rows, trends
from dashboard.charts.figures import FIGURES
from dashboard.data import Snapshot, filters_of, of_workload, read_choices, read_points, remembered
from dashboard.links import Link
from dashboard.views import elements


@dataclass(frozen=True)
class Series:
    rows: pd.DataFrame
    events: pd.DataFrame
    builds: tuple[str, ...]


@remembered
def _series(snapshot: Snapshot, link: Link) -> Series:
    points = read_points(snapshot, of_workload(snapshot, filters_of(link), str(link.focus)))
    mine = points[
        (points["workload_label"] == link.focus) & (points["strategy"] == (link.focus_strategy or ""))
    ]
    names = read_choices(snapshot).builds
    mine = trend_rows.in_order(mine, "time", list(names))
    rows = trend_rows.frame(mine, link.metric, names)
    shown = set(rows["build"])
    return Series(rows, trend_rows.events(mine), tuple(name for name in names.values() if name in shown))


def draw(snapshot: Snapshot, link: Link, *, key: str) -> None:
    """`link` names the case by `focus` and `focus_strategy`; nothing where it has fewer than two runs."""
    found = _series(snapshot, link)
    if len(found.rows) < 2:
        return
    word = FIGURES[link.metric].word
    elements.note(f"{word} run by run. Dashed lines: the build changed. Hollow: a suspect measurement.")
    elements.chart(
        trends.spec(
            link.metric,
            axis="time",
            scale="linear",
            strategies=(str(link.focus_strategy),),
            builds=found.builds,
            shown=trend_rows.window(found.rows),
        ),
        {"main": found.rows, "events": found.events},
        key=key,
        alt=f"{word} of {link.focus} with {link.focus_strategy}, run by run",
    )
