"""The sign-off of an upgrade: what was decided, by whom, on which data, and the form to decide."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from compilewatch.dashboard.links.links import Link
from compilewatch.dashboard.login.access import Role, person_here
from compilewatch.dashboard.pages.upgrade.decisions import NOT_SIGNED
from compilewatch.dashboard.read.database import reader
from compilewatch.dashboard.render import elements
from compilewatch.dashboard.render import forms as signing
from compilewatch.dashboard.text.foreign_text import escaped
from compilewatch.dashboard.write import sign_offs
from compilewatch.db.judge.results import Comparison
from compilewatch.db.queries.people.sign_offs import sign_offs as read_sign_offs
from compilewatch.db.records.people.sign_offs import Decision, SignOff

PAGE = "sign-off"
_WORDS = {Decision.ACCEPTED: "✓ Accept this upgrade", Decision.REJECTED: "✗ Reject it"}


def draw(link: Link, comparison: Comparison, data_version: int) -> None:
    """`link` names machine, base and head."""
    if link.machine is None or link.base is None or link.head is None:
        return
    signing.tell(PAGE)
    known = read_sign_offs(reader(), link.machine, link.base, link.head)
    decided = sign_offs.in_force(known)
    editor = person_here().may(Role.EDITOR)
    with st.container(border=True):
        with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
            st.markdown("### Sign-off", width="content")
            if editor:
                with st.container(horizontal=True, width="content"):
                    _form(link, comparison, data_version)
                    if decided is not None:
                        _withdraw(decided)
        _decision(decided, data_version)
        _past([each for each in known if each is not decided])


def _decision(decided: SignOff | None, data_version: int) -> None:
    if decided is None:
        elements.note(NOT_SIGNED)
        return
    st.markdown(f"**{escaped(sign_offs.sentence(decided))}**")
    if decided.note:
        _note(decided.note)
    elements.note(f"The judge said then: {decided.verdict}")
    if decided.data_version != data_version:
        elements.note(f"The data is now at version {data_version}: look whether the decision still holds.")


def _note(note: str) -> None:
    """A long one folded."""
    short = sign_offs.shortened(note)
    st.text(short)
    if short == note:
        return
    with st.expander("The whole note", icon=":material/notes:"):
        st.text(note)


def _past(others: Sequence[SignOff]) -> None:
    for each in reversed(others):
        elements.note(sign_offs.past(each))


def _form(link: Link, comparison: Comparison, data_version: int) -> None:
    with st.popover("Sign off", icon=":material/signature:", key="sign-off"), st.form("sign", border=False):
        st.radio("Decision", list(Decision), format_func=_WORDS.__getitem__, key="sign-decision")
        signing.name_field("sign-name")
        st.text_area("Note", max_chars=sign_offs.LONGEST_NOTE, key="sign-note", height=90)
        verdict = f"{comparison.verdict.value}: {comparison.sentences[0]}"
        st.form_submit_button("Record it", type="primary", on_click=_sign, args=(link, verdict, data_version))


def _sign(link: Link, verdict: str, data_version: int) -> None:
    state = st.session_state

    def act(by: str) -> str:
        return sign_offs.sign(
            machine_id=str(link.machine),
            base=str(link.base),
            head=str(link.head),
            decision=state["sign-decision"],
            note=str(state["sign-note"]),
            by=by,
            verdict=verdict,
            data_version=data_version,
        )

    signing.act(PAGE, "sign-name", act)


def _withdraw(decided: SignOff) -> None:
    with st.popover("Withdraw", icon=":material/undo:", key="withdraw"):
        st.markdown("The decision stays readable, and no longer counts.")
        signing.name_field("withdraw-name")
        st.button(
            "Withdraw it",
            type="primary",
            key="withdraw-yes",
            on_click=signing.act,
            args=(PAGE, "withdraw-name", lambda by: sign_offs.withdraw(decided.sign_off_id, by=by)),
        )
