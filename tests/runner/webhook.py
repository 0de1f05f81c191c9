"""A webhook on loopback that keeps what it is sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.loopback import Quiet, on_loopback


@dataclass
class Webhook:
    """Its address and the documents that arrived."""

    address: str
    messages: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def webhook(path: str = "/") -> Iterator[Webhook]:
    """Receiving until the block ends."""

    class Handler(Quiet):
        def do_POST(self) -> None:
            receiving.messages.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

    with on_loopback(Handler) as address:
        receiving = Webhook(address + path)
        yield receiving
