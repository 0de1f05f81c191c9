"""What a process calls itself in the database, where those of one host are told apart."""

from __future__ import annotations

import os
import secrets


def owner_of(host: str) -> str:
    """This process of `host`: "box:4711:9f3c". Process ids come again, in containers at once."""
    return f"{host}:{os.getpid()}:{secrets.token_hex(2)}"
