"""Upgrade: what another build changes, case by case, with how sure it is and who was left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd
import streamlit as st

from dashboard.charts.style import PreparedChart
from dashboard.links import links
from dashboard.links.links import Link, Page, judged_metric
from dashboard.pages.evidence import view as case_evidence
from dashboard.pages.evidence.content import Evidence, evidence
from dashboard.pages.regressions import inbox
from dashboard.pages.upgrade import charts, content, sign_off, tables
from dashboard.pages.upgrade.content import with_builds
from dashboard.read.data import (
    filters_of,
    read_builds,
    read_choices,
    read_comparison,
    read_regressions,
    read_trials,
    read_workloads,
)
from dashboard.read.snapshots import Snapshot, cached
from dashboard.render import controls, elements, theme, verdict_words
from dashboard.render.foreign_text import escaped
from dashboard.render.shell import View
from db.judge.compare.sides import VerdictError
from db.judge.compare.whole import sentences
from db.judge.results import CaseKey, Comparison
from db.judge.vocabulary import MEASURED_METRICS, Metric, Verdict
from db.metrics.groups import row_dicts
from db.queries.regressions import RegressionState
from db.wording import units
from db.wording import verdicts as wording
from db.wording.marks import bound_word
from db.wording.metrics import METRICS

# The matrix of verdicts on the Upgrade page, and the evidence of the cell that was chosen in it.

_METRICS = {metric.value: METRICS[metric].name for metric in MEASURED_METRICS}


def prepared(comparison: Comparison, metric: Metric, cells: pd.DataFrame) -> PreparedChart:
    """The matrix of `metric`. `cells` as `dashboard.pages.upgrade.charts` makes them."""
    name = METRICS[metric].name
    rows = [row for row in comparison.rows if row.metric is metric]
    spec = charts.spec(
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


def draw_matrix(link: Link, matrix: PreparedChart) -> None:
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
        case_evidence.draw_series(snapshot, link.machine, case, judged_metric(link), key="upgrade-series")
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


@cached
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


# The verdict on an upgrade as a whole: the judge's sentences and four figures.


def draw_verdict(comparison: Comparison, recorded: Sequence[RegressionState], inbox_link: Link) -> None:
    """The judge's sentences, the figures behind the first two, and what of it is `recorded` in the inbox."""
    first, *more = comparison.sentences
    with st.container(border=True):
        elements.finding(f"{wording.marked(comparison.verdict)}: {first}")
        elements.notes(more)
        _cards(comparison)
        if recorded or comparison.verdict is Verdict.REGRESSED:
            _recorded(recorded, inbox_link)


def _recorded(recorded: Sequence[RegressionState], inbox_link: Link) -> None:
    """How far people and fresh trials are with the regressions of these two builds."""
    if not recorded:
        elements.note("Nothing of it is in the inbox: runs and gates record what regressed, pages do not.")
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        what = units.plural(len(recorded), "figure")
        st.markdown(f"In the inbox {what} of these builds: {inbox.counted(recorded)}.", width="content")
        st.button(
            "Open them in the inbox",
            icon=":material/inbox:",
            on_click=controls.go,
            args=(inbox_link.page,),
            kwargs={"machine": inbox_link.machine, "base": inbox_link.base, "head": inbox_link.head},
        )


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
        elements.card(
            "Geomean speedup, naive",
            units.ratio(mean.naive_head),
            beside=f"{naive} ({mean.naive_base_cases} → {mean.naive_head_cases} cases)",
            explained="Each side over its own set of cases: it moves when cases come or go. "
            "Use the matched one.",
        )
        elements.card(
            "Cases compared",
            f"{comparison.matched} of {comparison.total}",
            beside=escaped(comparison.machine or ""),
            explained="The others are listed below with the reason why they were left out.",
        )
        elements.card(
            "Figures regressed",
            units.count(counts[Verdict.REGRESSED]) if comparison.rows else units.MISSING,
            beside=f"{counts[Verdict.IMPROVED]} improved, {counts[Verdict.INCONCLUSIVE]} inconclusive"
            if comparison.rows
            else "nothing was compared",
            explained="Verdicts over all figures of all compared cases; a case has one per figure.",
        )


def _change(base: float | None, head: float | None) -> str | int | None:
    """In percent; 0, which has no arrow, for what rounds to nothing."""
    if not base or not head:
        return None
    text = units.percent(head / base - 1, signed=True)
    return text if text.strip("+-0. %") else 0


@dataclass(frozen=True)
class PageContent:
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


@cached
def _page_content(snapshot: Snapshot, link: Link) -> PageContent:
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
    return PageContent(
        comparison=comparison,
        labels=labels,
        environment=pd.DataFrame(
            verdict_words.environment_diff(sides[0], sides[1], comparison.changed_components)
        ),
        matrix=prepared(comparison, metric, charts.cells(comparison, metric, labels)),
        shift=content.shift_table(comparison, labels),
        counts=content.count_changes(comparison, labels),
        failing=content.failing_on_both(comparison, labels),
        left_out=verdict_words.left_out_lines(comparison.left_out),
        left_out_table=content.left_out_table(comparison.left_out),
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
    link = with_builds(view.snapshot, view.link)
    _builds(view, link, builds)
    try:
        seen = _page_content(view.snapshot, replace(link, focus=None, focus_strategy=None))
    except VerdictError as error:
        elements.nothing_to_show(error.message, next_step=error.next_step)
        return link
    tables.environment(seen.environment)
    draw_verdict(seen.comparison, seen.recorded, _inbox_link(link))
    sign_off.draw(link, seen.comparison, view.snapshot.version)
    draw_matrix(link, seen.matrix)
    case_in_focus(view.snapshot, link, seen.comparison, seen.matrix.frames["main"], seen.labels)
    tables.shift(seen.shift)
    tables.counts(seen.counts, seen.failing, compared=bool(seen.comparison.rows))
    tables.left_out("Left out of the comparison", seen.left_out, seen.left_out_table)
    return link


def _one_build(view: View, build: str) -> None:
    machine = view.choices.machines[str(view.link.machine)]
    elements.nothing_to_show(
        f"Under these filters only one build was measured on {machine}: {view.choices.builds[build]}.",
        next_step="Measure the same suite with another build, or choose another machine in the sidebar.",
    )


def _builds(view: View, link: Link, builds: list[str]) -> None:
    """The choice of the two builds, newest version first; those of other machines are offered only where the
    link asks for one.
    """
    wanted = {*builds, str(link.base), str(link.head)}
    words = {key: name for key, name in reversed(list(view.choices.builds.items())) if key in wanted}
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
