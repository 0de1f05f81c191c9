"""Requests to the routes beside the pages without a server: the ASGI application is called directly."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlencode

import anyio
from starlette.applications import Starlette


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


def ask(
    app: Starlette,
    path: str,
    query: dict[str, Any] | None = None,
    *,
    method: str = "GET",
    client: str = "192.0.2.1",
    **headers: str,
) -> Reply:
    """The reply to one request; `headers` in lower case, with `_` for `-`."""
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
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    anyio.run(app, scope, receive, send)
    start = sent[0]
    return Reply(
        start["status"],
        {name.decode(): value.decode() for name, value in start["headers"]},
        b"".join(message.get("body", b"") for message in sent[1:]),
    )
