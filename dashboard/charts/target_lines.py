"""Budgets of the configuration as lines across a trend."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from compilewatch.dashboard.charts import style
from compilewatch.dashboard.charts.trend_rows import Window
from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.judge.policy import Target
from compilewatch.db.judge.targets import AT_LEAST

# A budget farther from the points than this share of their value would flatten them: it is said instead.
_NEAR = 1.0


def frame(rows: pd.DataFrame, metric: str, targets: Sequence[Target]) -> pd.DataFrame:
    """One row for each limit that a drawn case has: `value` in the axis' unit, and `label`.

    `rows` as `trend_rows.frame` returns them.
    """
    figure = METRICS[metric]
    # A target limits no median of latency: its 95th percentile stands for it.
    quantity = "latency_p95_ns" if metric == "latency" else figure.column
    cases = dict.fromkeys(zip(rows["workload"].tolist(), rows["strategy"].tolist(), strict=True))
    limits = {
        limit
        for workload, strategy in cases
        for target in targets
        if target.fits(workload, strategy) and (limit := target.limits().get(quantity)) is not None
    }
    bound = "at least" if quantity in AT_LEAST else "at most"
    of = " (95th percentile)" if metric == "latency" else ""
    return pd.DataFrame(
        {
            "value": [limit / figure.divisor for limit in sorted(limits)],
            "label": [f"target{of}: {bound} {figure.write(limit)}" for limit in sorted(limits)],
        }
    )


def beside(lines: pd.DataFrame, shown: Window) -> tuple[pd.DataFrame, Window, list[str]]:
    """The lines that are drawn, a window that holds them, and what is said of the others."""
    if lines.empty:
        return lines, shown, []
    far = (lines["value"] < shown.low / (1 + _NEAR)) | (lines["value"] > shown.high * (1 + _NEAR))
    drawn = lines[~far]
    low, high = min([shown.low, *drawn["value"]]), max([shown.high, *drawn["value"]])
    least = min([shown.least, *drawn["value"]])
    notes = [f"Outside the chart: {label}." for label in lines.loc[far, "label"]]
    return drawn, shown._replace(low=low, high=high, least=least), notes


def layers() -> list[alt.Chart]:
    """A rule and its label for each row of the frame `targets`."""
    base = style.inked("targets")
    y = alt.Y("value:Q")
    rule = base.mark_rule(strokeDash=[1, 3], strokeWidth=2, aria=False).encode(y=y, stroke=style.ink_stroke())
    label = base.mark_text(align="left", baseline="bottom", dx=4, dy=-2, fontSize=12).encode(
        x=alt.value(0), y=y, text="label:N", fill=style.ink_fill()
    )
    return [rule, label]
