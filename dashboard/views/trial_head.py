"""The top of a trial's page: what it is, how it ended, its neighbours, and its main figures."""

from __future__ import annotations

import streamlit as st

from dashboard.data import read_trials
from dashboard.foreign_text import escaped
from dashboard.prepared import trial as prepared
from dashboard.views import controls, elements
from dashboard.views.shell import View
from db import units
from db.identities import series_identity
from db.metrics.stated_figures import trial_bound
from db.queries.filters import Filters
from db.records import Failure, SourceKind, Status, StrategyKind, Trial, timing_method_of
from db.wording.marks import timing_words


def draw(view: View, trial: Trial) -> None:
    """Its name and badges, the way to its neighbours, how it failed if it did, and its main figures."""
    ids = _same_case(view, trial)
    place = ids.index(trial.trial_id)
    st.markdown(f"#### {escaped(trial.workload.name)} with {escaped(trial.strategy.name)}")
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
        _badges(trial)
    took = trial.ended_at - trial.started_at if trial.ended_at else None
    elements.note(
        f"Trial {place + 1} of {len(ids)} of this case in run {trial.run_id}, "
        f"started {units.moment(trial.started_at)}"
        + (f", took {units.duration(took.total_seconds() * 1e9)}." if took else ".")
    )
    if trial.failure is not None:
        _failure(trial.failure)
    _cards(trial)


def _same_case(view: View, trial: Trial) -> list[str]:
    """Ids of the trials of this case in this run, oldest first."""
    of_case = Filters(
        runs=(trial.run_id,), workloads=(trial.workload.name,), strategies=(trial.strategy.name,)
    )
    frame = read_trials(view.snapshot, of_case)
    return [str(key) for key in frame.loc[frame["series_id"] == series_identity(trial), "trial_id"]]


def _badges(trial: Trial) -> None:
    """Status, source, suspicion and numerics, in words and colour."""
    if trial.status is Status.OK:
        st.badge("ok", icon=":material/check:", color="green")
    else:
        st.badge("failed", icon=":material/error:", color="red")
    if trial.source.kind is SourceKind.IMPORTED:
        st.badge("imported", icon=":material/download:", color="gray")
    if trial.device_state and trial.device_state.suspect:
        st.badge("suspect", icon=":material/warning:", color="orange")
    if times := timing_words(timing_method_of(trial), trial_bound(trial)):
        st.badge(times, icon=":material/timer:", color="gray")
    # A program that torch.export made counts no graph of Dynamo's.
    compiles = trial.strategy.kind is StrategyKind.COMPILE
    if compiles and trial.compiler and trial.compiler.graphs == 0:
        st.badge("nothing compiled", icon=":material/block:", color="orange")


def _failure(found: Failure) -> None:
    """How the process ended, and the end of what it wrote."""
    where = f"in {found.phase}" if found.phase else ""
    how = [f"exit code {found.exit_code}"] if found.exit_code is not None else []
    how += [f"signal {found.signal}"] if found.signal is not None else []
    with st.container(border=True):
        st.markdown(f"#### :red[Failed:] {escaped(units.words(found.kind.value))} {escaped(where)}")
        st.text(found.message)
        if how:
            elements.note(", ".join(how))
        if found.log_tail:
            st.code(found.log_tail, language=None, height=min(420, 60 + 20 * found.log_tail.count("\n")))


def _cards(trial: Trial) -> None:
    facts = prepared.figures(trial)
    if not facts:
        return
    with st.grid(len(facts), min_column_width=150):
        for title, text, explained in facts:
            elements.card(title, text, explained=explained)
