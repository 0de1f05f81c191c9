"""Answers told again: for how long, to whom, how often they are made, and that they are never another's."""

from __future__ import annotations

import asyncio
import gzip
from dataclasses import dataclass, field

import pytest
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from dashboard.api.response_cache import (
    LARGEST_BYTES,
    LIFETIME_S,
    LONGEST_S,
    MOST_BYTES,
    SHARE,
    ResponseCache,
)


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Route:
    """The application behind: counts what it makes, and knows entity tags."""

    clock: Clock
    tag: str = 'W/"1"'
    body: str = "first"
    status: int = 200
    control: str = "no-cache"
    takes_s: float = 0.0
    made: int = 0
    asked: list[dict[bytes, bytes]] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        self.asked.append(headers)
        self.clock.now += self.takes_s
        await asyncio.sleep(0)
        told = {"ETag": self.tag, "Cache-Control": self.control, "Vary": "Accept"}
        if headers.get(b"if-none-match", b"").decode() == self.tag:
            await Response(status_code=304, headers=told)(scope, receive, send)
            return
        self.made += 1
        kind = next((value for name, value in scope["headers"] if name == b"accept"), b"").decode()
        await Response(f"{self.body}{kind}", self.status, told)(scope, receive, send)


@dataclass
class Told:
    status: int
    headers: dict[str, str]
    body: bytes


async def get(
    app: ResponseCache, path: str = "/a", query: str = "", *headers: tuple[str, str], method: str = "GET"
) -> Told:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    raw = [(name.encode(), value.encode()) for name, value in headers]
    scope = {"type": "http", "method": method, "path": path, "query_string": query.encode(), "headers": raw}
    await app(scope, receive, send)
    told = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return Told(sent[0]["status"], told, b"".join(each.get("body", b"") for each in sent[1:]))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def route(clock: Clock) -> Route:
    return Route(clock)


@pytest.fixture
def kept(route: Route, clock: Clock) -> ResponseCache:
    return ResponseCache(route, clock=clock)


def test_an_answer_is_told_again_for_a_second_and_then_asked_for_anew(
    kept: ResponseCache, route: Route, clock: Clock
) -> None:
    async def poll() -> None:
        assert (await get(kept)).body == b"first"
        route.tag, route.body = 'W/"2"', "second"
        clock.now += LIFETIME_S - 0.01
        assert (await get(kept)).body == b"first"
        assert len(route.asked) == 1
        clock.now += 0.01
        assert (await get(kept)).body == b"second"

    asyncio.run(poll())


def test_an_answer_that_still_holds_is_not_made_again(
    kept: ResponseCache, route: Route, clock: Clock
) -> None:
    async def poll() -> None:
        for _ in range(5):
            assert (await get(kept)).body == b"first"
            clock.now += LIFETIME_S

    asyncio.run(poll())
    assert (len(route.asked), route.made) == (5, 1)


@pytest.mark.parametrize(("takes_s", "lifetime_s"), [(0.5, SHARE * 0.5), (60.0, LONGEST_S)])
def test_what_took_long_to_make_holds_longer(
    kept: ResponseCache, route: Route, clock: Clock, takes_s: float, lifetime_s: float
) -> None:
    async def poll() -> None:
        route.takes_s = takes_s
        await get(kept)
        clock.now += lifetime_s - 0.01
        await get(kept)
        assert len(route.asked) == 1
        clock.now += 0.01
        await get(kept)
        assert len(route.asked) == 2

    asyncio.run(poll())


def test_what_must_be_new_holds_a_second_however_long_it_took(route: Route, clock: Clock) -> None:
    async def poll() -> None:
        kept = ResponseCache(route, clock=clock, share=0)
        route.takes_s = 60.0
        await get(kept)
        clock.now += LIFETIME_S
        await get(kept)

    asyncio.run(poll())
    assert len(route.asked) == 2


def test_an_entity_tag_is_answered_with_304_whether_kept_or_new(kept: ResponseCache, route: Route) -> None:
    async def poll() -> None:
        for _ in range(2):
            told = await get(kept, "/a", "", ("if-none-match", '"other", W/"1"'))
            assert (told.status, told.body) == (304, b"")
            assert told.headers == {"etag": 'W/"1"', "cache-control": "no-cache", "vary": "Accept"}
        assert (await get(kept, "/a", "", ("if-none-match", 'W/"0"'))).status == 200

    asyncio.run(poll())
    assert route.made == 1


def test_who_asks_while_an_answer_is_made_waits_for_it(kept: ResponseCache, route: Route) -> None:
    async def all_at_once() -> list[Told]:
        return await asyncio.gather(*(get(kept) for _ in range(50)))

    assert {told.body for told in asyncio.run(all_at_once())} == {b"first"}
    assert route.made == 1


def test_a_defect_is_told_to_everybody_who_waits_and_is_not_kept(clock: Clock) -> None:
    calls = []

    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        calls.append(scope)
        await asyncio.sleep(0)
        raise ValueError("broken")

    async def all_at_once() -> list[Told | BaseException]:
        kept = ResponseCache(broken, clock=clock)
        first = await asyncio.gather(*(get(kept) for _ in range(3)), return_exceptions=True)
        return [*first, *await asyncio.gather(get(kept), return_exceptions=True)]

    assert all(isinstance(told, ValueError) for told in asyncio.run(all_at_once()))
    assert len(calls) == 2


def test_other_paths_queries_and_media_types_have_answers_of_their_own(
    kept: ResponseCache, route: Route
) -> None:
    async def poll() -> None:
        for ask in (("/a", ""), ("/b", ""), ("/a", "x=1"), ("/a", "x=2")):
            await get(kept, *ask)
        assert (await get(kept, "/a", "", ("accept", "text/csv"))).body == b"firsttext/csv"

    asyncio.run(poll())
    assert route.made == 5


def test_two_accept_headers_are_not_taken_for_one_of_them(kept: ResponseCache) -> None:
    """Who sends both gets what the first asks for; who sends the second alone must not be told that."""

    async def poll() -> None:
        both = await get(kept, "/a", "", ("accept", "text/csv"), ("accept", "application/json"))
        assert both.body == b"firsttext/csv"
        for accept in ("application/json", "text/csv"):
            assert (await get(kept, "/a", "", ("accept", accept))).body == f"first{accept}".encode()

    asyncio.run(poll())


@pytest.mark.parametrize(
    "unlike",
    [{"control": "no-store"}, {"status": 404}, {"status": 503}, {"body": "x" * (LARGEST_BYTES + 1)}],
    ids=["no-store", "404", "503", "large"],
)
def test_what_may_not_be_kept_is_made_every_time(
    kept: ResponseCache, route: Route, unlike: dict[str, str]
) -> None:
    for name, value in unlike.items():
        setattr(route, name, value)

    async def poll() -> None:
        for _ in range(3):
            assert (await get(kept)).status == route.status

    asyncio.run(poll())
    assert route.made == 3


def test_what_is_no_get_is_passed_on(kept: ResponseCache, route: Route) -> None:
    async def poll() -> None:
        for method in ("GET", "HEAD", "POST", "HEAD"):
            await get(kept, method=method)

    asyncio.run(poll())
    assert len(route.asked) == 4


def test_with_no_time_to_hold_every_request_looks_whether_anything_is_new(route: Route, clock: Clock) -> None:
    async def poll() -> None:
        kept = ResponseCache(route, clock=clock, lifetime_s=0)
        assert (await get(kept)).body == (await get(kept)).body == b"first"
        route.tag, route.body = 'W/"2"', "second"
        assert (await get(kept)).body == b"second"

    asyncio.run(poll())
    assert route.made == 2


def test_a_long_answer_is_compressed_for_who_takes_that(kept: ResponseCache, route: Route) -> None:
    route.body = "0123456789" * 500

    async def poll() -> None:
        plain = await get(kept)
        packed = await get(kept, "/a", "", ("accept-encoding", "gzip, br"))
        assert packed.headers["content-encoding"] == "gzip"
        assert int(packed.headers["content-length"]) == len(packed.body) < 500
        assert gzip.decompress(packed.body) == plain.body == route.body.encode()
        assert "content-encoding" not in (await get(kept)).headers
        assert packed.headers["vary"] == "Accept, Accept-Encoding"

    asyncio.run(poll())
    assert route.made == 1


def test_many_different_questions_do_not_fill_the_memory(kept: ResponseCache, route: Route) -> None:
    route.body = "x" * 1_000_000

    async def poll() -> None:
        for number in range(100):
            await get(kept, "/a", f"workload={number}")
            assert sum(2 * len(made.body) for made in kept._answers.values()) <= MOST_BYTES
        asked = len(route.asked)
        await get(kept, "/a", "workload=99")
        assert len(route.asked) == asked
        await get(kept, "/a", "workload=0")
        assert len(route.asked) == asked + 1

    asyncio.run(poll())
    assert kept._bytes <= MOST_BYTES
