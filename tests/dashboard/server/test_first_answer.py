"""The first answer to a page's address says what the page says; charts have addresses of their own."""

from __future__ import annotations

import html
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from threading import Event, Thread

import pytest
from starlette.applications import Starlette

from dashboard.links.links import Link, Page, href
from dashboard.login.access import Role
from dashboard.pages.contents import CONTENTS
from dashboard.pages.parts import Chart, Figures, Table, flat
from dashboard.read.snapshots import Snapshot
from dashboard.server import first_answer
from dashboard.server.first_answer import LATELY_S, FirstAnswers, content_of
from dashboard.server.server import EMBED_VARIABLE
from db.engine.session import open_database
from db.records.access import Proxy, Roles, SignIn
from db.records.requests import RequestKind, RequestSpec
from db.store.requests import new_request, save_request
from db.store.trials import save_trials
from tests.builders import make_history
from tests.dashboard.asking import ask, whole_application
from tests.dashboard.conftest import DATABASE

LINKS = [
    Link(page=Page.OVERVIEW),
    Link(page=Page.BREAK_EVEN, focus="bert-base", steps=2_000),
    Link(page=Page.MODES),
    Link(page=Page.COLD_START),
    Link(page=Page.TRENDS, metric="latency"),
    Link(page=Page.TRIAL),
    Link(page=Page.TRIAL, trial="run-gpu-box-3-0-0002-0001"),
    Link(page=Page.RUNS),
    Link(page=Page.UPGRADE),
]
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
        Snapshot.now()
        with whole_application(sign_in=sign_in) as app:
            yield app


def first(server: Starlette, path: str, **headers: str) -> str:
    """The part of the answer that says what the page says, asked for until it is made."""
    for _ in range(40):
        body = ask(server, path, **headers).body.decode()
        if 'id="first"' in body:
            return body
    raise AssertionError("no first answer")


def plain(body: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", " ", body))


@pytest.mark.parametrize("link", LINKS, ids=href)
def test_it_says_what_the_page_says(server: Starlette, link: Link) -> None:
    found = content_of(link)
    assert found is not None
    body = first(server, f"/{href(link)}")
    said = plain(body[body.index('id="first"') :])
    assert found[0].headline in said
    figures = [each for part in found[0].parts if isinstance(part, Figures) for each in part.figures]
    assert [figure.text for figure in figures if figure.text not in said] == []
    table = next(part for part in flat(found[0].parts) if isinstance(part, Table))
    name = next(
        name for name in ("workload", "strategy", "machine", "name", "verdict") if name in table.frame
    )
    cells = [str(cell) for cell in table.frame.head(10)[name]]
    assert [cell for cell in cells if cell not in said] == []
    charts = sum(isinstance(part, Chart) for part in flat(found[0].parts))
    assert body.count("<svg") == min(1, charts)
    assert re.search(r'property="og:title" content="[^"]+ · ', body)
    assert html.escape(found[0].headline) in body[: body.index("</head>")]


def test_its_preview_shows_the_chart_of_the_view(server: Starlette) -> None:
    body = first(server, f"/{href(LINKS[1])}")
    picture = html.unescape(re.search(r'property="og:image" content="([^"]+)"', body)[1])  # type: ignore[index]
    assert picture.startswith("http://testserver/chart/break-even/break-even-curves.png?focus=bert-base")
    answer = ask(server, picture.removeprefix("http://testserver"))
    assert answer.status == 200
    assert answer.body.startswith(b"\x89PNG")


@pytest.mark.parametrize("signed_in", [False, True])
def test_its_preview_has_the_address_under_which_people_come(filled_url: str, signed_in: bool) -> None:
    """A proxy in front ends their HTTPS, so what a request says of itself is another address."""
    public = "https://cw.example.org/team"
    sign_in = SignIn(
        base_url=public, proxy=Proxy(addresses=("127.0.0.1",)), roles=Roles(everyone=Role.VIEWER)
    )
    configured = {} if signed_in else {"COMPILEWATCH_PUBLIC_URL": f"{public}/"}
    with over(filled_url, sign_in=sign_in if signed_in else None, **configured) as app:
        body = first(app, "/modes", client="127.0.0.1", x_forwarded_user="ann")
    assert f'property="og:image" content="{public}/chart/modes/modes-map.png"' in body


def test_a_chart_has_an_address_as_a_picture_and_as_a_frame(server: Starlette) -> None:
    drawn = ask(server, "/chart/trends/trend.svg?metric=latency")
    assert (drawn.status, drawn.headers["content-type"]) == (200, "image/svg+xml")
    assert b"<svg" in drawn.body
    framed = ask(server, "/embed/overview/overview-speedups")
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
    assert (b"Charts there: " in answer.body) == ("//" not in path)
    assert b"Traceback" not in answer.body


def test_no_site_frames_anything_unless_the_configuration_names_it(filled_url: str) -> None:
    with over(filled_url) as app:
        framed = ask(app, "/embed/overview/overview-speedups")
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
    charts = ("/chart/overview/overview-speedups.svg", "/embed/trends/trend")
    with over(filled_url, sign_in=sign_in) as app:
        for path in ("/", "/?view=wall", "/break-even", *charts):
            for accept in ("text/html", "*/*"):
                answer = ask(app, path, accept=accept)
                assert answer.status in (303, 401)
                assert not re.search(rb'id="first"|bert-base|<svg', answer.body)


def test_the_wall_says_what_the_overview_says_without_controls_and_anew(server: Starlette) -> None:
    found = content_of(Link())
    assert found is not None
    answer = ask(server, "/?view=wall")
    body = answer.body.decode()
    said = plain(body)
    assert answer.status == 200
    assert found[0].headline in said
    figures = [each for part in found[0].parts if isinstance(part, Figures) for each in part.figures]
    assert [figure.text for figure in figures if figure.text not in said] == []
    assert body.count("<svg") == 1
    assert '<meta http-equiv="refresh" content="30">' in body
    assert not re.search(r"<(script|button|input|select|form|a)\b", body)
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


def test_an_answer_that_fails_is_left_out_and_made_again(
    filled_here: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    Snapshot.now()
    answers = FirstAnswers(patience_s=60)
    with monkeypatch.context() as patch:
        patch.setattr(first_answer, "content_of", lambda _link: {}["no such column"])
        assert answers.of(Page.MODES, {}) is None
    assert "the first answer of modes failed" in caplog.text
    assert answers.of(Page.MODES, {}) is not None


def test_a_trial_that_is_not_there_has_no_first_answer_and_no_line_in_the_log(
    filled_here: str, caplog: pytest.LogCaptureFixture
) -> None:
    Snapshot.now()
    assert FirstAnswers(patience_s=60).of(Page.TRIAL, {"trial": ["gone"]}) is None
    assert not caplog.records


def test_the_first_answer_of_runs_follows_the_queue(copied_url: str) -> None:
    Snapshot.now()
    answers = FirstAnswers(patience_s=60)
    before = answers.of(Page.RUNS, {})
    assert before is not None
    assert "No request yet." in before.html
    with open_database(copied_url) as database:
        spec = RequestSpec(suite="nightly-of-ann")
        request = new_request("asked", RequestKind.MANUAL, spec, by="ann", at=datetime.now(UTC))
        save_request(database, request)
    after = answers.of(Page.RUNS, {})
    assert after is not None
    assert "nightly-of-ann" in after.html


def test_pages_as_they_open_and_views_asked_for_lately_are_made_ahead(
    copied_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, made = [0.0], []
    monkeypatch.setattr(first_answer, "_LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(first_answer, "_make", made.append)
    answers = FirstAnswers(clock=lambda: now[0])
    ended = Event()
    thread = Thread(target=answers.make_ahead, args=(ended,))
    thread.start()
    try:
        until(lambda: {link.page for link in made} == set(CONTENTS))
        now[0] = LATELY_S
        answers.of(Page.BREAK_EVEN, {"steps": ["77"]})
        now[0] += 1
        made.clear()
        with open_database(copied_url) as database:
            save_trials(database, make_history(workloads=("mlp",), builds=("2.14.0",), seed=9))
        until(lambda: bool(made))
        assert made == [Link(page=Page.BREAK_EVEN, steps=77)]
        now[0] += LATELY_S
        made.clear()
        with open_database(copied_url) as database:
            save_trials(database, make_history(workloads=("mlp",), builds=("2.15.0",), seed=10))
        thread.join(0.3)
        assert made == [], "nobody looked for ten minutes"
    finally:
        ended.set()
        thread.join(10)


def test_a_server_that_ends_makes_no_further_answer_ahead(
    copied_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Link] = []
    ended = Event()

    def last(link: Link) -> None:
        made.append(link)
        ended.set()

    monkeypatch.setattr(first_answer, "_LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(first_answer, "_make", last)
    FirstAnswers().make_ahead(ended)
    assert len(made) == 1


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_nobody_waits_for_any_more_is_not_made(
    filled_here: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Snapshot.now()
    hold, made = Event(), []

    def slow(link: Link) -> None:
        made.append(link)
        assert hold.wait(60)

    monkeypatch.setattr(first_answer, "_make", slow)
    answers = FirstAnswers(patience_s=0)
    for steps in range(1, 201):
        assert answers.of(Page.BREAK_EVEN, {"steps": [str(steps)]}) is None
    hold.set()
    answers._pool.shutdown(wait=True)
    assert len(made) <= 66
