"""Anything at all is sent to a real server: every route and header, signed in and out.

Nothing is answered with a defect: no status of 500 or above, no socket closed for an error of the server, no
traceback in its log.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

from compilewatch.dashboard.links.links import SELECTORS
from compilewatch.db.records.access import Roles, SignIn
from tests.dashboard.browsing import Browser
from tests.dashboard.login.test_login import routes
from tests.dashboard.provider import CLIENT_ID, CLIENT_SECRET, fake_provider
from tests.dashboard.serving import Served, free_port, served

EXAMPLES = int(os.environ.get("COMPILEWATCH_FUZZ_EXAMPLES", "100"))
many = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))

HOSTILE = (
    *("//[", "http://[", "http://[::1", "https://[v1.x]/", "//", "\\", "[", "]", "%", "%zz", "%00", "%ff%fe"),
    *("../" * 6 + "etc/passwd", "..%2f..%2f", "null", "0", "-1", "9" * 5_000, "NaN", "inf", "1e999", "\xff"),
    *("0001-01-01", "9999-12-31T23:59:59+23:59", "2026-13-45", 'W/"', "bytes=9-1", "bytes=-", "{}", "[]"),
    *("Bearer", "Bearer cwt_", "Bearer cwt_\xff", "Basic x", ";", ",", ",,", "=", "\t", "text/html;q=x"),
    *("*/*;q=99", "gzip;q=a", "application/json;q=1;q=", "a" * 7_000, "chunked", "websocket", "100-continue"),
    *("Thu, 01 Jan 1970 00:00:00 GMT", "Thu, 99 Jan 9999", "compilewatch=x; compilewatch=y", "\u00e9" * 9),
)
HEADERS = (
    *("Accept", "Accept-Encoding", "Accept-Language", "Authorization", "Cache-Control", "Connection"),
    *("Content-Encoding", "Content-Type", "Cookie", "Expect", "Forwarded", "Host", "If-Match"),
    *("If-Modified-Since", "If-None-Match", "If-Range", "If-Unmodified-Since", "Origin", "Pragma", "Range"),
    *("Referer", "Sec-Fetch-Site", "Sec-WebSocket-Extensions", "Sec-WebSocket-Key", "Sec-WebSocket-Protocol"),
    *("Sec-WebSocket-Version", "TE", "Upgrade", "User-Agent", "X-Forwarded-For", "X-Forwarded-Groups"),
    *("X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-User", "X-HTTP-Method-Override", "X-Xsrftoken"),
)
KEYS = (
    *SELECTORS,
    *("next", "state", "code", "error", "format", "cursor", "limit", "metric", "view", "base", "head", "by"),
)
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "QUERY")
TEXT = st.text(
    alphabet=st.characters(min_codepoint=1, max_codepoint=255, exclude_characters="\r\n"), max_size=40
)
VALUES = st.sampled_from(HOSTILE) | TEXT
PLACES: tuple[tuple[str, dict[str, str]], ...] = (
    ("/trends", {}),
    ("/api/v1/runs", {}),
    ("/login", {}),
    ("/logout", {"method": "POST", "Content-Length": "0"}),
)


@dataclass(frozen=True)
class Place:
    server: Served
    cookie: str
    log: Path


@pytest.fixture(scope="module")
def place(recorded_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A server with a login, and somebody who is signed in and may do everything."""
    log, port = tmp_path_factory.mktemp("fuzz") / "log", free_port()
    with fake_provider() as provider:
        sign_in = SignIn(
            base_url=f"http://127.0.0.1:{port}",
            issuer=provider.issuer,
            client_id=CLIENT_ID,
            client_secret=CLIENT_SECRET,
            roles=Roles(everyone="operator"),
            # Each request comes from another address, so that no limit answers in place of a route.
            proxies=("127.0.0.1",),
            public_badges=True,
            public_reports=True,
        )
        with served(recorded_url, log, port=port, COMPILEWATCH_SIGN_IN=sign_in.revealed()) as running:
            browser = Browser()
            browser.open(running.origin + "/")
            named = browser.cookie(f"127.0.0.1:{port}", "compilewatch")
            yield Place(running, f"compilewatch={named.value}", log)
            assert running.get("/_stcore/health").status == 200
    assert _tracebacks(log) == [], log.read_text()[-4_000:]


def _tracebacks(log: Path) -> list[str]:
    return [line for line in log.read_text().splitlines() if "Traceback" in line or " failed" in line]


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """One request to any route of the application, or to no route at all; its cookie is `{cookie}`."""
    path, methods = draw(st.sampled_from([each[1:] for each in routes() if each[0] != "websocket"]))
    while "{" in path:
        before, _, rest = path.partition("{")
        path = before + quote(draw(VALUES), safe=draw(st.sampled_from(["", "/%."]))) + rest.partition("}")[2]
    if draw(st.integers(0, 9)) == 0:
        path = "/" + quote(draw(VALUES), safe="/%[]\\:@;=,")
    query = draw(st.lists(st.tuples(st.sampled_from(KEYS) | TEXT, VALUES), max_size=3))
    if query:
        path += "?" + "&".join(f"{quote(key)}={quote(value, safe='/[]%')}" for key, value in query)
    method = draw(st.sampled_from(methods) if draw(st.booleans()) else st.sampled_from(METHODS))
    headers = {"Host": "{host}", "Cookie": "{cookie}", "X-Forwarded-For": _address(draw)}
    body = draw(st.binary(max_size=60)) if method not in {"GET", "HEAD"} else b""
    if body:
        headers |= {"Content-Length": str(len(body)), "Origin": "http://{host}"}
    headers |= {name: value.strip() for name, value in draw(_headers()).items()}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def _address(draw: st.DrawFn) -> str:
    return f"10.{draw(st.integers(0, 255))}.{draw(st.integers(0, 255))}.1"


def _headers() -> st.SearchStrategy[dict[str, str]]:
    return st.dictionaries(st.sampled_from(HEADERS), VALUES, max_size=4)


def _status(place: Place, request: bytes, cookie: str) -> int | None:
    """None where the server hung up on what is no HTTP."""
    host = f"127.0.0.1:{place.server.port}".encode()
    sent = request.replace(b"{host}", host).replace(b"{cookie}", cookie.encode())
    with socket.create_connection(("127.0.0.1", place.server.port), timeout=60) as connection:
        connection.sendall(sent)
        head = b""
        while b"\r\n" not in head:
            part = connection.recv(4_096)
            if not part:
                return None
            head += part
    return int(head.split(b" ", 2)[1])


def _request(path: str, **headers: str) -> bytes:
    method = headers.pop("method", "GET")
    named = {"Host": "{host}", "Cookie": "{cookie}"} | {k.replace("_", "-"): v for k, v in headers.items()}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in named.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


@pytest.mark.parametrize("signed_in", [False, True])
@many
@given(request=requests())
@example(request=_request("/login?next=//["))
@example(request=_request("/logout", method="POST", Origin="http://["))
@example(request=_request("/logout", method="POST", Content_Length="9" * 5_000))
def test_no_request_is_answered_with_a_defect(place: Place, signed_in: bool, request: bytes) -> None:
    status = _status(place, request, place.cookie if signed_in else "")
    event(f"status {status}")
    assert status is None or status < 500, request


@pytest.mark.parametrize("signed_in", [False, True])
@pytest.mark.parametrize("name", HEADERS)
def test_no_header_is_answered_with_a_defect(place: Place, signed_in: bool, name: str) -> None:
    """Hostile texts at a page, the API, a write and the way in: a twentieth of all pairs, another
    one for each header, and all of them where much is tried.
    """
    cookie = place.cookie if signed_in else ""
    found = {}
    pairs = list(product(HOSTILE, PLACES))
    for text, (path, more) in pairs if EXAMPLES > 100 else pairs[HEADERS.index(name) % 20 :: 20]:
        headers = {"X-Forwarded-For": f"10.1.{len(found) % 256}.1"} | more | {name: text.strip()}
        found[path, text] = _status(place, _request(path, **headers), cookie)
    assert {asked: status for asked, status in found.items() if status is not None and status >= 500} == {}
    assert len(found) in (len(pairs), len(pairs) // 20, len(pairs) // 20 + 1)


def test_no_first_frame_is_taken_of_the_signed_out(place: Place) -> None:
    for cookie in ("", "compilewatch=x", place.cookie + "x"):
        with pytest.raises(InvalidStatus) as refused:
            connect(
                f"ws://127.0.0.1:{place.server.port}/_stcore/stream",
                origin=Origin(place.server.origin),
                additional_headers={"Cookie": cookie},
            )
        assert refused.value.response.status_code == 403
