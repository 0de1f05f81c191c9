"""What another site may not do: names, sockets and writes that are not ours, bodies without end."""

from __future__ import annotations

import pytest

from compilewatch.dashboard.server.headers import SameSite
from tests.dashboard.asgi import Inner, socket, status

OURS = {"Host": "127.0.0.1:8501"}
LIMIT = 1_000


def guarded(hosts: tuple[str, ...] | None = ("127.0.0.1", "localhost", "compilewatch.example")) -> SameSite:
    return SameSite(Inner(), hosts=hosts, largest_body=LIMIT)


@pytest.mark.parametrize("host", ["127.0.0.1:8501", "LOCALHOST", "compilewatch.example:443"])
def test_our_names_are_answered(host: str) -> None:
    assert status(guarded(), "/", {"Host": host}) == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8501", "127.0.0.1.evil.example", "", "[::1", "a@127.0.0.1@b"]
)
def test_a_name_of_somebody_else_is_not_answered(host: str) -> None:
    """DNS rebinding: a page of evil.example, whose address became ours, would read everything."""
    assert status(guarded(), "/", {"Host": host}) == 421
    assert socket(guarded(), {"Host": host, "Origin": f"http://{host}"}, [])[0]["type"] == "websocket.close"


def test_a_network_that_may_do_everything_may_use_any_name() -> None:
    assert status(guarded(None), "/", {"Host": "bench-3.lan"}) == 200


@pytest.mark.parametrize(
    "origin",
    [None, "null", "https://evil.example", "http://127.0.0.1:8502", "http://127.0.0.1:8501.evil.example"],
)
def test_a_socket_from_elsewhere_is_not_opened(origin: str | None) -> None:
    headers = OURS if origin is None else OURS | {"Origin": origin}
    assert socket(guarded(), headers, ["hello"]) == [{"type": "websocket.close", "code": 1008}]


def test_our_own_socket_opens() -> None:
    sent = socket(guarded(), OURS | {"Origin": "http://127.0.0.1:8501"}, ["hello"])
    assert sent[-1]["text"] == "echo hello"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({"Origin": "http://127.0.0.1:8501"}, True),
        ({"Origin": "null", "Sec-Fetch-Site": "same-origin"}, True),
        ({"Sec-Fetch-Site": "same-origin"}, True),
        ({}, True),
        ({"Cookie": "compilewatch=x"}, False),
        ({"Origin": "null", "Cookie": "compilewatch=x"}, False),
        ({"Origin": "https://evil.example"}, False),
        ({"Origin": "https://evil.example", "Sec-Fetch-Site": "same-origin"}, False),
        ({"Origin": "http://127.0.0.1:8501", "Sec-Fetch-Site": "cross-site"}, False),
        ({"Sec-Fetch-Site": "same-site", "Cookie": "compilewatch=x"}, False),
    ],
)
def test_a_write_of_another_site_is_refused(method: str, headers: dict[str, str], allowed: bool) -> None:
    assert status(guarded(), "/logout", OURS | headers, method=method) == (200 if allowed else 403)


def test_reading_is_left_to_the_browsers_own_rules() -> None:
    assert status(guarded(), "/", OURS | {"Origin": "https://evil.example", "Cookie": "a=b"}) == 200


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Content-Length": "1000"}, 200),
        ({"Content-Length": str(LIMIT + (1 << 20) + 1)}, 413),
        ({"Content-Length": "-1"}, 413),
        ({"Content-Length": "1e3"}, 413),
        ({"Transfer-Encoding": "chunked"}, 411),
    ],
)
def test_a_body_is_bounded_before_it_is_read(headers: dict[str, str], code: int) -> None:
    assert status(guarded(), "/upload", OURS | headers, method="PUT") == code
