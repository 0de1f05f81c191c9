"""Any chart by its address: `/chart/PAGE/KEY.svg` and `.png`, and `/embed/PAGE/KEY` to be framed elsewhere.

The query is that of the page, so a chart follows its data unless the link says otherwise.
"""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route

from dashboard.api.errors import error_of_compilewatch
from dashboard.api.parameters import query_of
from dashboard.api.rate_limit import RateLimit
from dashboard.links import links
from dashboard.links.links import Link, Page
from dashboard.links.requested import resolved_link
from dashboard.pages.contents import CONTENTS
from dashboard.pages.parts import Chart, PageContent, flat
from dashboard.read.data import read_choices
from dashboard.read.snapshots import Snapshot
from dashboard.render.limit import RENDER_LIMIT
from dashboard.render.shell import resolved_view
from dashboard.reports import svg
from dashboard.reports.page import document, section_html
from dashboard.reports.sections import sections
from db.errors import CompilewatchError, NotFoundError


def content_of(link: Link) -> PageContent | None:
    """What the page of `link` shows now; None where nothing was measured, or for a page without parts.

    Raises DatabaseError, and NotFoundError where a trial is not there.
    """
    snapshot = Snapshot.now()
    choices = read_choices(snapshot)
    if link.page not in CONTENTS or choices.newest_machine is None:
        return None
    link, _ = resolved_link(link, snapshot, choices)
    return CONTENTS[link.page](snapshot, resolved_view(link, snapshot, choices).link)


def charts() -> list[Mount]:
    """Drawing takes a while, so it is limited like the API."""
    middleware = [Middleware(RateLimit)]
    handlers = {CompilewatchError: error_of_compilewatch}
    pictures = [Route("/{page}/{key}.svg", _svg), Route("/{page}/{key}.png", _png)]
    frames = [Route("/{page}/{key}", _framed)]
    return [
        Mount("/chart", Starlette(routes=pictures, middleware=middleware, exception_handlers=handlers)),
        Mount("/embed", Starlette(routes=frames, middleware=middleware, exception_handlers=handlers)),
    ]


def _svg(request: Request) -> Response:
    return Response(_drawn(_chart(request)), media_type="image/svg+xml", headers=_HEADERS)


def _png(request: Request) -> Response:
    return Response(svg.as_png(_drawn(_chart(request))), media_type="image/png", headers=_HEADERS)


def _framed(request: Request) -> Response:
    """The chart alone, under what it found."""
    chart = _chart(request)
    (section,) = sections([chart])
    body = f"<main>{section_html(section, 0)}</main>"
    return HTMLResponse(document(chart.chart.finding, chart.alt, body), headers=_HEADERS)


_HEADERS = {"Cache-Control": "private, max-age=60"}


def _chart(request: Request) -> Chart:
    """The chart that is asked for. Raises NotFoundError."""
    name, key = request.path_params["page"], request.path_params["key"]
    page = Page.OVERVIEW if name == links.OVERVIEW else links.page_named(name) if name else None
    with RENDER_LIMIT.take():
        content = None if page is None else content_of(links.read(page, query_of(request))[0])
    drawn = {
        part.key: part
        for part in (flat(content.parts) if content else ())
        if isinstance(part, Chart) and part.chart.spec is not None
    }
    if key not in drawn:
        raise NotFoundError(
            f"There is no chart {key!r} on the page {name!r} under these filters.",
            f"Charts there: {', '.join(drawn) or 'none'}.",
        )
    return drawn[key]


def _drawn(chart: Chart) -> str:
    drawing = chart.chart
    assert drawing.spec is not None
    return svg.draw(drawing.spec, drawing.frames, title=drawing.finding, subtitle=chart.alt)
