"""Frozen reports as rows of a table."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from db import units
from db.metrics.frame_rows import row_dicts


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
