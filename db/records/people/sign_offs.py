"""Sign-offs: somebody's word on an upgrade, kept with what the judge said at that moment."""

from __future__ import annotations

from enum import StrEnum

from compilewatch.db.records.fields import Name, Record, Text, UtcDatetime


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
