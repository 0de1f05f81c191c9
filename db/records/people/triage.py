"""What people say of a regression, and how a message about one stands."""

from __future__ import annotations

from enum import StrEnum

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
