"""Speaks ASGI to a middleware directly: a request or a socket, with nothing of a server around it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send


@dataclass
class Inner:
    """The application behind a middleware: answers 200, echoes sockets, and remembers who came."""

    seen: list[Scope] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.seen.append(scope)
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"inside"})
            return
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "text": f"echo {message['text']}"})


def status(
    app: ASGIApp,
    path: str = "/",
    headers: Mapping[str, str] | None = None,
    *,
    method: str = "GET",
    client: str = "127.0.0.1",
) -> int:
    """The status that a request gets."""
    sent = talk(app, _scope("http", path, headers or {}, method, client), [{"type": "http.request"}])
    code: int = sent[0]["status"]
    return code


def socket(
    app: ASGIApp, headers: Mapping[str, str], messages: Iterable[str | Any], *, client: str = "127.0.0.1"
) -> list[Message]:
    """Everything a socket is sent. A message that is callable is called instead: something happens then."""
    arriving: list[Any] = [{"type": "websocket.connect"}]
    arriving += [each if callable(each) else {"type": "websocket.receive", "text": each} for each in messages]
    scope = _scope("websocket", "/_stcore/stream", headers, "GET", client)
    return talk(app, scope, [*arriving, {"type": "websocket.disconnect", "code": 1000}])


def talk(app: ASGIApp, scope: Scope, arriving: list[Any]) -> list[Message]:
    sent: list[Message] = []
    waiting = iter(arriving)

    async def receive() -> Message:
        for message in waiting:
            if not callable(message):
                found: Message = message
                return found
            message()
        raise AssertionError("nothing more arrives")

    async def send(message: Message) -> None:
        sent.append(message)

    async def run() -> None:
        await app(scope, receive, send)

    anyio.run(run)
    return sent


def _scope(kind: str, path: str, headers: Mapping[str, str], method: str, client: str) -> Scope:
    target, _, query = path.partition("?")
    return {
        "type": kind,
        "path": target,
        "query_string": query.encode(),
        "method": method,
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "client": (client, 1234),
    }
