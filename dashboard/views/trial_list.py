"""The list of trials to choose one from."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard.data import filters_of, read_choices, read_newest_trials
from dashboard.prepared.trial_list import FIGURES, MOST_ROWS, trial_rows
from dashboard.snapshots import Snapshot, remembered
from dashboard.views import controls, elements
from dashboard.views.shell import View, strategies
from db import units
from db.queries.filters import Filters
from db.records import SourceKind, Status

_TABLE = "trial-table"


def draw(view: View) -> None:
    """The newest trials that the filters let through, as rows to choose from."""
    _filters(view)
    table, total = _rows(view.snapshot, filters_of(view.link))
    if table.empty:
        of_run = f" of run {view.link.run}" if view.link.run else ""
        elements.nothing_to_show(
            f"No trial{of_run} fits these filters.", next_step="Widen them here or in the sidebar."
        )
        return
    elements.note(
        f"{units.count(total)} trials, newest first. Choose a row to see everything of it."
        + (f" The newest {MOST_ROWS} are listed." if total > MOST_ROWS else "")
    )
    elements.table(
        table,
        {
            "workload": st.column_config.TextColumn("Workload", pinned=True),
            "strategy": "Strategy",
            "status": "Status",
            "why": "Failure",
            **{
                name: st.column_config.TextColumn(title, alignment="right") for name, title in FIGURES.items()
            },
            "bound": "Timing",
            "build": "Build",
            "started": elements.moment_column("Started (UTC)"),
            "trial": "Trial",
        },
        key=_TABLE,
        alt="Trials, newest first, with status, latency, speedup and memory",
        on_select=_choose,
        values=list(table["trial"]),
    )


def _filters(view: View) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        controls.pills("status", "Status", {str(status): status.value for status in Status})
        controls.pills("source", "Source", {str(kind): kind.value for kind in SourceKind})
        with st.container(width=320):
            runs = dict(view.choices.runs)
            if view.link.run:
                runs.setdefault(view.link.run, view.link.run)
            controls.one_of("run", "Run", {"": "All runs", **runs})
    strategies(view)


@remembered
def _rows(snapshot: Snapshot, filters: Filters) -> tuple[pd.DataFrame, int]:
    """The newest trials as texts, and how many there are in all."""
    frame, total = read_newest_trials(snapshot, filters, MOST_ROWS)
    return trial_rows(frame, read_choices(snapshot).builds), total


def _choose() -> None:
    trial = elements.picked_value(_TABLE)
    if trial is not None:
        controls.change(trial=trial)
