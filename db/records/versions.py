"""The order of versions."""

from __future__ import annotations

import re
from functools import lru_cache

from packaging.version import InvalidVersion, Version

_NUMBER = re.compile(r"(\d+)")
# What no one can order comes before everything that can be.
_UNKNOWN = Version("0.dev0")

VersionKey = tuple[Version, tuple[tuple[int, str], ...]]


@lru_cache(maxsize=4096)
def version_key(version: str | None) -> VersionKey:
    """Sorts versions by PEP 440, and what is no such version (a driver, a kernel) by its numbers and words.

    Missing versions come first; equal versions that are written differently keep a fixed order.
    """
    try:
        parsed = Version(version or "")
    except InvalidVersion:
        parsed = _UNKNOWN
    parts = _NUMBER.split(version or "")
    return parsed, tuple((int(part), "") if part.isdecimal() else (-1, part) for part in parts if part)
