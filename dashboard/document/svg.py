"""Charts as SVG: drawn once by Vega, and let through to a page element by element.

A report's page holds its charts inline, so a stored chart is never trusted: what is not on the lists below
does not reach the page.
"""

from __future__ import annotations

import atexit
import json
import re
import subprocess
import sys
import textwrap
import xml.etree.ElementTree as ET
from base64 import b64decode, b64encode
from collections.abc import Mapping
from html import escape
from threading import Lock
from typing import Any, Literal

import pandas as pd

from compilewatch.dashboard.charts.style import Spec
from compilewatch.dashboard.document.content import ReportError
from compilewatch.dashboard.text import theme
from compilewatch.dashboard.text.foreign_text import readable, readable_frame, readable_spec
from compilewatch.db.own_process import begin_process

PNG_PIXELS = 2.0
"""Of a picture, per unit of the drawing."""

Kind = Literal["svg", "png", "pdf"]


class DrawingProcess:
    """A process that draws one chart after the other, begun when the first is drawn. Threads may share it.

    It ends when what is written to it ends, so with whoever began it, however that ends.
    """

    def __init__(self) -> None:
        self._one_by_one = Lock()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def process_id(self) -> int | None:
        """None where there is none."""
        return None if self._process is None else self._process.pid

    def picture(self, kind: Kind, of: Mapping[str, Any] | str) -> bytes:
        """`of`: a chart of Vega-Lite for an SVG, an SVG for a PNG or PDF.

        Raises ValueError with Vega's words where it cannot be drawn.
        """
        request = json.dumps([kind, of]).encode() + b"\n"
        with self._one_by_one:
            # One that was killed, for its memory perhaps, is begun again once.
            reply = self._reply(request) or self._reply(request)
        if not reply:
            raise ValueError("the process that draws charts was ended twice")
        drawn, failed = json.loads(reply)
        if failed is not None:
            raise ValueError(failed)
        return b64decode(drawn)

    def end(self) -> None:
        """Wait until it has ended."""
        process, self._process = self._process, None
        if process is not None:
            process.communicate()

    def _reply(self, request: bytes) -> bytes:
        """Nothing where the process ended without one."""
        process = self._process = self._process or begin_process(__name__)
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(request)
            process.stdin.flush()
            reply = process.stdout.readline()
        except BrokenPipeError:
            reply = b""
        if not reply:
            process.kill()
            self.end()
        return reply


DRAWING = DrawingProcess()
"""That of this process."""
atexit.register(DRAWING.end)


def main() -> None:
    """Draw what the lines of the standard input ask for, a line of the standard output each."""
    import vl_convert

    for line in sys.stdin.buffer:
        kind, of = json.loads(line)
        drawn, failed = b"", None
        try:
            match kind:
                case "svg":
                    drawn = vl_convert.vegalite_to_svg(of).encode()
                case "png":
                    drawn = vl_convert.svg_to_png(of, scale=PNG_PIXELS)
                case "pdf":
                    drawn = vl_convert.svg_to_pdf(of)
        except ValueError as error:
            failed = str(error)
        sys.stdout.write(json.dumps([b64encode(drawn).decode(), failed]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()


WIDTH_PX, NARROW_PX = 860, 340
_SVG = "http://www.w3.org/2000/svg"
_ELEMENTS = frozenset(
    f"{{{_SVG}}}{name}"
    for name in ("g", "path", "rect", "line", "circle", "text", "tspan", "title", "defs", "clipPath")
)
_ATTRIBUTES = frozenset(
    {
        *("width", "height", "viewBox", "x", "y", "x1", "y1", "x2", "y2", "dx", "dy", "r", "cx", "cy", "rx"),
        *("ry", "d", "id", "transform", "fill", "stroke", "opacity", "fill-opacity", "stroke-opacity"),
        *("stroke-width", "stroke-dasharray", "stroke-dashoffset", "stroke-linecap", "stroke-linejoin"),
        *("stroke-miterlimit", "font-size", "font-family", "font-weight", "font-style", "text-anchor"),
        # The page says in a sentence what a chart shows: no mark needs a label or role of its own.
        "clip-path",
    }
)
_REFERENCE = re.compile(r"^url\(#[A-Za-z0-9_-]+\)$")
_INK = "#3A4654"


def _config(ink: str, grid: str, line: str) -> dict[str, Any]:
    """Vega's own look, brought near the pages': Streamlit's theme does not reach it here."""
    return {
        "background": "transparent" if ink == "currentColor" else "#FFFFFF",
        "font": "Helvetica, Arial, sans-serif",
        "range": {"category": [ink, theme.BLUE, theme.VERMILLION, theme.GREEN, theme.PURPLE, theme.ORANGE]},
        "view": {"stroke": None},
        "axis": {
            "labelColor": ink,
            "titleColor": ink,
            "gridColor": grid,
            "domainColor": line,
            "tickColor": line,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
        },
        "legend": {"labelColor": ink, "labelFontSize": 12},
    }


_CONFIG = _config(_INK, "#E3E7EC", "#AEB6C0")
_INKED = _config("currentColor", "#88888844", "#888888")


def draw(
    spec: Spec,
    frames: Mapping[str, pd.DataFrame],
    *,
    title: str | None = None,
    subtitle: str | None = None,
    inked: bool = False,
    width_px: int = WIDTH_PX,
) -> str:
    """The chart as SVG, under a title where one is given.

    An `inked` one takes the colour of the text around it and has no ground of its own: for a page that is
    light or dark.
    """
    own = spec.get("config", {})
    spec = readable_spec(spec)
    merged = {
        key: {**value, **own.get(key, {})} if isinstance(value, dict) else value
        for key, value in (_INKED if inked else _CONFIG).items()
    }
    heading = {} if title is None else {"title": _heading(title, subtitle or "")}
    chart = {
        **spec,
        **heading,
        "width": width_px,
        "config": {**own, **merged},
        "datasets": {name: _records(readable_frame(frame)) for name, frame in frames.items()},
    }
    return DRAWING.picture("svg", chart).decode()


def as_png(drawn: str) -> bytes:
    """A chart as a picture, `PNG_PIXELS` per unit."""
    return DRAWING.picture("png", drawn)


def as_pdf(drawn: str) -> bytes:
    """A chart as a page of its own size."""
    return DRAWING.picture("pdf", drawn)


def notice(text: str) -> str:
    """`text` as a picture, for the place of a chart that cannot be drawn."""
    lines = textwrap.wrap(readable(text), 100)[:6]
    height = 24 * len(lines) + 24
    drawn = "".join(
        f'<text x="16" y="{24 * number + 32}">{escape(line)}</text>' for number, line in enumerate(lines)
    )
    return (
        f'<svg xmlns="{_SVG}" width="{WIDTH_PX}" height="{height}" role="img" aria-label="{escape(text)}">'
        f'<rect width="{WIDTH_PX}" height="{height}" fill="#FFFFFF" stroke="#AEB6C0"/>'
        f'<g fill="{_INK}" font-family="Helvetica, Arial, sans-serif" font-size="16">{drawn}</g></svg>'
    )


def _heading(title: str, subtitle: str) -> dict[str, Any]:
    """A title as Vega takes it, wrapped to the width of the chart."""
    return {
        "text": textwrap.wrap(readable(title), 90)[:3],
        "subtitle": textwrap.wrap(readable(subtitle), 125)[:3],
        "anchor": "start",
        "fontSize": 16,
        "subtitleFontSize": 12,
        "subtitleColor": "#56616F",
        "offset": 14,
    }


def _records(frame: pd.DataFrame) -> list[dict[str, object]]:
    records: list[dict[str, object]] = json.loads(frame.to_json(orient="records", date_format="iso"))
    # A time without a zone is drawn as it stands, whatever zone this machine is in.
    moments = [name for name, dtype in frame.dtypes.items() if str(dtype).startswith("datetime64")]
    for record in records:
        for name in moments:
            record[str(name)] = str(record[str(name)]).removesuffix("Z")
    return records


def let_through(svg: str, *, number: int) -> str:
    """`svg` with only what is on the lists; its ids get `number`, so that charts on one page do
    not mix.

    Raises ReportError where it is no SVG.
    """
    if "<!" in svg:
        raise ReportError(
            "A chart of this report holds a declaration, which none of ours has.", "Make it anew."
        )
    try:
        root = ET.fromstring(svg)  # noqa: S314 - without declarations there are no entities to expand
    except ET.ParseError as error:
        raise ReportError("A chart of this report is no SVG.", "Make the report anew.") from error
    if root.tag != f"{{{_SVG}}}svg":
        raise ReportError("A chart of this report is no SVG.", "Make the report anew.")
    _clean(root, f"chart{number}-")
    ET.register_namespace("", _SVG)
    return ET.tostring(root, encoding="unicode")


def _clean(element: ET.Element, prefix: str) -> None:
    for name, value in list(element.attrib.items()):
        if name == "id":
            element.set(name, prefix + re.sub(r"[^A-Za-z0-9_-]", "", value))
        elif "url(" in value.lower():
            if name == "clip-path" and _REFERENCE.match(value):
                element.set(name, value.replace("url(#", f"url(#{prefix}"))
            else:
                del element.attrib[name]
        elif name not in _ATTRIBUTES:
            del element.attrib[name]
    for child in list(element):
        if child.tag in _ELEMENTS:
            _clean(child, prefix)
        else:
            element.remove(child)
