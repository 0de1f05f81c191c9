"""Trial: everything that was measured in one process, or the list of trials to choose one from."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.pages.trial import content
from compilewatch.dashboard.parts.trials import LIST
from compilewatch.dashboard.read.data import read_trial
from compilewatch.dashboard.render import controls, streamlit_parts
from compilewatch.dashboard.render.shell import View, strategies, tab
from compilewatch.dashboard.render.streamlit_parts import Pick
from compilewatch.dashboard.text.foreign_text import escaped
from compilewatch.db.errors import NotFoundError
from compilewatch.db.records.trial import SourceKind, Status


def draw(view: View) -> Link:
    """The trial that the link names, else the list. Raises DatabaseError."""
    link = view.link
    try:
        page = content.page(link)
    except NotFoundError as error:
        st.warning(escaped(f"{error.message} Choose one below."), icon=":material/search_off:")
        link = replace(link, trial=None)
        page = content.page(link)
    if link.trial is not None:
        streamlit_parts.draw(page.parts, controls={content.BADGES: lambda: _neighbours(view)})
        return page.link
    with tab(view, page, content.models(replace(link, focus=None))) as parts:
        _filters(view)
        picked = Pick(
            lambda trial: controls.change(trial=trial), "Choose a row for all of its facts.", "trial"
        )
        streamlit_parts.draw(parts, picks={LIST: picked})
    return page.link


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


def _neighbours(view: View) -> None:
    """The way to all trials, and to those of the same case before and after this one."""
    trial = read_trial(str(view.link.trial))
    case = content.same_case(trial)
    ids = [str(key) for key in case["trial_id"]]
    place = ids.index(trial.trial_id)
    before, after = ids[:place][-1:], ids[place + 1 :][:1]
    controls.button_that_changes("All trials", ":material/arrow_back:", trial=None)
    for title, icon, there in (
        ("Previous", ":material/chevron_left:", before),
        ("Next", ":material/chevron_right:", after),
    ):
        st.button(
            title,
            icon=icon,
            disabled=not there,
            on_click=controls.change,
            kwargs={"trial": there[0] if there else None},
        )
    mine = case.iloc[place]
    for title, page, of_it in (
        ("Its workload", Page.WORKLOAD, {"build": None, "focus": mine["workload_label"]}),
        ("Its build", Page.OVERVIEW, {"build": mine["build_id"]}),
        ("Its run", Page.TRIAL, {"build": None, "run": trial.run_id}),
    ):
        controls.button_to(title, page, machine=mine["machine_id"], **of_it)
