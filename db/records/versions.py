"""The order of versions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from packaging.version import InvalidVersion, Version

from compilewatch.db.units import words

_NUMBER = re.compile(r"(\d+)")
# What no one can order comes before everything that can be.
_UNKNOWN = Version("0.dev0")

VersionKey = tuple[Version, tuple[tuple[int, str], ...]]


STACK = ("torch", "torch_variant", "cuda", "driver", "triton", "cudnn", "python", "os")
"""Parts of a build in the order in which they decide which of two is the newer one."""


_SPOKEN = {name: words(name) for name in ("torch_variant", "torch_git")}


def component_name(component: str) -> str:
    """What people call a part of a build; a library keeps the name under which it is installed."""
    return _SPOKEN.get(component, component)


def stack_order(build: Mapping[str, Any]) -> tuple[VersionKey, ...]:
    """The versions of a build, a row of any frame that has these, as builds are sorted by them."""
    return tuple(map(version_key, map(build.get, STACK)))


# More than a decade of nightly builds: one that is forgotten is read anew with every look at the choices.
@lru_cache(maxsize=16_384)
def version_key(version: object) -> VersionKey:
    """Sorts versions by PEP 440, and what is no such version (a driver, a kernel) by its numbers and words.

    Missing versions (what is no text) come first; equal versions that are written differently keep a fixed
    order.
    """
    text = version if isinstance(version, str) else ""
    try:
        parsed = Version(text)
    except InvalidVersion:
        parsed = _UNKNOWN
    parts = _NUMBER.split(text)
    return parsed, tuple((int(part), "") if part.isdecimal() else (-1, part) for part in parts if part)
