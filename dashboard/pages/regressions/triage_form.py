"""The form in which somebody says what a regression is: typed, asked once in a dialog, recorded, told."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from compilewatch.dashboard.login.access import Role, person_here
from compilewatch.dashboard.read.database import database_url
from compilewatch.dashboard.render import elements
from compilewatch.dashboard.render import forms as signing
from compilewatch.dashboard.text.foreign_text import escaped
from compilewatch.dashboard.verdicts import inbox
from compilewatch.dashboard.verdicts.inbox import MEANINGS, state_text
from compilewatch.dashboard.write import writing
from compilewatch.db.records.people import TriageState
from compilewatch.db.service.regressions import RegressionState
from compilewatch.db.units import plural

PAGE = "triage"
_DECISION, _NAME = "triage-asked", "triage-name"
_IS = {True: "is", False: "are"}
_CHOICES = tuple(state for state in TriageState if state is not TriageState.NEW)


def draw(regressions: Sequence[RegressionState]) -> None:
    """The form over the regressions that are chosen, and the question whether to record what was typed."""
    regression_ids = tuple(each.regression.regression_id for each in regressions)
    if not person_here().may(Role.EDITOR):
        elements.note("Saying what a regression is needs the role editor.")
        return
    _quick(regressions)
    chosen = plural(len(regression_ids), "chosen regression")
    # Folded, it keeps the evidence in sight and stands next to the rows on the way of the Tab key.
    with (
        st.expander(f"Say what the {chosen} {_IS[len(regression_ids) == 1]}", icon=":material/edit_note:"),
        st.form("triage", border=False),
    ):
        elements.note("Whoever acknowledges one owns it.")
        st.radio(
            "State",
            _CHOICES,
            index=_CHOICES.index(TriageState.ACKNOWLEDGED),
            format_func=state_text,
            captions=[f"{MEANINGS[state]}." for state in _CHOICES],
            key="triage-state",
        )
        signing.name_field(_NAME, "Your name (the owner)")
        st.text_area("Note", max_chars=writing.LONGEST_NOTE, key="triage-note", height=90)
        st.text_input(
            "Link",
            max_chars=writing.LONGEST_URL,
            key="triage-link",
            placeholder="https:// of an issue or a pull request",
        )
        if st.form_submit_button("Record", icon=":material/edit_note:"):
            _ask(regression_ids)
    decision: writing.TriageDecision | None = st.session_state.get(_DECISION)
    if decision is not None and decision.regression_ids == regression_ids:
        _question(decision, inbox.first_names(regressions))
    else:
        _forget()


_QUICK_NOTE, _QUICK_PROBLEM = "triage-quick-note", "triage-quick-problem"
_OF_ROW, _BISECT = "triage-of-row", "Bisect"
_QUICK = {
    "Take": (TriageState.ACKNOWLEDGED, ":material/front_hand:"),
    "Expected": (TriageState.EXPECTED, ":material/check:"),
    "Close as fixed": (TriageState.FIXED, ":material/done_all:"),
}


def _quick(regressions: Sequence[RegressionState]) -> None:
    """What is said most, in two clicks; what looks fixed has its way out first."""
    cured = all(each.is_cured for each in regressions)
    with st.container(horizontal=True):
        offered = sorted(_QUICK.items(), key=lambda each: not (cured and each[1][0] is TriageState.FIXED))
        for label, (state, icon) in offered:
            if st.button(label, icon=icon, key=f"triage-quick-{state.name}"):
                _say(label, state, regressions)


def actions(each: inbox.ListedChange) -> tuple[str, ...]:
    """What can be done with a change in its row, the likeliest first; nothing by whoever may not."""
    bisect = (_BISECT,) if inbox.bisect_command(each.change) else ()
    if not person_here().may(Role.EDITOR) or not each.is_recorded:
        return bisect
    if each.is_cured:
        return ("Close as fixed",)
    if not each.is_open:
        return ("Take",)
    return (*(bisect if each.owners else ()), *_QUICK, *(() if each.owners else bisect))


def open_dialog(action: str, change_id: str) -> None:
    """Callback: the action that was clicked in the row of a change opens its dialog over the list."""
    st.session_state[_OF_ROW] = (action, change_id)


def draw_dialog(listed: Sequence[inbox.ListedChange]) -> None:
    """The dialog over the list, where an action in one of its rows was clicked."""
    action, change_id = st.session_state.get(_OF_ROW, ("", ""))
    for each in listed:
        if each.change.change_id != change_id:
            continue
        if action == _BISECT:
            _bisect(each)
        else:
            _say(action, _QUICK[action][0], each.states)


def _forget_row() -> None:
    st.session_state.pop(_OF_ROW, None)


@st.dialog(_BISECT, on_dismiss=_forget_row)
def _bisect(each: inbox.ListedChange) -> None:
    """The command to copy: what it finds is measured, and the dashboard measures nothing."""
    elements.note(f"It finds the release of torch that did it, on {each.change.worst.workload}.")
    st.code(inbox.bisect_command(each.change), language=None, wrap_lines=True)


@st.dialog("Say it", on_dismiss=_forget_row)
def _say(label: str, state: TriageState, regressions: Sequence[RegressionState]) -> None:
    """The same form for one state, asked in sight wherever the page is scrolled to."""
    elements.notes([f"{plural(len(regressions), 'regression')} become {state.value}: {MEANINGS[state]}."])
    elements.notes(inbox.first_names(regressions))
    with st.form("triage-quick", border=False):
        signing.name_field(f"{_NAME}-quick", "Your name")
        st.text_input("Note", max_chars=writing.LONGEST_NOTE, key=_QUICK_NOTE)
        ids = [each.regression.regression_id for each in regressions]
        said = st.form_submit_button(label, key="triage-quick-say", on_click=_record_quick, args=(ids, state))
    if said and (problem := st.session_state.pop(_QUICK_PROBLEM, None)):
        st.warning(problem, icon=":material/report:")
    elif said:
        _forget_row()
        st.rerun()


def _record_quick(regression_ids: Sequence[str], state: TriageState) -> None:
    author = signing.name_of(f"{_NAME}-quick") or ""
    note = str(st.session_state[_QUICK_NOTE])
    what = writing.triage_decision(regression_ids, state, author=author, note=note, url="")
    if problem := what.problem():
        st.session_state[_QUICK_PROBLEM] = problem
        return
    sentence, all_written = writing.record(database_url(), what)
    signing.say(PAGE, sentence, done=all_written)


def _ask(regression_ids: Sequence[str]) -> None:
    state = st.session_state
    what = writing.triage_decision(
        regression_ids,
        state["triage-state"],
        author=person_here().name or state[_NAME],
        note=state["triage-note"],
        url=state["triage-link"],
    )
    problem = what.problem()
    if problem:
        st.warning(problem, icon=":material/report:")
        return
    state[_DECISION] = what


def _forget() -> None:
    st.session_state.pop(_DECISION, None)


@st.dialog("Record this?", on_dismiss=_forget)
def _question(decision: writing.TriageDecision, names: Sequence[str]) -> None:
    """In sight wherever the page is scrolled to. A rerun closes it. `names` of the regressions, the first."""
    st.markdown(escaped(decision.question))
    elements.notes(
        [*names, *filter(None, [decision.note]), *([f"Link: {decision.url}"] if decision.url else [])]
    )
    with st.container(horizontal=True):
        yes = st.button(
            "Record it",
            icon=":material/check:",
            on_click=_record,
            args=(decision,),
            key="triage-yes",
        )
        no = st.button("Cancel", icon=":material/close:", on_click=_forget, key="triage-no")
    if yes or no:
        st.rerun()


def _record(decision: writing.TriageDecision) -> None:
    sentence, all_written = writing.record(database_url(), decision)
    signing.say(PAGE, sentence, done=all_written)
    if all_written:
        st.session_state.update({"triage-note": "", "triage-link": ""})
    _forget()
