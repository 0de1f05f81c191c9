"""The builds of a machine in the order in which it got them, and what moved at each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import altair as alt
import pandas as pd

from compilewatch.dashboard.charts import style
from compilewatch.dashboard.charts.style import ChartContent
from compilewatch.dashboard.links.links import Link
from compilewatch.dashboard.parts import parts
from compilewatch.dashboard.parts.parts import Chart, Folded, Part, TableColumn
from compilewatch.dashboard.parts.verdict_words import component_text, environment_diff
from compilewatch.dashboard.read.data import filters_of, read_build_totals, read_choices_on
from compilewatch.dashboard.read.shaping import BUILD_COMPONENTS
from compilewatch.dashboard.text import theme
from compilewatch.db import units
from compilewatch.db.metrics.groups import row_dicts

MOST_BUILDS, _MOST_ROWS = 10, 100
"""As many columns of values as can be read; the table has more of the newest."""
_ROW_PX, _AROUND_PX, _LONGEST_VALUE = 30, 110, 18
# Below this width per build there is no room for values: the tooltip has them.
_VALUE_PX, _LANE_PX = 90, 130
_COLUMNS = {
    "build": replace(parts.BUILD, pinned=True),
    "last": TableColumn("Last result"),
    "trials": TableColumn("Trials", kind="number"),
    "moved": TableColumn("What moved", wide=True, explained="Against the build above it."),
    **parts.hidden(
        {
            "shown": TableColumn("Shown here"),
            "since": TableColumn("First result"),
            "runs": TableColumn("Runs", kind="number"),
        }
    ),
}


def components(link: Link) -> tuple[Part, ...]:
    """What the builds of the machine consist of, for whoever opens it; nothing where there is one."""
    choices = read_choices_on(link.machine)
    totals = read_build_totals(filters_of(replace(link, build=None)))
    totals = totals[totals["build_id"].isin(list(choices.builds))].sort_values(["first_seen_at", "build_id"])
    if len(totals) < 2:
        return ()
    return (Folded("Builds on this machine", lambda: _every_build(link, totals), "overview-builds"),)


def _every_build(link: Link, totals: pd.DataFrame) -> tuple[Part, ...]:
    """A chart of what moved, where something did, and a table of the newest."""
    choices = read_choices_on(link.machine)
    rows = row_dicts(totals.tail(_MOST_ROWS + 1))
    builds = [choices.build_rows[row["build_id"]] for row in rows]
    steps = [{}, *(_moved(before, after) for before, after in pairwise(builds))]
    table = pd.DataFrame(
        [
            {
                "build_id": row["build_id"],
                "build": choices.builds[row["build_id"]],
                "shown": "this build" if row["build_id"] == link.build else units.MISSING,
                "since": units.moment(row["first_seen_at"]),
                "last": units.moment(row["last_seen_at"]),
                "runs": row["runs"],
                "trials": row["trials"],
                "moved": _listed(step) or units.MISSING,
            }
            for row, step in zip(rows, steps, strict=True)
        ]
    )
    alt_text = "Every build of this machine with its runs, trials, results and what moved"
    shown = table.tail(_MOST_ROWS)
    note = f"The newest {len(shown)} of {units.count(len(totals))}." if len(shown) < len(totals) else ""
    return (
        *_chart(table, builds, steps),
        *parts.table("overview-builds", alt_text, shown, _COLUMNS, note=note),
    )


def _listed(step: Mapping[str, str]) -> str:
    """What moved in one line; another release of torch is another commit of it anyway."""
    return ", ".join(
        f"{name} {text}" for name, text in step.items() if name != "torch git" or "torch" not in step
    )


def _moved(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, str]:
    """Part -> both values, of the parts, packages and settings that differ."""
    changed = [
        name
        for name in BUILD_COMPONENTS
        if component_text(before.get(name)) != component_text(after.get(name))
    ]
    return {row["part"]: f"{row['base']} → {row['head']}" for row in environment_diff(before, after, changed)}


def _chart(
    table: pd.DataFrame, builds: Sequence[Mapping[str, Any]], steps: Sequence[Mapping[str, str]]
) -> tuple[Part, ...]:
    """Of the newest builds, what moved among them."""
    first = max(0, len(builds) - MOST_BUILDS)
    lanes = list(dict.fromkeys(name for step in steps[first + 1 :] for name in step))
    if not lanes:
        return ()
    known = {units.words(name): name for name in BUILD_COMPONENTS}
    columns = table["build"].tolist()[first:]
    cells = pd.DataFrame(
        [
            {
                "build": column,
                "part": lane,
                "value": text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…",
                "whole": text,
                "state": "moved" if place and lane in step else "as before",
                "says": step.get(lane, "unchanged") if place else text,
            }
            for place, (column, build, step) in enumerate(
                zip(columns, builds[first:], steps[first:], strict=True)
            )
            for lane in lanes
            for text in [_value(build, lane, known)]
        ]
    )
    moved = sum(bool(step) for step in steps[first + 1 :])
    finding = f"Components over time: something moved at {moved} of {units.plural(len(columns) - 1, 'step')}"
    spec = _spec(tuple(columns), tuple(lanes))
    return (
        Chart(
            "overview-components",
            "Versions of the components of each build in order of its first result",
            ChartContent(finding, spec, {"main": cells}),
            explained="A column is a build, in order of first results. Filled cells moved at that step.",
        ),
    )


def _value(build: Mapping[str, Any], lane: str, known: Mapping[str, str]) -> str:
    if lane in known:
        return component_text(build.get(known[lane]))
    difference = environment_diff({}, build, ())
    return next((row["head"] for row in difference if row["part"] == lane), units.MISSING)


@lru_cache(maxsize=32)
def _spec(builds: tuple[str, ...], lanes: tuple[str, ...]) -> style.Spec:
    """Cells over `main`: a column per build, a row per part."""
    phone = f"width < {style.PHONE_PX}"
    above = alt.Axis(
        orient="top",
        # Slanted names would take from a phone the width that the cells need.
        labelAngle=alt.ExprRef(expr=f"{phone} ? -90 : -20"),
        labelAlign="left",
        labelBaseline=alt.ExprRef(expr=f"{phone} ? 'middle' : 'alphabetic'"),
        labelLimit=alt.ExprRef(expr=f"{phone} ? 90 : 260"),
        labelOverlap=False,
    )
    x = alt.X("build:N", sort=list(builds), title=None, axis=above)
    narrow = f"width < {_VALUE_PX * len(builds)}"
    names = alt.ExprRef(expr=f"{phone} ? {_LANE_PX} : {2 * _LANE_PX}")
    axis = alt.Axis(labelLimit=names, labelPadding=6, labelOverlap=False)
    y = alt.Y("part:N", sort=list(lanes), title=None, axis=axis)
    states = alt.Scale(domain=["moved", "as before"], range=[theme.SKY, "transparent"])
    squares = (
        alt.Chart(style.data("main"))
        .mark_rect(cornerRadius=4, opacity=0.35)
        .encode(
            x=x,
            y=y,
            color=alt.Color("state:N", scale=states, legend=None),
            tooltip=style.text_tooltip(build="Build", part="Part", whole="Value", says="Change"),
        )
    )
    texts = (
        style.inked("main")
        .mark_text(fontSize=12, aria=False, text=alt.ExprRef(expr=f"{narrow} ? '' : datum.value"))
        .encode(x=x, y=y, fill=style.ink_fill())
    )
    height = len(lanes) * _ROW_PX + _AROUND_PX
    spec = style.matrix_spec_of(alt.layer(squares, texts).properties(height=height))
    # a slanted name above the last column reaches beyond it
    spec["padding"] = {"left": 0, "top": 5, "right": 40, "bottom": 5}
    return spec
