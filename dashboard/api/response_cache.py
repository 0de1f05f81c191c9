"""Recent answers are sent again: a poll mostly repeats a request of a moment ago.

An answer holds for `LIFETIME_S`, or for `SHARE` times the time it took, up to `LONGEST_S`. So a route
that is polled while data is being written takes a bounded share of a processor. After that the route gets the
answer's entity tag: with nothing new, that costs one read of the data version.
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

LIFETIME_S = 1.0
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
class _CachedAnswer:
    """What the application behind answered; `until` is the moment up to which it may be told again."""

    status: int
    headers: list[_Header]
    body: bytes
    until: float = 0.0
    gzipped: bytes | None = None
    tag: bytes | None = field(init=False)
    is_cacheable: bool = field(init=False)

    def __post_init__(self) -> None:
        named = dict(self.headers)
        self.tag = named.get(b"etag")
        private = b"no-store" in named.get(b"cache-control", b"")
        self.is_cacheable = self.status == 200 and not private and len(self.body) <= LARGEST_BYTES

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
        headers: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            # Every header of a name counts: an answer to two of them must not be told to who sent one.
            headers[name] = headers[name] + b"," + value if name in headers else value
        key = (scope["path"], scope["query_string"], headers.get(b"accept", b""))
        return cls(key, b"if-none-match" in headers, b"gzip" in headers.get(b"accept-encoding", b""))


class ResponseCache:
    """ASGI middleware around what depends on nothing but path, query and Accept header, and only reads.

    Kept is what was answered with 200 and without `no-store`, `MOST_BYTES` in all, the longest unasked for
    going first. Requests for one answer that come while it is made wait for it together. `lifetime_s` 0 keeps
    answers but asks for each whether it still holds; with `share` 0 none holds longer for having taken long.
    `clock` is in seconds.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        lifetime_s: float = LIFETIME_S,
        share: float = SHARE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._lifetime_s = lifetime_s
        self._share = share
        self._clock = clock
        self._answers: OrderedDict[_Key, _CachedAnswer] = OrderedDict()
        self._bytes = 0
        self._pending: dict[_Key, asyncio.Task[_CachedAnswer]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        request = _CacheRequest.of(scope)
        answer = self._answers.get(request.key)
        if answer is None or self._clock() >= answer.until:
            answer = await self._answer_now(scope, request.key)
        else:
            self._answers.move_to_end(request.key)
        await _send(answer, request, scope, send)

    async def _answer_now(self, scope: Scope, key: _Key) -> _CachedAnswer:
        task = self._pending.get(key)
        if task is None:
            task = self._pending[key] = asyncio.create_task(self._make(scope, key))
            task.add_done_callback(lambda ended: self._end_making(key, ended))
        return await asyncio.shield(task)

    def _end_making(self, key: _Key, ended: asyncio.Task[_CachedAnswer]) -> None:
        del self._pending[key]
        if not ended.cancelled():
            ended.exception()  # Whoever waited was told; where everybody left, nobody is.

    async def _make(self, scope: Scope, key: _Key) -> _CachedAnswer:
        known = self._answers.get(key)
        began = self._clock()
        answer = await _answer_of(self._app, scope, known.tag if known else None)
        if answer.status == 304 and known is not None:
            answer = known
        ended = self._clock()
        long = min(LONGEST_S, self._share * (ended - began)) if self._lifetime_s else 0.0
        answer.until = ended + max(self._lifetime_s, long)
        self._forget(key)
        if answer.is_cacheable:
            self._store(key, answer)
        return answer

    def _store(self, key: _Key, answer: _CachedAnswer) -> None:
        self._answers[key] = answer
        self._bytes += _size(key, answer)
        while self._bytes > MOST_BYTES:
            self._forget(next(iter(self._answers)))

    def _forget(self, key: _Key) -> None:
        answer = self._answers.pop(key, None)
        if answer is not None:
            self._bytes -= _size(key, answer)


def _size(key: _Key, answer: _CachedAnswer) -> int:
    # Twice the body: it may be compressed later, to less than itself.
    return 2 * len(answer.body) + sum(map(len, key)) + _ENTRY_BYTES


async def _answer_of(app: ASGIApp, scope: Scope, tag: bytes | None) -> _CachedAnswer:
    """What `app` answers to the request of `scope`, asked whether the answer with `tag` still holds."""
    headers = [each for each in scope["headers"] if each[0] not in {b"if-none-match", b"accept-encoding"}]
    if tag is not None:
        headers.append((b"if-none-match", tag))
    status, answer_headers, body = 0, list[_Header](), bytearray()

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
            answer_headers.extend(message["headers"])
        else:
            body.extend(message.get("body", b""))

    await app({**scope, "headers": headers}, receive, send)
    return _CachedAnswer(status, answer_headers, bytes(body))


async def _send(answer: _CachedAnswer, request: _CacheRequest, scope: Scope, send: Send) -> None:
    status, headers, body = answer.status, list(answer.headers), answer.body
    if status == 200 and request.names_tags and answer.tag and unchanged(Request(scope), answer.tag.decode()):
        status, body = 304, b""
        headers = [each for each in headers if each[0] in _HEADERS_OF_304]
    elif request.takes_gzip and status == 200 and len(body) >= _WORTH_COMPRESSING_BYTES:
        body = await answer.gzip()
        headers = [each for each in headers if each[0] not in {b"content-length", b"vary"}]
        headers += [
            (b"content-length", str(len(body)).encode()),
            (b"content-encoding", b"gzip"),
            (b"vary", b"Accept, Accept-Encoding"),
        ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
