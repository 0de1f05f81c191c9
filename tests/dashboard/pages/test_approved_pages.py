"""What every page says over the recorded histories of a CPU and an H100, part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from compilewatch.dashboard.document.sections import sections, table
from compilewatch.dashboard.links.links import PAGES, Link, Page
from compilewatch.dashboard.pages.overview import content as overview
from compilewatch.dashboard.pages.registry import CONTENTS
from compilewatch.dashboard.parts import parts
from compilewatch.dashboard.read.data import read_choices
from compilewatch.dashboard.render.shell import resolved_view
from tests.approving import approve
from tests.dashboard.conftest import DATABASE

MODEL = {"h100": "gpt2", "cpu": "cnn"}
"""The one model whose page is read."""
MOST_ROWS = 12
READ_AT = datetime(2026, 12, 1, tzinfo=UTC)
"""The day on which all of it is read: Overview says how old its newest case is."""


def lines_of(part: parts.Part) -> Iterator[str]:
    match part:
        case parts.Table():
            found = table(part)
            yield from filter(None, (found.title, found.note))
            yield " | ".join(column.title for column in found.columns)
            yield from (" | ".join(row) for row in found.rows[:MOST_ROWS])
        case parts.Chart():
            yield from filter(None, (part.chart.finding, part.explained, *part.chart.notes, part.alt))
        case _:
            for section in sections([part]):
                yield section.model_dump_json(exclude={"kind"}, exclude_defaults=True, indent=1)


@pytest.fixture(scope="module", params=["h100", "cpu"])
def history(request: pytest.FixtureRequest, histories_of: Callable[[str], Path]) -> tuple[str, str]:
    return request.param, f"sqlite:///{histories_of(request.param)}"


def test_pages_say_what_was_approved(history: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    name, url = history
    monkeypatch.setenv(DATABASE, url)
    contents = CONTENTS | {Page.OVERVIEW: partial(overview.page, now=READ_AT)}
    said = []
    shown = [Link(page=page) for page in Page if page not in (Page.GUIDE, Page.REPORTS, Page.RUNS)]
    for link in (*shown, Link(page=Page.WORKLOAD, focus=MODEL[name])):
        view = resolved_view(link, read_choices())
        said += [f"# {link.focus or PAGES[link.page].title}"]
        for part in parts.flat(contents[link.page](view.link).parts):
            said += ["", *lines_of(part)]
        said.append("")
    approve(f"pages-{name}", "\n".join(said))
