"""Reports: everything that was frozen, by whom and of what; open, take along, revoke."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import pandas as pd
import streamlit as st

from dashboard.links.links import Link
from dashboard.login.access import Role, person_here, require
from dashboard.pages.reports.share import base_url
from dashboard.read.database import database_url, reader
from dashboard.render import controls, elements
from dashboard.render import forms as signing
from dashboard.render.foreign_text import escaped
from dashboard.render.shell import View
from dashboard.reports import svg
from dashboard.reports.content import Chart, Content, content_of
from dashboard.reports.page import render
from db.engine.session import open_database
from db.metrics.groups import row_dicts
from db.queries.reports import find_report, report_subjects, reports_frame
from db.records.reports import KEEP_DAYS_VARIABLE, Report
from db.store.reports import revoke_report
from db.wording import units

# Frozen reports as rows of a table.


def report_rows(reports: pd.DataFrame, subjects: Mapping[str, str]) -> pd.DataFrame:
    """One row per report, in the order given. `subjects`: report id -> what it shows."""
    return pd.DataFrame(
        [
            {
                "title": row["title"],
                "state": _state_words(row),
                "subject": subjects.get(row["report_id"], units.MISSING),
                "created_at": row["created_at"],
                "created_by": row["created_by"],
                "data_version": row["data_version"],
                "report_id": row["report_id"],
            }
            for row in row_dicts(reports)
        ]
    )


def _state_words(row: Mapping[str, object]) -> str:
    """Whether it is there, and who took it away when."""
    if pd.isna(row["revoked_at"]):  # type: ignore[call-overload]
        return "● there"
    return f"∅ revoked {units.moment(row['revoked_at'])} by {row['revoked_by']}"  # type: ignore[arg-type]


_TABLE = "reports-table"


def draw(view: View) -> Link:
    """The list and the chosen report; the link it returns names none where there is no such report."""
    signing.tell("reports")
    database = reader()
    rows = report_rows(reports_frame(database), report_subjects(database))
    _kept()
    if rows.empty:
        elements.nothing_to_show(
            "No report yet.",
            next_step="Open a page, then Share and Freeze.",
        )
        return view.link
    _table(rows)
    if view.link.report is None:
        elements.note("Choose a row to open, download or revoke its report.")
        return view.link
    report = find_report(database, view.link.report)
    if report is None:
        elements.note(f"There is no report {view.link.report} in this database.")
        return replace(view.link, report=None)
    _one(view, report)
    return view.link


def _kept() -> None:
    days = os.environ.get(KEEP_DAYS_VARIABLE)
    if days:
        elements.note(f"After {units.plural(int(days), 'day')} the content of a report is deleted.")


def _table(rows: pd.DataFrame) -> None:
    elements.table(
        rows,
        {
            "title": st.column_config.TextColumn("Report", pinned=True, width=300),
            "state": "State",
            "created_by": "Frozen by",
            "created_at": elements.moment_column("Frozen (UTC)"),
            "subject": st.column_config.TextColumn("What it shows", width="medium"),
            "data_version": st.column_config.NumberColumn("Data version"),
        },
        key=_TABLE,
        alt="Every frozen report with its state, who froze it when, and what it shows",
        on_select=_choose,
        values=list(rows["report_id"]),
    )


def _choose() -> None:
    controls.change(report=elements.picked_value(_TABLE))


def _one(view: View, report: Report) -> None:
    with st.container(border=True):
        elements.finding(
            report.title,
            f"Frozen {units.moment(report.created_at)} by {report.created_by} "
            f"at data version {report.data_version}.",
        )
        address = f"{base_url(view.link.page)}/report/{report.report_id}"
        st.code(address, language=None, wrap_lines=True)
        if report.content is None:
            elements.note(
                f"Revoked {units.moment(report.revoked_at)} by {report.revoked_by}: its page says that it "
                "is gone, and its content is deleted."
            )
            return
        content = content_of(report.content)
        elements.note(content.subject)
        with st.container(horizontal=True):
            st.link_button("Open", address, icon=":material/open_in_new:")
            st.download_button(
                "HTML file",
                lambda: render(content),
                file_name=f"compilewatch-report-{report.report_id[:8]}.html",
                mime="text/html",
                icon=":material/download:",
                on_click="ignore",
                help="One file that opens offline and prints well.",
            )
            _revoke(report)
        _charts(report, content)


def _charts(report: Report, content: Content) -> None:
    """Each chart of the report as a picture, drawn when its button is pressed."""
    charts = [section for section in content.sections if isinstance(section, Chart)]
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
            type="primary",
            on_click=signing.act,
            args=("reports", "revoke-name", lambda by: _revoked(report.report_id, by)),
            key="revoke-yes",
        )


def _revoked(report_id: str, by: str) -> str:
    require(Role.EDITOR)
    with open_database(database_url()) as database:
        report = revoke_report(database, report_id, at=datetime.now(UTC), by=by)
    return f"Revoked by {report.revoked_by}: {report.title}"
