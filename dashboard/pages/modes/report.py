"""Modes as the parts of a report: heat map, best strategy of each workload, Pareto front."""

from __future__ import annotations

from dashboard.charts.style import PreparedChart
from dashboard.links.links import Link
from dashboard.pages.cases import cases_of
from dashboard.pages.modes import charts, content
from dashboard.read.snapshots import Snapshot
from dashboard.render import theme
from dashboard.render.published_lines import PUBLISHED_TITLE
from dashboard.reports.content import Frozen, Section, nothing_fits
from dashboard.reports.tables import case_parts, charted, listed, of_cases, table_of
from db.wording.marks import BOUND_TITLE


def frozen(snapshot: Snapshot, link: Link) -> Frozen:
    """What the page shows for the goal of `link`."""
    seen = content.page_content(snapshot, link)
    if seen is None:
        raise nothing_fits()
    cases = cases_of(snapshot, link)
    parts = (
        *_heat_map(seen),
        *_best(seen, link),
        *charted(
            seen.front,
            caption="Up and to the left is better. Each dashed line is the front of one workload: its "
            "strategies that are faster than eager and that no cheaper one outruns.",
            alt="Compile cost against speedup of every compiled case, with the Pareto front of each workload",
        ),
        *listed("Beside the numbers", seen.beside),
        *listed(PUBLISHED_TITLE, seen.published),
        *case_parts(cases),
    )
    return of_cases(parts, cases, link)


def _heat_map(seen: content.PageContent) -> tuple[Section, ...]:
    if seen.cells.empty:
        return ()
    workloads = tuple(dict.fromkeys(seen.cells["workload"]))
    reasons = [
        f"n/a: {strategy} is not applicable on this device. {reason}."
        for strategy, reason in seen.without_meaning.items()
    ]
    spec = charts.spec(workloads, tuple(theme.ordered(seen.cells["strategy"])))
    return charted(
        PreparedChart(seen.finding, spec, {"main": seen.cells}, reasons),
        caption="Speedup over eager: blue is faster, orange slower, grey has no number. "
        "*: nothing was compiled.",
        alt="Speedup over eager of every workload with every strategy, as numbers in cells",
    )


def _best(seen: content.PageContent, link: Link) -> tuple[Section, ...]:
    if seen.best.empty:
        return ()
    numbers = content.BEST_COLUMNS[link.goal]
    columns = {
        "workload": "Workload",
        "strategy": "Best strategy",
        **numbers,
        **BOUND_TITLE,
        "options": "Strategies compared",
    }
    goal = f"{link.steps:,} steps" if link.goal == "steps" else content.GOALS[link.goal].lower()
    title = f"Best strategy for {goal}"
    return (table_of(seen.best, columns, title=title, numeric=(*numbers, "options")),)
