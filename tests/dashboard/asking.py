"""Requests without a server: the ASGI application is called directly, some routes of it or all."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import unquote, urlencode

import anyio
import pytest
import streamlit.config
from starlette.applications import Starlette
from streamlit.runtime import Runtime

from compilewatch.dashboard.login import access
from compilewatch.dashboard.server import server


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def table(self) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(self.body.decode(), newline="")))


@contextmanager
def whole_application(**more: Any) -> Iterator[Starlette]:
    """All that the server answers, of the database named in the environment; `more` is for `build_app`.

    Without the readers of its pages: they are served by Streamlit's runtime, which is not started.
    """
    with pytest.MonkeyPatch.context() as patch:
        # Of which Streamlit has one per process: those that pages are tested with come and go.
        patch.setattr(Runtime, "_instance", None)
        patch.setattr(streamlit.config, "_main_script_path", None)
        app = server.build_app(**more)._build_starlette_app()
    try:
        yield app
    finally:
        access.identify_people_by(None)


def ask(
    app: Starlette,
    path: str,
    query: dict[str, Any] | None = None,
    *,
    method: str = "GET",
    client: str = "192.0.2.1",
    body: bytes = b"",
    **headers: str,
) -> Reply:
    """The reply to one request; `headers` in lower case, with `_` for `-`."""
    asked = partial(reply_to, app, path, query, method=method, client=client, body=body, **headers)
    return anyio.run(asked)


async def reply_to(
    app: Starlette,
    path: str,
    query: dict[str, Any] | None = None,
    *,
    method: str = "GET",
    client: str = "192.0.2.1",
    body: bytes = b"",
    **headers: str,
) -> Reply:
    """As `ask`, beside others in one event loop."""
    plain, _, raw_query = path.partition("?")
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(plain),
        "raw_path": plain.encode(),
        "root_path": "",
        "query_string": (raw_query or urlencode(query or {}, doseq=True)).encode(),
        "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
        "client": (client, 50_000),
        "server": ("testserver", 80),
    }
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start = sent[0]
    return Reply(
        start["status"],
        {name.decode(): value.decode() for name, value in start["headers"]},
        b"".join(message.get("body", b"") for message in sent[1:]),
    )
