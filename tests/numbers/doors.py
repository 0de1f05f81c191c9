"""Every door asked over one stored history."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from starlette.applications import Starlette

from dashboard.api.routes import routes
from dashboard.links import links
from dashboard.links.links import Link, Page
from dashboard.pages.registry import CONTENTS
from dashboard.parts.parts import PageContent
from dashboard.read.data import filters_of, newest_build, read_choices, read_workloads
from dashboard.reports.freeze import freeze_link
from dashboard.server.charts import charts
from dashboard.verdicts.pair import with_builds
from db.engine.session import open_database
from db.judge.compare.sides import VerdictError
from tests.builders import START
from tests.numbers import of_addresses, of_api, of_commands, of_messages, of_pages, of_reports
from tests.numbers.figures import Case, Figure
from tests.numbers.of_commands import Commands
from tests.numbers.of_comparisons import selection_of

_OF_CASES = (Page.OVERVIEW, Page.MODES, Page.BREAK_EVEN, Page.COLD_START)
"""Pages about the cases of one build."""
STEPS = Link().steps


@dataclass(frozen=True)
class Place:
    """One machine, its newest build, and what answers."""

    app: Starlette
    commands: Commands
    machine: str
    build: str


def every_figure(folder: Path, url: str) -> Iterator[Figure]:
    """What all doors tell. `gate` comes last: it writes."""
    commands, app = Commands(folder, url), Starlette(routes=[*routes(), *charts()])
    for machine in read_choices().machines:
        build = newest_build(filters_of(Link(machine=machine)))
        if build is not None:
            place = Place(app, commands, machine, build)
            of_build = [*_of_build(place)]
            yield from of_build
            yield from _of_comparison(place)
            cases = sorted({figure.case for figure in of_build if figure.quantity == "speedup"})
            yield from of_api.of_badges(app, cases, machine, build)
            yield from of_commands.of_history(commands, machine, [(case[0], case[1]) for case in cases])
        yield from of_api.of_points(app, machine)
    for of_steps in (of_commands.of_break_even(commands, STEPS), of_api.of_break_even(app, STEPS)):
        yield from of_steps
    yield from of_commands.of_geomean(commands)
    yield from of_pages.of_trials(CONTENTS[Page.TRIAL](Link(page=Page.TRIAL)))
    yield from of_commands.of_gate(commands)
    yield from of_commands.of_regressions(commands)
    yield from of_api.of_regressions(app)
    with open_database(url, read_only=True) as database:
        yield from of_messages.of_messages(database)


def _of_build(place: Place) -> Iterator[Figure]:
    """The pages of cases without a filter, of one workload and of one suite, on the screen and frozen."""
    whole = Link(machine=place.machine, build=place.build)
    workloads = read_workloads(filters_of(whole))["workload"].tolist()
    for filtered in (whole, replace(whole, workload=(workloads[0],)), replace(whole, suite="standard")):
        for page in _OF_CASES:
            link = replace(filtered, page=page)
            content = CONTENTS[page](link)
            yield from of_pages.of_page(content, place.machine, place.build, STEPS)
            if filtered is whole and content.builds:
                frozen = freeze_link(links.href(link), title=None, by="ann", at=START)
                yield from of_reports.of_report(frozen, place.machine, place.build)
                query = links.query(link)
                where = (place.machine, place.build)
                yield from of_addresses.of_frames(place.app, content, query, where)


def _of_comparison(place: Place) -> Iterator[Figure]:
    """The newest build against what pages set it against: by command, API, pages, report, wall."""
    upgrade = Link(page=Page.UPGRADE, machine=place.machine, head=place.build, metric="latency")
    pair = with_builds(upgrade)
    if not (pair.base and pair.head):
        return
    selection = _selection(place, pair)
    if selection is None:
        return
    yield from of_commands.of_compare(place.commands, pair.base, pair.head, place.machine)
    yield from of_api.of_compare(place.app, pair.base, pair.head, place.machine)
    overview = CONTENTS[Page.OVERVIEW](Link(machine=place.machine, build=place.build))
    yield from of_pages.of_comparison(overview, selection)
    with contextlib.suppress(VerdictError):
        for metric in ("latency", "speedup"):
            shown: PageContent = CONTENTS[Page.UPGRADE](replace(pair, metric=metric))
            yield from of_pages.of_comparison(shown, selection)
        frozen = freeze_link(links.href(pair), title=None, by="ann", at=START)
        yield from of_reports.of_comparison_report(frozen, selection)
    query = {"machine": place.machine, "build": place.build}
    yield from of_addresses.of_wall(query, selection, overview)


def _selection(place: Place, pair: Link) -> Case | None:
    reply = of_api.ask(
        place.app, f"{of_api.API}/compare", {"base": pair.base, "head": pair.head, "machine": place.machine}
    )
    return selection_of(reply.json) if reply.status == 200 else None
