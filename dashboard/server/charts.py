"""Any chart by its address: `/chart/PAGE/KEY.svg` and `.png`, and `/embed/PAGE/KEY` to be framed elsewhere.

The query is that of the page, so a chart follows its data unless the link says otherwise. An address that
names what is not there gets 404, as a picture or page that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route

from compilewatch.dashboard.api.queries import query_of
from compilewatch.dashboard.document import svg
from compilewatch.dashboard.document.page import document, message, section_html
from compilewatch.dashboard.document.sections import sections
from compilewatch.dashboard.http.errors import (
    BusyError,
    ParameterError,
    defect,
    error_of_compilewatch,
    headers_of,
    status_of,
)
from compilewatch.dashboard.http.rate_limit import RateLimit
from compilewatch.dashboard.http.turns import DRAWINGS
from compilewatch.dashboard.links import links
from compilewatch.dashboard.links.links import MODELS, Link, Page
from compilewatch.dashboard.links.sentence import sentence
from compilewatch.dashboard.pages.registry import CONTENTS
from compilewatch.dashboard.parts.parts import Chart, Folded, PageContent, Part, flat
from compilewatch.dashboard.read.data import read_choices, read_choices_on
from compilewatch.dashboard.read.database import sentence_of
from compilewatch.dashboard.read.requested import resolved_link
from compilewatch.dashboard.read.versions import one_version
from compilewatch.dashboard.render.shell import resolved_view
from compilewatch.db import units
from compilewatch.db.errors import CompilewatchError, NotFoundError


@one_version()
def content_of(link: Link) -> PageContent | None:
    """What the page of `link` shows now; None where nothing was measured, or for a page without parts.

    Raises DatabaseError, and NotFoundError where something that the link names is not there.
    """
    choices = read_choices()
    if link.page not in CONTENTS or choices.newest_machine is None:
        return None
    link, unknown, _ = resolved_link(link, choices)
    if unknown:
        raise NotFoundError(" ".join(unknown))
    content = CONTENTS[link.page](resolved_view(link, choices).link)
    if link.focus not in (None, content.link.focus):
        raise NotFoundError(f"{link.focus} has nothing under the filters of this link.")
    return content


def asked_for(page: Page, params: Mapping[str, Sequence[str]]) -> PageContent | None:
    """`content_of` an address that shows what it says or nothing.

    Raises NotFoundError, and ParameterError where the address says what has no meaning.
    """
    link, problems = links.read(page, params)
    if problems:
        raise ParameterError(" ".join(problems), "Correct the address.")
    return content_of(link)


def where(content: PageContent) -> str:
    """ "Speedup of mlp on cpu-box (Xeon). Newest build torch 2.15.0. Newest result 2026-11-20 10:00 UTC." """
    choices = read_choices_on(content.link.machine)
    words = sentence(content.link, choices.names)
    if content.link.build is None and content.builds:
        words += f" Newest build {choices.builds[content.builds[0]]}."
    return f"{words} Newest result {units.moment(choices.newest_result_at)}."


def charts() -> list[Mount]:
    """Drawing takes a while, so it is limited like the API, and few are drawn at once."""
    middleware = [Middleware(RateLimit)]
    pictures = [Route("/{page}/{key}.svg", DRAWINGS(_svg)), Route("/{page}/{key}.png", DRAWINGS(_png))]
    frames = [Route("/{page}/{key}", DRAWINGS(_framed))]
    return [
        Mount(
            path,
            Starlette(
                routes=routes,
                middleware=middleware,
                # Who asks for too many is not drawn a picture that says so.
                exception_handlers={
                    BusyError: error_of_compilewatch,
                    CompilewatchError: words,
                    Exception: _unforeseen(words),
                },
            ),
        )
        for path, routes, words in (("/chart", pictures, _pictured), ("/embed", frames, _worded))
    ]


def _svg(request: Request) -> Response:
    return Response(_drawn(*_chart(request)), media_type="image/svg+xml", headers=_HEADERS)


def _png(request: Request) -> Response:
    return Response(svg.as_png(_drawn(*_chart(request))), media_type="image/png", headers=_HEADERS)


def _framed(request: Request) -> Response:
    """The chart alone, under what it found, with where that was measured."""
    chart, place = _chart(request)
    (section,) = sections([chart], narrow=True)
    body = f'<main>{section_html(section, 0)}<p class="soft">{escape(place)}</p></main>'
    return HTMLResponse(document(chart.chart.finding, chart.alt, body), headers=_HEADERS)


_HEADERS = {"Cache-Control": "private, max-age=60"}


def _pictured(request: Request, error: Exception) -> Response:
    """Why there is no chart, as a picture in its place."""
    drawn = svg.notice(str(error))
    assert isinstance(error, CompilewatchError)
    status, headers = status_of(error), headers_of(error)
    if request.url.path.endswith(".png"):
        return Response(svg.as_png(drawn), status, media_type="image/png", headers=headers)
    return Response(drawn, status, media_type="image/svg+xml", headers=headers)


def _worded(_: Request, error: Exception) -> Response:
    """Why there is no chart, as a page."""
    assert isinstance(error, CompilewatchError)
    return HTMLResponse(message(error.message, error.next_step), status_of(error), headers=headers_of(error))


def _unforeseen(
    respond: Callable[[Request, Exception], Response],
) -> Callable[[Request, Exception], Response]:
    """Damage of the database is `said` as what is foreseen is; a defect is one."""

    def answer(request: Request, error: Exception) -> Response:
        known = sentence_of(error)
        return defect(request, error) if known is None else respond(request, known)

    return answer


def _chart(request: Request) -> tuple[Chart, str]:
    """The chart that is asked for, and of what and where it is, in words; one of Models by the address of any
    of its tabs. Raises NotFoundError.
    """
    name, key = request.path_params["page"], request.path_params["key"]
    page = Page.OVERVIEW if name == links.OVERVIEW else links.page_named(name) if name else None
    content = None if page is None else asked_for(page, query_of(request))
    parts = content.parts if content else ()
    # What is folded is made for nobody who asks for what is not.
    drawn = _charts(part for part in parts if not isinstance(part, Folded))
    if key not in drawn:
        drawn = _charts(parts)
    if content is not None and key not in drawn and page in MODELS:
        for tab in MODELS:
            there = content_of(links.beside(content.link, tab))
            of_tab = _charts(there.parts) if there else {}
            if there and key in of_tab:
                return of_tab[key], where(there)
    if content is None or key not in drawn:
        raise NotFoundError(
            f"There is no chart {key!r} on the page {name!r} under these filters.",
            f"Charts there: {', '.join(drawn) or 'none'}.",
        )
    return drawn[key], where(content)


def _charts(parts: Iterable[Part]) -> dict[str, Chart]:
    """Those that have something to draw, by key."""
    return {part.key: part for part in flat(parts) if isinstance(part, Chart) and part.chart.spec is not None}


def _drawn(chart: Chart, place: str) -> str:
    drawing = chart.chart
    assert drawing.spec is not None
    return svg.draw(drawing.spec, drawing.frames, title=drawing.finding, subtitle=f"{chart.alt}. {place}")
