"""What readers decide about an upgrade: writing it, taking it back, and saying which one is in force."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from ulid import ULID

from compilewatch.dashboard.login.access import Role, require
from compilewatch.dashboard.read.database import database_url
from compilewatch.db import units
from compilewatch.db.engine.session import open_database
from compilewatch.db.records.people.sign_offs import Decision, SignOff
from compilewatch.db.store.people.sign_offs import save_sign_off, withdraw_sign_off

MARKS = {Decision.ACCEPTED: "✓", Decision.REJECTED: "✗"}
LONGEST_NOTE = 2_000
_SHORT_NOTE, _SHORT_NOTE_LINES = 500, 6


def in_force(sign_offs: Sequence[SignOff]) -> SignOff | None:
    """The newest decision that nobody withdrew. `sign_offs` come oldest first."""
    return next((each for each in reversed(sign_offs) if each.withdrawn_at is None), None)


def sentence(sign_off: SignOff) -> str:
    """Who decided what when, and on which data."""
    return (
        f"{MARKS[sign_off.decision]} {sign_off.decision.value} by {sign_off.author} on "
        f"{units.moment(sign_off.at)}, at data version {sign_off.data_version}."
    )


def shortened(note: str) -> str:
    """The beginning of a long note, a short one as it is: what stands below must not be out of reach."""
    lines = note.splitlines()
    if len(note) <= _SHORT_NOTE and len(lines) <= _SHORT_NOTE_LINES:
        return note
    return f"{chr(10).join(lines[:_SHORT_NOTE_LINES])[:_SHORT_NOTE].rstrip()} …"


def past(sign_off: SignOff) -> str:
    """A decision that is no longer in force, and who took it back if anybody did."""
    if not sign_off.withdrawn_at:
        return f"{sentence(sign_off)} Replaced."
    when = units.moment(sign_off.withdrawn_at)
    return f"{sentence(sign_off)} Withdrawn by {sign_off.withdrawn_by} on {when}."


def sign(
    *,
    machine_id: str,
    base: str,
    head: str,
    decision: Decision,
    note: str,
    by: str,
    verdict: str,
    data_version: int,
) -> str:
    """Store a decision for every reader: a sentence on it. Raises CompilewatchError."""
    require(Role.EDITOR)
    decided = SignOff(
        sign_off_id=str(ULID()),
        machine_id=machine_id,
        base_build_id=base,
        head_build_id=head,
        decision=decision,
        author=by,
        at=datetime.now(UTC),
        note=note.strip()[:LONGEST_NOTE] or None,
        verdict=verdict,
        data_version=data_version,
    )
    with open_database(database_url()) as database:
        save_sign_off(database, decided)
    return f"Recorded: {decision.value} by {by}. Every reader sees it."


def withdraw(sign_off_id: str, *, by: str) -> str:
    """Take a decision back: a sentence on it. Raises CompilewatchError."""
    require(Role.EDITOR)
    with open_database(database_url()) as database:
        is_withdrawn = withdraw_sign_off(database, sign_off_id, by=by, at=datetime.now(UTC))
    return f"Withdrawn by {by}." if is_withdrawn else "It was withdrawn already."
