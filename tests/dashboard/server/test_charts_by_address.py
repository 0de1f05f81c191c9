"""Charts have addresses of their own; previews are made of them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from starlette.applications import Starlette

from compilewatch.dashboard.links.links import PAGES, Page
from compilewatch.dashboard.login.access import Role
from compilewatch.dashboard.read.versions import drawn_version
from compilewatch.dashboard.server.charts import asked_for, where
from compilewatch.dashboard.server.server import EMBED_VARIABLE
from compilewatch.db.records.access import Proxy, Roles, SignIn
from tests.builders import START, make_history, make_machine, make_trial
from tests.dashboard.asking import ask, whole_application
from tests.dashboard.conftest import DATABASE, Store

WIKI = "https://wiki.example.org"


@pytest.fixture(scope="module")
def server(filled_url: str) -> Iterator[Starlette]:
    with over(filled_url, **{EMBED_VARIABLE: WIKI}) as app:
        yield app


@contextmanager
def over(url: str, *, sign_in: SignIn | None = None, **environment: str) -> Iterator[Starlette]:
    """The whole application over the database at `url`."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {DATABASE: url, EMBED_VARIABLE: "", **environment}.items():
            patch.setenv(name, value)
        drawn_version()
        with whole_application(sign_in=sign_in) as app:
            yield app


def plain(body: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", " ", body))


@pytest.mark.parametrize("nth", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_the_preview_of_a_page_shows_its_chart_under_the_filters_of_the_link(
    server: Starlette, nth: int
) -> None:
    charted = [page for page in Page if PAGES[page].picture]
    assert len(charted) >= 6
    for page in charted[::nth]:
        body = ask(server, f"/{page.value}?machine=gpu-box-3").body.decode()
        picture = html.unescape(re.search(r'property="og:image" content="([^"]+)"', body)[1])  # type: ignore[index]
        assert picture.startswith("http://testserver/chart/")
        assert picture.endswith("?machine=gpu-box-3")
        answer = ask(server, picture.removeprefix("http://testserver"))
        assert answer.status == 200, page
        assert answer.body.startswith(b"\x89PNG")


def test_a_preview_of_a_machine_has_the_newest_result_of_that_machine(store: Store) -> None:
    older, newer = START, START + timedelta(days=3)
    url = store(
        [
            *make_history(
                machines=(make_machine("box-a", device_name="NVIDIA L4"),), builds=("2.12.0",), start=older
            ),
            *make_history(machines=("box-b",), builds=("2.12.0",), start=newer, seed=1),
        ]
    )
    with over(url) as app:
        found = {
            machine: re.search(
                r'og:description" content="([^"]*)"', ask(app, f"/modes?machine={machine}").body.decode()
            )[1]  # type: ignore[index]
            for machine in ("box-a", "box-b")
        }
    assert f"Newest result {older:%Y-%m-%d}" in found["box-a"]
    assert f"Newest result {newer:%Y-%m-%d}" in found["box-b"]


@pytest.mark.parametrize("page", [page for page in Page if page is not Page.GUIDE])
def test_title_and_preview_of_every_page_are_what_it_found(server: Starlette, page: Page) -> None:
    body = ask(server, f"/{page.value}").body.decode()
    said = {
        name: html.unescape(found)
        for name, found in re.findall(r'property="og:(title|description)" content="([^"]*)"', body)
    }
    title = html.unescape(re.search("<title>(.*?)</title>", body)[1])  # type: ignore[index]
    content = asked_for(page, {})
    assert content is not None
    assert content.headline not in ("", PAGES[page].title)
    assert title == said["title"] == f"{content.headline} · compilewatch"
    assert said["description"] == where(content)


@pytest.mark.parametrize("signed_in", [False, True])
def test_its_preview_has_the_address_under_which_people_come(filled_url: str, signed_in: bool) -> None:
    """A proxy in front ends their HTTPS, so what a request says of itself is another address."""
    public = "https://cw.example.org/team"
    sign_in = SignIn(
        base_url=public, proxy=Proxy(addresses=("127.0.0.1",)), roles=Roles(everyone=Role.VIEWER)
    )
    configured = {} if signed_in else {"COMPILEWATCH_PUBLIC_URL": f"{public}/"}
    with over(filled_url, sign_in=sign_in if signed_in else None, **configured) as app:
        body = ask(app, "/modes", client="127.0.0.1", x_forwarded_user="ann").body.decode()
    assert f'property="og:image" content="{public}/chart/modes/modes-map.png"' in body


def test_a_chart_has_an_address_as_a_picture_and_as_a_frame(server: Starlette) -> None:
    drawn = ask(server, "/chart/trends/trend.svg?metric=latency")
    assert (drawn.status, drawn.headers["content-type"]) == (200, "image/svg+xml")
    assert b"<svg" in drawn.body
    framed = ask(server, "/embed/overview/overview-models")
    assert framed.status == 200
    assert b"<svg" in framed.body
    assert framed.headers["content-security-policy"].endswith(f"frame-ancestors {WIKI}")
    assert "x-frame-options" not in framed.headers
    page = ask(server, "/trends")
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert page.headers["x-frame-options"] == "DENY"


@pytest.mark.parametrize(
    "path", ["/chart/trends/gone.svg", "/chart/nowhere/trend.png", "/embed/guide/policy", "/embed//trend"]
)
def test_what_is_no_chart_is_a_sentence(server: Starlette, path: str) -> None:
    answer = ask(server, path)
    assert answer.status == 404
    assert path.endswith("png") or (b"Charts there: " in answer.body) == ("//" not in path)
    assert b"Traceback" not in answer.body


GONE = ["machine=gone-box", "build=gone", "workload=gone", "suite=gone"]
TWO = "machine=cpu-box&machine=gone-box"


@pytest.mark.parametrize(
    "query", [*GONE, TWO, "strategy=gone", "focus=gone", "machin=cpu-box", "metric=smell"]
)
def test_an_address_that_names_what_is_not_there_shows_nothing_else(server: Starlette, query: str) -> None:
    status = 404 if "gone" in query and query != TWO else 400
    for path, kind in (
        ("/chart/trends/trend.svg", b"<svg"),
        ("/chart/trends/trend.png", b"\x89PNG"),
        ("/embed/trends/trend", b"<!DOCTYPE html>"),
    ):
        answer = ask(server, f"{path}?{query}")
        assert answer.status == status
        assert answer.body.startswith(kind)
        assert answer.headers["cache-control"] == "no-store"
        if kind != b"\x89PNG":
            assert re.search(rb"gone|machin|smell", answer.body)
            assert b"bert-base" not in answer.body


@pytest.mark.parametrize("query", GONE)
def test_a_preview_shows_nothing_else_either(server: Starlette, query: str) -> None:
    page = ask(server, f"/?{query}").body.decode()
    picture = html.unescape(re.search(r'property="og:image" content="([^"]+)"', page)[1])  # type: ignore[index]
    assert ask(server, picture.removeprefix("http://testserver")).status == 404


def test_what_is_drawn_elsewhere_names_its_machine_and_build(server: Starlette) -> None:
    for path in (
        "/chart/modes/modes-map.svg?machine=cpu-box",
        "/embed/overview/overview-models?machine=cpu-box",
        "/badge/mlp/default.svg?machine=cpu-box",
    ):
        said = ask(server, path).body.decode()
        assert "cpu-box" in said, path
        assert "torch 2.13.0" in said, path


def test_a_machine_that_was_renamed_keeps_its_links(store: Store) -> None:
    trials = make_history(machines=["old-name"], builds=["2.12.0"])
    url = store(
        [*trials, *make_history(machines=["new-name"], builds=["2.13.0"], start=START + timedelta(days=9))]
    )
    with over(url) as app:
        for path in (
            "/chart/modes/modes-map.svg?machine=",
            "/embed/modes/modes-map?machine=",
            "/badge/bert-base/default.svg?machine=",
        ):
            old, new = (ask(app, path + name) for name in ("old-name", "new-name"))
            assert old.status == 200
            assert old.body == new.body
            assert b"new-name" in old.body


def test_an_old_name_that_another_machine_took_is_that_machine(store: Store) -> None:
    first, renamed = make_machine("one"), make_machine("two")
    other = make_machine("one", threads=77)
    parts = ((first, "a"), (renamed, "b"), (other, "c"))
    url = store(
        [
            make_trial(machine=machine, run_id=run, started_at=START + timedelta(hours=n))
            for n, (machine, run) in enumerate(parts)
        ]
    )
    with over(url) as app:
        ids = {row["machine"]: row["machine_id"] for row in ask(app, "/api/v1/machines").json["rows"]}
        assert (
            ask(app, "/api/v1/trials?machine=one").json
            == ask(app, f"/api/v1/trials?machine={ids['one']}").json
        )


def test_no_site_frames_anything_unless_the_configuration_names_it(filled_url: str) -> None:
    with over(filled_url) as app:
        framed = ask(app, "/embed/overview/overview-models")
    assert framed.headers["content-security-policy"].endswith("frame-ancestors 'none'")
    assert framed.headers["x-frame-options"] == "DENY"


def test_who_is_not_signed_in_gets_nothing_of_it(filled_url: str) -> None:
    sign_in = SignIn(
        base_url="http://127.0.0.1:8501",
        issuer="https://login.example",
        client_id="compilewatch",
        client_secret="s",
        roles=Roles(everyone=Role.VIEWER),
    )
    charts = ("/chart/overview/overview-models.svg", "/embed/trends/trend")
    with over(filled_url, sign_in=sign_in) as app:
        for path in ("/", "/break-even", *charts):
            for accept in ("text/html", "*/*"):
                answer = ask(app, path, accept=accept)
                assert answer.status in (303, 401)
                assert not re.search(rb"bert-base|<svg", answer.body)


@pytest.mark.parametrize("query", ["", "machine=cpu-box&suite=smoke"])
def test_the_address_of_the_display_on_a_wall_leads_to_today(server: Starlette, query: str) -> None:
    answer = ask(server, "/?view=wall" + (f"&{query}" if query else ""))
    assert (answer.status, answer.headers["location"]) == (307, f"./?{query}" if query else "./")
