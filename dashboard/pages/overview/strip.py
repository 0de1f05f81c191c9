"""The changes of all models since the build before, a dot for each, over the band of what is the same."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import altair as alt
import pandas as pd

from compilewatch.dashboard.charts import style
from compilewatch.dashboard.charts.style import ChartContent
from compilewatch.dashboard.parts import verdict_words
from compilewatch.dashboard.parts.parts import Chart
from compilewatch.dashboard.text import theme
from compilewatch.db import units
from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.judge.decide import group_of_several, represents_a_group
from compilewatch.db.judge.results import Comparison, Row
from compilewatch.db.records.vocabulary import Metric

KEY = "overview-models"
"""Of the chart of all models: of their changes, else of their speedups."""
_HEIGHT_PX, _WORDS_PX, _DOT_PX, _DOT_AREA = 90, 16, 9, 46
_PLACES = {"wide": 80, "narrow": 34}
"""How many dots find room beside each other."""
_FEWEST_ROWS = 5
_LEAST_REACH = 0.05
"""An axis reaches at least so far: noise alone must not look like a change."""
_LOOKS = {
    "slower": (theme.VERMILLION, "slower"),
    "faster": (theme.BLUE, "faster"),
    "unchanged": (theme.GREY, "shown the same"),
    "undecided": (theme.GREY, "undecided"),
    "set_aside": (theme.GREY, "set aside, machine"),
    "failing": (theme.GREY, "failing"),
}
_DECIDED = ("slower", "faster", "unchanged")


class ModelChange(NamedTuple):
    """What became of a model: its group, and the case that tells: of those that moved the one that moved
    most, else the middle one. `cases` are all that have a change.
    """

    model: str
    group: str
    row: Row
    cases: int


def model_changes(
    comparison: Comparison, metric: Metric, labels: Mapping[str, str]
) -> tuple[ModelChange, ...]:
    """The models of which a case has a change of `metric`, the one that moved most first. `labels` name
    workloads by id.
    """
    groups = comparison.groups(metric)
    rows_of: dict[str, list[Row]] = {}
    for row in comparison.rows:
        if row.metric is metric and row.change is not None:
            rows_of.setdefault(row.case.workload_id, []).append(row)
    of_workload: dict[str, list[str]] = {}
    for (workload_id, _), group in groups.items():
        of_workload.setdefault(workload_id, []).append(group)
    found = []
    for workload_id, rows in rows_of.items():
        group = group_of_several(of_workload[workload_id])
        mine = [row for row in rows if groups[row.case.ids] == group]
        row = represents_a_group(mine if mine and group in ("slower", "faster") else rows, group)
        found.append(ModelChange(verdict_words.workload_label(row.case, labels), group, row, len(rows)))
    return tuple(sorted(found, key=lambda each: -abs(each.row.log_change)))


def strip(
    changes: Sequence[ModelChange], comparison: Comparison | None, metric: Metric, since: str | None
) -> tuple[Chart, ...]:
    """A dot for each of `changes` since the build `since`; nothing where there is none."""
    if not changes or comparison is None or since is None:
        return ()
    rows = pd.DataFrame(
        [
            {
                "workload": each.model,
                "strategy": each.row.strategy,
                "change": each.row.change,
                "group": each.group,
                "decided": each.group in _DECIDED,
                "verdict": _LOOKS[each.group][1],
                "change_text": verdict_words.change(each.row),
                "interval_text": verdict_words.interval(each.row),
                "base_text": verdict_words.figure(metric, each.row.base),
                "head_text": verdict_words.figure(metric, each.row.head),
                "cases_text": f"{each.row.strategy}, of {units.plural(each.cases, 'case')}",
            }
            for each in changes
        ]
    )
    margin = comparison.policy.for_case("", "", metric).unchanged_margin
    far = max(_LEAST_REACH, *(abs(each.row.change or 0.0) for each in changes))
    word, reach = METRICS[metric].word, _round(far * 1.06)
    chart = Chart(
        KEY,
        f"Change of {word} of each model since {since}, over the band of what is shown the same",
        ChartContent(
            f"{units.capitalized(word)} of {units.plural(len(changes), 'model')} since {since}",
            _spec(reach, margin, word, tuple(dict.fromkeys(rows["group"]))),
            {
                "main": _placed(rows, reach),
                "band": pd.DataFrame([{"low": -margin, "high": margin, "room": _FEWEST_ROWS + 0.5}]),
            },
        ),
        explained="A dot is a model, by its case that moved most, else its middle one. Hollow: undecided.",
        plain=True,
    )
    return (chart,)


def _round(reach: float) -> float:
    """`reach` made a little longer, so that few scales are made: to two digits."""
    return float(f"{reach * 1.05:.2g}") if math.isfinite(reach) else 1.0


def _placed(rows: pd.DataFrame, reach: float) -> pd.DataFrame:
    """`rows` with where each dot stands on a screen and on a phone: dots that would cover each other above
    each other, decided ones lowest.
    """
    ordered = rows.sort_values("decided", ascending=False, kind="stable")
    for name, places in _PLACES.items():
        at = ((ordered["change"] + reach) / (2 * reach) * places).round()
        stack = ordered.groupby(at).cumcount() + 1
        ordered = ordered.assign(**{f"at_{name}": at / places * 2 * reach - reach, f"stack_{name}": stack})
    return ordered.sort_index()


@lru_cache(maxsize=64)
def _spec(reach: float, margin: float, word: str, groups: tuple[str, ...]) -> style.Spec:
    """Dots over `main`, stacked where they would cover each other, from -`reach` to `reach`."""
    scale = alt.Scale(domain=[-reach, reach], nice=False)
    label = "datum.value ? format(100 * datum.value, '+.2~f') + ' %' : '0 %'"
    axis = alt.Axis(labelExpr=label, tickCount=7, grid=False, domain=True)
    x = alt.X("at:Q", title=None, scale=scale, axis=axis)
    # Words stand above the dots.
    ground = alt.Scale(domainMin=0.3, range=[{"expr": "height"}, _WORDS_PX])
    y = alt.Y("stack:Q", title=None, axis=None, scale=ground)
    colours = alt.Scale(domain=list(groups), range=[_LOOKS[group][0] for group in groups])
    # Vega does not count anew what is stacked once the width is known, so both ways are at hand.
    narrow = f"width < {_PLACES['wide'] * _DOT_PX}"
    stacked = alt.Chart(style.data("main"))
    for name in ("at", "stack"):
        chosen = f"{narrow} ? datum.{name}_narrow : datum.{name}_wide"
        stacked = stacked.transform_calculate(**{name: chosen})
    dots = [
        stacked.transform_filter(f"{'' if decided else '!'}datum.decided")
        .mark_point(size=_DOT_AREA, strokeWidth=1.5, opacity=1, filled=decided)
        .encode(
            x=x,
            y=y,
            color=alt.Color("group:N", scale=colours, legend=None),
            tooltip=style.text_tooltip(
                workload="Model",
                verdict="Verdict",
                change_text="Change",
                interval_text="95 % interval",
                base_text="Before",
                head_text="Now",
                cases_text="By",
            ),
        )
        for decided in sorted({group in _DECIDED for group in groups})
    ]
    band = (
        alt.Chart(style.data("band"))
        .mark_rect(color=theme.GREY, opacity=style.BAND_OPACITY, aria=False)
        .encode(x=alt.X("low:Q", title=None, scale=scale, axis=axis), x2="high:Q")
    )
    # So that a few dots stand on the ground, and small.
    room = (
        alt.Chart(style.data("band"))
        .mark_point(opacity=0, aria=False)
        .encode(y=alt.Y("room:Q", title=None, axis=None, scale=ground))
    )
    phone, same = f"width < {style.PHONE_PX}", f"within {units.level(margin)}"
    texts = style.inked("band").transform_calculate(middle="0")
    words = [
        texts.mark_text(align="left", baseline="top", fontSize=12, aria=False, text="◂ faster").encode(
            x=alt.value(2), y=alt.value(0), fill=style.ink_fill()
        ),
        texts.mark_text(
            align="right",
            baseline="top",
            fontSize=12,
            aria=False,
            text=alt.ExprRef(expr=f"{phone} ? 'slower ▸' : 'slower in {word} ▸'"),
        ).encode(x=alt.value("width"), y=alt.value(0), fill=style.ink_fill()),
        texts.mark_text(
            baseline="top",
            fontSize=12,
            aria=False,
            text=alt.ExprRef(expr=f"{phone} ? '{same}' : 'shown the same, {same}'"),
        ).encode(
            x=alt.X("middle:Q", title=None, scale=scale, axis=axis), y=alt.value(0), fill=style.ink_fill()
        ),
    ]
    layers = alt.layer(band, room, *dots, *words).properties(height=_HEIGHT_PX)
    spec = style.spec_of(layers.add_params(style.pick("workload")))
    spec["padding"] = {"left": 4, "right": 4, "top": 2, "bottom": 2}
    return spec
