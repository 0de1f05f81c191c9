"""Forest plot of a comparison: the change of every case, its interval, and the margin of unchanged ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import altair as alt
import pandas as pd

from compilewatch.dashboard.charts import style
from compilewatch.dashboard.parts import verdict_words
from compilewatch.dashboard.text import theme
from compilewatch.db import units
from compilewatch.db.judge.results import Comparison, Row
from compilewatch.db.judge.words import verdicts as wording
from compilewatch.db.records.marks import timing_text
from compilewatch.db.records.vocabulary import Metric, Verdict

MOST_ROWS = 60
"""More cases cannot be read on paper; the table has all."""
_ROW_PX, _AROUND_PX = 36, 140
# An interval that no chart could hold ends at the border.
_BEYOND = 1.5
_FEWEST_MARGINS = 2.5
# The workload above the strategy: side by side they leave a phone no room for the chart.
_TWO_LINES = "split(datum.label, ' · ')"
# Beside names a phone has less room than the legend needs: it ends where the chart ends.
_LEGEND_AT = {"signal": f"width < {style.NARROW_PX} ? 'end' : 'start'"}
_LOOKS = {
    Verdict.REGRESSED: (theme.VERMILLION, "triangle-right"),
    Verdict.IMPROVED: (theme.BLUE, "diamond"),
    Verdict.UNCHANGED: (theme.GREY, "circle"),
    Verdict.INCONCLUSIVE: (theme.GREY, "cross"),
}
_COLUMNS = [
    *("case", "workload", "strategy", "verdict", "change", "low", "high", "margin_low", "margin_high"),
    *("word", "change_text", "interval", "values", "moved", "bound", "trials", "q", "detail"),
]


def frame(comparison: Comparison, metric: Metric, labels: Mapping[str, str]) -> pd.DataFrame:
    """One row per case whose change of `metric` has a number, the worst first. `labels`: id -> label.

    `change`, `low` and `high` are relative changes; the latter two are `change` where it has no interval.
    """
    rows = [row for row in comparison.rows if row.metric is metric and row.change is not None]
    rows_drawn = [_frame_row(comparison, row, labels) for row in wording.worst_first(rows)]
    return pd.DataFrame(rows_drawn, columns=_COLUMNS)


def _frame_row(comparison: Comparison, row: Row, labels: Mapping[str, str]) -> dict[str, object]:
    margin = comparison.policy.for_case(row.workload, row.strategy, row.metric).unchanged_margin
    low, high = row.interval or (row.change, row.change)
    base, head = (verdict_words.figure(row.metric, value) for value in (row.base, row.head))
    label = verdict_words.workload_label(row.case, labels)
    return {
        "case": f"{label} · {row.strategy}",
        "workload": label,
        "strategy": row.strategy,
        "verdict": row.verdict.value,
        "change": row.change,
        "low": low,
        "high": high,
        "margin_low": 1 / (1 + margin) - 1,
        "margin_high": margin,
        "word": wording.row_verdict(row),
        "change_text": verdict_words.change(row),
        "interval": verdict_words.interval(row),
        "values": f"{base} → {head}",
        "moved": verdict_words.moved(row),
        "bound": timing_text(row.case.timing_method, row.bound) or units.MISSING,
        "trials": verdict_words.side_sizes(row),
        "q": verdict_words.q_value(row),
        "detail": row.reason,
    }


def domain(rows: pd.DataFrame) -> tuple[float, float]:
    """The changes that are drawn: every point, the margin, and of wide intervals what has room."""
    reach = max(
        _BEYOND * float(rows["change"].abs().max()), _FEWEST_MARGINS * float(rows["margin_high"].max())
    )
    low, high = (
        float(rows[name].clip(-reach, reach).agg(end)) for name, end in (("low", "min"), ("high", "max"))
    )
    margin = 1.2 * float(rows["margin_high"].max())
    return min(low, -margin), max(high, margin)


@lru_cache(maxsize=64)
def spec(
    cases: tuple[str, ...], verdicts: tuple[str, ...], metric: str, shown: tuple[float, float]
) -> style.Spec:
    """A row for each of `cases` over `main` (`frame`) and `chosen` (the one looked at, or none)."""
    base = alt.Chart(style.data("main"))
    y = alt.Y(
        "case:N",
        sort=list(cases),
        title=None,
        axis=style.names_axis(labelOverlap=False, labelOffset=-7, labelExpr=_TWO_LINES),
    )
    scale = alt.Scale(domain=list(shown), nice=False)
    axis = alt.Axis(format="+.2~p", tickCount=7, grid=True)
    x = alt.X("low:Q", scale=scale, axis=axis, title=f"Change of {metric.lower()}")
    known = [Verdict(word) for word in verdicts]
    colour, shape = (
        channel(
            "verdict:N",
            title=None,
            scale=alt.Scale(domain=list(verdicts), range=[_LOOKS[each][place] for each in known]),
            legend=style.top_legend(narrow=2),
        )
        for place, channel in enumerate((alt.Color, alt.Shape))
    )
    margins = base.mark_rect(opacity=0.16, color=theme.GREY, clip=True, aria=False).encode(
        x=alt.X("margin_low:Q", scale=scale), x2="margin_high", y=y
    )
    zero = (
        style.inked("zero")
        .mark_rule(strokeWidth=1, aria=False)
        .encode(x=alt.X("change:Q", scale=scale), stroke=style.ink_stroke())
    )
    intervals = base.mark_rule(strokeWidth=2.5, opacity=0.55, clip=True, aria=False).encode(
        x=x, x2="high", y=y, color=colour
    )
    points = (
        base.mark_point(size=95, strokeWidth=2, opacity=1, cursor="pointer", filled=True)
        .encode(
            x=alt.X("change:Q", scale=scale),
            y=y,
            color=colour,
            shape=shape,
            tooltip=style.text_tooltip(
                workload="Workload",
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
    chosen = (
        style.inked("chosen")
        .mark_point(size=330, strokeWidth=2, filled=False, aria=False)
        .encode(x=alt.X("change:Q", scale=scale), y=y, stroke=style.ink_stroke())
    )
    height = len(cases) * _ROW_PX + _AROUND_PX
    spec = style.spec_of(alt.layer(margins, zero, intervals, chosen, points).properties(height=height))
    spec.setdefault("config", {})["legend"] = {"layout": {"top": {"anchor": _LEGEND_AT}}}
    return spec


def frames(rows: pd.DataFrame, focus: Sequence[str | None]) -> dict[str, pd.DataFrame]:
    """The frames of `spec`: those of `rows` that are drawn, and of these the case in `focus`."""
    drawn = rows.head(MOST_ROWS)
    chosen = (drawn["workload"] == focus[0]) & (drawn["strategy"] == focus[1])
    return {"main": drawn, "chosen": drawn[chosen], "zero": pd.DataFrame({"change": [0.0]})}
