"""Forest plot of a comparison: a row for each change, below it the models that it hits, over the margin of
what is unchanged; before, now and change stand beside the bars.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from statistics import median
from typing import Any

import altair as alt
import pandas as pd

from compilewatch.dashboard.charts import style
from compilewatch.dashboard.parts import verdict_words
from compilewatch.dashboard.text import theme
from compilewatch.dashboard.verdicts import headlines
from compilewatch.db import units
from compilewatch.db.judge import verdict_marks as wording
from compilewatch.db.judge.decide import GROUPS, represents_a_group
from compilewatch.db.judge.results import Comparison, Row
from compilewatch.db.records.trial import timing_text
from compilewatch.db.records.vocabulary import Metric

MOST_ROWS = 60
"""More rows cannot be read on paper; the table has all cases."""
_ROW_PX, _AROUND_PX = 30, 44
# An interval that no chart could hold ends at the border.
_BEYOND = 1.5
_FEWEST_MARGINS = 2.5
_LOOKS = {
    "slower": (theme.VERMILLION, "triangle-right"),
    "failing": (theme.VERMILLION, "square"),
    "faster": (theme.BLUE, "diamond"),
    "set_aside": (theme.GREY, "square"),
    "undecided": (theme.GREY, "cross"),
    "unchanged": (theme.GREY, "circle"),
}
_WORDS = {"set_aside": "set aside, machine", "unchanged": "shown the same"}
# A phone has room for the change alone, and for the strategy below the model.
_NARROW = f"width < {style.PHONE_PX}"
_FIRST_PX, _LAST_PX = f"({_NARROW} ? 112 : 260)", f"({_NARROW} ? width - 66 : width - 330)"
_COLUMN_PX = {"base_text": "width - 232", "head_text": "width - 142", "within": "width - 2"}
_COLUMNS = [
    *("place", "kind", "workload", "strategy", "label", "group", "verdict", "change", "low", "high"),
    *("margin_low", "margin_high", "base_text", "head_text", "within", "word", "change_text", "interval"),
    *("values", "moved", "bound", "trials", "q", "detail", "cases"),
]


def rows_by_group(comparison: Comparison, metric: Metric) -> dict[str, list[Row]]:
    """What each compared case says of `metric`, by its group in the tally, the worst first within: its row of
    it, of one that fails, or has no value, that of what passes, else its first.
    """
    groups = comparison.groups(metric)
    found: dict[str, list[Row]] = {group: [] for group in GROUPS}
    for case, rows in comparison.by_case((*comparison.rows, *comparison.asked)).items():
        by_metric = {row.metric: row for row in rows}
        passes, group = by_metric.get(Metric.NUMERICS), groups[case]
        said = by_metric.get(metric) if group != "failing" else passes
        found[group].append(said or passes or rows[0])
    return {group: wording.worst_first(rows) for group, rows in found.items() if rows}


def group_word(group: str, metric: Metric) -> str:
    """What is said of cases of `group` in `metric`: "slower", "better in throughput", "shown the same"."""
    return headlines.way(metric, group) if group in ("slower", "faster") else _WORDS.get(group, group)


def frame(comparison: Comparison, metric: Metric, labels: Mapping[str, str]) -> pd.DataFrame:
    """One row per case whose change of `metric` has a number, the worst first. `labels`: id -> label.

    `change`, `low` and `high` are relative changes; the latter two are `change` where it has no interval.
    """
    rows = [row for row in comparison.rows if row.metric is metric and row.change is not None]
    drawn = [_frame_row(comparison, row, labels) for row in wording.worst_first(rows)]
    return pd.DataFrame(drawn, columns=[name for name in _COLUMNS if name not in ("place", "kind", "label")])


def frames(
    comparison: Comparison,
    metric: Metric,
    labels: Mapping[str, str],
    shown: Mapping[str, Sequence[Row]],
    focus: Sequence[str | None],
) -> dict[str, pd.DataFrame]:
    """The frames of `spec`: of each group of `shown` (`rows_by_group`) what it is (`heads`), and below it a
    row for each model, by the case that tells of its cases there (`main`); those of the model in `focus`, a
    workload and a strategy, each by itself. `chosen` is the case in focus.
    """
    heads: list[dict[str, Any]] = []
    main: list[dict[str, Any]] = []
    for group, rows in shown.items():
        if len(heads) + len(main) >= MOST_ROWS:
            break
        models: dict[str, list[Row]] = {}
        for row in rows:
            models.setdefault(verdict_words.workload_label(row.case, labels), []).append(row)
        heads.append({"place": len(heads) + len(main), "text": _head(group, metric, rows, len(models))})
        for model, mine in models.items():
            opened = model == focus[0] and len(mine) > 1
            told = [(represents_a_group(mine, group), len(mine))]
            for row, cases in [*told, *((row, 1) for row in mine)] if opened else told:
                is_part = opened and cases == 1
                cells = _frame_row(comparison, row, labels)
                by = row.strategy if cases == 1 else units.plural(cases, "strategy")
                label = f"with {by}" if is_part else f"{model} · {by}"
                main.append(
                    {
                        **cells,
                        "group": group,
                        "place": len(heads) + len(main),
                        "kind": "case" if is_part else "model",
                        "label": label,
                        "cases": 0 if is_part else cases,
                    }
                )
    drawn = pd.DataFrame(main[: MOST_ROWS - len(heads)], columns=_COLUMNS)
    chosen = (drawn["workload"] == focus[0]) & (drawn["strategy"] == focus[1]) & drawn["change"].notna()
    if len(drawn):
        low, high = domain(drawn)
        drawn = drawn.assign(low=drawn["low"].clip(low, high), high=drawn["high"].clip(low, high))
    margin = comparison.policy.for_case("", "", metric).unchanged_margin
    ground = pd.DataFrame([{"margin_low": 1 / (1 + margin) - 1, "margin_high": margin, "zero": 0.0}])
    ends = {"main": drawn, "chosen": drawn[chosen].tail(1), "ground": ground}
    return {**ends, "heads": pd.DataFrame(heads, columns=["place", "text"])}


def _head(group: str, metric: Metric, rows: Sequence[Row], models: int) -> str:
    """ "6 models slower, worst +10.6 %, median +8.30 %, 30 cases": a change in a line."""
    said = [f"{units.plural(models, 'model')} {group_word(group, metric)}"]
    changes = [row for row in rows if row.change is not None]
    if group in ("slower", "faster") and changes:
        most = max(changes, key=lambda row: abs(row.log_change))
        said.append(f"{'worst' if group == 'slower' else 'most'} {verdict_words.change(most)}")
        if len(changes) > 1:
            middle = median(row.change for row in changes if row.change is not None)
            said.append(f"median {units.percent(middle, signed=True)}")
    return ", ".join([*said, units.plural(len(rows), "case")])


def _frame_row(comparison: Comparison, row: Row, labels: Mapping[str, str]) -> dict[str, object]:
    margin = comparison.policy.for_case(row.workload, row.strategy, row.metric).unchanged_margin
    low, high = row.interval or (row.change, row.change)
    base, head = (verdict_words.figure(row.metric, value) for value in (row.base, row.head))
    return {
        "workload": verdict_words.workload_label(row.case, labels),
        "strategy": row.strategy,
        "group": "",
        "verdict": row.verdict.value,
        "change": row.change,
        "low": low,
        "high": high,
        "margin_low": 1 / (1 + margin) - 1,
        "margin_high": margin,
        # What has no number is said in one text.
        "base_text": "" if row.change is None else base,
        "head_text": "" if row.change is None else head,
        "within": verdict_words.change_within(row),
        "word": wording.row_verdict(row),
        "change_text": verdict_words.change(row),
        "interval": verdict_words.interval(row),
        "values": f"{base} → {head}",
        "moved": verdict_words.moved(row),
        "bound": timing_text(row.case.timing_method, row.bound) or units.MISSING,
        "trials": verdict_words.side_sizes(row),
        "q": verdict_words.q_value(row),
        "detail": row.reason,
        "cases": 1,
    }


def domain(rows: pd.DataFrame) -> tuple[float, float]:
    """The changes that are drawn: every point, the margin, and of wide intervals what has room."""
    margin = float(rows["margin_high"].max())
    known = rows[rows["change"].notna()]
    if known.empty:
        return -_FEWEST_MARGINS * margin, _FEWEST_MARGINS * margin
    reach = max(_BEYOND * float(known["change"].abs().max()), _FEWEST_MARGINS * margin)
    low, high = (
        float(known[name].astype(float).clip(-reach, reach).agg(end))
        for name, end in (("low", "min"), ("high", "max"))
    )
    return min(low, -1.2 * margin), max(high, 1.2 * margin)


@lru_cache(maxsize=64)
def spec(groups: tuple[str, ...], rows: int, metric: str, shown: tuple[float, float]) -> style.Spec:
    """`rows` rows over `main`, `heads`, `ground` and `chosen` (`frames`); `groups` are those of `main`."""
    y = alt.Y("place:O", axis=None, scale=alt.Scale(domain=list(range(rows)), padding=0))
    ends = [{"expr": _FIRST_PX}, {"expr": _LAST_PX}]
    scale = alt.Scale(domain=list(shown), nice=False, range=ends, zero=False)
    axis = alt.Axis(
        orient="top",
        tickCount=alt.ExprRef(expr=f"{_NARROW} ? 3 : 7"),
        grid=True,
        labelExpr="datum.value ? format(100 * datum.value, '+.3~g') + ' %' : '0 %'",
        labelOverlap=True,
    )
    x = alt.X("change:Q", scale=scale, axis=axis, title=None)
    colour, shape = (
        channel(
            "group:N",
            scale=alt.Scale(domain=list(groups), range=[_LOOKS[each][place] for each in groups]),
            legend=None,
        )
        for place, channel in enumerate((alt.Color, alt.Shape))
    )
    band = (
        alt.Chart(style.data("ground"))
        .mark_rect(opacity=style.BAND_OPACITY, color=theme.GREY, aria=False)
        .encode(x=alt.X("margin_low:Q", scale=scale, axis=axis, title=None), x2="margin_high")
    )
    zero = (
        style.inked("ground")
        .mark_rule(strokeWidth=1, aria=False)
        .encode(x=alt.X("zero:Q", scale=scale), stroke=style.ink_stroke())
    )
    known = alt.Chart(style.data("main")).transform_filter("isValid(datum.change)")
    intervals = known.mark_rule(strokeWidth=2.5, opacity=0.55, aria=False).encode(
        x=alt.X("low:Q", scale=scale), x2="high", y=y, color=colour
    )
    points = known.mark_point(size=80, strokeWidth=2, opacity=1, filled=True, aria=False).encode(
        x=x, y=y, color=colour, shape=shape
    )
    chosen = (
        style.inked("chosen")
        .mark_point(size=330, strokeWidth=2, filled=False, aria=False)
        .encode(x=alt.X("change:Q", scale=scale), y=y, stroke=style.ink_stroke())
    )
    whole_rows = (
        alt.Chart(style.data("main"))
        .mark_rect(color="transparent", cursor="pointer")
        .encode(
            x=alt.value(0),
            x2=alt.value("width"),
            y=y,
            tooltip=style.text_tooltip(
                workload="Model",
                strategy="Strategy",
                word="Verdict",
                change_text="Change",
                interval="Interval",
                values=metric,
                moved="Who moved",
                bound="Timing",
                trials="Trials",
                q="q",
                detail="Why",
            ),
        )
        .add_params(style.pick("workload", "strategy"))
    )
    layers = alt.layer(band, zero, *_texts(y), intervals, chosen, points, whole_rows)
    spec = style.spec_of(layers.properties(height=rows * _ROW_PX + _AROUND_PX))
    spec.setdefault("config", {})["view"] = {"stroke": None}
    return spec


def _texts(y: alt.Y) -> list[alt.Chart]:
    """What is written in a row: the line of a change, names on the left, before, now and change on the right,
    under titles of their own.
    """
    lines = alt.ExprRef(expr=f"{_NARROW} ? split(datum.label, ' · ') : datum.label")
    small = alt.ExprRef(expr=f"{_NARROW} ? 11 : 12")
    name = (
        style.inked("main")
        .mark_text(
            align="left",
            baseline="middle",
            dy=alt.ExprRef(expr=f"{_NARROW} && indexof(datum.label, ' · ') > 0 ? -6 : 0"),
            lineHeight=12,
            aria=False,
            fontSize=small,
            limit=alt.ExprRef(expr=f"{_FIRST_PX} - 12"),
            text=lines,
        )
        .encode(x=alt.value(2), y=y, fill=style.ink_fill())
    )
    heads = (
        style.inked("heads")
        .mark_text(
            align="left",
            baseline="middle",
            dy=2,
            aria=False,
            fontWeight="bold",
            fontSize=small,
            limit=alt.ExprRef(expr="width - 4"),
        )
        .encode(x=alt.value(2), y=y, text="text:N", fill=style.ink_fill())
    )
    titles = {"base_text": "before", "head_text": "now", "within": "change, 95 %"}
    columns: list[alt.Chart] = []
    for field, right in _COLUMN_PX.items():
        is_last = field == "within"
        wide = alt.ExprRef(expr=f"{_NARROW} ? {'datum.change_text' if is_last else repr('')} : datum.{field}")
        title = alt.ExprRef(expr=f"{_NARROW} ? '{'change' if is_last else ''}' : '{titles[field]}'")
        limit = f"isValid(datum.change) ? 140 : {_NARROW} ? width - 114 : 500"
        shared: dict[str, Any] = {"align": "right", "baseline": "middle", "aria": False, "fontSize": small}
        columns += [
            style.inked("main")
            .mark_text(text=wide, limit=alt.ExprRef(expr=limit), **shared)
            .encode(x=alt.value({"expr": right}), y=y, fill=style.ink_fill()),
            style.inked("ground")
            .mark_text(text=title, **{**shared, "opacity": 0.8})
            .encode(x=alt.value({"expr": right}), y=alt.value(-14), fill=style.ink_fill()),
        ]
    return [heads, name, *columns]
