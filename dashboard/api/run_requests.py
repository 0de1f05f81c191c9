"""Run requests over HTTP: the list of them, and the route that queues one, for tokens of its own scope."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from compilewatch.dashboard.api.stored import Listing
from compilewatch.dashboard.api.written import written
from compilewatch.dashboard.write.run_actions import queue_request
from compilewatch.db.engine.session import Database
from compilewatch.db.queries.data_version import service_pulse
from compilewatch.db.records.access import Scope
from compilewatch.db.records.requests import RequestSpec, RunRequest
from compilewatch.db.service import requests as run_requests
from compilewatch.db.service.hosts import unserved

REQUEST_SCHEMA: Literal["compilewatch.api.request/1"] = "compilewatch.api.request/1"
_COLUMNS = {
    **dict.fromkeys(("request_id", "state", "kind"), "str"),
    "spec": "object",
    "asked_by": "str",
    "asked_at": "datetime64[us, UTC]",
    **dict.fromkeys(("owner", "note", "unserved"), "str"),
    "run_ids": "object",
}


def _frame(requests: list[RunRequest], waiting: dict[str, str]) -> pd.DataFrame:
    rows = [
        each.model_dump(mode="json")
        | {
            "asked_at": each.asked_at,
            "note": each.history[-1].note if each.history else None,
            "unserved": waiting.get(each.request_id),
        }
        for each in requests
    ]
    return pd.DataFrame(
        {name: pd.Series([row[name] for row in rows], dtype=dtype) for name, dtype in _COLUMNS.items()}
    )


def _requests(database: Database) -> pd.DataFrame:
    """One row per request, newest first; `unserved` says why a queued one is taken by nobody."""
    requests = run_requests.requests(database)
    return _frame(requests, unserved(database, requests, datetime.now(UTC)))


def freshness(database: Database) -> object:
    """What the list depends on; that a host fell silent counts once a minute."""
    return str((service_pulse(database), datetime.now(UTC).replace(second=0, microsecond=0)))


REQUESTS = Listing("requests", "request_id", _requests, moment="asked_at")


class RequestAnswer(BaseModel):
    """What was queued, and why nobody takes it now, if so."""

    model_config = ConfigDict(extra="forbid", serialize_by_alias=True, populate_by_name=True)

    schema_: Annotated[Literal["compilewatch.api.request/1"], Field(alias="schema")] = REQUEST_SCHEMA
    request: RunRequest
    unserved: str | None


async def create(request: Request) -> Response:
    """Queue what the body, a `RequestSpec` as JSON, wants measured: 201 with its row.

    Names are data: the host that measures looks them up in its own configuration and refuses others.
    Raises CompilewatchError.
    """
    return await written(request, Scope.REQUESTS, RequestSpec, _queued)


def _queued(spec: RequestSpec, by: str) -> dict[str, Any]:
    queued, waiting = queue_request(spec, by=by)
    return RequestAnswer(request=queued, unserved=waiting).model_dump(mode="json")
