"""Which two builds the page Upgrade sets against each other where its link names none or one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dashboard.links import Link


def with_builds(link: Link, measured: Sequence[str], builds: Sequence[str]) -> Link:
    """Both builds named: the one measured last against the one measured before it, unless asked otherwise.

    Both lists begin with the newest, and `builds` has at least two. Imported ones of `builds` come after all
    that were `measured`.
    """
    order = [*measured, *builds]
    head = link.head or next(build for build in order if build != link.base)
    return replace(link, base=link.base or [*_before(head, measured), *_before(head, builds)][0], head=head)


def _before(head: str, builds: Sequence[str]) -> list[str]:
    """The others of `builds`, newest first: those before `head`, then those after it."""
    place = builds.index(head) if head in builds else len(builds)
    return [*builds[place + 1 :], *builds[:place]]
