"""Which two builds the page Upgrade sets against each other where its link names none or one, and what
changed most between them, on which other pages open.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import pandas as pd

from compilewatch.dashboard.links import links
from compilewatch.dashboard.links.links import Link, Page, verdict_metric
from compilewatch.dashboard.parts.cases import focus_of
from compilewatch.dashboard.read.data import (
    filters_of,
    read_builds,
    read_builds_newest_first,
    read_choices,
    read_choices_on,
    read_pair,
    read_series_by_build,
    read_workloads,
)
from compilewatch.dashboard.read.shaping import labels_of
from compilewatch.db.judge.compare.sides import VerdictError
from compilewatch.db.judge.decide import MOVED
from compilewatch.db.judge.results import Comparison
from compilewatch.db.queries.selection import Filters
from compilewatch.db.records.trial import Status

_NEWEST_VERSIONS = 12
_RUNS_OF_BUILD = 3


def with_builds(link: Link) -> Link:
    """Both builds named. Where the link names none, the head is the newest in order of versions that has a
    comparable case with an older one, and the base of these the one with most, the newest among equals. One
    that is named stays; a newer release that took turns with a named head is no base of it. Imported builds
    count where fewer than two were measured. `link` as it is where its filters let no two such through.
    """
    filters = filters_of(link)
    builds = read_builds(filters)
    if (link.base and link.head) or len(builds) < 2:
        return link
    measured = read_builds(filters, only_measured=True)
    pool = measured if len(measured) > 1 else builds
    named = [key for key in (link.base, link.head) if key]
    wanted = {*pool, *named}
    known = [key for key in read_choices().builds if key in wanted]
    newest_first = [*reversed(known)]
    shown = list(dict.fromkeys([*newest_first[:_NEWEST_VERSIONS], *named]))
    matched = _matches(filters, tuple(shown))
    by_time = read_builds_newest_first(replace(filters, builds=tuple(shown)), only_measured=pool is measured)

    def is_newer(base: str, head: str) -> bool:
        by_version = known.index(base) > known.index(head)
        return by_version and {base, head} <= pool and by_time.index(base) < by_time.index(head)

    pairs = [
        (base, head)
        for head in ([link.head] if link.head else shown)
        for base in ([link.base] if link.base else shown)
        if base != head
        and (known.index(base) < known.index(head) or (named and (link.base or not is_newer(base, head))))
    ]
    if named and not pairs:
        return link

    def preference(pair: tuple[str, str]) -> tuple[int, int, int, int, int]:
        base, head = map(known.index, pair)
        return matched(*pair) > 0, base < head, head, matched(*pair), base

    base, head = max(pairs, key=preference, default=(newest_first[1], newest_first[0]))
    return replace(link, base=base, head=head)


def comparison_of(pair: Link) -> Comparison | None:
    """What Upgrade says of the builds of `pair`; None where it names no two, or they cannot be compared."""
    if not (pair.base and pair.head):
        return None
    try:
        return read_pair(pair)
    except VerdictError:
        return None


class Largest(NamedTuple):
    """The workload that changed most, the build that it is told against, and whether that is shown."""

    workload: str
    since: str
    shown: bool


def largest_change(link: Link) -> Largest | None:
    """By the judgement of Upgrade, undecided ones where it shows none; None where nothing can be compared."""
    pair = with_builds(replace(links.move(link, Page.UPGRADE), head=link.build))
    comparison = comparison_of(pair)
    if comparison is None:
        return None
    known = [row for row in comparison.rows if row.metric is verdict_metric(link) and row.change is not None]
    moved = [row for row in known if row.verdict in MOVED]
    if not known:
        return None
    largest = max(moved or known, key=lambda row: abs(math.log1p(max(row.change or 0.0, -0.999))))
    labels = labels_of(read_workloads(filters_of(pair)))
    since = read_choices_on(link.machine).builds[str(pair.base)]
    return Largest(labels.get(largest.case.workload_id, largest.workload), since, bool(moved))


def focus_on(link: Link, cases: pd.DataFrame) -> str:
    """The workload of `cases` that a page is about: the one asked for, else what changed most, else the first
    that passed.
    """
    labels = set(cases["workload_label"])
    largest = None if link.focus in labels else largest_change(link)
    link = replace(link, focus=largest.workload) if largest else link
    return focus_of(link, labels, cases["workload_label"][cases["status"] != Status.FAILED.value])


def _matches(filters: Filters, builds: tuple[str, ...]) -> Callable[[str, str], int]:
    """How many cases of the newest runs two builds have in common, measured under the same conditions."""
    series = read_series_by_build(filters, builds, runs=_RUNS_OF_BUILD)
    return lambda base, head: len(series[base] & series[head])
