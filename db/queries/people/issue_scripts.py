"""Scripts for issues, as they were last made."""

from __future__ import annotations

from sqlalchemy import select

from compilewatch.db.engine.session import Database
from compilewatch.db.queries.selection import read_records
from compilewatch.db.records.people.issues import IssueScript
from compilewatch.db.tables.trials import ISSUE_SCRIPT


def issue_script(db: Database, issue_id: str) -> IssueScript | None:
    """The script of a case between two builds; None where none was made."""
    found = read_records(db, IssueScript, select(ISSUE_SCRIPT).where(ISSUE_SCRIPT.c.issue_id == issue_id))
    return found[0] if found else None
