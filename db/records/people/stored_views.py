"""Stored views: a link that is too long to send, under an id short enough to type."""

from __future__ import annotations

import base64
import hashlib

ID_LENGTH = 12
LONGEST_LINK = 60_000


def view_id_of(link: str) -> str:
    """The id of `link`: 60 bits of its SHA-256 in lower-case letters and digits, so one view has one id."""
    digest = hashlib.sha256(link.encode()).digest()
    return base64.b32encode(digest).decode().lower()[:ID_LENGTH]
