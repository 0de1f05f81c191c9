"""The decisions on an upgrade as the parts of a report: a long note in short, and whole at its end."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from dashboard import sign_offs
from dashboard.reports.content import Lines, Section
from dashboard.reports.page import LONGEST_CELL
from db.sign_offs import SignOff


def decisions(known: Sequence[SignOff] | None) -> tuple[Section, ...]:
    """What is decided, and what was decided before. `known` oldest first, None where nobody decides."""
    if known is None:
        return ()
    decided = sign_offs.in_force(known)
    lines = ["Nobody has signed this upgrade off yet."]
    if decided is not None:
        note = decided.note or ""
        short = sign_offs.shortened(note)
        lines = [sign_offs.sentence(decided), *_paragraphs(short)]
        lines += ["The whole note stands at the end of this report."] if short != note else []
        lines.append(f"The judge said then: {decided.verdict}")
    for each in reversed(known):
        if each is not decided:
            replaced = f"{sign_offs.sentence(each)} Replaced."
            lines.append(sign_offs.withdrawal(each) if each.withdrawn_at else replaced)
    return (Lines(title="Sign-off", lines=tuple(lines)),)


def whole_note(known: Sequence[SignOff] | None) -> tuple[Section, ...]:
    """The note of the decision in force, where `decisions` has it in short."""
    decided = sign_offs.in_force(known or ())
    note = (decided.note if decided else None) or ""
    if sign_offs.shortened(note) == note:
        return ()
    return (Lines(title="The whole note of the sign-off", lines=tuple(_paragraphs(note))),)


def _paragraphs(note: str) -> list[str]:
    """Its lines, none longer than what a report shows of one text."""
    return [part for line in note.splitlines() for part in textwrap.wrap(line, LONGEST_CELL)]
