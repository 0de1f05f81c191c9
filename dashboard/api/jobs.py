"""Running jobs over HTTP: the list of them, and the route on which they say how they are."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pandas as pd
from pydantic import BaseModel, ConfigDict
from starlette.requests import Request
from starlette.responses import Response

from compilewatch.dashboard.api.stored import Listing
from compilewatch.dashboard.api.written import written
from compilewatch.dashboard.read.database import database_url, opened
from compilewatch.db.engine.session import Database
from compilewatch.db.records.access import Scope
from compilewatch.db.records.hosts import JobReport, JobState
from compilewatch.db.service.jobs import save_report, shown_jobs

_COLUMNS = {
    **dict.fromkeys(("process", "job", "host", "launch"), "str"),
    "rank": "Int64",
    **dict.fromkeys(("ready", "ended"), "bool"),
    "seen_at": "datetime64[us, UTC]",
    "steps": "int64",
    "stepped_at": "datetime64[us, UTC]",
    "compiling": "str",
    "compiling_since": "datetime64[us, UTC]",
    **dict.fromkeys(("compiles_after_ready", "cost_after_ready_ns"), "int64"),
    **dict.fromkeys(("cache_hits", "cache_misses", "cache_bypasses", "dropped"), "int64"),
    "events": "object",
}


def _frame(states: list[JobState]) -> pd.DataFrame:
    rows = [
        each.model_dump() | {"events": [event.model_dump(mode="json") for event in each.events]}
        for each in states
    ]
    return pd.DataFrame(
        {name: pd.Series([row[name] for row in rows], dtype=dtype) for name, dtype in _COLUMNS.items()}
    )


def _jobs(database: Database) -> pd.DataFrame:
    """One row per process that was heard of lately."""
    return _frame(shown_jobs(database, datetime.now(UTC)))


def freshness(database: Database) -> object:
    """What the list depends on."""
    return str([(each.process, each.sequence) for each in shown_jobs(database, datetime.now(UTC))])


JOBS = Listing("jobs", "process", _jobs, moment="seen_at")


class JobAnswer(BaseModel):
    """Whose report it was, and whether it is newer than the one before."""

    model_config = ConfigDict(extra="forbid")

    process: str
    is_new: bool


async def create(request: Request) -> Response:
    """Put down what a process of a job says of itself, a `JobReport` as JSON: 201 with whether it was new.

    All of it is data: it is stored, counted and shown. Raises CompilewatchError.
    """
    return await written(request, Scope.JOBS, JobReport, _saved)


def _saved(report: JobReport, _by: str) -> dict[str, Any]:
    is_new = save_report(opened(database_url(), read_only=False), report, datetime.now(UTC))
    return JobAnswer(process=report.process, is_new=is_new).model_dump()
