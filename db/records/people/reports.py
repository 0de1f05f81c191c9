"""Frozen reports: a page with its content, under an id that nobody can guess."""

from __future__ import annotations

import base64
import hashlib
import secrets
from enum import StrEnum
from typing import Any

from db.records.fields import Closed, Name, Record, Text, UtcDatetime

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


# Sign-offs: somebody's word on an upgrade, kept with what the judge said at that moment.


class Decision(StrEnum):
    """What somebody decided about an upgrade."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"


class SignOff(Record):
    """A decision about `head_build_id` after `base_build_id` on one machine.

    `verdict` is the judge's finding that it was made under, at `data_version`.
    """

    sign_off_id: str
    machine_id: str
    base_build_id: str
    head_build_id: str
    decision: Decision
    author: Name
    at: UtcDatetime
    note: Text | None = None
    verdict: Text
    data_version: int
    withdrawn_at: UtcDatetime | None = None
    withdrawn_by: Name | None = None


# Stored views: a link that is too long to send, under an id short enough to type.

ID_LENGTH = 12
LONGEST_LINK = 60_000


def view_id_of(link: str) -> str:
    """The id of `link`: 60 bits of its SHA-256 in lower-case letters and digits, so one view has one id."""
    digest = hashlib.sha256(link.encode()).digest()
    return base64.b32encode(digest).decode().lower()[:ID_LENGTH]
