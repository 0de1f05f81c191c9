"""Regressions: the inbox of what got worse, the evidence of each, and what people say about it."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.pages.regressions import content, triage_form
from compilewatch.dashboard.read.data import read_regressions
from compilewatch.dashboard.render import controls, elements, streamlit_parts
from compilewatch.dashboard.render import forms as telling
from compilewatch.dashboard.render.shell import View, filter_box, strategies
from compilewatch.dashboard.render.streamlit_parts import Pick
from compilewatch.dashboard.text.foreign_text import escaped
from compilewatch.dashboard.verdicts import inbox
from compilewatch.db import units
from compilewatch.db.judge.compare.recorded_regressions import Regression
from compilewatch.db.records.people import TriageState
from compilewatch.db.service.regressions import RegressionState


def draw(view: View) -> Link:
    """The inbox with the evidence of what is chosen; where nothing was ever recorded, the newest run."""
    telling.tell(triage_form.PAGE)
    recorded = read_regressions()
    with filter_box("States and strategies", view, "state", "strategy"):
        if recorded:
            controls.pills("state", "State", {str(s): inbox.state_text(s) for s in TriageState})
        strategies(view)
    _between(view)
    page = content.page(view.link)
    shown = inbox.chosen(recorded, view.link)
    listed = inbox.changes(shown)
    picks = {
        content.changes_key(): _chosen_change(view, listed),
        content.inbox_key(view.link): _ticked(view, content.cases_of(shown, view.link)),
        "regression-case-strip": Pick(lambda mark: controls.go(Page.TRIAL, trial=str(mark["trial_id"]))),
    }
    chosen = content.chosen_of(recorded, view.link)
    streamlit_parts.draw(
        page.parts,
        picks=picks,
        below={content.inbox_key(view.link): lambda: _chosen(view, chosen)},
    )
    triage_form.draw_dialog(listed)
    if chosen:
        _ways_on(chosen[0].regression)
    return page.link


def _chosen_change(view: View, listed: Sequence[inbox.ListedChange]) -> Pick:
    """Which change is looked at: a click chooses it, another on it takes the choice back."""
    ids = [each.change.change_id for each in listed]
    first = [place for place, each in enumerate(ids) if each in view.link.change]
    ticked = st.session_state.setdefault(f"{content.changes_key()}-first", first)
    hint = "" if view.link.change or view.link.regression else "Choose a change to see its cases."

    def choose(change_id: str | None) -> None:
        controls.change(change=(change_id,) if change_id else (), regression=())

    chosen = [place for place in ticked if place < len(ids)]
    return Pick(
        choose,
        hint,
        values="change_id",
        clears=True,
        chosen=chosen,
        actions=[triage_form.actions(each) for each in listed],
        beside="owner",
        act_in_row=triage_form.open_dialog,
    )


def _between(view: View) -> None:
    """That only two builds are looked at, where the link says so, and the way to all."""
    names = [view.choices.builds[build] for build in (view.link.base, view.link.head) if build]
    if not names:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        word = "from" if view.link.base else "to"
        st.markdown(escaped(f"Only regressions {word} {' to '.join(names)}."), width="content")
        icon = ":material/filter_alt_off:"
        controls.button_that_changes("Show those of all builds", icon, base=None, head=None)


def _ticked(view: View, shown: Sequence[RegressionState]) -> Pick:
    """Which rows of the inbox are ticked: that follows from the link, not from places."""
    ids = [each.regression.regression_id for each in shown]
    # What is ticked at first belongs to the table's identity: it must not change while somebody ticks on.
    first = [place for place, each in enumerate(ids) if each in view.link.regression]
    ticked = st.session_state.setdefault(f"{content.inbox_key(view.link)}-first", first)
    hint = "" if view.link.regression else "Choose rows to see the evidence and to say what they are."

    def choose(rows: Sequence[int]) -> None:
        controls.change(regression=tuple(ids[row] for row in rows if row < len(ids)))

    return Pick(choose, hint, several=True, chosen=[place for place in ticked if place < len(ids)])


def _chosen(view: View, chosen: Sequence[RegressionState]) -> None:
    """The form for all that are chosen."""
    known = {each.regression.regression_id for each in chosen}
    for unknown in (each for each in view.link.regression if each not in known):
        elements.note(f"There is no standing regression {unknown}; a later verdict may have replaced it.")
    if chosen:
        triage_form.draw(chosen)
    if len(chosen) > 1:
        elements.note(f"{units.plural(len(chosen), 'regression')} chosen; the evidence is that of the first.")


def _ways_on(chosen: Regression) -> None:
    with st.container(horizontal=True):
        case = {"machine": chosen.machine_id, "focus": chosen.row.workload}
        controls.button_to("Its history", Page.WORKLOAD, **case, strategy=(chosen.row.strategy,))
