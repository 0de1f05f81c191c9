"""Overview: is all well? Headline speedups, coverage, the newest build's changes, a row per workload."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from dashboard.charts import sparklines
from dashboard.charts.style import PreparedChart
from dashboard.links.links import Link, Page
from dashboard.pages.overview import content, headline
from dashboard.pages.overview.content import OpenRegressions, PageContent
from dashboard.pages.regressions import inbox
from dashboard.read.shaping import Change, build_changes, confounded
from dashboard.render import controls, elements, silence
from dashboard.render.foreign_text import escaped
from dashboard.render.shell import View, moment
from db.records.regressions import TriageState
from db.wording import units
from db.wording.marks import BOUND_TITLE

# Open regressions as the Overview shows them: how many, the first by name, and the way to the inbox.

_NAMED = 3


def card(found: OpenRegressions) -> None:
    """How many there are, and whether somebody looks after them."""
    elements.card(
        "Open regressions",
        units.count(len(found.regressions)),
        explained="Recorded on this machine after a run or by a gate, and closed by nobody.",
        beside=_owners(found),
    )


def _owners(found: OpenRegressions) -> str:
    if not found.any_recorded:
        return "none ever recorded"
    if not found.regressions:
        return "all are closed"
    waiting = sum(each.state is not TriageState.ACKNOWLEDGED for each in found.regressions)
    return f"{units.count(waiting)} without owner" if waiting else "all have an owner"


def draw_open_regressions(found: OpenRegressions) -> None:
    """The first of them by name, and the way to all; nothing where there is none."""
    if not found.regressions:
        return
    with st.container(border=True):
        with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
            st.markdown(f"#### {units.plural(len(found.regressions), 'open regression')}", width="content")
            st.button(
                "Open the inbox", icon=":material/inbox:", on_click=controls.go, args=(Page.REGRESSIONS,)
            )
        lines = [f"- {escaped(inbox.line(each))}" for each in found.regressions[:_NAMED]]
        more = len(found.regressions) - _NAMED
        st.markdown("\n".join([*lines, *([f"- and {units.count(more)} more"] if more > 0 else [])]))


# A smaller change is drawn in grey: it is less than what a verdict would ask for.
NOTABLE = 0.02


def draw(view: View) -> Link:
    """The page of one build on one machine."""
    silence.draw()
    seen = content.page_content(view.snapshot, view.link)
    if seen is None:
        elements.nothing_to_show("No case fits these filters.", next_step="Widen them in the sidebar.")
        return view.link
    _cards(view, seen)
    draw_open_regressions(seen.regressed)
    _main_chart(seen.speedups)
    _workloads(seen.workloads, seen.reach)
    left, right = st.columns(2)
    with left:
        _build(view, seen)
    with right:
        _beside(seen)
    _by_strategy(seen.means)
    return view.link


def _cards(view: View, seen: PageContent) -> None:
    covered, last = seen.covered, moment(seen.last_started_at)
    compared_to = content.compared_to(view.choices, seen.build_before, view.link.build)
    with st.grid(6, min_column_width=150):
        for item in seen.headlines:
            _headline(item, compared_to)
        card(seen.regressed)
        elements.card(
            "Cases compared",
            f"{covered.compared} of {covered.wanted}",
            explained="Compiled cases with a speedup, out of those measured with this build or the one "
            "before.",
            beside=last,
        )
        elements.card(
            "Failing cases",
            units.count(seen.failing),
            explained="Cases with at least one failed trial. Each is listed below with its reason.",
            beside="see below" if seen.failing else "all passed",
        )
    machine = view.choices.machines[view.link.machine or ""]
    build = view.choices.builds.get(view.link.build or "", "")
    coverage = (
        f"Compared {covered.compared} of {covered.wanted} cases, last run {last} on {machine}, {build}."
    )
    elements.notes([*headline.sentences(seen.headlines), coverage, *filter(None, (seen.noise_floor,))])


def _headline(item: headline.Headline, compared_to: str | None) -> None:
    change = item.change
    notable = change is not None and abs(change) >= NOTABLE
    st.metric(
        f"{item.task.value.capitalize()} speedup",
        units.ratio(item.now),
        content.change_words(item),
        delta_color="normal" if notable else "off",
        delta_arrow="auto" if notable else "off",
        delta_description=escaped(compared_to) if change is not None and compared_to else None,
        border=True,
        height="stretch",
        help=escaped(
            f"Geometric mean of {item.strategy} over {units.plural(item.cases, 'case')}: those that passed "
            f"with it{'' if item.before is None else ', with this build and the one before'}. The table at "
            "the end is over what passed with every strategy."
        ),
        chart_data=list(item.history) if sparklines.notable(item.history) else None,
    )


def _main_chart(chart: PreparedChart) -> None:
    with st.container(border=True):
        elements.finding(
            chart.finding, "Each point is a case, its bar the 95 % interval. The dotted line is eager."
        )
        if chart.spec is None:
            elements.nothing_to_show("Only eager was measured with this build.")
            return
        elements.chart(
            chart.spec,
            chart.frames,
            key="overview-speedups",
            alt="Speedup over eager of every compiled case with its interval",
        )


def _workloads(table: pd.DataFrame, reach: float) -> None:
    st.markdown("#### Every workload")
    right = st.column_config.TextColumn
    elements.table(
        table,
        {
            "workload": st.column_config.TextColumn("Workload", pinned=True),
            "task": "Task",
            "state": "State",
            "strategy": "Best compiled",
            "speedup": right("Speedup", alignment="right"),
            "interval": right("95 % interval", alignment="right"),
            "history": elements.history_column("Its speedup, run by run", reach),
            "eager": right("Eager latency", alignment="right"),
            "latency": right("Latency", alignment="right"),
            **BOUND_TITLE,
            "break_even": right("Break-even", alignment="right"),
        },
        key="overview-table",
        alt="Every workload with its fastest strategy, speedup, history, latencies and break-even",
        on_select=_open_trend,
        values=list(table["workload"]),
    )
    elements.note("Choose a row for its trend.")


def _open_trend() -> None:
    workload = elements.picked_value("overview-table")
    if workload is not None:
        controls.go(Page.TRENDS, focus=workload)


def _build(view: View, seen: PageContent) -> None:
    """What the newest build changed against the one before."""
    with elements.part("Newest build"):
        if seen.build_before is None or not view.link.build:
            elements.note(
                f"{view.choices.builds.get(view.link.build or '', '')}: the first build that these cases "
                "were measured with on this machine."
            )
            return
        builds = view.choices.build_rows
        changes = build_changes(builds[seen.build_before], builds[view.link.build])
        elements.note(f"Against {view.choices.builds[seen.build_before]}:")
        if changes:
            _changes(changes)
        else:
            elements.note("Only settings, packages or sources differ.")
        if confounded(changes):
            elements.note(
                "Several parts changed at once: a change in speed cannot be put down to one of them."
            )


def _changes(changes: Sequence[Change]) -> None:
    elements.table(
        content.change_table(changes),
        {"part": "Part", "before": "Before", "after": "Now"},
        key="overview-build",
        alt="Parts of the build that changed",
    )


def _beside(seen: PageContent) -> None:
    """Everything that has no number, with its reason."""
    if seen.beside:
        elements.listed("Beside the numbers", seen.beside, icon=":material/report:")
        return
    with elements.part("Beside the numbers"):
        elements.note("Every case was measured, nothing failed, nothing is missing.")


def _by_strategy(table: pd.DataFrame) -> None:
    if table.empty:
        return
    st.markdown("#### Geometric mean speedup by strategy")
    elements.note(
        "Matched: only workloads that passed with every strategy of the task. Own set: each strategy over "
        "whatever it passed, which rises when slow cases fail."
    )
    right = st.column_config.TextColumn
    elements.table(
        table,
        {
            "task": "Task",
            "strategy": "Strategy",
            "matched": right("Matched set (cases)", alignment="right"),
            "naive": right("Own set (cases)", alignment="right"),
            "left_out": right("Left out of the matched set", width="large"),
        },
        key="overview-geomeans",
        alt="Geometric mean speedup per task and strategy, on the matched set and on each strategy's own set",
    )
