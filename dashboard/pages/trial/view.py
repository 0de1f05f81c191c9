"""Trial: everything that was measured in one process, or the list of trials to choose one from."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from dashboard.links.links import Link
from dashboard.pages.trial import charts, content, facts
from dashboard.pages.trial.content import FIGURES, MOST_ROWS, trial_rows
from dashboard.read.data import filters_of, read_choices_on, read_newest_trials, read_trial, read_trials
from dashboard.read.snapshots import Snapshot, cached
from dashboard.render import controls, elements, theme
from dashboard.render.foreign_text import escaped
from dashboard.render.shell import View, strategies
from db.errors import NotFoundError
from db.metrics.groups import row_dicts
from db.queries.filters import Filters
from db.records.ids import series_identity
from db.records.trial import Failure, SourceKind, Status, StrategyKind, Trial, timing_method_of
from db.wording import units
from db.wording.marks import timing_text
from db.wording.trials import sample_count_text, trial_bound

# The top of a trial's page: what it is, how it ended, its neighbours, and its main figures.


def draw_head(view: View, trial: Trial) -> None:
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
    if trial.device_state and trial.device_state.throttle_reasons:
        st.badge("clock limited", icon=":material/speed:", color="orange")
    if times := timing_text(timing_method_of(trial), trial_bound(trial)):
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
    facts = content.figures(trial)
    if not facts:
        return
    with st.grid(len(facts), min_column_width=150):
        for title, text, explained in facts:
            elements.card(title, text, explained=explained)


# The list of trials to choose one from.

_TABLE = "trial-table"


def draw_list(view: View) -> None:
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
        f"{units.plural(total, 'trial')}, newest first. Choose a row for all of its facts."
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


@cached
def _rows(snapshot: Snapshot, filters: Filters) -> tuple[pd.DataFrame, int]:
    """The newest trials as texts, and how many there are in all."""
    frame, total = read_newest_trials(snapshot, filters, MOST_ROWS)
    machine = filters.machines[0] if len(filters.machines) == 1 else None
    return trial_rows(frame, read_choices_on(snapshot, machine).builds), total


def _choose() -> None:
    trial = elements.picked_value(_TABLE)
    if trial is not None:
        controls.change(trial=trial)


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
    draw_list(view)
    return view.link


def _one(view: View, trial: Trial) -> None:
    draw_head(view, trial)
    _times(trial)
    if trial.latency_samples_ns:
        _samples(trial)
    elif trial.summary is not None:
        elements.note(content.only_a_summary(trial.summary))
    facts.stream(trial)
    facts.explanation(trial)
    left, right = st.columns(2)
    with left:
        facts.source(trial)
        facts.cold_start(trial)
        facts.memory(trial)
        facts.numerics(trial)
    with right:
        facts.compiler(trial)
        facts.states(trial)
    facts.environment(trial)
    facts.reproduce(trial)


def _times(trial: Trial) -> None:
    """The times of a GPU on both sides, and how they were taken."""
    found = content.timing(trial)
    if found is None:
        return
    with st.container(border=True):
        elements.finding(found.finding, found.note)
        left, right = st.columns(2)
        with left:
            _sides(
                found.times,
                content.side_titles(content.TIME_TITLES, trial),
                "times",
                "Times of a step on both sides",
            )
        with right:
            if len(found.facts):
                titles = content.side_titles(content.FACT_TITLES, trial)
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
            text = sample_count_text(trial.sampling)
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
    return f"Median of {units.plural(n, 'sample')}: {', '.join(texts)}"
