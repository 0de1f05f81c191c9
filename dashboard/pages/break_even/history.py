"""Break-even of a workload from build to build: a row per build, and the chart of what is a number."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pandas as pd

from compilewatch.dashboard.charts import trend_rows, trends
from compilewatch.dashboard.charts.style import ChartContent, Spec
from compilewatch.dashboard.links.links import Link
from compilewatch.dashboard.parts import parts
from compilewatch.dashboard.parts.cases import REPAID
from compilewatch.dashboard.parts.parts import Chart, Empty, Folded, Part
from compilewatch.dashboard.read.data import (
    filters_of,
    of_workload,
    read_builds,
    read_choices_on,
    read_points,
)
from compilewatch.dashboard.read.shaping import with_caches
from compilewatch.dashboard.read.versions import cached
from compilewatch.dashboard.text import theme
from compilewatch.db import units
from compilewatch.db.metrics.case_modes import with_strategies
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.verdicts.case_view import FIRST_LOOK, steps_words

_METRIC = "break_even"
MOST_BUILDS = 100


def history_parts(link: Link, focus: str) -> tuple[Part, ...]:
    """Of the newest `MOST_BUILDS` a row each, newest first, and the chart; nothing of a single build."""
    builds = read_builds(of_workload(filters_of(replace(link, build=None)), focus))
    title = f"Break-even of {focus} from build to build"
    return (Folded(title, partial(_history, link, focus), "break-even-builds"),) if len(builds) > 1 else ()


@cached
def _history(link: Link, focus: str) -> tuple[Part, ...]:
    filters = filters_of(replace(link, build=None))
    columns = ("cache", *REPAID, *trend_rows.needed(_METRIC))
    points = read_points(of_workload(filters, focus), "build", columns)
    points = points[(points["workload_label"] == focus) & (points["strategy"] != EAGER.name)]
    points = with_caches(with_strategies(points, link.strategy), link.cache)
    names = read_choices_on(link.machine).builds
    with_points = set(points["build_id"])
    measured = [key for key in names if key in with_points]
    if len(measured) < 2:
        return (Empty("Fewer than two builds have a compiled case of it."),)
    newest = measured[-MOST_BUILDS:]
    points = points[points["build_id"].isin(newest)]
    strategies = theme.ordered(points["strategy"])
    cells: dict[str, dict[str, str]] = {names[key]: {"build": names[key], "build_id": key} for key in newest}
    for point in row_dicts(points[["build_id", "strategy", *REPAID]]):
        cells[names[point["build_id"]]][point["strategy"]] = steps_words(point)
    table = pd.DataFrame(list(cells.values())[::-1], columns=["build", "build_id", *strategies])
    ordered = trend_rows.in_order(points, "torch", list(names))
    rows = trend_rows.frame(ordered, _METRIC, names)
    drawn = rows["build"].nunique() > 1
    every = units.plural(len(measured), "build")
    older = f"The newest {MOST_BUILDS} of {every}." if len(measured) > MOST_BUILDS else ""
    notes = [older, trend_rows.older_points(ordered, rows, "torch")]
    notes += [trend_rows.sentence(ordered, _METRIC, names)] if drawn else []
    chart = ChartContent(
        _history_finding(table[["build", *strategies]], focus),
        _spec(rows, tuple(cells), link) if drawn else None,
        {"main": rows, "events": rows.iloc[:0]},
        list(filter(None, notes)),
    )
    return (
        Chart(
            "break-even-history",
            f"Break-even of {focus} over builds, one line per strategy",
            chart,
            "Steps until compiling has paid off, build by build. Band: 95 % interval.",
        ),
        *parts.table(
            "break-even-history-table",
            f"Break-even of {focus} with every build, never and unknown included",
            table,
            {
                "build": replace(parts.BUILD, pinned=True),
                **parts.numbers({name: name for name in strategies}),
            },
        ),
    )


def _spec(rows: pd.DataFrame, builds: tuple[str, ...], link: Link) -> Spec:
    return trends.spec(
        _METRIC,
        axis="torch",
        scale=link.scale,
        strategies=tuple(theme.ordered(rows["strategy"])),
        builds=builds,
        shown=trend_rows.window(rows),
    )


def _history_finding(table: pd.DataFrame, focus: str) -> str:
    """How the first strategy whose words changed moved between the last two builds, where there are two and
    neither is a first look.
    """
    if not len(table):
        return ""
    newest = table["build"].iloc[0]
    pairs = {name: table[name].iloc[:2].tolist() for name in table.columns[1:]}
    known = {
        strategy: pair
        for strategy, pair in pairs.items()
        if FIRST_LOOK not in pair and all(isinstance(word, str) for word in pair)
    }
    for strategy, (new, old) in known.items() if len(table) > 1 else ():
        if old != new:
            return f"{strategy} on {focus}: break-even {old} before, {new} with {newest}"
    if pairs and not known:
        return f"Nothing decides how break-even on {focus} moved to {newest}"
    return f"Break-even on {focus} is as it was before {newest}"
