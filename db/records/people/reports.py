"""Frozen reports: a page with its content, under an id that nobody can guess."""

from __future__ import annotations

import secrets
from typing import Any

from compilewatch.db.records.fields import Closed, UtcDatetime

ID_BYTES = 16
"""128 random bits: enough that no id is ever found by trying."""
KEEP_DAYS_VARIABLE = "COMPILEWATCH_REPORT__KEEP_DAYS"
"""The variable of the environment that says, as the configuration does, how long reports are kept."""
BY_RETENTION = "retention"
"""Who revoked a report that was kept as long as the configuration says."""


class Report(Closed):
    """A report as it is stored. `content` is everything that its page shows; a revoked one has none."""

    report_id: str
    title: str
    created_at: UtcDatetime
    created_by: str
    data_version: int
    revoked_at: UtcDatetime | None = None
    revoked_by: str | None = None
    content: dict[str, Any] | None


def new_report_id() -> str:
    """A fresh id of 32 characters, which fits an address and a command line as it is."""
    return secrets.token_hex(ID_BYTES)
