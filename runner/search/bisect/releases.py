"""The releases of torch between two that pip can install here."""

from __future__ import annotations

import sys
from pathlib import Path

from packaging.version import InvalidVersion, Version

from db.errors import CompilewatchError
from runner.plan.builds import BuildError, offered_versions, parsed_release


class BisectError(CompilewatchError):
    """There is nothing to bisect."""


def releases_between(good: str, bad: str, *, index_url: str | None = None, early: bool = False) -> list[str]:
    """All releases from `good` to `bad`, both included, in the order of the search: `bad` may be the older
    one. Nightlies and candidates only with `early`.

    Raises BisectError where they are the same, BuildError where pip offers none of one.
    """
    first, last = (parsed_release(each) for each in (good, bad))
    if Version(first) == Version(last):
        raise BisectError("Both ends are the same release.", "Name two releases of torch.")
    offered = _public(offered_versions(Path(sys.executable), "torch", index_url=index_url, early=early))
    for end in (first, last):
        if Version(end) not in offered:
            newest = ", ".join(str(each) for each in offered[-5:])
            raise BuildError(
                f"pip finds no torch=={end} for this Python and platform.", f"It offers {newest}."
            )
    low, high = sorted((Version(first), Version(last)))
    between = [str(each) for each in offered if low <= each <= high]
    return between if Version(first) == low else between[::-1]


def _public(offered: list[str]) -> list[Version]:
    """Each release once, oldest first; "2.13.0+cpu" is a build of 2.13.0."""
    versions = set()
    for text in offered:
        try:
            versions.add(Version(Version(text).public))
        except InvalidVersion:
            continue
    return sorted(versions)
