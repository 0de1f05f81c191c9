"""What the page Reports says: everything that was frozen, by whom and of what, and the one that is chosen."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from compilewatch.dashboard.document.content import content_of
from compilewatch.dashboard.links.links import Link
from compilewatch.dashboard.parts import parts
from compilewatch.dashboard.parts.parts import (
    Empty,
    Lines,
    PageContent,
    PageHeadline,
    Part,
    Table,
    TableColumn,
    notes,
)
from compilewatch.dashboard.read.database import reader
from compilewatch.db import units
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.records.people import KEEP_DAYS_VARIABLE, Report
from compilewatch.db.service.reports import REPORTS, report_subjects, reports_frame

LIST, CHOSEN = "reports-table", "report"
_COLUMNS = {
    "title": TableColumn("Report", pinned=True, wide=True),
    **parts.texts({"state": "State", "created_by": "Frozen by"}),
    "created_at": TableColumn("Frozen (UTC)", kind="moment"),
    "subject": TableColumn("What it shows"),
    "data_version": TableColumn("Data version", kind="number"),
}


def page(link: Link) -> PageContent:
    """Every report, and that of `link`; the link of what is returned names none where it is not there.

    Not cached: a report is no new data.
    """
    database = reader()
    rows = report_rows(reports_frame(database), report_subjects(database))
    if rows.empty:
        return PageContent(
            (Empty("No report yet.", "Open a page, then Share and Freeze."), *_deleted()), link
        )
    revoked = int(rows["state"].str.startswith(_REVOKED).sum())
    headline = f"{units.plural(len(rows), 'report')}, {units.count(revoked)} revoked"
    alt = "Every frozen report with its state, who froze it when, and what it shows"
    shown = (PageHeadline(headline), *_deleted(), Table(LIST, alt, rows, _COLUMNS))
    report = REPORTS.get(database, link.report) if link.report else None
    if report is not None:
        return PageContent((*shown, _chosen(report)), link)
    problem = f"There is no report {link.report} in this database." if link.report else ""
    return PageContent((*shown, *notes([problem])), replace(link, report=None))


def _deleted() -> tuple[Part, ...]:
    """After how long contents are deleted, where that is configured."""
    days = os.environ.get(KEEP_DAYS_VARIABLE)
    return notes(
        [f"After {units.plural(int(days), 'day')} the content of a report is deleted."] if days else []
    )


def _chosen(report: Report) -> Lines:
    lines = [
        f"Frozen {units.moment(report.created_at)} by {report.created_by} "
        f"at data version {report.data_version}.",
    ]
    if report.content is not None:
        lines.append(content_of(report.content).subject)
    else:
        lines.append(
            f"Revoked {units.moment(report.revoked_at)} by {report.revoked_by}: its page says that it is "
            "gone, and its content is deleted."
        )
    return Lines(tuple(lines), report.title, key=CHOSEN)


_REVOKED = "∅ revoked"


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
    return f"{_REVOKED} {units.moment(row['revoked_at'])} by {row['revoked_by']}"  # type: ignore[arg-type]
