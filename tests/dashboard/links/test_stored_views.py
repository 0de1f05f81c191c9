"""Short links: what the server answers to one, and what a page says of one that opens nothing."""

from __future__ import annotations

import html
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from starlette.applications import Starlette

from compilewatch.dashboard.write.writing import stored_address, why_not_opened
from compilewatch.db.engine.session import open_database
from compilewatch.db.records.people import LONGEST_LINK
from compilewatch.db.service.reports import store_view
from tests.builders import START
from tests.dashboard.asking import ask, whole_application
from tests.dashboard.conftest import DATABASE

LONG = f"trends?focus={'x' * (LONGEST_LINK - 13)}"


@dataclass(frozen=True)
class Opened:
    """What a short link opens: the title of its page, and the address that takes its place."""

    title: str
    address: str | None


@dataclass(frozen=True)
class Desk:
    """A dashboard over a database of its own."""

    app: Starlette
    file: Path

    def keep(self, link: str) -> str:
        with open_database(f"sqlite:///{self.file}") as database:
            return store_view(database, link, at=START, by=None)

    def open(self, path: str) -> Opened:
        answer = ask(self.app, path)
        assert answer.status == 200
        text = answer.body.decode()
        (title,) = re.findall(r"<title>(.*?)</title>", text)
        stored = re.findall(r'<meta name="stored-view" content="([^"<>]*)" />', text)
        assert text.count("stored-view") == 1 + len(stored), "it is said once more, in the script"
        return Opened(title.partition(" · ")[0], html.unescape(stored[0]) if stored else None)


@contextmanager
def desk_of(empty_url: str, folder: Path) -> Iterator[Desk]:
    copy = folder / "copy.db"
    shutil.copyfile(empty_url.removeprefix("sqlite:///"), copy)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(DATABASE, f"sqlite:///{copy}")
        with whole_application(base_path="/team/cw") as app:
            yield Desk(app, copy)


@pytest.fixture(scope="module")
def desk(empty_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk_of(empty_url, tmp_path_factory.mktemp("short")) as made:
        yield made


@pytest.mark.parametrize(
    ("link", "title", "address"),
    [
        ("modes?workload=cnn&goal=memory", "Modes", "./modes?workload=cnn&goal=memory"),
        ("?task=inference&task=training", "Today", "./?task=inference&task=training"),
        ("trends?focus=%22%3E%3Cscript%3E", "Models", "./workload?focus=%22%3E%3Cscript%3E"),
        ("trends?embed=true&EMBED_OPTIONS=x&view=itself&since=", "Models", "./workload?since="),
        pytest.param(LONG, "Models", f"./{LONG.replace('trends', 'workload')}", id="long"),
    ],
)
def test_the_address_of_a_view_takes_the_place_of_its_short_link(
    desk: Desk, link: str, title: str, address: str
) -> None:
    """It is relative, so that it holds below whatever path the reader sees."""
    view_id = desk.keep(link)
    for asked in (f"/?view={view_id}", f"/team/cw/?view={view_id}", f"/guide?view={view_id}"):
        assert desk.open(asked) == Opened(title, address)


@pytest.mark.parametrize("link", ["//evil.example/trends", "javascript:window.ran=1//?x", "//[", "trendz"])
def test_a_view_of_no_page_of_ours_is_not_opened(desk: Desk, link: str) -> None:
    assert desk.open(f"/?view={desk.keep(link)}") == Opened("Today", None)


def test_an_id_that_keeps_nothing_is_left_to_the_page(desk: Desk) -> None:
    for asked in ("/?view=nothing", "/?view=", "/?view=%00", "/?view=%ED%A0%80", "/"):
        assert desk.open(asked) == Opened("Today", None)


def test_a_page_says_why_a_short_link_opened_nothing(desk: Desk) -> None:
    assert why_not_opened("nothing") == "No view has the id “nothing”. Check that the link is complete."
    assert "a page that this release does not have" in why_not_opened(desk.keep("trendz?a=b"))
    known = desk.keep("modes")
    assert stored_address(known) is not None
    assert "Load the page again" in why_not_opened(known)


def test_an_absent_database_is_left_to_the_page(empty_url: str, tmp_path: Path) -> None:
    with desk_of(empty_url, tmp_path) as desk:
        desk.file.write_bytes(b"this is no database " * 500)
        assert desk.open("/?view=abc") == Opened("Today", None)
