"""Workload x strategy as a matrix of verdicts: the change in each cell, its colour the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import altair as alt
import pandas as pd

from dashboard.charts import style
from dashboard.render import theme, verdict_words
from db.judge.results import Comparison, Row
from db.judge.vocabulary import Metric, Verdict
from db.records.strategies import EAGER
from db.wording import units
from db.wording import verdicts as wording

_CELL_COLUMNS = (
    "workload",
    "strategy",
    "verdict",
    "text",
    "change",
    "mark",
    "word",
    "ink",
    "detail",
    "values",
    "q",
)
# Below this width per strategy a cell has room for the mark alone.
_WORD_PX = 92


def cells(comparison: Comparison, metric: Metric, labels: Mapping[str, str]) -> pd.DataFrame:
    """One row per case: its verdict on `metric`, the change as text, and why. `labels`: workload id -> label.

    A case without a value, for a side of it failed, has the verdict on whether it passes; a case that entered
    no comparison the one that says so.
    """
    cells = [_cell(row, labels) for row in comparison.rows if row.metric is metric]
    instead = [
        _empty(
            verdict_words.workload_label(row.case, labels),
            row.strategy,
            row.verdict,
            row.reason,
            _outcome(row),
        )
        for row in comparison.rows
        if row.metric is Metric.NUMERICS and (row.base, row.head) != ("pass", "pass")
    ]
    instead += [
        _empty(verdict_words.left_out_label(case), case.strategy, case.verdict, case.reason)
        for case in comparison.left_out
    ]
    known = {(cell["workload"], cell["strategy"]) for cell in cells}
    no_eager = metric not in (Metric.LATENCY, Metric.PEAK_MEMORY)
    cells += [
        cell
        for cell in instead
        if (cell["workload"], cell["strategy"]) not in known
        and not (no_eager and cell["strategy"] == EAGER.name)
    ]
    return pd.DataFrame(cells, columns=list(_CELL_COLUMNS))


def _outcome(row: Row) -> str:
    """What the pass set says about a case that has no value."""
    if row.verdict is Verdict.UNCHANGED:
        return "fails"
    return {Verdict.REGRESSED: "fails now", Verdict.IMPROVED: "passes now"}.get(row.verdict, "fails at times")


def _cell(row: Row, labels: Mapping[str, str]) -> dict[str, str]:
    base, head = (verdict_words.figure(row.metric, value) for value in (row.base, row.head))
    return {
        "workload": verdict_words.workload_label(row.case, labels),
        "strategy": row.strategy,
        "verdict": row.verdict.value,
        "text": _short_change(row),
        "change": verdict_words.change(row),
        "mark": wording.MARKS[row.verdict],
        "word": wording.row_verdict(row),
        "ink": theme.VERDICT_COLOURS[row.verdict.value][1],
        "detail": row.reason,
        "values": f"{base} → {head}",
        "q": verdict_words.q_value(row),
    }


def _short_change(row: Row) -> str:
    """The change to a tenth of a percent, which a narrow cell can hold; the tooltip has it in full."""
    if row.change is None:
        return verdict_words.change(row)
    tenths = round(row.change * 100, 1)
    return f"{tenths:+.1f} %" if tenths else "0.0 %"


def _empty(workload: str, strategy: str, verdict: Verdict, reason: str, text: str = "") -> dict[str, str]:
    return {
        "workload": workload,
        "strategy": strategy,
        "verdict": verdict.value,
        "text": text or verdict.value,
        "change": units.MISSING,
        "mark": wording.MARKS[verdict],
        "word": f"{wording.marked(verdict)}" if text else "left out",
        "ink": theme.VERDICT_COLOURS[verdict.value][1],
        "detail": reason,
        "values": units.MISSING,
        "q": units.MISSING,
    }


@lru_cache(maxsize=64)
def spec(
    workloads: tuple[str, ...], strategies: tuple[str, ...], verdicts: tuple[str, ...], metric: str
) -> style.Spec:
    """The matrix over `main` (`cells`) and `chosen` (the one cell looked at, or none)."""
    x, y = style.matrix_columns(strategies), style.matrix_rows(workloads)
    frame = (
        style.inked("chosen")
        .mark_rect(fill=None, strokeWidth=3, cornerRadius=5, aria=False)
        .encode(x=x, y=y, stroke=style.ink_stroke())
    )
    chart = alt.layer(_squares(x, y, verdicts, metric), *_texts(x, y, len(strategies)), frame)
    spec = style.matrix_spec_of(chart.properties(height=max(120, 50 * len(workloads) + 34)))
    # a slanted name above the last column reaches beyond it
    spec["padding"] = {"left": 0, "top": 5, "right": 22, "bottom": 5}
    return spec


def _squares(x: alt.X, y: alt.Y, verdicts: tuple[str, ...], metric: str) -> alt.Chart:
    """A cell in the colour of its verdict; a click picks it."""
    fills = [theme.VERDICT_COLOURS[word][0] for word in verdicts]
    squares: alt.Chart = (
        alt.Chart(style.data("main"))
        .mark_rect(cornerRadius=5, stroke=None)
        .encode(
            x=x,
            y=y,
            color=alt.Color(
                "verdict",
                type="nominal",
                scale=alt.Scale(domain=list(verdicts), range=fills),
                legend=None,
            ),
            tooltip=style.text_tooltip(
                workload="Workload",
                strategy="Strategy",
                word="Verdict",
                values=metric,
                change="Change",
                q="q",
                detail="Why",
            ),
        )
        .add_params(style.pick("workload", "strategy"))
    )
    return squares


def _texts(x: alt.X, y: alt.Y, columns: int) -> list[alt.Chart]:
    """The change, and below it the verdict: its mark alone where cells are narrow."""
    base = alt.Chart(style.data("main"))
    narrow = f"width < {_WORD_PX * columns}"
    inside: dict[str, Any] = {"x": x, "y": y, "color": alt.Color("ink", type="nominal", scale=None)}
    changes = base.mark_text(
        fontSize=alt.ExprRef(expr=f"{narrow} ? 11 : 13"), fontWeight=600, dy=-8, aria=False
    ).encode(text=alt.Text("text", type="nominal"), **inside)
    words = base.mark_text(
        fontSize=11, dy=9, aria=False, text=alt.ExprRef(expr=f"{narrow} ? datum.mark : datum.word")
    ).encode(**inside)
    return [changes, words]
