"""`/unsubscribe/KEY`: whoever got a message ends what sends it, without a login."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route

from compilewatch.dashboard.document.page import FORM_POLICY, document, message
from compilewatch.dashboard.http.errors import for_anybody
from compilewatch.dashboard.http.rate_limit import RateLimit
from compilewatch.dashboard.write.watching import unwatch
from compilewatch.db.errors import CompilewatchError

_HEADERS = {"Cache-Control": "no-store", "X-Robots-Tag": "noindex"}
# A mail server may open every link of a message: only the form ends anything.
_FORM = (
    "<main><h1>Unsubscribe</h1><p>No more of these messages.</p>"
    '<form method="post"><button type="submit">Unsubscribe</button></form></main>'
)


def unsubscribe() -> Mount:
    """A key is all that is asked for: asking is limited as for reports."""
    routes = [Route("/{key}", _answer, methods=["GET", "POST"])]
    return Mount("/unsubscribe", Starlette(routes=routes, middleware=[Middleware(RateLimit)]))


def _answer(request: Request) -> Response:
    if request.method != "POST":
        page = document("Unsubscribe", "No more of these messages.", _FORM, policy=FORM_POLICY)
        return HTMLResponse(page, headers=_HEADERS)
    try:
        said = unwatch(request.path_params["key"])
    except CompilewatchError as error:
        return HTMLResponse(message("Not unsubscribed", str(for_anybody(error))), 503, headers=_HEADERS)
    return HTMLResponse(message("Unsubscribed", said), headers=_HEADERS)
