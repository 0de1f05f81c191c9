"""Trial: everything that was measured in one process, or the list of trials to choose one from."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from dashboard import theme
from dashboard.charts import samples as charts
from dashboard.data import read_trial
from dashboard.foreign_text import escaped
from dashboard.links import Link
from dashboard.prepared import trial as prepared
from dashboard.views import (
    elements,
    trial_facts,
    trial_head,
    trial_list,
    trial_stream,
    trial_surroundings,
    trial_why,
)
from dashboard.views.shell import View
from db import units
from db.errors import NotFoundError
from db.metrics.frame_rows import row_dicts
from db.metrics.samples_taken import samples_taken
from db.records import Trial


def draw(view: View) -> Link:
    """The trial that the link names, else the list. Raises DatabaseError."""
    if view.link.trial:
        try:
            record = read_trial(view.snapshot, view.link.trial)
        except NotFoundError as error:
            st.warning(escaped(f"{error.message} Choose one below."), icon=":material/search_off:")
        else:
            _one(view, record)
            return view.link
    trial_list.draw(view)
    return view.link


def _one(view: View, trial: Trial) -> None:
    trial_head.draw(view, trial)
    _times(trial)
    if trial.latency_samples_ns:
        _samples(trial)
    elif trial.summary is not None:
        elements.note(prepared.only_a_summary(trial.summary))
    trial_stream.stream(trial)
    trial_why.explanation(trial)
    left, right = st.columns(2)
    with left:
        trial_facts.source(trial)
        trial_facts.cold_start(trial)
        trial_facts.memory(trial)
        trial_facts.numerics(trial)
    with right:
        trial_facts.compiler(trial)
        trial_surroundings.states(trial)
    trial_surroundings.environment(trial)
    trial_surroundings.reproduce(trial)


def _times(trial: Trial) -> None:
    """The times of a GPU on both sides, and how they were taken."""
    found = prepared.timing(trial)
    if found is None:
        return
    with st.container(border=True):
        elements.finding(found.finding, found.note)
        left, right = st.columns(2)
        with left:
            _sides(
                found.times,
                prepared.side_titles(prepared.TIME_TITLES, trial),
                "times",
                "Times of a step on both sides",
            )
        with right:
            if len(found.facts):
                titles = prepared.side_titles(prepared.FACT_TITLES, trial)
                _sides(found.facts, titles, "timing", "How the times were taken")


def _sides(rows: pd.DataFrame, titles: Mapping[str, str], key: str, alt: str) -> None:
    columns: dict[str, object] = {
        name: st.column_config.TextColumn(title, alignment="right") for name, title in titles.items()
    }
    columns["name"] = st.column_config.TextColumn(titles["name"], pinned=True)
    elements.table(rows, columns, key=f"trial-{key}", alt=alt)


def _samples(trial: Trial) -> None:
    control = trial.control_latency_samples_ns
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
                    "main": charts.frame(trial.latency_samples_ns, control, name),
                    "medians": charts.medians(trial.latency_samples_ns, control, name),
                },
                key="trial-samples",
                alt="Latency of every sample in the order measured",
            )
        with right:
            elements.chart(
                charts.histogram(strategies),
                {"main": charts.distribution(trial.latency_samples_ns, control, name)},
                key="trial-distribution",
                alt="Distribution of the samples' latencies",
            )


def _samples_finding(trial: Trial) -> str:
    medians = charts.medians(trial.latency_samples_ns, trial.control_latency_samples_ns, trial.strategy.name)
    texts = [f"{row['strategy']} {units.duration(row['ms'] * 1e6)}" for row in row_dicts(medians)]
    n = len(trial.latency_samples_ns)
    return f"Median of {units.count(n)} samples: {', '.join(texts)}"
