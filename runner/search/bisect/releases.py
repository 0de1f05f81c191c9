"""The releases of torch between two that pip can install here."""

from __future__ import annotations

import sys
from pathlib import Path

from packaging.version import Version

from compilewatch.db.errors import CompilewatchError
from compilewatch.runner.plan.builds import BuildError, distinct_releases, offered_versions, parsed_release


def releases_between(good: str, bad: str, *, index_url: str | None = None, early: bool = False) -> list[str]:
    """All releases from `good` to `bad`, both included, in the order of the search: `bad` may be the older
    one. Nightlies and candidates only with `early`.

    Raises CompilewatchError where they are the same, BuildError where pip offers none of one.
    """
    first, last = (parsed_release(each) for each in (good, bad))
    if Version(first) == Version(last):
        raise CompilewatchError("Both ends are the same release.", "Name two releases of torch.")
    found = offered_versions(Path(sys.executable), "torch", index_url=index_url, early=early)
    offered = distinct_releases(found)
    for end in (first, last):
        if Version(end) not in offered:
            newest = ", ".join(str(each) for each in offered[-5:])
            raise BuildError(
                f"pip finds no torch=={end} for this Python and platform.", f"It offers {newest}."
            )
    low, high = sorted((Version(first), Version(last)))
    between = [str(each) for each in offered if low <= each <= high]
    return between if Version(first) == low else between[::-1]
