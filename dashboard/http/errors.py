"""The one shape in which the API says no: {"error": {"message", "next_step"}} and a status."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from compilewatch.dashboard.document.content import ReportError
from compilewatch.dashboard.read.database import sentence_of
from compilewatch.db.errors import CompilewatchError, ConfigError, DatabaseError, NotFoundError, RecordError
from compilewatch.db.judge.compare.sides import VerdictError

_LOG = logging.getLogger("compilewatch.dashboard")
DEFECT = (
    "This request failed by a defect of compilewatch.",
    "The reason is in the log of the server; please report it.",
)
SEE_DOCUMENT = "See /api/v1/openapi.json for every route and parameter."


class ParameterError(ConfigError):
    """A query parameter is unknown, missing, repeated or holds what it cannot hold."""


class GoneError(CompilewatchError):
    """What was asked for was here and has been taken away for good."""


class BusyError(CompilewatchError):
    """So much waits already that this is not made; it may be asked for again after `retry_s` seconds."""

    def __init__(self, message: str, next_step: str, retry_s: int) -> None:
        super().__init__(message, next_step)
        self.retry_s = retry_s


# The first class that fits decides; what fits none was asked wrongly.
_STATUSES: tuple[tuple[type[CompilewatchError], int], ...] = (
    (BusyError, 429),
    (NotFoundError, 404),
    (GoneError, 410),
    (VerdictError, 409),
    (RecordError, 409),
    (ReportError, 500),
    (DatabaseError, 503),
)


def error_response(
    status: int, message: str, next_step: str, headers: Mapping[str, str] | None = None
) -> Response:
    """A sentence and the next step as a response that nobody keeps."""
    body = {"error": {"message": message, "next_step": next_step}}
    return JSONResponse(body, status, headers={"Cache-Control": "no-store", **(headers or {})})


def status_of(error: CompilewatchError) -> int:
    """The status that `error` is answered with."""
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 400)


def for_anybody(error: CompilewatchError) -> CompilewatchError:
    """`error` as whoever is not signed in may read it. Why a database is not read names its address, so that
    goes to the log.
    """
    if not isinstance(error, DatabaseError):
        return error
    _LOG.warning("the database cannot be read: %s", error.message)
    return DatabaseError("The database cannot be read.", "Try again later.")


def error_for_anybody(request: Request, error: Exception) -> Response:
    """As `error_of_compilewatch`, on a route that may be open to whoever is not signed in."""
    assert isinstance(error, CompilewatchError)
    return error_of_compilewatch(request, for_anybody(error))


def headers_of(error: CompilewatchError) -> dict[str, str]:
    """What `error` is answered with beside its status: nobody keeps it, and when to come back."""
    again = {"Retry-After": str(error.retry_s)} if isinstance(error, BusyError) else {}
    return {"Cache-Control": "no-store", **again}


def error_of_compilewatch(_: Request, error: Exception) -> Response:
    """A `CompilewatchError` as a response."""
    assert isinstance(error, CompilewatchError)
    return error_response(status_of(error), error.message, error.next_step or SEE_DOCUMENT, headers_of(error))


def error_of_starlette(_: Request, error: Exception) -> Response:
    """No such route, or a method that it does not take."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "GET or HEAD")
        message, next_step = "This route does not take that method.", f"Use {allowed}."
    elif error.status_code == 404:
        message, next_step = "There is no such route.", SEE_DOCUMENT
    else:
        message, next_step = f"{error.detail}.", SEE_DOCUMENT
    return error_response(error.status_code, message, next_step, error.headers)


def defect(_: Request, error: Exception) -> Response:
    """The damage that a failure comes from, else what a defect is told as.

    `dashboard.server.headers` writes the reason to the log.
    """
    return _refusal(sentence_of(error))


def defect_for_anybody(_: Request, error: Exception) -> Response:
    """As `defect`, on a route that may be open to whoever is not signed in."""
    known = sentence_of(error)
    return _refusal(known and for_anybody(known))


def _refusal(known: CompilewatchError | None) -> Response:
    return error_response(500, *((known.message, known.next_step) if known else DEFECT))
