"""What was measured, found and frozen, page by page: machines, builds, workloads, runs, trials, series,
regressions and reports."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field

from compilewatch.dashboard.api.queries import Values, filters_in
from compilewatch.dashboard.api.representation import Answer, object_schema, row_schema
from compilewatch.dashboard.document.content import content_of
from compilewatch.dashboard.http.errors import GoneError
from compilewatch.dashboard.links.values import JsonSchema
from compilewatch.dashboard.read.database import in_force
from compilewatch.db import units
from compilewatch.db.cells import rows_of
from compilewatch.db.columns.metrics import POINT_COLUMNS
from compilewatch.db.engine.session import Database
from compilewatch.db.errors import NotFoundError, one_line
from compilewatch.db.judge.compare.recorded_regressions import Regression, TriageEvent
from compilewatch.db.metrics.frames import empty_frame
from compilewatch.db.queries import facets
from compilewatch.db.queries.causes import recorded_explanations
from compilewatch.db.queries.facets import series_frame
from compilewatch.db.queries.history_points import points_by_build, points_by_run
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.stored_cases import LISTED_COLUMNS
from compilewatch.db.queries.trials import trial_record, trials_page
from compilewatch.db.records.people import TriageState
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import CONTROL_TIMES, DEVICE_TIMES
from compilewatch.db.service import reports
from compilewatch.db.service.annotations import annotations_frame
from compilewatch.db.service.regressions import (
    changes_frame,
    regression_state,
    regressions_frame,
    standing_regressions,
)
from compilewatch.db.verdicts.case_rows import listed_cases
from compilewatch.db.verdicts.case_view import LISTED, Cell, case_view
from compilewatch.db.verdicts.steps import with_later

POINTS_SCHEMA = "compilewatch.api.points/1"
_ARRAYS = (
    *("warmup_ns", "samples_ns", "control_warmup_ns", "control_samples_ns"),
    *(*DEVICE_TIMES, *CONTROL_TIMES),
)


@dataclass(frozen=True)
class Listing:
    """A route that pages through a frame which fits in memory.

    `key` is its column of unique ids, `moment` the one that `since` and `until` bound.
    """

    name: str
    key: str
    read: Callable[[Database], pd.DataFrame]
    moment: str = "started_at"

    def answer(self, database: Database, values: Values) -> Answer:
        """A page of the rows that `values` let through. Raises NotFoundError for a cursor that is no row."""
        frame = _selected(self.read(database), values, self.moment)
        return _page(self.name, _following(frame, self.key, values), self.key, values["limit"])

    def schema(self, database: Database) -> JsonSchema:
        """The JSON Schema of such a page."""
        return page_schema(self.name, row_schema(self.read(database)))


def page_schema(name: str, row: JsonSchema) -> JsonSchema:
    """The JSON Schema of one page of the listing `name`, whose rows are as `row` says."""
    return object_schema(
        {
            "schema": {"const": _schema_name(name)},
            "rows": {"type": "array", "items": row},
            "next": {"type": ["string", "null"], "description": "The cursor of the next page."},
        }
    )


def trials(database: Database, values: Values) -> Answer:
    """One row per trial, oldest first."""
    limit = values["limit"]
    frame = trials_page(database, filters_in(values), after=values["cursor"], limit=limit + 1)
    return _page("trials", frame, "trial_id", limit)


def trials_schema(database: Database) -> JsonSchema:
    return page_schema("trials", row_schema(trials_page(database, Filters(runs=("",)), after=None, limit=1)))


def cases(database: Database, values: Values) -> Answer:
    """One row per case of a build that the filters let through."""
    limit = values["limit"]
    listed = listed_cases(database, filters_in(values), after=values["cursor"], limit=limit + 1)
    rows = [{"case_id": case["case_id"], **case_view(case, LISTED)} for case in listed]
    return _page_of("cases", rows, ("case_id", *(each.name for each in LISTED)), "case_id", limit)


def cases_schema(_: Database) -> JsonSchema:
    columns = row_schema(empty_frame(LISTED_COLUMNS))["properties"]
    others = {each.name: _schema_of(each) for each in LISTED if each.name not in columns}
    return page_schema("cases", object_schema(columns | others))


def _schema_of(cell: Cell) -> JsonSchema:
    """Of a cell that is no column of a case."""
    if cell.name == "notes":
        return {"type": "array", "items": {"type": "string"}}
    if cell.ends:
        return {"type": ["array", "null"], "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
    return {"type": ["number" if cell.right else "string", "null"]}


def trial(database: Database, values: Values) -> Answer:
    """One whole trial as it was recorded; as CSV its samples, one per line."""
    record = trial_record(database, one_line(values["trial"]))
    document = record.to_document()
    rows = [
        {"kind": kind, "position": position, "value_ns": value}
        for kind in _ARRAYS
        for position, value in enumerate(document.get(kind, ()))
    ]
    return Answer(document, rows, ("kind", "position", "value_ns"))


def series(database: Database, values: Values) -> Answer:
    """One row per series that the filters let through."""
    frame = series_frame(database, filters_in(values))
    return _page("series", _following(frame, "series_id", values), "series_id", values["limit"])


def series_row_schema(database: Database) -> JsonSchema:
    return row_schema(series_frame(database, Filters(machines=("",))))


def points(database: Database, values: Values) -> Answer:
    """The history of one series, a point per run or per build, oldest first."""
    known = series_frame(database)
    wanted = known[known["series_id"] == values["series"]]
    if wanted.empty:
        raise NotFoundError(f"There is no series {one_line(values['series'])}.", "See /api/v1/series.")
    (row,) = rows_of(wanted)
    # Without a control of its own a case is set against the eager trials of its run. A name can stand for
    # several sizes of a workload or variants of a strategy: the id decides.
    filters = Filters(
        machines=(row["machine_id"],),
        workloads=(row["workload"],),
        strategies=(row["strategy"], EAGER.name),
        since=values["since"],
        until=values["until"],
    )
    of_series = (points_by_run if values["by"] == "run" else points_by_build)(database, filters)
    of_series = of_series[of_series["series_id"] == values["series"]]
    rows = rows_of(of_series)
    document = {
        "schema": POINTS_SCHEMA,
        "series": row,
        "by": values["by"],
        "trials_of": values["by"],
        "rows": rows,
    }
    return Answer(document, rows, list(of_series.columns))


def points_schema(database: Database) -> JsonSchema:
    return object_schema(
        {
            "schema": {"const": POINTS_SCHEMA},
            "series": series_row_schema(database),
            "by": {"enum": ["run", "build"]},
            "trials_of": {"enum": ["run", "build"], "description": "Of what a point says all trials."},
            "rows": {"type": "array", "items": row_schema(empty_frame(POINT_COLUMNS))},
        }
    )


LISTINGS = (
    Listing("machines", "machine_id", facets.machines),
    Listing("builds", "build_id", facets.builds),
    Listing("workloads", "workload_id", facets.workloads),
    Listing("runs", "run_id", facets.runs_with_contents),
)
# Which column of a listing a parameter restricts.
_RESTRICTS = {
    "machine": "machine_id",
    "build": "build_id",
    "workload": "workload",
    "strategy": "strategy",
    "task": "task",
    "suite": "suite",
    "run": "run_id",
    "state": "state",
}


def _selected(frame: pd.DataFrame, values: Values, moment: str) -> pd.DataFrame:
    for name, column in _RESTRICTS.items():
        if values.get(name):
            frame = frame[frame[column].isin(values[name])]
    if values.get("since") is not None:
        frame = frame[frame[moment] >= values["since"]]
    if values.get("until") is not None:
        frame = frame[frame[moment] <= values["until"]]
    return frame


def _following(frame: pd.DataFrame, key: str, values: Values) -> pd.DataFrame:
    """The rows after the one that the cursor names."""
    cursor = values["cursor"]
    if cursor is None:
        return frame
    places = frame.index.get_indexer_for(frame.index[frame[key] == cursor])
    if len(places) == 0:
        raise NotFoundError(f"There is no row {one_line(cursor)} here.", "Begin again at the first page.")
    return frame.iloc[places[0] + 1 :]


def _page(name: str, frame: pd.DataFrame, key: str, limit: int) -> Answer:
    return _page_of(name, rows_of(frame.head(limit + 1)), list(frame.columns), key, limit)


def _page_of(
    name: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str], key: str, limit: int
) -> Answer:
    """The first `limit` of `rows`; where there are more, the last one's id is the next cursor."""
    shown = rows[:limit]
    following = str(shown[-1][key]) if len(rows) > limit else None
    document = {"schema": _schema_name(name), "rows": shown, "next": following}
    return Answer(document, shown, columns, following)


def _schema_name(name: str) -> str:
    return f"compilewatch.api.{name}/1"


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
