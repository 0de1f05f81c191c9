"""Which release made a change: a search that halves the releases, and the place of one before or after it.

A release is after the change where it stands beyond half of the whole way, on a log scale, and before it
where it does not; its interval decides, so an open one asks for more trials. Source: binary search; the half
way keeps a second, smaller change on the way from misleading it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from compilewatch.db.columns.metrics import is_counted
from compilewatch.db.judge.decide import MOVED
from compilewatch.db.judge.results import Row

HALF_WAY = 0.5


class ReleasePlace(StrEnum):
    """Where a release stands. `skipped` ones cannot be measured, `open` ones not be decided."""

    BEFORE = "before"
    AFTER = "after"
    OPEN = "open"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Bracket:
    """The change lies between `last_before` and `first_after`; `between` are releases that did not decide."""

    last_before: str
    first_after: str
    between: tuple[str, ...]


def most_builds(releases: int) -> int:
    """How many of `releases` releases are measured at most, both ends counted, where every one decides."""
    return min(releases, 2 + math.ceil(math.log2(max(1, releases - 1))))


def search(
    releases: Sequence[str], place_of: Callable[[str], ReleasePlace], *, known: Collection[str] = ()
) -> Bracket:
    """Halve `releases`, whose first is before the change and whose last is after it, until it is found.

    `place_of` is called for one release after the other. Those in `known` cost nothing and go first where two
    are as near to the middle.
    """
    low, high = 0, len(releases) - 1
    undecided: set[int] = set()
    while True:
        waiting = [number for number in range(low + 1, high) if number not in undecided]
        if not waiting:
            between = tuple(releases[number] for number in range(low + 1, high))
            return Bracket(releases[low], releases[high], between)
        middle = (low + high) / 2
        number = min(waiting, key=lambda each: (abs(each - middle), releases[each] not in known))
        match place_of(releases[number]):
            case ReleasePlace.BEFORE:
                low = number
            case ReleasePlace.AFTER:
                high = number
            case _:
                undecided.add(number)


def place_of(row: Row, whole: Row) -> ReleasePlace:
    """Where a release stands: `row` is what is judged of it against the first release, `whole` of the last
    against the first.
    """
    if is_counted(row.metric):
        if row.head == whole.base:
            return ReleasePlace.BEFORE
        return ReleasePlace.AFTER if row.head == whole.head else ReleasePlace.OPEN
    if whole.change is None or row.interval is None:
        return ReleasePlace.OPEN
    way = math.log1p(whole.change)
    ends = sorted(math.log1p(end) / way for end in row.interval)
    if ends[0] > HALF_WAY:
        return ReleasePlace.AFTER
    return ReleasePlace.BEFORE if ends[1] < HALF_WAY else ReleasePlace.OPEN


def has_moved(row: Row) -> bool:
    """Whether a row shows a change that can be searched for."""
    return row.verdict in MOVED and (row.change is not None or is_counted(row.metric))
