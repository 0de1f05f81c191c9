"""Answers that were just made are told again: what is polled has mostly been asked for a moment ago.

An answer holds for `HELD_S`, or for `SHARE` times as long as it took to make, up to `LONGEST_S`: a route that
is polled while data is being written takes a bounded share of a processor, however many poll it. After that
its entity tag is shown to the route again: with nothing new, that costs a look at the data version.
"""

from __future__ import annotations

import asyncio
import gzip
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from anyio import to_thread
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dashboard.api.representation import unchanged

HELD_S = 1.0
SHARE = 9
LONGEST_S = 10.0
MOST_BYTES = 32 << 20
LARGEST_BYTES = 4 << 20
_WORTH_COMPRESSING_BYTES = 1_000
# What an entry takes besides its key and its body, roughly.
_ENTRY_BYTES = 1_000
_HEADERS_OF_304 = frozenset({b"etag", b"cache-control", b"vary"})

_Header = tuple[bytes, bytes]
_Key = tuple[str, bytes, bytes]


@dataclass
class _Made:
    """What the application behind answered; `until` is the moment up to which it may be told again."""

    status: int
    headers: list[_Header]
    body: bytes
    until: float = 0.0
    gzipped: bytes | None = None
    tag: bytes | None = field(init=False)
    may_be_kept: bool = field(init=False)

    def __post_init__(self) -> None:
        named = dict(self.headers)
        self.tag = named.get(b"etag")
        private = b"no-store" in named.get(b"cache-control", b"")
        self.may_be_kept = self.status == 200 and not private and len(self.body) <= LARGEST_BYTES

    async def gzip(self) -> bytes:
        """The body compressed, once."""
        if self.gzipped is None:
            self.gzipped = await to_thread.run_sync(lambda: gzip.compress(self.body, 5, mtime=0))
        return self.gzipped


@dataclass(frozen=True)
class _CacheRequest:
    """What of a request decides its answer."""

    key: _Key
    names_tags: bool
    takes_gzip: bool

    @classmethod
    def of(cls, scope: Scope) -> _CacheRequest:
        found: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            # Every header of a name counts: an answer to two of them must not be told to who sent one.
            found[name] = found[name] + b"," + value if name in found else value
        key = (scope["path"], scope["query_string"], found.get(b"accept", b""))
        return cls(key, b"if-none-match" in found, b"gzip" in found.get(b"accept-encoding", b""))


class ResponseCache:
    """ASGI middleware around what depends on nothing but path, query and Accept header, and only reads.

    Kept is what was answered with 200 and without `no-store`, `MOST_BYTES` in all, the longest unasked for
    going first. Requests for one answer that come while it is made wait for it together. `held_s` 0 keeps
    answers but asks for each whether it still holds; with `share` 0 none holds longer for having taken long.
    `clock` is in seconds.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        held_s: float = HELD_S,
        share: float = SHARE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._held_s = held_s
        self._share = share
        self._clock = clock
        self._kept: OrderedDict[_Key, _Made] = OrderedDict()
        self._kept_bytes = 0
        self._being_made: dict[_Key, asyncio.Task[_Made]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        asked = _CacheRequest.of(scope)
        made = self._kept.get(asked.key)
        if made is None or self._clock() >= made.until:
            made = await self._made_now(scope, asked.key)
        else:
            self._kept.move_to_end(asked.key)
        await _tell(made, asked, scope, send)

    async def _made_now(self, scope: Scope, key: _Key) -> _Made:
        task = self._being_made.get(key)
        if task is None:
            task = self._being_made[key] = asyncio.create_task(self._make(scope, key))
            task.add_done_callback(lambda done: self._end_making(key, done))
        return await asyncio.shield(task)

    def _end_making(self, key: _Key, done: asyncio.Task[_Made]) -> None:
        del self._being_made[key]
        if not done.cancelled():
            done.exception()  # Whoever waited was told; where everybody left, nobody is.

    async def _make(self, scope: Scope, key: _Key) -> _Made:
        known = self._kept.get(key)
        began = self._clock()
        made = await _answer_of(self._app, scope, known.tag if known else None)
        if made.status == 304 and known is not None:
            made = known
        ended = self._clock()
        long = min(LONGEST_S, self._share * (ended - began)) if self._held_s else 0.0
        made.until = ended + max(self._held_s, long)
        self._forget(key)
        if made.may_be_kept:
            self._keep(key, made)
        return made

    def _keep(self, key: _Key, made: _Made) -> None:
        self._kept[key] = made
        self._kept_bytes += _size(key, made)
        while self._kept_bytes > MOST_BYTES:
            self._forget(next(iter(self._kept)))

    def _forget(self, key: _Key) -> None:
        made = self._kept.pop(key, None)
        if made is not None:
            self._kept_bytes -= _size(key, made)


def _size(key: _Key, made: _Made) -> int:
    # Twice the body: it may be compressed later, to less than itself.
    return 2 * len(made.body) + sum(map(len, key)) + _ENTRY_BYTES


async def _answer_of(app: ASGIApp, scope: Scope, tag: bytes | None) -> _Made:
    """What `app` answers to the request of `scope`, asked whether the answer with `tag` still holds."""
    headers = [each for each in scope["headers"] if each[0] not in {b"if-none-match", b"accept-encoding"}]
    if tag is not None:
        headers.append((b"if-none-match", tag))
    status, told, body = 0, list[_Header](), bytearray()

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
            told.extend(message["headers"])
        else:
            body.extend(message.get("body", b""))

    await app({**scope, "headers": headers}, receive, send)
    return _Made(status, told, bytes(body))


async def _tell(made: _Made, asked: _CacheRequest, scope: Scope, send: Send) -> None:
    status, headers, body = made.status, list(made.headers), made.body
    if status == 200 and asked.names_tags and made.tag and unchanged(Request(scope), made.tag.decode()):
        status, body = 304, b""
        headers = [each for each in headers if each[0] in _HEADERS_OF_304]
    elif asked.takes_gzip and status == 200 and len(body) >= _WORTH_COMPRESSING_BYTES:
        body = await made.gzip()
        headers = [each for each in headers if each[0] not in {b"content-length", b"vary"}]
        headers += [
            (b"content-length", str(len(body)).encode()),
            (b"content-encoding", b"gzip"),
            (b"vary", b"Accept, Accept-Encoding"),
        ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
