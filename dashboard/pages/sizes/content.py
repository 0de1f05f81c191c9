"""What the tab Sizes says: how throughput scales over batch and other sizes, sweep by sweep."""

from __future__ import annotations

from dataclasses import replace

from compilewatch.dashboard.links.links import Link
from compilewatch.dashboard.parts.cases import cases_of, floors_of, no_case, of_cases
from compilewatch.dashboard.parts.model import facts
from compilewatch.dashboard.parts.parts import Empty, PageContent
from compilewatch.dashboard.parts.sizes import sizes_parts
from compilewatch.dashboard.read.versions import cached

_NONE = "No model was measured at several sizes."
_HOW = "A workload with a list of sizes in compilewatch.toml is a sweep: batch_size = [1, 8, 64]."


@cached
def page(link: Link) -> PageContent:
    """The sweep that the model in focus is of, else all of them."""
    cases, floors = cases_of(link), floors_of(link.machine)
    if cases.empty:
        return of_cases((no_case(link),), cases, link, floors)
    mine = cases[cases["workload_label"] == link.focus]
    if mine.empty:
        link = replace(link, focus=None)
    found = tuple(sizes_parts(cases, link.focus))
    none = f"{link.focus} was measured at one size." if link.focus else _NONE
    return of_cases((*facts(link), *(found or (Empty(none, _HOW),))), cases, link, floors)
