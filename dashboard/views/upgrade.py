"""Upgrade: what another build changes, case by case, with how sure it is and who was left out."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pandas as pd
import streamlit as st

from dashboard import inbox, links, upgrade_rows, verdict_words
from dashboard.charts import verdict_matrix
from dashboard.charts.prepared import PreparedChart
from dashboard.data import (
    filters_of,
    read_builds,
    read_choices,
    read_comparison,
    read_measured_builds,
    read_regressions,
    read_workloads,
)
from dashboard.links import Link, Page, judged_metric
from dashboard.snapshots import Snapshot, remembered
from dashboard.upgrade_pair import with_builds
from dashboard.views import controls, elements, sign_off, upgrade_matrix, upgrade_tables, upgrade_verdict
from dashboard.views.shell import View
from db.queries.regressions import RegressionState
from db.verdicts.results import Comparison
from db.verdicts.sides import VerdictError
from db.verdicts.whole import sentences


@dataclass(frozen=True)
class Seen:
    """What the page is drawn from."""

    comparison: Comparison
    labels: dict[str, str]
    environment: pd.DataFrame
    matrix: PreparedChart
    shift: pd.DataFrame
    counts: pd.DataFrame
    failing: list[str]
    left_out: list[str]
    left_out_table: pd.DataFrame
    recorded: list[RegressionState]


@remembered
def _seen(snapshot: Snapshot, link: Link) -> Seen:
    """`link` names both builds. Raises VerdictError."""
    filters, metric = filters_of(link), judged_metric(link)
    comparison = read_comparison(snapshot, filters, str(link.base), str(link.head))
    recorded = inbox.chosen(read_regressions(snapshot), _inbox_link(link))
    said = sentences(comparison, inbox.confirmed_slower(recorded))
    comparison = comparison.model_copy(update={"sentences": said})
    known = read_workloads(snapshot, filters)
    labels = dict(zip(known["workload_id"], known["workload_label"], strict=True))
    rows = read_choices(snapshot).build_rows
    sides = [
        {**rows[key], **side.components}
        for key, side in ((str(link.base), comparison.base), (str(link.head), comparison.head))
    ]
    return Seen(
        comparison=comparison,
        labels=labels,
        environment=pd.DataFrame(
            verdict_words.environment_diff(sides[0], sides[1], comparison.changed_components)
        ),
        matrix=upgrade_matrix.prepared(comparison, metric, verdict_matrix.cells(comparison, metric, labels)),
        shift=upgrade_rows.shift_table(comparison, labels),
        counts=upgrade_rows.count_changes(comparison, labels),
        failing=upgrade_rows.failing_on_both(comparison, labels),
        left_out=verdict_words.left_out_lines(comparison.left_out),
        left_out_table=upgrade_rows.left_out_table(comparison.left_out),
        recorded=recorded,
    )


def _inbox_link(link: Link) -> Link:
    """The inbox of what is recorded between the two builds of `link`, under its filters."""
    return links.move(link, Page.REGRESSIONS, base=link.base, head=link.head)


def draw(view: View) -> Link:
    """The page; the link it returns names both builds where there are two."""
    filters = filters_of(view.link)
    builds = read_builds(view.snapshot, filters)
    if not builds:
        elements.nothing_to_show("No trial fits these filters.", next_step="Widen them in the sidebar.")
        return view.link
    if len(builds) < 2:
        _one_build(view, builds[0])
        return view.link
    link = with_builds(view.link, read_measured_builds(view.snapshot, filters), builds)
    _builds(view, link, builds)
    try:
        seen = _seen(view.snapshot, replace(link, focus=None, focus_strategy=None))
    except VerdictError as error:
        elements.nothing_to_show(error.message, next_step=error.next_step)
        return link
    upgrade_tables.environment(seen.environment)
    upgrade_verdict.draw(seen.comparison, seen.recorded, _inbox_link(link))
    sign_off.draw(link, seen.comparison, view.snapshot.version)
    upgrade_matrix.draw(link, seen.matrix)
    upgrade_matrix.case_in_focus(
        view.snapshot, link, seen.comparison, seen.matrix.frames["main"], seen.labels
    )
    upgrade_tables.shift(seen.shift)
    upgrade_tables.counts(seen.counts, seen.failing, compared=bool(seen.comparison.rows))
    upgrade_tables.left_out("Left out of the comparison", seen.left_out, seen.left_out_table)
    return link


def _one_build(view: View, build: str) -> None:
    machine = view.choices.machines[str(view.link.machine)]
    elements.nothing_to_show(
        f"Under these filters only one build was measured on {machine}: {view.choices.builds[build]}.",
        next_step="Measure the same suite with another build, or choose another machine in the sidebar.",
    )


def _builds(view: View, link: Link, builds: list[str]) -> None:
    """The choice of the two builds; those of other machines are offered only where the link asks for one."""
    offered = [*builds, *(key for key in (link.base, link.head) if key not in builds)]
    words = {str(key): view.choices.builds[str(key)] for key in offered}
    controls.remember(replace(controls.current(), base=link.base, head=link.head))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        with st.container(width=340):
            controls.one_of("base", "Base", words)
        with st.container(width=340):
            controls.one_of("head", "Head", words)
        st.button(
            "Swap",
            icon=":material/swap_horiz:",
            on_click=controls.change,
            kwargs={"base": link.head, "head": link.base},
        )
