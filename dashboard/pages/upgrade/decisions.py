"""What people decided about an upgrade."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from compilewatch.dashboard.parts.parts import Lines, Part
from compilewatch.dashboard.write import sign_offs
from compilewatch.db.records.people.sign_offs import SignOff

LONGEST_LINE = 300
"""As much of one text as a report shows."""
NOT_SIGNED = "Nobody has signed this upgrade off yet."


def decision_parts(known: Sequence[SignOff] | None) -> tuple[Part, ...]:
    """What is decided, and what was decided before: a long note in short, and whole at the end. `known`
    oldest first, None where nobody decides.
    """
    if known is None:
        return ()
    decided = sign_offs.in_force(known)
    lines = [NOT_SIGNED]
    if decided is not None:
        note = decided.note or ""
        short = sign_offs.shortened(note)
        lines = [sign_offs.sentence(decided), *_paragraphs(short)]
        lines += ["The whole note stands at the end of this report."] if short != note else []
        lines.append(f"The judge said then: {decided.verdict}")
    lines += [sign_offs.past(each) for each in reversed(known) if each is not decided]
    return (Lines(tuple(lines), "Sign-off", key="sign-off"),)


def whole_note(known: Sequence[SignOff] | None) -> tuple[Part, ...]:
    """The note of the decision in force, where `decision_parts` has it in short."""
    decided = sign_offs.in_force(known or ())
    note = (decided.note if decided else None) or ""
    if sign_offs.shortened(note) == note:
        return ()
    return (Lines(tuple(_paragraphs(note)), "The whole note of the sign-off"),)


def _paragraphs(note: str) -> list[str]:
    return [part for line in note.splitlines() for part in textwrap.wrap(line, LONGEST_LINE)]
