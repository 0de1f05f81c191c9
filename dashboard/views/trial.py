"""Trial: everything that was measured in one process, or the list of trials to choose one from."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard import shaping, theme
from dashboard.charts import samples as charts
from dashboard.data import (
    Snapshot,
    filters_of,
    plain,
    read_choices,
    read_newest_trials,
    read_trial,
    read_trials,
    remembered,
)
from dashboard.links import Link
from dashboard.views import controls, elements, trial_facts, trial_stream, trial_why
from dashboard.views.shell import View, strategies
from db import units
from db.errors import NotFoundError
from db.identities import series_identity
from db.metrics.samples_taken import samples_taken
from db.queries.filters import Filters
from db.records import SourceKind, Status, Trial

MOST_ROWS = 500


def draw(view: View) -> Link:
    if view.link.trial:
        try:
            record = read_trial(view.snapshot, view.link.trial)
        except NotFoundError as error:
            st.warning(plain(f"{error.message} Choose one below."), icon=":material/search_off:")
        else:
            _one(view, record)
            return view.link
    _list(view)
    return view.link


def _list(view: View) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        controls.pills("status", "Status", {str(status): status.value for status in Status})
        controls.pills("source", "Source", {str(kind): kind.value for kind in SourceKind})
        with st.container(width=320):
            runs = dict(view.choices.runs)
            if view.link.run:
                runs.setdefault(view.link.run, view.link.run)
            controls.one_of("run", "Run", {"": "All runs", **runs})
    strategies(view)
    table, total = _rows(view.snapshot, filters_of(view.link))
    if table.empty:
        elements.nothing_to_show(
            "No trial fits these filters.", next_step="Widen them here or in the sidebar."
        )
        return
    st.session_state["trial-rows"] = list(table["trial"])
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
                name: st.column_config.TextColumn(title, alignment="right")
                for name, title in {
                    "latency": "Latency",
                    "speedup": "Speedup",
                    "first": "Time to first result",
                    "peak": "Peak memory",
                }.items()
            },
            "build": "Build",
            "started": st.column_config.DatetimeColumn(
                "Started (UTC)", format="YYYY-MM-DD HH:mm", timezone="UTC"
            ),
            "trial": "Trial",
        },
        key="trial-table",
        alt="Trials, newest first, with status, latency, speedup and memory",
        on_select=_choose,
    )


@remembered
def _rows(snapshot: Snapshot, filters: Filters) -> tuple[pd.DataFrame, int]:
    """The newest trials as texts, and how many there are in all."""
    frame, total = read_newest_trials(snapshot, filters, MOST_ROWS)
    newest = frame.iloc[::-1]
    speedup = newest["control_latency_ns"].astype("Float64") / newest["latency_ns"]
    table = pd.DataFrame(
        {
            "workload": newest["workload_label"],
            "strategy": newest["strategy"],
            "status": newest["status"],
            "why": newest["failure_kind"].str.replace("_", " "),
            "latency": [units.duration(value) for value in newest["latency_ns"]],
            "speedup": [units.ratio(value) for value in speedup],
            "first": [units.duration(value) for value in newest["time_to_first_result_ns"]],
            "peak": [units.size(value) for value in newest["peak_bytes"]],
            "build": newest["build_id"].map(dict(read_choices(snapshot).builds)),
            "started": newest["started_at"],
            "trial": newest["trial_id"],
        }
    )
    return table, total


def _choose() -> None:
    row = elements.picked_row("trial-table")
    ids = st.session_state.get("trial-rows", [])
    if row is not None and row < len(ids):
        controls.change(trial=ids[row])


def _one(view: View, trial: Trial) -> None:
    _head(view, trial)
    if trial.failure is not None:
        trial_facts.failure(trial.failure)
    _cards(trial)
    if trial.samples_ns:
        _samples(trial)
    elif trial.summary is not None:
        elements.note("This result was imported as a summary: it carries no samples.")
    trial_stream.stream(trial)
    trial_why.explanation(trial)
    left, right = st.columns(2)
    with left:
        trial_facts.cold_start(trial)
        trial_facts.memory(trial)
        trial_facts.numerics(trial)
    with right:
        trial_facts.compiler(trial)
        trial_facts.states(trial)
    trial_facts.environment(trial)
    trial_facts.reproduce(trial)


def _head(view: View, trial: Trial) -> None:
    ids = _same_case(view, trial)
    place = ids.index(trial.trial_id)
    st.markdown(f"#### {plain(trial.workload.name)} with {plain(trial.strategy.name)}")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "All trials", icon=":material/arrow_back:", on_click=controls.change, kwargs={"trial": None}
        )
        st.button(
            "Previous",
            icon=":material/chevron_left:",
            disabled=place == 0,
            on_click=controls.change,
            kwargs={"trial": ids[place - 1] if place else None},
        )
        st.button(
            "Next",
            icon=":material/chevron_right:",
            disabled=place + 1 >= len(ids),
            on_click=controls.change,
            kwargs={"trial": ids[place + 1] if place + 1 < len(ids) else None},
        )
        trial_facts.badges(trial)
    took = trial.ended_at - trial.started_at if trial.ended_at else None
    elements.note(
        f"Trial {place + 1} of {len(ids)} of this case in run {trial.run_id}, "
        f"started {units.moment(trial.started_at)}"
        + (f", took {units.duration(took.total_seconds() * 1e9)}." if took else ".")
    )


def _same_case(view: View, trial: Trial) -> list[str]:
    """Ids of the trials of this case in this run, oldest first."""
    of_case = Filters(
        runs=(trial.run_id,), workloads=(trial.workload.name,), strategies=(trial.strategy.name,)
    )
    frame = read_trials(view.snapshot, of_case)
    return [str(key) for key in frame.loc[frame["series_id"] == series_identity(trial), "trial_id"]]


def _cards(trial: Trial) -> None:
    facts = trial_facts.figures(trial)
    if not facts:
        return
    with st.grid(len(facts), min_column_width=150):
        for title, value, help_ in facts:
            st.metric(title, value, border=True, height="stretch", help=help_)


def _samples(trial: Trial) -> None:
    control = trial.control_samples_ns
    name = trial.strategy.name
    strategies = tuple(theme.ordered([name, *([charts.CONTROL] if control else [])]))
    with st.container(border=True):
        elements.finding(
            _samples_finding(trial),
            "Left: every sample as measured, eager and compiled in alternation. Right: their distribution; "
            "the slowest 1 % of samples stand in the last bin. Dashed: medians.",
        )
        if trial.sampling is not None:
            text = samples_taken(trial.sampling)
            elements.note(f"{text[0].upper()}{text[1:]}.")
        left, right = st.columns(2)
        with left:
            elements.chart(
                charts.over_time(strategies),
                {
                    "main": charts.frame(trial.samples_ns, control, name),
                    "medians": charts.medians(trial.samples_ns, control, name),
                },
                key="trial-samples",
                alt="Latency of every sample in the order measured",
            )
        with right:
            elements.chart(
                charts.histogram(strategies),
                {"main": charts.distribution(trial.samples_ns, control, name)},
                key="trial-distribution",
                alt="Distribution of the samples' latencies",
            )


def _samples_finding(trial: Trial) -> str:
    medians = charts.medians(trial.samples_ns, trial.control_samples_ns, trial.strategy.name)
    texts = [f"{row['strategy']} {units.duration(row['ms'] * 1e6)}" for row in shaping.row_dicts(medians)]
    n = len(trial.samples_ns)
    return f"Median of {units.count(n)} samples: {', '.join(texts)}"
