"""Paths that are no page: where they lead, since Streamlit serves a page that loads nothing under each."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urlencode

from starlette.convertors import StringConvertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from compilewatch.dashboard.links import links
from compilewatch.dashboard.links.links import Page

# What Streamlit answers below itself, beside the files of its folder.
_STREAMLIT = ("_stcore", "app", "auth", "bidi-components", "component", "media", "oauth2callback")


def unknown_pages(files: Iterable[str]) -> BaseRoute:
    """The route for them; it belongs behind all others. `files` are the names in Streamlit's folder."""
    known_names = "|".join(map(re.escape, (*_STREAMLIT, *files)))

    class NoPage(StringConvertor):
        """A path of one part or of several."""

        regex = rf"(?!(?:{known_names})(?:/|$))(?!.*_stcore/)[^/](?:.*[^/])?"

    register_url_convertor("no_page", NoPage())
    return Route("/{path:no_page}", _lead)


def _lead(request: Request) -> Response:
    """To the page or the report that is meant, else to the Overview, which says that there is none such."""
    path, query = request.path_params["path"], request.url.query
    first, _, rest = path.partition("/")
    page = links.page_named(first)
    if page is not None and not rest:
        return _to(request, page, query)
    if page is Page.REPORTS and "/" not in rest:
        return _to(request, page, urlencode({"report": rest}), query)
    return _to(request, Page.OVERVIEW, urlencode({links.NOT_FOUND: path}), query)


def _to(request: Request, page: Page, *queries: str) -> Response:
    query = "&".join(filter(None, queries))
    address = f"{request.scope.get('root_path', '')}/{page.value}"
    return RedirectResponse(f"{address}?{query}" if query else address, status_code=307)
