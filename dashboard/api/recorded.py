"""What was found and what was frozen: recorded regressions with their triage, and reports.

A report's id is all that its page asks for, so no answer here tells one: a row of the list is named by `key`,
a digest from which the id cannot be had, and only who has the id already reads the report.
"""

from __future__ import annotations

import hashlib
from functools import partial
from typing import Annotated, Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field

from compilewatch.dashboard.api.queries import Values
from compilewatch.dashboard.api.representation import Answer
from compilewatch.dashboard.api.stored import Listing
from compilewatch.dashboard.document.content import content_of
from compilewatch.dashboard.http.errors import GoneError
from compilewatch.dashboard.read.in_force import in_force
from compilewatch.db import units
from compilewatch.db.engine.session import Database
from compilewatch.db.errors import NotFoundError, one_line
from compilewatch.db.judge.compare.recorded_regressions import Regression, TriageEvent
from compilewatch.db.queries.causes import recorded_explanations
from compilewatch.db.records.people import TriageState
from compilewatch.db.service import reports
from compilewatch.db.service.annotations import annotations_frame
from compilewatch.db.service.regressions import (
    changes_frame,
    regression_state,
    regressions_frame,
    standing_regressions,
)
from compilewatch.db.verdicts.steps import with_later

REGRESSION_SCHEMA: Literal["compilewatch.api.regression/1"] = "compilewatch.api.regression/1"
_KEY_DIGITS = 16


def _reports(database: Database) -> pd.DataFrame:
    """One row per report, newest first, without its id."""
    frame = reports.reports_frame(database)
    keys = [_report_key(report_id) for report_id in frame.pop("report_id")]
    frame.insert(0, "key", pd.Series(keys, dtype="str"))
    return frame


def _report_key(report_id: str) -> str:
    """What a report is called where its id must not be told."""
    return hashlib.sha256(report_id.encode(errors="surrogatepass")).hexdigest()[:_KEY_DIGITS]


def _regressions(database: Database) -> pd.DataFrame:
    return regressions_frame(database, later=partial(with_later, database, policy=in_force().policy))


def _changes(database: Database) -> pd.DataFrame:
    return changes_frame(database, later=partial(with_later, database, policy=in_force().policy))


CHANGES = Listing("recorded-changes", "change_id", _changes, moment="recorded_at")
REGRESSIONS = Listing("regressions", "regression_id", _regressions, moment="recorded_at")
ANNOTATIONS = Listing("annotations", "annotation_id", annotations_frame, moment="written_at")
REPORTS = Listing("reports", "key", _reports, moment="created_at")


class RegressionAnswer(BaseModel):
    """One recorded verdict, its state, what a later build says of it, who said what about it, oldest first,
    and why the case changed, in sentences where records show it.
    """

    model_config = ConfigDict(extra="forbid", serialize_by_alias=True, populate_by_name=True)

    schema_: Annotated[Literal["compilewatch.api.regression/1"], Field(alias="schema")] = REGRESSION_SCHEMA
    state: TriageState
    now: str | None
    revised_by: str | None
    regression: Regression
    triage: tuple[TriageEvent, ...]
    explanation: tuple[str, ...]


def regression(database: Database, values: Values) -> Answer:
    """One regression by its whole id; as CSV what was said about it."""
    wanted = values["regression"]
    state = regression_state(database, wanted)
    if state.regression.regression_id != wanted:
        raise NotFoundError(f"There is no regression {one_line(wanted)}.", "See /api/v1/regressions.")
    (explained,) = recorded_explanations(database, [state.regression])
    # Judged with all that is recorded of its base, as in lists.
    standing = with_later(database, standing_regressions(database), in_force().policy)
    found = {each.regression.regression_id: each.now for each in standing}
    answer = RegressionAnswer(
        state=state.state,
        now=found.get(wanted) or None,
        revised_by=state.revised_by,
        regression=state.regression,
        triage=state.triage,
        explanation=tuple(explained),
    )
    document = answer.model_dump(mode="json")
    return Answer(document, document["triage"], tuple(TriageEvent.model_fields))


def report(database: Database, values: Values) -> Answer:
    """What a report shows, with its numbers, to whoever has its id; as CSV the rows of its tables.

    Raises NotFoundError, GoneError once it was revoked, ReportError where a later release made it.
    """
    stored = reports.REPORTS.get(database, values["report"])
    if stored is None:
        raise NotFoundError("There is no report of this id.", "Check that the id is complete.")
    if stored.content is None:
        raise GoneError(
            f"This report was revoked on {units.moment(stored.revoked_at)} and is gone.",
            "Ask who sent it for another.",
        )
    document = content_of(stored.content).model_dump(mode="json")
    rows = [
        {"table": section["title"], "row": place, "column": column["title"], "text": text}
        for section in document["sections"]
        if section["kind"] == "table"
        for place, texts in enumerate(section["rows"])
        for column, text in zip(section["columns"], texts, strict=True)
    ]
    return Answer(document, rows, ("table", "row", "column", "text"))
