"""Pages, pictures and answers take turns at the processor: few are made at the same time.

A request waits for its turn in the event loop, so that none of those that wait holds a thread that answers.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from compilewatch.dashboard.http.errors import BusyError
from compilewatch.dashboard.http.rate_limit import client_of

AT_ONCE = 2
"""How many pages are drawn at the same time."""
LONGEST_S = 10.0
"""How long a page is waited for: several times what the dearest one computes over a million trials."""


class RenderLimit:
    """At most `at_once` pages are drawn at the same time; the others wait. Safe to share between threads.

    Threads that compute take turns at one interpreter, and fifty of them that all take turns with the event
    loop leave it a fiftieth of the time, in which it must answer everybody else.

    A page that has been drawn for `longest_s` most likely hangs in a read of its database and computes
    nothing: it is drawn on, but nobody waits for its turn any longer. So pages that hang, however many and
    for however long, hold up only those that need just what is being read. `clock` is in seconds.
    """

    def __init__(
        self,
        at_once: int = AT_ONCE,
        *,
        longest_s: float = LONGEST_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._at_once = at_once
        self._longest_s = longest_s
        self._clock = clock
        self._changed = threading.Condition()
        self._waited_for_until: dict[object, float] = {}
        self._wake: list[Callable[[], object]] = []

    @contextmanager
    def take(self) -> Iterator[None]:
        """Wait for a turn, and have it until the end of the block."""
        turn = object()
        with self._changed:
            while (wait_s := self._begin(turn)) > 0:
                self._changed.wait(wait_s)
        try:
            yield
        finally:
            self._end(turn)

    @asynccontextmanager
    async def take_in_loop(self) -> AsyncIterator[None]:
        """As `take`, for what must not hold a thread while it waits."""
        turn, loop = object(), asyncio.get_running_loop()
        while True:
            freed = asyncio.Event()
            wake = partial(loop.call_soon_threadsafe, freed.set)
            with self._changed:
                wait_s = self._begin(turn)
                if not wait_s:
                    break
                self._wake.append(wake)
            try:
                with suppress(TimeoutError):
                    await asyncio.wait_for(freed.wait(), wait_s)
            finally:
                with self._changed, suppress(ValueError):
                    self._wake.remove(wake)
        try:
            yield
        finally:
            self._end(turn)

    def _begin(self, turn: object) -> float:
        """0 where `turn` begins now, else as `_wait_s`."""
        wait_s = self._wait_s()
        if not wait_s:
            self._waited_for_until[turn] = self._clock() + self._longest_s
        return wait_s

    def _end(self, turn: object) -> None:
        with self._changed:
            del self._waited_for_until[turn]
            self._changed.notify_all()
            while self._wake:
                self._wake.pop(0)()

    def _wait_s(self) -> float:
        """The seconds until there is a turn, unless a page ends before; 0 where there is one now."""
        now = self._clock()
        ends = [until for until in self._waited_for_until.values() if until > now]
        return 0.0 if len(ends) < self._at_once else min(ends) - now


RENDER_LIMIT = RenderLimit()
"""Those of the pages of this process."""

OF_READER, IN_ALL = 12, 18
"""How many requests of one address, and how many in all, may wait or be made at once: two such queues leave a
part of the server's 40 threads free whatever hangs. A browser sends six at a time."""
RETRY_S = 2


class Queue:
    """Requests that take `turns`: at most `of_reader` of an address and `in_all` wait. Of one event loop."""

    def __init__(self, turns: RenderLimit, *, of_reader: int = OF_READER, in_all: int = IN_ALL) -> None:
        self._turns = turns
        self._of_reader = of_reader
        self._in_all = in_all
        self._readers: Counter[str] = Counter()

    async def answer(self, make: Callable[[], Response], reader: str) -> Response:
        """What `make` answers in its turn, in a thread. Raises BusyError where too many wait."""
        mine = self._readers[reader] >= self._of_reader
        if mine or self._readers.total() >= self._in_all:
            who = f"This address has {self._of_reader}" if mine else f"All readers have {self._in_all}"
            raise BusyError(
                f"{who} requests in work, which is the most at once.", f"Wait {RETRY_S} s.", RETRY_S
            )
        self._readers[reader] += 1
        try:
            async with self._turns.take_in_loop():
                return await run_in_threadpool(make)
        finally:
            self._readers[reader] -= 1
            self._readers += Counter()  # without those that have none left

    def __call__(self, answer: Callable[[Request], Response]) -> Callable[[Request], Awaitable[Response]]:
        """`answer` as a route that takes its turn."""

        async def handle(request: Request) -> Response:
            return await self.answer(partial(answer, request), client_of(request.scope))

        return handle


DRAWINGS = Queue(RENDER_LIMIT)
"""Pictures and documents, which take turns with the pages."""
ANSWERS = Queue(RenderLimit())
"""What programs ask for: it waits for no page."""
