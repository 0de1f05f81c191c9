"""`compilewatch triage`: say what a regression is, for everybody who meets it later."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

import typer
from pydantic import ValidationError

from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.errors import ConfigError, printable
from compilewatch.db.judge.compare.recorded_regressions import TriageEvent
from compilewatch.db.records.people import TriageState
from compilewatch.db.service.recording import triage as store_triage
from compilewatch.db.service.regressions import RegressionState, regression_state
from compilewatch.db.units import moment
from compilewatch.runner.cli.options import (
    ConfigOption,
    DatabaseOption,
    JsonOption,
    author,
    database_of,
    settings_of,
)
from compilewatch.runner.output.documents import print_document

SCHEMA = "compilewatch.regression/1"


class TriageWord(StrEnum):
    """What a person may say; `new` and `confirmed` are the judge's."""

    ACKNOWLEDGED = "acknowledged"
    EXPECTED = "expected"
    FIXED = "fixed"
    FALSE_ALARM = "false-alarm"


def triage(
    regression: Annotated[
        str, typer.Argument(metavar="REGRESSION", help="Its id or the first characters of it.")
    ],
    state: Annotated[
        TriageWord, typer.Option(help="expected and false-alarm no longer fail `compilewatch gate`.")
    ],
    note: Annotated[str | None, typer.Option(help="Why, in a sentence.")] = None,
    url: Annotated[str | None, typer.Option(help="Link to the discussion or the fix.")] = None,
    by: Annotated[
        str | None, typer.Option(metavar="NAME", help="Your name; default: the user logged in.")
    ] = None,
    json_: JsonOption = False,
    db: DatabaseOption = None,
    config: ConfigOption = None,
) -> int:
    """Set the triage state of a regression. See `compilewatch list regressions`.

    Example: compilewatch triage 3f9c21aa --state expected --note "Traded for memory."
    """
    event = _event(state, note, url, by)
    with database_of(settings_of(config, db), migrate=False, changes=True) as database:
        recorded = regression_state(database, regression)
        is_new = store_triage(database, recorded.regression.regression_id, event)
        recorded = regression_state(database, recorded.regression.regression_id)
    if json_:
        print_document(_document(recorded))
        return 0
    row, last = recorded.regression.row, recorded.triage[-1]
    subject = f"{row.workload} / {row.strategy}, {METRICS[row.metric].word}"
    already = "" if is_new else " already"
    line = f"{subject}: {recorded.state.value}{already}, by {last.author} on {moment(last.at)}."
    typer.echo(printable(line))
    return 0


def _event(state: TriageWord, note: str | None, url: str | None, by: str | None) -> TriageEvent:
    new_state = TriageState.FALSE_ALARM if state is TriageWord.FALSE_ALARM else TriageState(state.value)
    try:
        return TriageEvent(
            state=new_state,
            author=author(None) if by is None else by,
            at=datetime.now(UTC),
            note=note,
            url=url,
        )
    except ValidationError as error:
        wanted = {
            "author": "--by must be a name of at most 200 characters",
            "note": "--note must be a text of at most 10,000 characters",
            "url": "--url must start with http:// or https:// and hold no blanks",
        }
        name = str(error.errors()[0]["loc"][0])
        raise ConfigError(f"{wanted[name]}.", "Correct it; nothing was changed.") from error


def _document(regression: RegressionState) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "state": regression.state.value,
        "revised_by": regression.revised_by,
        "triage": [event.model_dump(mode="json") for event in regression.triage],
        **regression.regression.model_dump(mode="json"),
    }
