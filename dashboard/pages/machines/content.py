"""What the tab Machines says: two machines side by side, and what a million items cost on each."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pandas as pd

from compilewatch.dashboard.links.links import Link
from compilewatch.dashboard.parts import parts
from compilewatch.dashboard.parts.cases import cases_of, no_case
from compilewatch.dashboard.parts.model import facts
from compilewatch.dashboard.parts.parts import WORKLOAD, Empty, PageContent, PageHeadline, TableColumn
from compilewatch.dashboard.read.data import (
    filters_of,
    read_builds_of_newest_runs,
    read_cases,
    read_choices,
    read_workloads,
)
from compilewatch.dashboard.read.versions import cached
from compilewatch.db import units
from compilewatch.db.judge.compare.sides import VerdictError
from compilewatch.db.metrics.geomean import geomean
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.queries.selection import Filters
from compilewatch.db.verdicts.machines import SideBySide, cells, sentences, side_by_side

_ALONE = "Only one machine has measured anything."


def others(link: Link) -> dict[str, str]:
    """The machines that the one of `link` can be set against, by id with their names."""
    return {key: name for key, name in read_choices().machines.items() if key != link.machine}


@cached
def page(link: Link) -> PageContent:
    """The machine of `link` beside `link.against`, else the one that measured most of the same; of each case
    the build that was measured last.
    """
    against = link.against if link.against in others(link) else _nearest(link)
    link = replace(link, against=against)
    if cases_of(link).empty:
        return PageContent((no_case(link),), link)
    if link.machine is None or link.against is None:
        none = Empty(_ALONE, "Measure the same suite on another: compilewatch run.")
        return PageContent((*facts(link), none), link)
    both = (link.machine, link.against)
    cases = _newest_cases(replace(filters_of(replace(link, build=None)), machines=both))
    if link.focus is not None:
        cases = cases[cases["workload_label"] == link.focus]
    prices = dict(zip(both, map(Decimal, map(str, (link.price, link.against_price))), strict=True))
    try:
        found = side_by_side(row_dicts(cases), *both, prices)
    except VerdictError as error:
        return PageContent((*facts(link), Empty(error.message, error.next_step)), link)
    return PageContent(
        (
            *facts(link),
            PageHeadline(_headline(found)),
            *parts.notes([*sentences(found), _prices(found)]),
            *_table(found),
        ),
        link,
        builds=tuple(dict.fromkeys(side["build_id"] for row in found.rows for side in (row, row["base"]))),
    )


def _newest_cases(filters: Filters) -> pd.DataFrame:
    """The cases of the builds that any case was measured with last, and of all builds those that failed with
    these: reading all is reading a year of trials. A suite is read whole, its last run may be any.
    """
    if filters.suites:
        return read_cases(filters)
    cases = read_cases(replace(filters, builds=tuple(sorted(read_builds_of_newest_runs(filters.machines)))))
    failed = cases["latency_ns"].isna()
    if not failed.any():
        return cases
    names = tuple(sorted({*cases.loc[failed, "workload"]}))
    earlier = read_cases(replace(filters, workloads=names))
    return pd.concat([cases[~cases["workload"].isin(names)], earlier], ignore_index=True)


def _nearest(link: Link) -> str | None:
    """The machine with most workloads in common, the newest of equals; None where there is no other."""

    def measured(machine: str) -> set[str]:
        return {*read_workloads(Filters(machines=(machine,)))["workload_id"]}

    mine = measured(link.machine) if link.machine else set()
    return max(others(link), key=lambda each: len(mine & measured(each)), default=None)


def _headline(found: SideBySide) -> str:
    """ "vm is 3.20x as fast as cpu-box over 12 cases"."""
    times = [row["base"]["latency_ns"] / row["latency_ns"] for row in found.rows]
    over = f"over {units.plural(len(times), 'case')}"
    names = f"{found.head['machine']} is {{}} as fast as {found.base['machine']}"
    return f"{names.format(units.ratio(geomean(times)))} {over}"


def _prices(found: SideBySide) -> str:
    of = (
        f"{units.money(found.priced[each['machine_id']])} of {each['machine']}"
        for each in (found.base, found.head)
    )
    return f"A million items at an hour's price of {' and '.join(of)}."


def _table(found: SideBySide) -> tuple[parts.Table, ...]:
    shown = cells(found)
    rows = [{each.name: each.text(row) for each in shown} for row in found.rows]
    labels = [row["workload_label"] for row in found.rows]
    columns = {
        each.name: WORKLOAD
        if each.name == "workload"
        else TableColumn(units.capitalized(each.heading), numeric=each.right)
        for each in shown
    }
    alt = "Latency and speedup of every case on both machines, and what a million items cost on each"
    return parts.table("machines-table", alt, pd.DataFrame(rows).assign(workload=labels), columns)
