"""Below a path: with and without the prefix on the request, redirects lead back below."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route

from compilewatch.dashboard.server.server import BasePath, usable_prefix
from compilewatch.db.errors import ConfigError
from tests.dashboard.asking import ask, whole_application


def _where(request: Request) -> Response:
    return PlainTextResponse(request.url.path)


def _away(request: Request) -> Response:
    return RedirectResponse(request.query_params["to"])


INNER = Starlette(
    routes=[Mount("/api/v1", Starlette(routes=[Route("/runs", _where)])), Route("/away", _away)],
    middleware=[Middleware(BasePath, prefix="/team/cw")],
)


@pytest.mark.parametrize("path", ["/team/cw/api/v1/runs", "/api/v1/runs"])
def test_a_proxy_may_hand_the_prefix_on_or_take_it_off(path: str) -> None:
    reply = ask(INNER, path)
    assert (reply.status, reply.body) == (200, b"/api/v1/runs")


@pytest.mark.parametrize(
    ("to", "location"),
    [
        ("/trends?a=b", "/team/cw/trends?a=b"),
        ("//evil.example/", "//evil.example/"),
        ("https://x/", "https://x/"),
    ],
)
def test_only_addresses_at_the_root_of_the_host_move(to: str, location: str) -> None:
    assert ask(INNER, "/team/cw/away", {"to": to}).headers["location"] == location


def test_the_prefix_alone_gets_its_slash() -> None:
    reply = ask(INNER, "/team/cw?view=abc")
    assert (reply.status, reply.headers["location"]) == (308, "/team/cw/?view=abc")


def test_the_api_tells_its_clients_the_path(filled_here: str) -> None:
    """Without it a client made from the document asks the root of the host, which is another site's."""
    with whole_application(base_path="/team/cw") as app:
        for asked in ("/team/cw/api/v1/openapi.json", "/api/v1/openapi.json"):
            document = ask(app, asked).json
            assert document["servers"] == [{"url": "/team/cw"}]
        assert "/api/v1/machines" in document["paths"]
        assert ask(app, "/team/cw/api/v1/machines").status == 200


def test_a_path_that_only_begins_alike_is_not_below() -> None:
    assert ask(INNER, "/team/cwx/api/v1/runs").status == 404


@pytest.mark.parametrize(
    ("text", "prefix"), [("", ""), ("/", ""), ("cw", "/cw"), ("/a//b/", "/a/b"), (" /x ", "/x")]
)
def test_a_prefix_is_written_one_way(text: str, prefix: str) -> None:
    assert usable_prefix(text) == prefix


@pytest.mark.parametrize("text", ["/..", "/a/../b", "/a b", "/ä", '/"'])
def test_what_cannot_be_a_path_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="cannot be part of a path"):
        usable_prefix(text)
