"""Break-even as the parts of a report: curves, what the plan costs, the steps from build to build."""

from __future__ import annotations

from dataclasses import replace

from dashboard.charts.style import PreparedChart
from dashboard.links.links import Link
from dashboard.pages.break_even import charts, content
from dashboard.read.snapshots import Snapshot
from dashboard.render import theme
from dashboard.reports.content import Figures, Frozen, Section
from dashboard.reports.tables import case_parts, cases_of, charted, focus_of, listed, of_cases, table_of
from db.wording.marks import BOUND_TITLE


def frozen(snapshot: Snapshot, link: Link) -> Frozen:
    """What the page shows of the workload in focus with the plan of `link`."""
    cases = cases_of(snapshot, link)
    focus = focus_of(link, cases)
    seen = content.page_content(snapshot, link, focus)
    parts = (
        *_figures(seen, link),
        *_curves(seen, link, focus),
        *_plan(seen, link, focus),
        *listed("Beside the numbers", seen.beside),
        *_history(content.history(snapshot, replace(link, focus=None), focus), focus),
        *_every_workload(seen),
        *case_parts(cases),
    )
    return of_cases(parts, cases, replace(link, focus=focus))


def _figures(seen: content.PageContent, link: Link) -> tuple[Section, ...]:
    if len(seen.options) < 2:
        return ()
    best, more = content.figures(link, seen.options)
    return (Figures(figures=tuple((figure.title, figure.text) for figure in (best, *more))),)


def _curves(seen: content.PageContent, link: Link, focus: str) -> tuple[Section, ...]:
    found = seen.curves
    if found is None:
        return ()
    strategies = tuple(theme.ordered(option.strategy for option in seen.options))
    spec = charts.spec(strategies, found.unit, link.scale, found.last_step)
    said = [*content.right_of_the_edge(found, link.steps), seen.done_first]
    return charted(
        PreparedChart(seen.finding, spec, found.frames, said),
        caption="Total time of a process, compile cost included. Where a line crosses eager, compiling has "
        "paid off. Band: 95 % interval. The broad shade follows the strategy that is done first.",
        alt=f"Total time against steps per process on {focus}, one line per strategy, crossings marked",
    )


def _plan(seen: content.PageContent, link: Link, focus: str) -> tuple[Section, ...]:
    if seen.plan.empty:
        return ()
    titles = {"strategy": "Strategy", **BOUND_TITLE, **content.TITLES}
    title, said = "In steps, time and money", content.words(link, focus)
    return (table_of(seen.plan, titles, title=title, numeric=content.TITLES, note=said),)


def _history(found: content.History, focus: str) -> tuple[Section, ...]:
    """Nothing where only one build was measured: a history needs two."""
    if len(found.table) < 2:
        return ()
    titles = {"build": "Build", **{name: name for name in found.strategies}}
    return (
        *charted(
            found.chart,
            caption="Steps until compiling has paid off, build by build. Band: 95 % interval.",
            alt=f"Break-even of {focus} over builds, one line per strategy",
        ),
        table_of(
            found.table, titles, title=f"Break-even of {focus} with every build", numeric=found.strategies
        ),
    )


def _every_workload(seen: content.PageContent) -> tuple[Section, ...]:
    table = seen.every_workload
    if table.empty:
        return ()
    names = theme.ordered(name for name in table.columns if name != "workload")
    titles = {"workload": "Workload", **{name: name for name in names}}
    return (table_of(table, titles, title="Break-even of every workload", numeric=names),)
