"""What is prepared once for a version of the data is told apart by all that was asked for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.read import versions
from compilewatch.dashboard.read.versions import cached
from compilewatch.db.queries.selection import Filters


def test_prepared_once_for_the_same_and_anew_for_anything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Link, Filters]] = []

    @cached
    def prepared(link: Link, filters: Filters = Filters()) -> int:  # noqa: B008
        asked.append((link, filters))
        return len(asked)

    def at(drawn: tuple[str, int], link: Link, filters: Filters) -> int:
        monkeypatch.setattr(versions, "_drawn", lambda: drawn)
        return prepared(link, filters=filters)

    drawn, link, filters = ("sqlite:///a.db", 1), Link(page=Page.WORKLOAD), Filters(workloads=("a",))
    different = [
        (drawn, link, filters),
        (("sqlite:///a.db", 2), link, filters),
        (("sqlite:///b.db", 1), link, filters),
        (drawn, replace(link, steps=link.steps + 1), filters),
        (drawn, replace(link, page=Page.UPGRADE), filters),
        (drawn, link, replace(filters, workloads=("a", "b"))),
        (drawn, link, replace(filters, workloads=("a', 'b",))),
        (drawn, link, Filters()),
    ]
    first = [at(*each) for each in different]
    assert first == list(range(1, len(different) + 1))
    assert [at(drawn, replace(link), replace(filters)) for drawn, link, filters in different] == first
    # However it is asked for.
    assert [prepared(link, Filters()), prepared(filters=Filters(), link=link), prepared(link)] == [
        first[-1]
    ] * 3
