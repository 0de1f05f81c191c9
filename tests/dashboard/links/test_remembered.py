"""What is prepared once for a version of the data is told apart by all that was asked for."""

from __future__ import annotations

from dataclasses import replace

from dashboard.links.links import Link, Page
from dashboard.read.snapshots import Snapshot, cached
from db.queries.filters import Filters


def test_prepared_once_for_the_same_and_anew_for_anything_else() -> None:
    asked: list[tuple[Snapshot, Link, Filters]] = []

    @cached
    def prepared(snapshot: Snapshot, link: Link, filters: Filters) -> int:
        asked.append((snapshot, link, filters))
        return len(asked)

    snapshot, link, filters = Snapshot("sqlite:///a.db", 1), Link(page=Page.TRENDS), Filters(workloads=("a",))
    different = [
        (snapshot, link, filters),
        (replace(snapshot, version=2), link, filters),
        (replace(snapshot, url="sqlite:///b.db"), link, filters),
        (snapshot, replace(link, steps=link.steps + 1), filters),
        (snapshot, replace(link, page=Page.UPGRADE), filters),
        (snapshot, link, replace(filters, workloads=("a", "b"))),
        (snapshot, link, replace(filters, workloads=("a', 'b",))),
    ]
    first = [prepared(*each) for each in different]
    assert first == list(range(1, len(different) + 1))
    assert [prepared(*(replace(part) for part in each)) for each in different] == first
