"""How often one client may ask: a token bucket per address, refused requests told when to come back."""

from __future__ import annotations

import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from compilewatch.dashboard.http.errors import error_response

BURST = 120
PER_SECOND = 20.0
_MOST_CLIENTS = 10_000


class Buckets:
    """Tokens by address: `burst` at once, and `per_second` from then on.

    An IPv6 address counts as its network of 64 bits, the least that a single subscriber is given. The longest
    unheard of go first beyond `_MOST_CLIENTS`, so that many addresses cannot fill the memory.
    """

    def __init__(self, burst: int, per_second: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._burst = burst
        self.per_second = per_second
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str) -> float:
        """Take one token of `client`: 0 where there was one, else the seconds until there is."""
        name = _subscriber(client) if ":" in client else client
        tokens, now = self._tokens(name)
        granted = tokens >= 1
        self._buckets[name] = (tokens - 1 if granted else tokens, now)
        self._buckets.move_to_end(name)
        if len(self._buckets) > _MOST_CLIENTS:
            self._buckets.popitem(last=False)
        return 0.0 if granted else (1 - tokens) / self.per_second

    def wait_s(self, client: str) -> float:
        """As `take`, and nothing is taken."""
        tokens, _ = self._tokens(_subscriber(client) if ":" in client else client)
        return 0.0 if tokens >= 1 else (1 - tokens) / self.per_second

    def _tokens(self, name: str) -> tuple[float, float]:
        now = self._clock()
        tokens, since = self._buckets.get(name, (float(self._burst), now))
        return min(float(self._burst), tokens + (now - since) * self.per_second), now


class RateLimit:
    """ASGI middleware: each address may send `burst` requests at once and `per_second` from then on.

    The buckets live in this process.
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
        self._buckets = Buckets(burst, per_second, clock=clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            wait_s = self.take(client_of(scope))
            if wait_s:
                await too_many(wait_s, self._buckets.per_second)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def take(self, client: str) -> float:
        """Take one token of `client`: 0 where there was one, else the seconds until there is."""
        return self._buckets.take(client)


def client_of(scope: Scope) -> str:
    """The address that a request comes from."""
    return str((scope.get("client") or ("unknown",))[0])


def too_many(wait_s: float, per_second: float) -> Response:
    """429, with `wait_s` rounded up to whole seconds as Retry-After."""
    seconds = max(1, math.ceil(wait_s))
    return error_response(
        429,
        f"This address exceeds its rate of {per_second:g} per second.",
        f"Wait {seconds} s, and send If-None-Match with the last ETag where you poll.",
        {"Retry-After": str(seconds)},
    )


def _subscriber(address: str) -> str:
    try:
        ipv6 = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if ipv6.ipv4_mapped is not None:
        return str(ipv6.ipv4_mapped)
    return str(ipaddress.IPv6Network((ipv6, 64), strict=False))
