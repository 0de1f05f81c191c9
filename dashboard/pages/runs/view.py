"""Runs: what is measured now and what comes next, the machines, and every run."""

from __future__ import annotations

from functools import partial

import streamlit as st

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.pages.runs import content, fleet, forms, upload
from compilewatch.dashboard.read.database import reader
from compilewatch.dashboard.render import controls, elements, streamlit_parts
from compilewatch.dashboard.render import forms as telling
from compilewatch.dashboard.render.shell import View
from compilewatch.dashboard.render.streamlit_parts import Pick
from compilewatch.db.service.fleet import launches
from compilewatch.db.service.hosts import HOSTS
from compilewatch.db.service.schedules import SCHEDULES


def draw(view: View) -> Link:
    """The page; machine and suite of the link choose among the runs alone."""
    elements.draw()
    telling.tell(forms.PAGE)
    telling.tell(upload.PAGE)
    page = content.page(view.link)
    operator = forms.may_operate()
    hint = "Choose a schedule to run it now, to pause or to resume it." if operator else ""
    streamlit_parts.draw(
        page.parts,
        picks={
            content.QUEUE: Pick("rerun", values="request_id"),
            content.SCHEDULES: Pick("rerun", hint, "name"),
            fleet.LAUNCHES: Pick("rerun", "Choose a row for its whole output.", "launch_id"),
            content.RUNS: Pick(
                lambda opens: controls.go(Page.TRIAL, run=opens[0], machine=opens[1]),
                "Choose a row for its trials.",
                "opens",
            ),
        },
        below={
            content.NOW: partial(_doors, view),
            content.QUEUE: _about_request,
            content.SCHEDULES: _about_schedule,
            fleet.LAUNCHES: _whole_output,
        },
    )
    return page.link


def _doors(view: View) -> None:
    """What whoever may brings in: a run to be measured, or results."""
    with st.container(horizontal=True):
        if forms.may_operate():
            forms.ask_for_run(view, HOSTS.all(reader()))
        upload.draw()


def _about_request() -> None:
    chosen = elements.picked_value(content.QUEUE)
    for request in content.listed_requests()[0]:
        if request.request_id == chosen:
            forms.about_request(request)


def _about_schedule() -> None:
    chosen = elements.picked_value(content.SCHEDULES)
    for schedule in SCHEDULES.all(reader()):
        if schedule.name == chosen:
            forms.about_schedule(schedule)


def _whole_output() -> None:
    chosen = elements.picked_value(fleet.LAUNCHES)
    streamlit_parts.draw(fleet.output_of(each) for each in launches(reader()) if each.launch_id == chosen)
