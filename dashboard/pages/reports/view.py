"""Reports: everything that was frozen, by whom and of what; open, take along, revoke."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

import streamlit as st

from compilewatch.dashboard.document import svg
from compilewatch.dashboard.document.content import Chart, Content, content_of
from compilewatch.dashboard.document.page import render
from compilewatch.dashboard.links.links import Link
from compilewatch.dashboard.login.access import Role, person_here, require
from compilewatch.dashboard.pages.reports import content
from compilewatch.dashboard.read.database import database_url, reader
from compilewatch.dashboard.render import controls, streamlit_parts
from compilewatch.dashboard.render import forms as signing
from compilewatch.dashboard.render.shell import View, base_url
from compilewatch.dashboard.render.streamlit_parts import Pick
from compilewatch.dashboard.text.foreign_text import escaped
from compilewatch.db.engine.session import open_database
from compilewatch.db.records.people import Report
from compilewatch.db.service.reports import REPORTS, revoke_report


def draw(view: View) -> Link:
    """The list and the chosen report; the link it returns names none where there is no such report."""
    signing.tell("reports")
    page = content.page(view.link)
    hint = "" if view.link.report else "Choose a row to open, download or revoke its report."
    streamlit_parts.draw(
        page.parts,
        picks={
            content.LIST: Pick(lambda report: controls.change(report=report), hint, "report_id", clears=True)
        },
        below={content.CHOSEN: lambda: _actions(page.link)},
    )
    return page.link


def _actions(link: Link) -> None:
    """What can be done with the chosen report."""
    report = REPORTS.get(reader(), str(link.report))
    if report is None:
        return
    address = f"{base_url(link.page)}/report/{report.report_id}"
    st.code(address, language=None, wrap_lines=True)
    if report.content is None:
        return
    frozen = content_of(report.content)
    with st.container(horizontal=True):
        st.link_button("Open", address, icon=":material/open_in_new:")
        st.download_button(
            "HTML file",
            lambda: render(frozen),
            file_name=f"compilewatch-report-{report.report_id[:8]}.html",
            mime="text/html",
            icon=":material/download:",
            on_click="ignore",
            help="One file that opens offline and prints well.",
        )
        _revoke(report)
    _charts(report, frozen)


def _charts(report: Report, frozen: Content) -> None:
    """Each chart of the report as a picture, drawn when its button is pressed."""
    charts = [section for section in frozen.sections if isinstance(section, Chart)]
    for number, chart in enumerate(charts):
        name = f"compilewatch-report-{report.report_id[:8]}-chart-{number + 1}"
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(escaped(chart.title), width="content")
            for title, suffix, mime, make in (
                ("PNG", "png", "image/png", svg.as_png),
                ("PDF", "pdf", "application/pdf", svg.as_pdf),
            ):
                st.download_button(
                    title,
                    partial(_picture, make, chart),
                    file_name=f"{name}.{suffix}",
                    mime=mime,
                    icon=":material/download:",
                    on_click="ignore",
                    key=f"{name}-{suffix}",
                )


def _picture(make: Callable[[str], bytes], chart: Chart) -> bytes:
    return make(svg.let_through(chart.svg, number=0))


def _revoke(report: Report) -> None:
    if not person_here().may(Role.EDITOR):
        return
    with st.popover("Revoke", icon=":material/delete:", key="revoke"):
        st.markdown(
            "Revoking deletes the content for good, for every reader. "
            "That there was a report, and who revoked it, stays."
        )
        signing.name_field("revoke-name")
        st.button(
            "Revoke it",
            on_click=signing.act,
            args=("reports", "revoke-name", lambda by: _revoked(report.report_id, by)),
            key="revoke-yes",
        )


def _revoked(report_id: str, by: str) -> str:
    require(Role.EDITOR)
    with open_database(database_url()) as database:
        report = revoke_report(database, report_id, at=datetime.now(UTC), by=by)
    return f"Revoked by {report.revoked_by}: {report.title}"
