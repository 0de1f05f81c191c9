"""The matrix of verdicts on the Upgrade page, and the evidence of the cell that was chosen in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd
import streamlit as st

from dashboard import theme, verdict_words
from dashboard.charts import verdict_matrix
from dashboard.charts.prepared import PreparedChart
from dashboard.data import filters_of, read_comparison, read_trials
from dashboard.links import Link, Page, judged_metric
from dashboard.prepared.case_evidence import Evidence, evidence
from dashboard.snapshots import Snapshot, remembered
from dashboard.views import case_evidence, case_series, controls, elements
from db import units
from db.metrics.frame_rows import row_dicts
from db.verdicts.results import CaseKey, Comparison
from db.verdicts.vocabulary import MEASURED_METRICS, Metric
from db.wording import verdicts as wording
from db.wording.marks import bound_word
from db.wording.metrics import METRICS

_METRICS = {metric.value: METRICS[metric].name for metric in MEASURED_METRICS}


def prepared(comparison: Comparison, metric: Metric, cells: pd.DataFrame) -> PreparedChart:
    """The matrix of `metric`. `cells` as `dashboard.charts.verdict_matrix` makes them."""
    name = METRICS[metric].name
    rows = [row for row in comparison.rows if row.metric is metric]
    spec = verdict_matrix.spec(
        tuple(sorted(set(cells["workload"]))),
        tuple(theme.ordered(cells["strategy"])),
        tuple(sorted(set(cells["verdict"]))),
        name,
    )
    return PreparedChart(
        finding=f"{name}: {wording.tally(rows)}" if rows else f"{name} has no verdict",
        spec=None if cells.empty else spec,
        frames={"main": cells, "chosen": cells.iloc[:0]},
    )


def draw(link: Link, matrix: PreparedChart) -> None:
    """The matrix of the figure that `link` names, the case that it is about marked."""
    name, cells = METRICS[judged_metric(link)].name, matrix.frames["main"]
    with st.container(border=True):
        controls.segments("metric", "Figure", _METRICS, value=judged_metric(link).value)
        elements.finding(
            matrix.finding,
            "Each cell: the change from base to head, and its verdict: ✗ regressed, ✓ improved, = unchanged "
            f"(shown to be within the margin), ? inconclusive, {units.MISSING} left out. "
            "Click a cell for its evidence.",
        )
        if matrix.spec is None:
            elements.nothing_to_show(f"{name} was not measured on both sides.")
            return
        frames = matrix.frames
        if link.focus is not None:
            chosen = (cells["workload"] == link.focus) & (cells["strategy"] == link.focus_strategy)
            frames = {**frames, "chosen": cells[chosen]}
        elements.chart(
            matrix.spec,
            frames,
            key="upgrade-matrix",
            alt=f"Verdict on {name.lower()} of every workload with every strategy, the change as text",
            on_select=_look_at,
        )


def _look_at() -> None:
    mark = elements.picked("upgrade-matrix")
    if mark:
        controls.change(focus=str(mark["workload"]), focus_strategy=str(mark["strategy"]))


def case_in_focus(
    snapshot: Snapshot, link: Link, comparison: Comparison, cells: pd.DataFrame, labels: Mapping[str, str]
) -> None:
    """Both sides of the case that was chosen in the matrix. `labels`: workload id -> label."""
    if link.focus is None:
        return
    title = f"{link.focus} with {link.focus_strategy or 'any strategy'}"
    found = next(
        (
            row
            for row in comparison.rows
            if (verdict_words.workload_label(row.case, labels), row.strategy)
            == (link.focus, link.focus_strategy)
        ),
        None,
    )
    with st.container(border=True):
        bound = bound_word(found.bound) if found else ""
        elements.finding(", ".join(filter(None, (title, bound))))
        if found is None:
            reason = _why_left_out(link, cells)
            elements.nothing_to_show(reason or f"{title} is no case of this comparison.")
            return
        case = found.case
        case_evidence.draw(
            _evidence(snapshot, link, case),
            judged_metric(link),
            key="upgrade-case",
            confidence=comparison.policy.confidence,
        )
        case_series.draw(snapshot, link.machine, case, judged_metric(link), key="upgrade-series")
        _ways_on(link)


def _ways_on(link: Link) -> None:
    with st.container(horizontal=True):
        st.button(
            "Its history",
            icon=":material/show_chart:",
            on_click=controls.go,
            args=(Page.TRENDS,),
            kwargs={"focus": link.focus, "strategy": (link.focus_strategy,), "metric": link.metric},
        )
        st.button(
            "Close",
            icon=":material/close:",
            on_click=controls.change,
            kwargs={"focus": None, "focus_strategy": None},
        )


@remembered
def _evidence(snapshot: Snapshot, link: Link, case: CaseKey) -> Evidence:
    filters = filters_of(link)
    comparison = read_comparison(snapshot, filters, str(link.base), str(link.head))
    rows = [row for row in comparison.rows if row.case == case]
    trials = read_trials(snapshot, replace(filters, builds=(str(link.base), str(link.head))))
    return evidence(trials, (comparison.base, comparison.head), case, rows, judged_metric(link))


def _why_left_out(link: Link, cells: pd.DataFrame) -> str | None:
    for cell in row_dicts(cells):
        if (cell["workload"], cell["strategy"]) == (link.focus, link.focus_strategy):
            return f"Left out of the comparison, {cell['verdict']}: {cell['detail']}"
    return None
