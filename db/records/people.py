"""What people say of a regression, and how a message about one stands."""

from __future__ import annotations

import base64
import hashlib
import secrets
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from compilewatch.db.records.fields import Closed, Finite, Flag, Identifier, Name, Record, Text, UtcDatetime
from compilewatch.db.records.ids import identity

BY_THE_JUDGE = "compilewatch"
"""The author of triage events that no person made."""


class TriageState(StrEnum):
    """What people said of a regression last; `new` where nobody did, `confirmed` by fresh trials."""

    NEW = "new"
    CONFIRMED = "confirmed"
    ACKNOWLEDGED = "acknowledged"
    EXPECTED = "expected"
    FIXED = "fixed"
    FALSE_ALARM = "false alarm"


ACCEPTED = (TriageState.EXPECTED, TriageState.FALSE_ALARM)
"""States in which a regression no longer fails a gate."""


OPEN_STATES = (TriageState.NEW, TriageState.CONFIRMED, TriageState.ACKNOWLEDGED)
"""States that somebody still has to do something about."""


class NotificationState(StrEnum):
    """`unknown`: the message may have arrived, so it is never sent again."""

    QUEUED = "queued"
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"
    UNKNOWN = "unknown"


LONGEST_TEXT = 200


class Annotation(Record):
    """A note on the axis of time, of one machine and workload or of all. `url` can only lead to the web."""

    annotation_id: Identifier
    text: Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT)]
    url: Annotated[str, Field(max_length=2000, pattern=r"^https?://[^\s\x00-\x1f]+$")] | None = None
    author: Name
    written_at: UtcDatetime
    happened_at: UtcDatetime | None = None
    """The moment it is about; null where it is about a build."""
    build_id: str | None = None
    """The build it is about; null where it is about a moment."""
    machine_id: str | None = None
    """The machine it is about; null for all."""
    workload: Name | None = None
    """The workload it is about, by name, whatever its version; null for all."""

    @model_validator(mode="after")
    def _about_one_thing(self) -> Self:
        if (self.happened_at is None) == (self.build_id is None):
            raise ValueError("an annotation is about a moment or about a build")
        return self


_Script = Annotated[str, Field(max_length=65_536)]


class ScriptRun(Record):
    """One run of the script under a build. Times in nanoseconds."""

    build_id: Name
    """Whose release of torch it was."""
    torch: Name
    """That release."""
    eager_ns: Finite | None = None
    """Median of eager; null where it did not end well."""
    compiled_ns: Finite | None = None
    """Median of the compiled side; null where it did not end well."""
    problem: Text | None = None
    """Why there are no times: not installed on that host, or how the script failed."""


class IssueScript(Record):
    """The script of one case between two builds. It is shown, never run: whoever runs it makes it anew."""

    issue_id: Name
    made_at: UtcDatetime
    script: _Script | None = None
    """The script; null where none can be made or its code is private."""
    is_private: Flag = False
    """Whether it ran and is kept to its host."""
    problem: Text | None = None
    """Why there is none."""
    runs: list[ScriptRun] = Field(default=[])
    """The base first."""


def issue_id_of(
    machine_id: str, workload_id: str, strategy_id: str, base_build_id: str | None, head_build_id: str
) -> str:
    """The id of a case between two builds on a machine; without a base of the head alone."""
    return identity(
        {
            "machine": machine_id,
            "workload": workload_id,
            "strategy": strategy_id,
            "base": base_build_id,
            "head": head_build_id,
        }
    )


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


ID_LENGTH = 12
LONGEST_LINK = 60_000


class StoredView(Record):
    """A link of the dashboard. Its id follows from `link`, so that the same view is stored once."""

    view_id: str
    link: str
    stored_at: UtcDatetime
    stored_by: str | None


def view_id_of(link: str) -> str:
    """The id of `link`: 60 bits of its SHA-256 in lower-case letters and digits, so one view has one id."""
    digest = hashlib.sha256(link.encode()).digest()
    return base64.b32encode(digest).decode().lower()[:ID_LENGTH]
