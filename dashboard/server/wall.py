"""The wall display, `/?view=wall`: the Overview without controls, dark, to be read from three metres."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from html import escape
from itertools import chain

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from compilewatch.dashboard.api.queries import query_of
from compilewatch.dashboard.document.page import section_html
from compilewatch.dashboard.document.sections import sections
from compilewatch.dashboard.http.errors import BusyError, headers_of, status_of
from compilewatch.dashboard.http.rate_limit import client_of
from compilewatch.dashboard.http.turns import DRAWINGS
from compilewatch.dashboard.links.links import Page
from compilewatch.dashboard.parts.parts import Chart, Figures, PageHeadline, Part, Table, flat
from compilewatch.dashboard.read.database import sentence_of
from compilewatch.dashboard.server.charts import asked_for, where
from compilewatch.db.errors import CompilewatchError

_LOG = logging.getLogger("compilewatch.dashboard")
WALL = "wall"
_REFRESH_S = 30
_NOT_KEPT: Mapping[str, str] = {"Cache-Control": "no-store"}
_TONES = {"good": "#2FBF95", "bad": "#F0814A", "warning": "#E6B84A"}
_WALL_STYLE = """body{margin:0;padding:2.5vw;background:#10151C;color:#E8EDF3;font:2.2vw/1.35 sans-serif}
h1{font-size:3.4vw;line-height:1.2;margin:0 0 2vw;border-left:1vw solid var(--tone);padding-left:1.5vw}
p,ul{margin:.4em 0;color:#B9C3CF}h2{font-size:2.2vw;margin:1.5vw 0 .5vw;font-weight:600}
dl{display:flex;flex-wrap:wrap;gap:1.2vw;margin:2vw 0}
dl div{display:flex;flex-direction:column-reverse;border:2px solid #303A47;border-radius:1vw;
padding:1vw 1.6vw;flex:1;min-width:24vw}
dl .bad{border-color:#F0814A}dl .good{border-color:#2FBF95}
dt{color:#B9C3CF;font-size:1.3vw}dd{margin:0;font-size:5vw;line-height:1.1;font-weight:650}
figure{margin:0}svg{width:100%;height:auto}figcaption{display:none}"""


async def wall(request: Request) -> Response:
    """The Overview of a request as a page that asks for itself anew, a sentence where it cannot be made."""
    params = query_of(request)
    try:
        return await DRAWINGS.answer(partial(wall_page, params), client_of(request.scope))
    except BusyError as error:
        return _refused(error)


def wall_page(params: Mapping[str, Sequence[str]]) -> Response:
    """The page of a request with these parameters, whoever waits; of a failure a sentence."""
    tone, title, body = "", "Nothing has been measured yet", ""
    try:
        content = asked_for(Page.OVERVIEW, params)
        if content is not None:
            shown = _on_the_wall(content.parts)
            body = f"<p>{escape(where(content))}</p>"
            body += _tiles(content.parts)
            body += "".join(map(section_html, sections(shown), range(len(shown))))
            title = content.headline
            tone = next((part.tone for part in content.parts if isinstance(part, PageHeadline)), "")
    except CompilewatchError as error:
        return _refused(error)
    except Exception as error:  # noqa: BLE001 a display on a wall has nobody to read an error 500
        _LOG.exception("the wall display failed")
        if known := sentence_of(error):
            return _refused(known)
        title, tone = "The wall display failed. The reason is in the log of the server.", "warning"
    return _page(title, tone, body)


def _refused(error: CompilewatchError) -> Response:
    return _page(str(error), "warning", "", status_of(error), headers_of(error))


def _page(
    title: str, tone: str, body: str, status: int = 200, headers: Mapping[str, str] = _NOT_KEPT
) -> Response:
    heading = escape(title)
    return HTMLResponse(
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="refresh" content="{_REFRESH_S}">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{heading}</title><style>:root{{--tone:{_TONES.get(tone, '#8A8F98')}}}{_WALL_STYLE}</style>"
        f"</head><body><h1>{heading}</h1>{body}</body></html>\n",
        status,
        headers=headers,
    )


def _tiles(parts: Sequence[Part]) -> str:
    """The first figures of a page, one number a tile with its caption below."""
    shown = (part.figures for part in _up_to_the_first_chart(parts) if isinstance(part, Figures))
    figures = [*chain.from_iterable(shown)]
    tiles = (
        f'<div class="{each.tone}"><dt>{escape(", ".join(filter(None, (each.title, each.beside))))}</dt>'
        f"<dd>{escape(each.text)}</dd></div>"
        for each in figures
    )
    return f"<dl>{''.join(tiles)}</dl>" if figures else ""


def _on_the_wall(parts: Sequence[Part]) -> list[Part]:
    """Sentences above the first table or chart, and that chart; the headline and tiles stand above them."""
    return [part for part in _up_to_the_first_chart(parts) if not isinstance(part, Figures)]


def _up_to_the_first_chart(parts: Sequence[Part]) -> Iterator[Part]:
    tables = 0
    for part in flat(parts):
        if isinstance(part, Table):
            tables += 1
            if tables > 1:
                return
        elif not isinstance(part, PageHeadline):
            yield part
            if isinstance(part, Chart):
                return
