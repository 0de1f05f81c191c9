"""Every door asked over one stored history."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from starlette.applications import Starlette

from compilewatch.dashboard.api.routes import routes
from compilewatch.dashboard.links import links
from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.pages.registry import CONTENTS
from compilewatch.dashboard.parts.parts import PageContent
from compilewatch.dashboard.read.data import (
    filters_of,
    newest_build,
    read_choices,
    read_strategies,
    read_workloads,
)
from compilewatch.dashboard.reports.freeze import freeze_link
from compilewatch.dashboard.server.charts import charts
from compilewatch.dashboard.verdicts.pair import with_builds
from compilewatch.db.engine.session import open_database
from compilewatch.db.judge.compare.sides import VerdictError
from compilewatch.db.judge.decide import GROUPS
from compilewatch.db.queries.run_parts import newest_machine
from tests.builders import START
from tests.qa.numbers import of_addresses, of_api, of_commands, of_messages, of_pages, of_reports
from tests.qa.numbers.figures import Case, Figure
from tests.qa.numbers.of_commands import Commands
from tests.qa.numbers.of_comparisons import selection_of

T = TypeVar("T")
_OF_CASES = (Page.OVERVIEW, Page.MODES, Page.BREAK_EVEN, Page.COLD_START)
"""Pages about the cases of one build."""
STEPS = Link().steps


@dataclass(frozen=True)
class Place:
    """One machine, its newest build, and what answers; `turn` says what is asked this time of what would take
    too long to ask each time.
    """

    app: Starlette
    commands: Commands
    machine: str
    build: str
    turn: int


_CASES_ASKED = 1
"""Of so many cases the history is asked, and of so many trials `show`."""


_OF_HISTORIES = ("latency", "speedup", "compile_cost", "break_even")
"""Metrics whose histories are asked, by turns."""


def every_figure(folder: Path, url: str, turn: int) -> Iterator[Figure]:
    """What all doors tell. `gate` comes last: it writes."""
    commands, app = Commands(folder, url), Starlette(routes=[*routes(), *charts()])
    for machine in read_choices().machines:
        build = newest_build(filters_of(Link(machine=machine)))
        if build is not None:
            yield from _of_machine(Place(app, commands, machine, build, turn))
        yield from of_api.of_points(app, machine)
        yield from of_api.of_cases(app, machine)
        yield from of_commands.of_cases(commands, machine)
    for of_steps in (of_commands.of_break_even(commands, STEPS), of_api.of_break_even(app, STEPS)):
        yield from of_steps
    yield from of_commands.of_geomean(commands)
    yield from of_commands.of_trials(commands)
    yield from of_addresses.of_what_is_gone(app)
    listed = [*of_pages.of_trials(CONTENTS[Page.TRIAL](Link(page=Page.TRIAL)))]
    yield from listed
    trials = sorted({figure.selection[0] for figure in listed})
    for trial in _some(trials, turn):
        yield from of_commands.of_trial(commands, trial)
    with open_database(url, read_only=True) as database:
        newest = newest_machine(database)
    if newest is not None:
        of_commands.record_earlier(commands)
        yield from of_commands.of_gate(commands, newest, as_comment=turn % 2 == 0)
    yield from of_commands.of_regressions(commands)
    yield from _of_recorded(app, turn)
    with open_database(url, read_only=True) as database:
        yield from of_messages.of_messages(database, commands)


def _of_recorded(app: Starlette, turn: int) -> Iterator[Figure]:
    """What became of what is recorded: by API, inbox, Today of each machine, and a page of some."""
    recorded = [*of_api.of_regressions(app)]
    yield from recorded
    yield from of_pages.of_inbox(CONTENTS[Page.REGRESSIONS](Link(page=Page.REGRESSIONS)))
    for machine in read_choices().machines:
        here = Link(page=Page.REGRESSIONS, machine=machine)
        yield from of_pages.of_inbox(CONTENTS[Page.REGRESSIONS](here))
        newest = newest_build(filters_of(here))
        if newest is not None:
            today = CONTENTS[Page.OVERVIEW](Link(machine=machine, build=newest))
            yield from of_pages.of_first_changes(today, machine)
    known = {each.selection[0]: each.case for each in recorded if each.quantity == "recorded change"}
    for regression in _some(sorted(known), turn):
        chosen = CONTENTS[Page.REGRESSIONS](Link(page=Page.REGRESSIONS, regression=(regression,)))
        yield from of_api.of_regression(app, regression, known[regression])
        yield from of_pages.of_regression(chosen, regression, known[regression])


def _some(things: Sequence[T], turn: int) -> Sequence[T]:
    """`_CASES_ASKED` of them, others in another turn."""
    start = turn * _CASES_ASKED % max(1, len(things))
    return [*things[start:], *things[:start]][:_CASES_ASKED]


def _of_machine(place: Place) -> Iterator[Figure]:
    of_build = [*_of_build(place)]
    yield from of_build
    yield from _of_comparison(place)
    cases = sorted({figure.case for figure in of_build if figure.quantity == "speedup"})
    yield from of_api.of_badges(place.app, cases, place.machine, place.build)
    asked = [(case[0], case[1]) for case in _some(cases, place.turn)]
    metric = _OF_HISTORIES[place.turn % len(_OF_HISTORIES)]
    yield from of_commands.of_history(place.commands, place.machine, asked, metric)
    yield from of_api.of_changes(place.app, place.machine)
    for page in (Page.OVERVIEW, Page.REGRESSIONS):
        link = Link(page=page, machine=place.machine)
        shown = replace(link, build=place.build) if page is Page.OVERVIEW else link
        yield from of_pages.of_steps(CONTENTS[page](shown), place.machine)
    for workload, strategy in asked:
        here = Link(page=Page.WORKLOAD, machine=place.machine, focus=workload, strategy=(strategy,))
        trend = CONTENTS[Page.WORKLOAD](replace(here, metric=metric))
        yield from of_pages.of_trend(trend, (workload, strategy), (place.machine, metric))


def _of_build(place: Place) -> Iterator[Figure]:
    """Overview and by turns another page of cases, which is frozen and framed too; and one under a filter, by
    turns of one workload and of one suite.
    """
    whole = Link(machine=place.machine, build=place.build)
    workloads = read_workloads(filters_of(whole))["workload"].tolist()
    filters = ({"workload": (workloads[0],)}, {"suite": "standard"})
    other = _OF_CASES[1 + place.turn % (len(_OF_CASES) - 1)]
    filtered = replace(whole, page=_OF_CASES[place.turn % len(_OF_CASES)], **filters[place.turn // 4 % 2])
    for link in (replace(whole, page=Page.OVERVIEW), replace(whole, page=other), filtered):
        content = CONTENTS[link.page](link)
        yield from of_pages.of_page(content, place.machine, place.build, STEPS)
        if link.page is other and link is not filtered and content.builds:
            frozen = freeze_link(links.href(link), title=None, by="ann", at=START)
            yield from of_reports.of_report(frozen, place.machine, place.build)
            where = (place.machine, place.build)
            yield from of_addresses.of_frames(place.app, content, links.query(link), where)


def _of_comparison(place: Place) -> Iterator[Figure]:
    """The newest build against what pages set it against: by command, API, pages, badge, report."""
    upgrade = Link(page=Page.UPGRADE, machine=place.machine, head=place.build, metric="latency", group=GROUPS)
    pair = with_builds(upgrade)
    if not (pair.base and pair.head):
        return
    selection = _selection(place, pair)
    if selection is None:
        return
    sides, as_comment = (pair.base, pair.head), place.turn % 2 == 1
    yield from of_commands.of_compare(place.commands, *sides, place.machine, as_comment=as_comment)
    yield from of_api.of_compare(place.app, pair.base, pair.head, place.machine)
    overview = CONTENTS[Page.OVERVIEW](Link(machine=place.machine, build=place.build))
    yield from of_pages.of_comparison(overview, selection)
    yield from of_api.of_tally_badge(place.app, place.machine, place.build, selection)
    with contextlib.suppress(VerdictError):
        for metric in ("latency", "speedup"):
            shown: PageContent = CONTENTS[Page.UPGRADE](replace(pair, metric=metric))
            yield from of_pages.of_comparison(shown, selection)
        for strategy in [each for each in read_strategies(filters_of(pair)) if each != "eager"][:1]:
            content = CONTENTS[Page.UPGRADE](replace(pair, strategy=(strategy,)))
            yield from of_pages.of_values(content, selection)
        frozen = freeze_link(links.href(pair), title=None, by="ann", at=START)
        yield from of_reports.of_comparison_report(frozen, selection)


def _selection(place: Place, pair: Link) -> Case | None:
    reply = of_api.ask(
        place.app, f"{of_api.API}/compare", {"base": pair.base, "head": pair.head, "machine": place.machine}
    )
    return selection_of(reply.json) if reply.status == 200 else None
