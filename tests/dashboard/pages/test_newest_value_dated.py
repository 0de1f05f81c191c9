"""Every case of a history is dated by the run whose value is shown as its newest, on page and in report."""

from __future__ import annotations

from datetime import timedelta

from compilewatch.dashboard.links.links import Link, Page, href
from compilewatch.dashboard.reports.freeze import freeze_link
from compilewatch.db import units
from tests.builders import START, make_history
from tests.dashboard.conftest import Store, opened


def test_over_builds_the_newest_value_has_the_date_of_its_own_build(store: Store) -> None:
    """The older build was measured again after the newer one."""
    store(make_history(workloads=("mlp",), builds=("2.13.0", "2.12.0"), every=timedelta(days=3)))
    link = Link(page=Page.WORKLOAD, focus="mlp", metric="latency", axis="torch")
    rows = next(e.value for e in opened(link).dataframe if "newest" in e.value.columns)
    assert {at.date() for at in rows["last"]} == {START.date()}
    content = freeze_link(href(link), title=None, by="ann", at=START)
    table = next(
        part for part in content.sections if part.kind == "table" and "of every strategy" in part.title
    )
    day = units.moment(START)[:10]
    last = next(place for place, each in enumerate(table.columns) if each.title == "Measured (UTC)")
    assert {row[last][:10] for row in table.rows} == {day}
