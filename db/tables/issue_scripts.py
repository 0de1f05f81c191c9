"""The table of scripts for issues: what a host made and ran."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Table
from sqlmodel import Field

from db.tables.metadata import METADATA, Row


class IssueScriptRow(Row, table=True):
    """The newest script of one case between two builds; `runs` as `db.records.people.issues.ScriptRun`."""

    issue_id: str = Field(primary_key=True)
    made_at: datetime
    script: str | None
    is_private: bool
    problem: str | None
    runs: list[Any] = Field(sa_type=JSON)


ISSUE_SCRIPT: Table = METADATA.tables["issue_script"]
