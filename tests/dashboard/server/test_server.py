"""The server: refusals before it listens, headers and compression once it does."""

from __future__ import annotations

import gzip
import json
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import anyio
import pytest
import streamlit
from starlette.types import Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg
from websockets.sync.client import connect
from websockets.typing import Origin

from compilewatch.dashboard.links.links import Page
from compilewatch.dashboard.server import server
from compilewatch.dashboard.server.headers import (
    CompressedStatic,
    SameSite,
    SecurityHeaders,
    content_security_policy,
)
from compilewatch.dashboard.server.index_page import index_pages
from compilewatch.db.errors import CompilewatchError, DatabaseError
from tests.dashboard.asking import ask, whole_application
from tests.dashboard.conftest import DATABASE
from tests.dashboard.serving import Served, served


@pytest.fixture(scope="module")
def server_of(filled_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    log = tmp_path_factory.mktemp("server") / "log"
    with served(filled_url, log) as running:
        yield running
    assert "Traceback" not in log.read_text(), "an interrupted server ends without one"


def test_refuses_an_absent_database_and_leaves_none_behind(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError) as caught:
        server.serve(f"sqlite:///{tmp_path / 'nothing.db'}", "127.0.0.1", 8501)
    assert caught.value.next_step
    assert not list(tmp_path.iterdir())


def test_refuses_a_taken_port_and_names_another(empty_url: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(CompilewatchError, match=f"Port {port} on 127.0.0.1 is taken") as caught:
            server.serve(empty_url, "127.0.0.1", port)
    assert f"--port {port + 1}" in caught.value.next_step


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "bench.example"])
def test_refuses_a_public_address_without_the_flag(empty_url: str, host: str) -> None:
    with pytest.raises(CompilewatchError, match="other machines") as caught:
        server.serve(empty_url, host, 8501)
    assert "--allow-public" in caught.value.next_step


def test_closed_tabs_give_their_descriptors_back(server_of: Served) -> None:
    descriptors = Path(f"/proc/{server_of.pid}/fd")

    def count() -> int:
        return len(list(descriptors.iterdir()))

    _open_tabs(server_of, 1, count)
    before = count()
    assert _open_tabs(server_of, 8, count) >= before + 8
    deadline = time.monotonic() + 60
    # What has expired goes when the next tab closes.
    while count() > before + 8 and time.monotonic() < deadline:
        time.sleep(2)
        _open_tabs(server_of, 1, count)
    assert count() <= before + 8


def _open_tabs(server: Served, tabs: int, count: Callable[[], int]) -> int:
    """What `count` says while so many tabs are open, whose pages have begun to be drawn; then they close."""
    address = f"ws://127.0.0.1:{server.port}/_stcore/stream"
    message = BackMsg()
    message.rerun_script.query_string = ""
    with ExitStack() as stack:
        for _ in range(tabs):
            tab = stack.enter_context(connect(address, origin=Origin(server.origin), max_size=None))
            tab.send(message.SerializeToString())
            tab.recv(timeout=60)
        return count()


def test_a_host_that_is_not_this_machines_is_a_sentence(empty_url: str) -> None:
    with pytest.raises(CompilewatchError, match="Cannot listen on"):
        server.serve(empty_url, "203.0.113.9", 8501, allow_public=True)


def test_every_page_is_served_with_its_title_and_security_headers(server_of: Served) -> None:
    for page in Page:
        answer = server_of.get(f"/{page.value}")
        assert answer.status == 200
        assert b"compilewatch</title>" in answer.body
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe-eval" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize(
    ("asked", "location"),
    [
        ("/trendz", "/?not_found=trendz"),
        ("/trendz?metric=latency&focus=a%26b", "/?not_found=trendz&metric=latency&focus=a%26b"),
        ("/trends.html", "/?not_found=trends.html"),
        ("/trends/foo", "/?not_found=trends%2Ffoo"),
        ("/cw/trends/foo?x=1", "/?not_found=cw%2Ftrends%2Ffoo&x=1"),
        ("/reports/0123abcd", "/reports?report=0123abcd"),
        ("/reports/a/b", "/?not_found=reports%2Fa%2Fb"),
        ("/Trends?metric=latency&workload=a&workload=b", "/workload?metric=latency&workload=a&workload=b"),
        ("/trends?focus=mlp&axis=torch", "/workload?focus=mlp&axis=torch"),
        ("/BREAK-EVEN", "/break-even"),
        ("/today?metric=speedup", "/?metric=speedup"),
        ("/overview", "/"),
        ("/models?focus=mlp", "/workload?focus=mlp"),
        ("/Inbox", "/regressions"),
    ],
)
def test_a_path_that_is_no_page_leads_to_one_with_its_query(
    server_of: Served, asked: str, location: str
) -> None:
    answer = server_of.get(asked)
    assert (answer.status, answer.headers["location"]) == (307, location)


@pytest.mark.parametrize("path", ["/_stcore/health", "/_stcore/host-config", "/manifest.json", "/healthz"])
def test_what_is_served_is_no_page_that_is_missing(server_of: Served, path: str) -> None:
    assert server_of.get(path).status == 200


@pytest.mark.parametrize("path", ["/api/v1/nothing", "/report/none", "/trends/_stcore/health"])
def test_what_other_routes_miss_stays_theirs(server_of: Served, path: str) -> None:
    assert server_of.get(path).status == 404


def test_health_tells_the_data_version(server_of: Served) -> None:
    answer = json.loads(server_of.get("/healthz").body)
    assert answer["status"] == "ok"
    assert answer["data_version"] >= 1


def test_scripts_are_compressed_and_unchanged(server_of: Served) -> None:
    folder = Path(streamlit.__file__).parent / "static" / "static"
    script = max((folder / "js").glob("index.*.js"), key=lambda file: file.stat().st_size)
    answer = server_of.get(f"/static/js/{script.name}", Accept_Encoding="gzip")
    assert answer.headers["content-encoding"] == "gzip"
    assert "immutable" in answer.headers["cache-control"]
    assert gzip.decompress(answer.body) == script.read_bytes()
    assert len(answer.body) < 0.5 * script.stat().st_size
    plain = server_of.get(f"/static/js/{script.name}", Accept_Encoding="identity")
    assert "content-encoding" not in plain.headers
    assert plain.body == script.read_bytes()


@pytest.mark.parametrize(
    "path", ["/static/../secret.js", "/static/js/../../secret.js", "/static/none.js", "/static//etc/passwd"]
)
def test_compression_serves_nothing_outside_its_folder(tmp_path: Path, path: str) -> None:
    folder = tmp_path / "static"
    folder.mkdir()
    (tmp_path / "secret.js").write_text("secret")
    (folder / "open.js").write_text("open")
    assert _passed_on(folder, path)
    assert not _passed_on(folder, "/static/open.js")


def _passed_on(folder: Path, path: str) -> bool:
    """Whether the middleware leaves a request for `path` to the application behind it."""
    reached = []

    async def behind(scope: object, receive: object, send: object) -> None:
        reached.append(scope)

    async def send(message: object) -> None: ...

    scope = {"type": "http", "method": "GET", "path": path, "headers": [(b"accept-encoding", b"gzip")]}
    anyio.run(CompressedStatic(behind, folder=folder), scope, send, send)
    return bool(reached)


def test_the_policy_allows_exactly_the_inline_scripts_of_the_pages() -> None:
    # sha256("alert(1)") as base64, from `printf 'alert(1)' | openssl dgst -sha256 -binary | base64`
    policy = content_security_policy("<script>alert(1)</script><script src='a.js'></script>")
    assert "script-src 'self' 'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI=';" in policy + ";"


def test_a_defect_is_told_without_its_reason_and_with_every_header(
    empty_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In a route, and in front of all routes: what the server says of its own has no header of ours."""

    def broken(*_: object) -> None:
        raise RuntimeError("the secret reason")

    monkeypatch.setenv(DATABASE, empty_url)
    monkeypatch.setattr(server, "_favicon", broken)
    with whole_application(own_names=["testserver"]) as app:
        answers = [ask(app, "/favicon.png", host="testserver")]
        monkeypatch.setattr(SameSite, "_refusal", broken)
        answers.append(ask(app, "/anything", host="testserver"))
    for answer in answers:
        assert answer.status == 500
        assert answer.json["error"]["next_step"]
        assert b"secret" not in answer.body
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "no-referrer"
    assert caplog.text.count("RuntimeError: the secret reason") == 2


def test_half_an_answer_is_not_passed_off_as_a_whole_one() -> None:
    async def breaks_off(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        raise RuntimeError("gone")

    async def nothing(*_: object) -> None: ...

    with pytest.raises(RuntimeError, match="gone"):
        anyio.run(SecurityHeaders(breaks_off, policy="x"), {"type": "http", "path": "/"}, nothing, nothing)


def test_streamlits_html_is_what_the_pages_are_made_of() -> None:
    html = (Path(streamlit.__file__).parent / "static" / "index.html").read_text(encoding="utf-8")
    pages = index_pages(html)
    assert set(pages) == set(Page)
    assert "<title>Break-even · compilewatch</title>" in pages[Page.BREAK_EVEN]
    entry = re.search(r'<script type="module" crossorigin src="([^"]+)">', html)
    assert entry[0] in pages[Page.WORKLOAD]
    changes = (
        (("<title>", "<h1>"), "no <title>"),
        (("root", "app"), 'no <div id="root">'),
    )
    for changed, missing in changes:
        with pytest.raises(ValueError, match=missing):
            index_pages(html.replace(*changed))
