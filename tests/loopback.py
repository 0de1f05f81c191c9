"""A server of HTTP on loopback that lasts as long as a block of a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class Quiet(BaseHTTPRequestHandler):
    """Writes nothing to standard error."""

    def log_message(self, *_: object) -> None:
        """Nothing: tests look at what arrived."""


@contextmanager
def on_loopback(handler: Callable[..., BaseHTTPRequestHandler]) -> Iterator[str]:
    """The address, without a slash at its end, where `handler` answers until the block ends."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:  # type: ignore[arg-type]
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
