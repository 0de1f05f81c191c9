"""Workload x strategy as a matrix of verdicts, and the trials of both sides of one case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import altair as alt
import pandas as pd

from dashboard import shaping, theme, verdict_words
from dashboard.charts import style
from db import units
from db.strategies import EAGER
from db.verdicts.results import BuildSide, CaseKey, Comparison, Row
from db.verdicts.vocabulary import Metric, Verdict

SIDES = ("base", "head")
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
# The column of a trials frame that holds a metric trial by trial, and what it is divided by for the axis.
_PER_TRIAL: dict[Metric, tuple[str, float, str]] = {
    Metric.LATENCY: ("latency_ns", 1e6, "Latency (ms)"),
    Metric.COMPILE_COST: ("trial_compile_cost_ns", 1e9, "Compile cost (s)"),
    Metric.PEAK_MEMORY: ("peak_bytes", 2**20, "Peak memory (MiB)"),
}
_TRIAL_COLUMNS = ("lane", "value", "low", "high", "strategy", "text", "samples_text", "trial_id")


def cells(comparison: Comparison, metric: Metric, labels: Mapping[str, str]) -> pd.DataFrame:
    """One row per case: its verdict on `metric`, the change as text, and why. `labels`: workload id -> label.

    A case without a value, for a side of it failed, has the verdict on whether it passes; a case that entered
    no comparison the one that says so.
    """
    cells = [_cell(row, labels) for row in comparison.rows if row.metric is metric]
    instead = [
        _empty(label(row.case, labels), row.strategy, row.verdict, row.reason, _outcome(row))
        for row in comparison.rows
        if row.metric is Metric.NUMERICS and (row.base, row.head) != ("pass", "pass")
    ]
    instead += [
        _empty(case.workload, case.strategy, case.verdict, case.reason) for case in comparison.left_out
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


def label(case: CaseKey, labels: Mapping[str, str]) -> str:
    return labels.get(case.workload_id, case.workload)


def _cell(row: Row, labels: Mapping[str, str]) -> dict[str, str]:
    base, head = (verdict_words.figure(row.metric, value) for value in (row.base, row.head))
    return {
        "workload": label(row.case, labels),
        "strategy": row.strategy,
        "verdict": row.verdict.value,
        "text": _short_change(row),
        "change": verdict_words.change(row),
        "mark": verdict_words.MARKS[row.verdict],
        "word": verdict_words.verdict(row),
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
        "mark": verdict_words.MARKS[verdict],
        "word": f"{verdict_words.MARKS[verdict]} {verdict.value}" if text else "left out",
        "ink": theme.VERDICT_COLOURS[verdict.value][1],
        "detail": reason,
        "values": units.MISSING,
        "q": units.MISSING,
    }


@lru_cache(maxsize=64)
def matrix(
    workloads: tuple[str, ...], strategies: tuple[str, ...], verdicts: tuple[str, ...], metric: str
) -> style.Spec:
    """The matrix over `main` (`cells`) and `chosen` (the one cell looked at, or none)."""
    base = alt.Chart(style.data("main"))
    narrow = f"width < {_WORD_PX * len(strategies)}"
    x = alt.X(
        "strategy",
        type="nominal",
        sort=list(strategies),
        scale=alt.Scale(domain=list(strategies)),
        title=None,
        axis=alt.Axis(
            orient="top",
            labelAngle=alt.ExprRef(expr=f"width < {120 * len(strategies)} ? -35 : 0"),
            labelAlign=alt.ExprRef(expr=f"width < {120 * len(strategies)} ? 'left' : 'center'"),
            labelLimit=190,
            labelPadding=6,
            labelOverlap=False,
        ),
    )
    y = alt.Y(
        "workload",
        type="nominal",
        sort=list(workloads),
        scale=alt.Scale(domain=list(workloads)),
        title=None,
        axis=alt.Axis(labelLimit=190, labelPadding=8),
    )
    squares = (
        base.mark_rect(cornerRadius=5, stroke=None)
        .encode(
            x=x,
            y=y,
            color=alt.Color(
                "verdict",
                type="nominal",
                scale=alt.Scale(
                    domain=list(verdicts), range=[theme.VERDICT_COLOURS[word][0] for word in verdicts]
                ),
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
    inside = {"x": x, "y": y, "color": alt.Color("ink", type="nominal", scale=None)}
    changes = base.mark_text(
        fontSize=alt.ExprRef(expr=f"{narrow} ? 11 : 13"), fontWeight=600, dy=-8, aria=False
    ).encode(text=alt.Text("text", type="nominal"), **inside)
    words = base.mark_text(
        fontSize=11, dy=9, aria=False, text=alt.ExprRef(expr=f"{narrow} ? datum.mark : datum.word")
    ).encode(**inside)
    frame = (
        style.inked("chosen")
        .mark_rect(fill=None, strokeWidth=3, cornerRadius=5, aria=False)
        .encode(x=x, y=y, stroke=style.ink_stroke())
    )
    chart = alt.layer(squares, changes, words, frame)
    spec = style.spec_of(chart.properties(height=max(120, 50 * len(workloads) + 34)))
    spec["config"] = {"scale": {"bandPaddingInner": 0.06}, "axis": {"grid": False}}
    # a slanted name above the last column reaches beyond it
    spec["padding"] = {"left": 0, "top": 5, "right": 22, "bottom": 5}
    return spec


def shown_metric(metric: Metric) -> Metric:
    """The metric that one trial has: a speedup and a break-even are told by the latencies they come from."""
    return metric if metric in _PER_TRIAL else Metric.LATENCY


def side_trials(trials: pd.DataFrame, side: BuildSide, case: CaseKey) -> pd.DataFrame:
    """The trials of one side of a comparison that are of `case`."""
    return trials[
        trials["build_id"].isin(side.build_ids)
        & trials["run_id"].isin(side.run_ids)
        & (trials["workload_id"] == case.workload_id)
        & (trials["strategy_id"] == case.strategy_id)
    ]


def strip(sides: Sequence[pd.DataFrame], case: CaseKey, metric: Metric) -> pd.DataFrame:
    """One row per trial and lane ("base · default", "base · eager", ...); `value` in the unit of the axis.

    Latencies come with their 5th and 95th percentile and with the eager control of the same process.
    """
    shown = shown_metric(metric)
    rows: list[dict[str, object]] = []
    for name, frame in zip(SIDES, sides, strict=True):
        for trial in shaping.row_dicts(frame):
            rows += _lane_rows(name, trial, case.strategy, shown)
    return pd.DataFrame(rows, columns=list(_TRIAL_COLUMNS))


def _lane_rows(
    side: str, trial: Mapping[str, object], strategy: str, metric: Metric
) -> list[dict[str, object]]:
    column, divisor, _ = _PER_TRIAL[metric]
    low, high = ("latency_p05_ns", "latency_p95_ns") if metric is Metric.LATENCY else (column, column)
    found = [(strategy, column, low, high, "samples")]
    if metric is Metric.LATENCY and strategy != EAGER.name:
        control = "control_latency_ns"
        found.append((EAGER.name, control, control, control, "control_samples"))
    rows: list[dict[str, object]] = []
    for name, middle, start, end, count in found:
        value = shaping.number(trial[middle])
        if value is None:
            continue
        bounds = [shaping.number(trial[bound]) for bound in (start, end)]
        rows.append(
            {
                "lane": f"{side} · {name}",
                "value": value / divisor,
                "low": (value if bounds[0] is None else bounds[0]) / divisor,
                "high": (value if bounds[1] is None else bounds[1]) / divisor,
                "strategy": name,
                "text": verdict_words.figure(metric, value),
                "samples_text": units.count(shaping.number(trial[count])),
                "trial_id": trial["trial_id"],
            }
        )
    return rows


def middles(rows: pd.DataFrame) -> pd.DataFrame:
    """The median of every lane's trials."""
    return rows.groupby(["lane", "strategy"], sort=False)["value"].median().reset_index()


@lru_cache(maxsize=64)
def strips(lanes: tuple[str, ...], strategies: tuple[str, ...], metric: Metric) -> style.Spec:
    """A lane per side and strategy over `main` (`strip`) and `middles`."""
    base = alt.Chart(style.data("main"))
    y = alt.Y(
        "lane",
        type="nominal",
        sort=list(lanes),
        title=None,
        axis=alt.Axis(labelLimit=190, labelPadding=8),
    )
    x = alt.X(
        "value",
        type="quantitative",
        title=_PER_TRIAL[shown_metric(metric)][2],
        scale=alt.Scale(zero=False, padding=14),
        axis=alt.Axis(tickCount=6),
    )
    colour = style.strategy_colour(strategies, legend=False)
    spread = base.mark_rule(strokeWidth=2, opacity=0.3, aria=False).encode(
        x=alt.X("low", type="quantitative"), x2="high", y=y, color=colour
    )
    points = (
        base.mark_point(filled=True, size=90, opacity=0.75)
        .encode(
            x=x,
            y=y,
            color=colour,
            shape=style.strategy_shape(strategies, legend=False),
            tooltip=style.text_tooltip(
                lane="Side", text="Median of the trial", samples_text="Samples (n)", trial_id="Trial"
            ),
        )
        .add_params(style.pick("trial_id"))
    )
    ticks = (
        style.inked("middles")
        .mark_tick(thickness=2.5, size=26, aria=False)
        .encode(x=x, y=y, stroke=style.ink_stroke())
    )
    return style.spec_of(alt.layer(spread, ticks, points).properties(height=46 * len(lanes) + 60))
