"""How often one client may ask: a token bucket per address, refused requests told when to come back."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from dashboard.api.errors import error_response

BURST = 120
PER_SECOND = 20.0
_MOST_CLIENTS = 10_000


class RateLimit:
    """ASGI middleware: each address may send `burst` requests at once and `per_second` from then on.

    The buckets live in this process; the longest unheard of go first beyond `_MOST_CLIENTS`, so that many
    addresses cannot fill the memory.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        burst: int = BURST,
        per_second: float = PER_SECOND,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._burst = burst
        self._per_second = per_second
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        wait_s = self.take(str((scope.get("client") or ("unknown",))[0]))
        if wait_s == 0:
            await self._app(scope, receive, send)
            return
        seconds = max(1, math.ceil(wait_s))
        refused = error_response(
            429,
            f"More than {self._per_second:g} requests per second came from this address.",
            f"Wait {seconds} s, and send If-None-Match with the last ETag where you poll.",
            {"Retry-After": str(seconds)},
        )
        await refused(scope, receive, send)

    def take(self, client: str) -> float:
        """Take one token of `client`: 0 where there was one, else the seconds until there is."""
        now = self._clock()
        tokens, since = self._buckets.pop(client, (float(self._burst), now))
        tokens = min(float(self._burst), tokens + (now - since) * self._per_second)
        granted = tokens >= 1
        self._buckets[client] = (tokens - 1 if granted else tokens, now)
        if len(self._buckets) > _MOST_CLIENTS:
            self._buckets.popitem(last=False)
        return 0.0 if granted else (1 - tokens) / self._per_second
