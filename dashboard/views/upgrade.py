"""Upgrade: what another build changes, case by case, with how sure it is and who was left out."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pandas as pd
import streamlit as st

from dashboard import theme, upgrade_rows, verdict_words
from dashboard.charts import upgrade as charts
from dashboard.data import (
    Snapshot,
    filters_of,
    plain,
    read_choices,
    read_comparison,
    read_measured_builds,
    read_trials,
    read_workloads,
    remembered,
)
from dashboard.links import METRICS, Link, Page
from dashboard.shaping import row_dicts
from dashboard.views import case_evidence, case_series, controls, elements, sign_off
from dashboard.views.shell import View
from db import units
from db.verdicts.results import CaseKey, Comparison
from db.verdicts.sides import VerdictError
from db.verdicts.vocabulary import METRIC_NAMES, Metric, Verdict

_METRICS = {metric.value: METRIC_NAMES[metric] for metric in map(Metric, METRICS)}


@dataclass(frozen=True)
class Seen:
    """What the page is drawn from."""

    comparison: Comparison
    labels: dict[str, str]
    environment: pd.DataFrame
    cells: pd.DataFrame
    shift: pd.DataFrame
    counts: pd.DataFrame
    failing: list[str]
    left_out: list[str]


@remembered
def _seen(snapshot: Snapshot, link: Link) -> Seen:
    """`link` names both builds. Raises VerdictError."""
    filters = filters_of(link)
    comparison = read_comparison(snapshot, filters, str(link.base), str(link.head))
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
        cells=charts.cells(comparison, Metric(link.metric), labels),
        shift=upgrade_rows.shift_table(comparison, labels),
        counts=upgrade_rows.count_changes(comparison, labels),
        failing=upgrade_rows.failing_on_both(comparison, labels),
        left_out=verdict_words.left_out_lines(comparison.left_out),
    )


def draw(view: View) -> Link:
    builds = read_measured_builds(view.snapshot, filters_of(view.link))
    if not builds:
        elements.nothing_to_show("No trial fits these filters.", next_step="Widen them in the sidebar.")
        return view.link
    if len(builds) < 2:
        _one_build(view, builds[0])
        return view.link
    link = _with_builds(view.link, builds)
    _builds(view, link, builds)
    try:
        seen = _seen(view.snapshot, replace(link, focus=None, focus_strategy=None))
    except VerdictError as error:
        elements.nothing_to_show(error.message, next_step=error.next_step)
        return link
    _environment(seen)
    _verdict(seen)
    sign_off.draw(link, seen.comparison, view.snapshot.version)
    _matrix(link, seen)
    _case(view, link, seen)
    _shift(seen.shift)
    _counts(seen)
    elements.listed("Left out of the comparison", seen.left_out, icon=":material/block:")
    return link


def _one_build(view: View, build: str) -> None:
    machine = view.choices.machines[str(view.link.machine)]
    elements.nothing_to_show(
        f"Under these filters only one build was measured on {machine}: {view.choices.builds[build]}.",
        next_step="Measure the same suite with another build, or choose another machine in the sidebar.",
    )


def _with_builds(link: Link, builds: list[str]) -> Link:
    """Both builds named: the one measured last against the one measured before it, unless asked otherwise."""
    head = link.head or next(build for build in builds if build != link.base)
    before = builds[builds.index(head) + 1 :] if head in builds else builds
    others = [*before, *(build for build in builds if build != head)]
    return replace(link, base=link.base or others[0], head=head)


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


def _environment(seen: Seen) -> None:
    with st.container(border=True):
        st.markdown("#### What differs between the builds")
        if seen.environment.empty:
            elements.note("No part of the builds that is stored differs.")
            return
        elements.table(
            seen.environment,
            {
                "part": st.column_config.TextColumn("Part", pinned=True),
                "base": "Base",
                "head": "Head",
            },
            key="upgrade-environment",
            alt="Parts of the build that differ between base and head",
        )


def _verdict(seen: Seen) -> None:
    """The judge's sentences, and the figures behind the first two."""
    comparison = seen.comparison
    first, *more = comparison.sentences
    with st.container(border=True):
        elements.finding(f"{verdict_words.MARKS[comparison.verdict]} {comparison.verdict.value}: {first}")
        elements.notes(more)
        _cards(comparison)


def _cards(comparison: Comparison) -> None:
    mean, counts = comparison.geomean, comparison.counts
    naive = " → ".join(units.ratio(value) for value in (mean.naive_base, mean.naive_head))
    with st.grid(4, min_column_width=165):
        st.metric(
            "Geomean speedup, matched",
            units.ratio(mean.head),
            _change(mean.base, mean.head),
            delta_description=f"from {units.ratio(mean.base)}" if mean.base else None,
            help=f"Over the {units.plural(mean.cases, 'case')} that passed on both sides.",
            border=True,
            height="stretch",
        )
        st.metric(
            "Geomean speedup, naive",
            units.ratio(mean.naive_head),
            f"{naive} ({mean.naive_base_cases} → {mean.naive_head_cases} cases)",
            delta_color="off",
            delta_arrow="off",
            help="Each side over its own set of cases: it moves when cases come or go. Use the matched one.",
            border=True,
            height="stretch",
        )
        st.metric(
            "Cases compared",
            f"{comparison.matched} of {comparison.total}",
            plain(comparison.machine or ""),
            delta_color="off",
            delta_arrow="off",
            help="The others are listed below with the reason why they were left out.",
            border=True,
            height="stretch",
        )
        st.metric(
            "Figures regressed",
            units.count(counts[Verdict.REGRESSED]) if comparison.rows else units.MISSING,
            f"{counts[Verdict.IMPROVED]} improved, {counts[Verdict.INCONCLUSIVE]} inconclusive"
            if comparison.rows
            else "nothing was compared",
            delta_color="off",
            delta_arrow="off",
            help="Verdicts over all figures of all compared cases; a case has one per figure.",
            border=True,
            height="stretch",
        )


def _change(base: float | None, head: float | None) -> str | int | None:
    if not base or not head:
        return None
    text = units.percent(head / base - 1, signed=True)
    return text if text.strip("+-0. %") else 0


def _matrix(link: Link, seen: Seen) -> None:
    metric = Metric(link.metric)
    name = METRIC_NAMES[metric]
    with st.container(border=True):
        controls.segments("metric", "Figure", _METRICS)
        rows = [row for row in seen.comparison.rows if row.metric is metric]
        elements.finding(
            f"{name}: {verdict_words.tally(rows)}" if rows else f"{name} has no verdict",
            "Each cell: the change from base to head, and its verdict: ✗ regressed, ✓ improved, = unchanged "
            f"(shown to be within the margin), ? inconclusive, {units.MISSING} left out. "
            "Click a cell for its evidence.",
        )
        if seen.cells.empty:
            elements.nothing_to_show(f"{name} was not measured on both sides.")
            return
        chosen = seen.cells[
            (seen.cells["workload"] == link.focus) & (seen.cells["strategy"] == link.focus_strategy)
        ]
        elements.chart(
            charts.matrix(
                tuple(sorted(set(seen.cells["workload"]))),
                tuple(theme.ordered(seen.cells["strategy"])),
                tuple(sorted(set(seen.cells["verdict"]))),
                name,
            ),
            {"main": seen.cells, "chosen": chosen},
            key="upgrade-matrix",
            alt=f"Verdict on {name.lower()} of every workload with every strategy, the change as text",
            on_select=_look_at,
        )


def _look_at() -> None:
    mark = elements.picked("upgrade-matrix")
    if mark:
        controls.change(focus=str(mark["workload"]), focus_strategy=str(mark["strategy"]))


@remembered
def _evidence(snapshot: Snapshot, link: Link, case: CaseKey) -> case_evidence.Evidence:
    filters = filters_of(link)
    comparison = read_comparison(snapshot, filters, str(link.base), str(link.head))
    rows = [row for row in comparison.rows if row.case == case]
    trials = read_trials(snapshot, replace(filters, builds=(str(link.base), str(link.head))))
    return case_evidence.evidence(trials, (comparison.base, comparison.head), case, rows, Metric(link.metric))


def _case(view: View, link: Link, seen: Seen) -> None:
    """Both sides of the case that was chosen in the matrix."""
    if link.focus is None:
        return
    title = f"{link.focus} with {link.focus_strategy or 'any strategy'}"
    case = next(
        (
            row.case
            for row in seen.comparison.rows
            if (charts.label(row.case, seen.labels), row.strategy) == (link.focus, link.focus_strategy)
        ),
        None,
    )
    with st.container(border=True):
        elements.finding(title)
        if case is None:
            reason = _why_left_out(link, seen)
            elements.nothing_to_show(reason or f"{title} is no case of this comparison.")
            return
        case_evidence.draw(_evidence(view.snapshot, link, case), Metric(link.metric), key="upgrade-case")
        case_series.draw(view.snapshot, link.machine, case, Metric(link.metric), key="upgrade-series")
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


def _why_left_out(link: Link, seen: Seen) -> str | None:
    for cell in row_dicts(seen.cells):
        if (cell["workload"], cell["strategy"]) == (link.focus, link.focus_strategy):
            return f"Left out of the comparison, {cell['verdict']}: {cell['detail']}"
    return None


def _shift(table: pd.DataFrame) -> None:
    st.markdown("#### Compile cost and break-even")
    if table.empty:
        elements.note("No compiled case has a compile cost on both sides.")
        return
    text = st.column_config.TextColumn
    columns: dict[str, object] = {"workload": text("Workload", pinned=True), "strategy": "Strategy"}
    for metric in (Metric.COMPILE_COST, Metric.BREAK_EVEN):
        columns |= {
            f"{metric.value}_from_to": text(METRIC_NAMES[metric], alignment="right"),
            f"{metric.value}_change": text("Change", alignment="right"),
            f"{metric.value}_verdict": text("Verdict"),
        }
    elements.table(
        table,
        columns,
        key="upgrade-shift",
        alt="Compile cost and break-even of every compiled case before and after, with verdicts",
    )


def _counts(seen: Seen) -> None:
    """What passes no more or again, and counts that changed."""
    st.markdown("#### What passes, graph breaks, recompiles")
    if not seen.comparison.rows:
        elements.note("Nothing was compared, so nothing is known of what passes, breaks or recompiles.")
    elif seen.counts.empty:
        elements.note(
            "Every compared case passes or fails as before, with as many graph breaks and recompiles."
        )
    else:
        text = st.column_config.TextColumn
        elements.table(
            seen.counts,
            {
                "workload": text("Workload", pinned=True),
                "strategy": "Strategy",
                "metric": "Figure",
                "base": text("Base", alignment="right"),
                "head": text("Head", alignment="right"),
                "verdict": "Verdict",
                "reason": text("Why", width="large"),
            },
            key="upgrade-counts",
            alt="Cases that pass no more or again, and changed graph breaks and recompiles",
        )
    elements.listed("Fails on both sides", seen.failing, icon=":material/report:")
