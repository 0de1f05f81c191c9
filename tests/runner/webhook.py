"""A webhook on loopback that keeps what it is sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Webhook:
    """Its address and the documents that arrived."""

    address: str
    messages: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def webhook(path: str = "/") -> Iterator[Webhook]:
    """Receiving until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            receiving.messages.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing on standard error."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiving = Webhook(f"http://127.0.0.1:{server.server_address[1]}{path}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield receiving
    server.shutdown()
    thread.join()
    server.server_close()
