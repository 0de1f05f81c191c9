"""Regressions: the inbox of what got worse, the evidence of each, and what people say about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd
import streamlit as st

from dashboard.links.links import Link, Page
from dashboard.pages.evidence import view as case_evidence
from dashboard.pages.evidence.content import Evidence, evidence
from dashboard.pages.regressions import inbox, newest_run, triage_form
from dashboard.pages.upgrade.content import case_title
from dashboard.read.data import read_regressions, read_trials
from dashboard.read.snapshots import Snapshot, cached
from dashboard.render import controls, elements
from dashboard.render import forms as telling
from dashboard.render.foreign_text import escaped
from dashboard.render.shell import View, moment, strategies
from db.queries.filters import Filters
from db.queries.regressions import RegressionState
from db.records.regressions import Regression, TriageState
from db.wording import units


@dataclass(frozen=True)
class Inbox:
    """The recorded regressions that a link lets through, and their rows."""

    states: list[RegressionState]
    table: pd.DataFrame


@cached
def _inbox_of(snapshot: Snapshot, link: Link) -> Inbox:
    states = inbox.chosen(read_regressions(snapshot), link)
    return Inbox(states, inbox.inbox_table(states))


def draw(view: View) -> Link:
    """The inbox with the evidence of what is chosen; where nothing was ever recorded, the newest run."""
    telling.tell(triage_form.PAGE)
    recorded = read_regressions(view.snapshot)
    if recorded:
        controls.pills("state", "State", {str(s): inbox.state_text(s) for s in TriageState})
    strategies(view)
    if not recorded:
        newest_run.draw(view)
        return view.link
    # Whichever rows are ticked, they are the same rows.
    shown = _inbox_of(view.snapshot, replace(view.link, regression=()))
    _between(view)
    _cards(shown.states)
    if not shown.states:
        elements.nothing_to_show(
            "No recorded regression fits these filters.", next_step="Widen them here or in the sidebar."
        )
        return view.link
    _inbox(view, shown)
    _chosen(view, recorded)
    return view.link


def _between(view: View) -> None:
    """That only two builds are looked at, where the link says so, and the way to all."""
    names = [view.choices.builds[build] for build in (view.link.base, view.link.head) if build]
    if not names:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        word = "from" if view.link.base else "to"
        st.markdown(escaped(f"Only regressions {word} {' to '.join(names)}."), width="content")
        st.button(
            "Show those of all builds",
            icon=":material/filter_alt_off:",
            on_click=controls.change,
            kwargs={"base": None, "head": None},
        )


def _cards(states: Sequence[RegressionState]) -> None:
    counts = Counter(each.state for each in states)
    with st.grid(4, min_column_width=140):
        for state in inbox.OPEN_STATES:
            elements.card(
                inbox.state_text(state).capitalize(),
                units.count(counts[state]),
                explained=f"{inbox.MEANINGS[state].capitalize()}.",
            )
        closed = sum(counts[state] for state in TriageState if state not in inbox.OPEN_STATES)
        elements.card("Closed", units.count(closed), explained="Expected, fixed or a false alarm.")


def _inbox(view: View, shown: Inbox) -> None:
    # A new data version may order the rows anew: what is ticked follows from the link, not from places.
    key = f"inbox-{view.snapshot.version}"
    ids = [each.regression.regression_id for each in shown.states]
    st.session_state["inbox-rows"] = (key, ids)
    # What is ticked at first belongs to the table's identity: it must not change while somebody ticks on.
    first = [place for place, each in enumerate(ids) if each in view.link.regression]
    ticked = st.session_state.setdefault(f"{key}-first", first)
    elements.table(
        shown.table,
        {
            "state": st.column_config.TextColumn("State", pinned=True),
            **newest_run.finding_columns(None),
            "cause": st.column_config.TextColumn(
                "Cause class",
                help="Which side moved: compiled, eager or the machine. Not which part of the build.",
            ),
            "from": "From",
            "to": "To",
            "machine": "Machine",
            "recorded_at": elements.moment_column("Recorded (UTC)"),
            "by": "Last said by",
            "note": "Note",
            "link": _link_column(),
        },
        key=key,
        alt="Recorded regressions with state, case, figure, change, cause, builds and what was said last",
        on_select=_choose,
        several=True,
        chosen=[place for place in ticked if place < len(ids)],
    )
    if not view.link.regression:
        elements.note("Choose rows to see the evidence and to say what they are.")


def _link_column() -> object:
    return st.column_config.LinkColumn("Link", display_text="open")


def _choose() -> None:
    key, ids = st.session_state["inbox-rows"]
    controls.change(regression=tuple(ids[row] for row in elements.picked_rows(key) if row < len(ids)))


def _chosen(view: View, recorded: Sequence[RegressionState]) -> None:
    """The evidence of the first chosen regression, and the form for all of them."""
    by_id = {each.regression.regression_id: each for each in recorded}
    known = [each for each in view.link.regression if each in by_id]
    for unknown in (each for each in view.link.regression if each not in by_id):
        elements.note(f"There is no standing regression {unknown}; a later verdict may have replaced it.")
    if not known:
        return
    triage_form.draw([by_id[each] for each in known])
    if len(known) > 1:
        elements.note(f"{units.plural(len(known), 'regression')} chosen; the evidence is that of the first.")
    _one(view, by_id[known[0]])


@cached
def _evidence(snapshot: Snapshot, regression_id: str) -> Evidence:
    found = next(
        each.regression
        for each in read_regressions(snapshot)
        if each.regression.regression_id == regression_id
    )
    runs = (*found.base.run_ids, *found.head.run_ids)
    machines = (found.machine_id,) if found.machine_id else ()
    trials = read_trials(snapshot, Filters(machines=machines, runs=runs))
    row = found.row
    return evidence(trials, (found.base, found.head), row.case, [row], row.metric)


def _one(view: View, each: RegressionState) -> None:
    regression, row = each.regression, each.regression.row
    with st.container(border=True):
        elements.finding(
            f"{case_title(row)}: {row.reason}",
            f"{inbox.state_text(each.state)}: {inbox.MEANINGS[each.state]}. Recorded "
            f"{moment(regression.recorded_at)} on {regression.machine}."
            + (f" Revision {regression.revision} of this verdict." if regression.revision else ""),
        )
        _differences(regression)
        case_evidence.draw(
            _evidence(view.snapshot, regression.regression_id),
            row.metric,
            key="regression-case",
            confidence=None,
        )
        case_evidence.draw_series(
            view.snapshot, regression.machine_id, row.case, row.metric, key="regression-series"
        )
        elements.table(
            inbox.story(each),
            {
                "at": elements.moment_column("When (UTC)"),
                "state": "State",
                "by": "Who",
                "note": st.column_config.TextColumn("What", width="large"),
                "link": _link_column(),
            },
            key="regression-story",
            alt="Who said what about this regression, and when",
        )
        elements.note("The same sides judged again, on all that is stored of them:")
        st.code(inbox.compare_command(regression), language="bash", wrap_lines=True)
        st.button(
            "Its history",
            icon=":material/show_chart:",
            on_click=controls.go,
            args=(Page.TRENDS,),
            kwargs={"machine": regression.machine_id, "focus": row.workload, "strategy": (row.strategy,)},
        )


def _differences(regression: Regression) -> None:
    found = inbox.environment(regression)
    if found.empty:
        elements.note("No part of the build changed between the sides.")
        return
    elements.table(
        found,
        {"part": "Part", "base": "Base", "head": "Head"},
        key="regression-environment",
        alt="Parts of the build that differ between the sides",
    )
