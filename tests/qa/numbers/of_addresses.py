"""What is drawn at addresses of its own: charts in frames and as pictures."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

from starlette.applications import Starlette

from compilewatch.dashboard.parts.parts import Chart, PageContent, flat
from tests.qa.numbers import of_api
from tests.qa.numbers.figures import Case, Figure


def of_frames(
    app: Starlette, content: PageContent, query: dict[str, Any], selection: Case
) -> Iterator[Figure]:
    """What each chart found, in its frame and on its page."""
    page = content.link.page.value or "overview"
    for part in flat(content.parts):
        if isinstance(part, Chart) and part.chart.spec is not None:
            quantity, found = f"finding of {part.key}", part.chart.finding
            said = _plain(of_api.ask(app, f"/embed/{page}/{part.key}", query).body.decode())
            yield Figure(quantity, (), selection, f"page {page}", found)
            yield Figure(quantity, (), selection, "frame", _found(found, said))
            name = f"{page}/{part.key}"
            yield from _of_a_machine_that_is_gone(app, f"/chart/{name}.svg", query)
            yield from _of_a_machine_that_is_gone(app, f"/embed/{name}", query)


def of_what_is_gone(app: Starlette) -> Iterator[Figure]:
    """A badge of a machine that is not there says so, and is no other's."""
    yield from _of_a_machine_that_is_gone(app, "/badge/mlp/default.svg", {})


def _of_a_machine_that_is_gone(app: Starlette, address: str, query: dict[str, Any]) -> Iterator[Figure]:
    status = of_api.ask(app, address, query | {"machine": "gone-box"}).status
    yield Figure("status", (), (address,), "a machine that is gone", status)
    yield Figure("status", (), (address,), "what is not there", 404)


def _found(sentence: str, said: str) -> str:
    """The sentence where it is said, else what is."""
    return sentence if sentence in said else said[:200]


def _plain(body: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())
