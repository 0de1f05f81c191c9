"""`/report/ID`: a frozen report, drawn from its own content; 410 once it was revoked."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route

from compilewatch.dashboard.document.content import content_of
from compilewatch.dashboard.document.page import message, render
from compilewatch.dashboard.http.errors import BusyError, error_of_compilewatch, for_anybody
from compilewatch.dashboard.http.rate_limit import RateLimit
from compilewatch.dashboard.http.turns import DRAWINGS
from compilewatch.dashboard.read.database import reader, sentence_of
from compilewatch.db import units
from compilewatch.db.errors import DatabaseError
from compilewatch.db.service.reports import REPORTS

# Neither a browser nor a proxy may show it after it was revoked.
_HEADERS = {"Cache-Control": "no-store", "X-Robots-Tag": "noindex"}


def reports() -> Mount:
    """Reports are the one thing that a stranger may try to guess: asking is limited like the API."""
    return Mount(
        "/report",
        Starlette(
            routes=[Route("/{report}", DRAWINGS(_report))],
            middleware=[Middleware(RateLimit)],
            exception_handlers={BusyError: error_of_compilewatch},
        ),
    )


def _report(request: Request) -> Response:
    try:
        report = REPORTS.get(reader(), request.path_params["report"])
        if report is None:
            return _message_page(
                404, "No such report", "There is no report at this address. Is the link complete?"
            )
        if report.content is None:
            when = units.moment(report.revoked_at)
            return _message_page(410, "Report revoked", f"This report was revoked on {when} and is gone.")
        return HTMLResponse(render(content_of(report.content)), headers=_HEADERS)
    except Exception as error:
        known = sentence_of(error)
        if known is None:
            raise
        status = 503 if isinstance(known, DatabaseError) else 500
        return _message_page(status, "Report unavailable", str(for_anybody(known)))


def _message_page(status: int, title: str, text: str) -> Response:
    return HTMLResponse(message(title, text), status, headers=_HEADERS)
