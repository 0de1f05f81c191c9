"""What a reader of the dashboard writes: what somebody says about recorded regressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import ValidationError

from compilewatch.dashboard.login.access import Role, require
from compilewatch.dashboard.read.versions import REFRESH_THROTTLE
from compilewatch.db.engine.session import open_database
from compilewatch.db.errors import CompilewatchError
from compilewatch.db.judge.compare.recorded_regressions import TriageEvent
from compilewatch.db.records.people import TriageState
from compilewatch.db.service.recording import triage
from compilewatch.db.units import plural

LONGEST_NOTE = 2_000
LONGEST_URL = 500
_PROBLEMS = {
    "author": "The name cannot be stored: it is too long or holds control characters.",
    "note": "The note cannot be stored: it is too long or holds control characters.",
    "url": "The link must begin with https:// or http:// and hold no blanks.",
}


@dataclass(frozen=True)
class TriageDecision:
    """What somebody wants to record about some regressions, as typed."""

    regression_ids: tuple[str, ...]
    state: TriageState
    author: str
    note: str
    url: str

    @property
    def question(self) -> str:
        """What is asked before it is recorded."""
        what = plural(len(self.regression_ids), "regression")
        return f"Record {what} as {self.state.value}, by {self.author}? Every reader sees it."

    def problem(self) -> str | None:
        """Why it cannot be recorded as typed, as a sentence; None when it can."""
        if not self.regression_ids:
            return "Choose at least one regression in the table."
        if not self.author:
            return "Type your name: what is recorded says by whom."
        try:
            self.event(datetime.now(UTC))
        except ValidationError as error:
            return _PROBLEMS.get(str(error.errors()[0]["loc"][0]), "This cannot be stored as typed.")
        return None

    def event(self, at: datetime) -> TriageEvent:
        """What is written. Raises pydantic's ValidationError where it cannot be."""
        return TriageEvent(
            state=self.state, author=self.author, at=at, note=self.note or None, url=self.url or None
        )


def triage_decision(
    regression_ids: Sequence[str], state: TriageState, *, author: str, note: str, url: str
) -> TriageDecision:
    """From what was typed: blanks at the ends removed, names on one line."""
    return TriageDecision(tuple(regression_ids), state, " ".join(author.split()), note.strip(), url.strip())


def record(url: str, what: TriageDecision) -> tuple[str, bool]:
    """Write `what` into the database `url`: a sentence on what came of it, and whether all of it was written.

    What can be written is; a regression that was revised in the meantime is named.
    """
    try:
        require(Role.EDITOR)
    except CompilewatchError as error:
        return str(error), False
    event = what.event(datetime.now(UTC))
    new = 0
    problems: list[str] = []
    try:
        with open_database(url) as database:
            for regression_id in what.regression_ids:
                try:
                    new += triage(database, regression_id, event)
                except CompilewatchError as error:
                    problems.append(str(error))
    except CompilewatchError as error:
        problems.append(str(error))
    REFRESH_THROTTLE.catch_up()
    known = len(what.regression_ids) - new - len(problems)
    message = f"Recorded {plural(new, 'regression')} as {what.state.value}, by {what.author}."
    if known > 0:
        message += f" {plural(known, 'regression')} said so already."
    return " ".join([message, *problems]), not problems
