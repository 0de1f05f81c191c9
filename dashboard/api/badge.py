"""`/badge/WORKLOAD/STRATEGY.svg`: the newest speedup or break-even of a case as an image for a README, and
`/badge/tally.svg`: what became of all cases of the newest build.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pandas as pd
from starlette.requests import Request
from starlette.responses import Response

from compilewatch.dashboard.api.comparisons import cases_of
from compilewatch.dashboard.api.queries import BadgeQuery, TallyBadgeQuery, Values, query_of, with_ids
from compilewatch.dashboard.api.representation import entity_tag, tagged, unchanged
from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.read.data import read_choices
from compilewatch.dashboard.read.database import read_version, reader
from compilewatch.dashboard.text import theme
from compilewatch.dashboard.verdicts.pair import comparison_of, with_builds
from compilewatch.db import units
from compilewatch.db.engine.session import Database
from compilewatch.db.errors import NotFoundError, visible
from compilewatch.db.judge.sentences import tallied
from compilewatch.db.metrics.break_even import is_shown, repaid_words
from compilewatch.db.metrics.throughput import items_of, throughputs_text
from compilewatch.db.queries.facets import machine_measured_last
from compilewatch.db.queries.run_parts import newest_build
from compilewatch.db.queries.selection import Filters
from compilewatch.db.records.trial import SourceKind

NO_DATA, NOT_THERE = "no data", "not there"
SPEEDUP, BREAK_EVEN, THROUGHPUT = "speedup", "break_even", "throughput"
_SUFFIXES = {SPEEDUP: "", BREAK_EVEN: " break-even", THROUGHPUT: " throughput"}
_LONGEST_LABEL = 60
# Verdana at 11 px, the widest face that such images are drawn in; `textLength` makes any other one fit.
_PX_PER_CHARACTER = 7
_PADDING_PX = 12
_LABEL_COLOUR = "#3A4654"
_UNKNOWN_COLOUR = "#66707D"
_WORSE_COLOUR = "#B94F00"


@dataclass(frozen=True)
class BadgeText:
    """What a badge says on its right, the background that says how good that is, and where it was measured,
    or why there is nothing to say.
    """

    text: str
    colour: str
    about: str = ""
    status: int = 200


def badge(request: Request) -> Response:
    """404 for what is not there, with an image that says so."""
    values = BadgeQuery.read(query_of(request))
    workload, strategy = request.path_params["workload"], request.path_params["strategy"]
    label = f"{workload} {strategy}{_SUFFIXES[values['metric']]}"
    return _drawn(request, label, lambda: _badge_text(reader(), workload, strategy, values))


def tally_badge(request: Request) -> Response:
    """The tally of what the Overview compares: the newest build of a machine, and the one before."""
    query = TallyBadgeQuery.read(query_of(request))
    return _drawn(request, "compilewatch", lambda: _tally_text(query))


def _drawn(request: Request, label: str, make: Callable[[], BadgeText]) -> Response:
    tag = entity_tag(read_version(), request.url.path, request.url.query)
    if unchanged(request, tag):
        return Response(status_code=304, headers=tagged(tag))
    badge_text = make()
    image = draw(label, badge_text)
    return Response(image, badge_text.status, media_type="image/svg+xml", headers=tagged(tag))


def _tally_text(query: Values) -> BadgeText:
    try:
        query = with_ids(reader(), query)
    except NotFoundError as error:
        return _not_there(error.message)
    machine = query["machine"] or read_choices().newest_machine
    head = query["build"] or newest_build(reader(), Filters(machines=_only(machine)))
    pair = with_builds(Link(page=Page.UPGRADE, machine=machine, head=head))
    comparison = comparison_of(pair)
    if comparison is None or not comparison.matched:
        return BadgeText(NO_DATA, _UNKNOWN_COLOUR, "There is no build to compare with.")
    tally = comparison.tally
    bad, is_open = sum(tally.slower_by.values()) + tally.failing, tally.undecided + tally.set_aside
    colour = _WORSE_COLOUR if bad else _UNKNOWN_COLOUR if 2 * is_open > tally.compared else theme.BLUE
    about = f"{comparison.base.name} to {comparison.head.name} on {comparison.machine}"
    return BadgeText(tallied(tally), colour, about)


def _only(name: str | None) -> tuple[str, ...]:
    return () if name is None else (name,)


def _badge_text(database: Database, workload: str, strategy: str, query: Values) -> BadgeText:
    try:
        query = with_ids(database, query)
    except NotFoundError as error:
        return _not_there(error.message)
    here = {key: _only(query[key]) for key in ("machine", "build")}
    filters = Filters(
        workloads=(workload,),
        strategies=(strategy,),
        machines=here["machine"],
        builds=here["build"],
        runs=query.get("build_run", ()),
    )
    if any("\x00" in name for name in (workload, strategy)):
        # PostgreSQL stores no such name, and refuses to look for one
        return _not_there("No such case is stored here.")
    for place in _places(database, filters):
        cases = cases_of(database, place)
        mine = cases[cases["strategy"].isin(filters.strategies)]
        if not mine.empty:
            newest = mine.sort_values("last_started_at").iloc[-1]
            figure = _figure(newest, query["metric"])
            imported = newest["source_kind"] == SourceKind.IMPORTED and figure.text != NO_DATA
            text = f"{figure.text} (imported)" if imported else figure.text
            runs = ", all its runs" if not filters.runs else f", run {', '.join(filters.runs)}"
            return replace(figure, text=text, about=_origin(newest, runs))
    where = f" on this {' and '.join(key for key in here if here[key])}" if any(here.values()) else ""
    return _not_there(f"{workload} with {strategy} was not measured here{where}.")


def _not_there(why: str) -> BadgeText:
    return BadgeText(NOT_THERE, _UNKNOWN_COLOUR, why, status=404)


def _places(database: Database, filters: Filters) -> Iterator[Filters]:
    """Where pages look: the newest build of the machine measured last. A case that was not measured there is
    told of the newest build that it was measured with.
    """
    machines = filters.machines or _only(machine_measured_last(database))
    for of_build in (Filters(machines=machines), filters):
        builds = filters.builds or _only(newest_build(database, of_build))
        if builds:
            yield replace(filters, strategies=(), machines=of_build.machines, builds=builds)


def _origin(case: pd.Series, runs: str) -> str:
    torch = "" if pd.isna(case["torch"]) else f"torch {case['torch']}, "
    origin = f", imported from {case['source_name']}" if case["source_kind"] == SourceKind.IMPORTED else ""
    return f"{case['machine']}, {torch}build {case['build_id']}{runs}{origin}"


def _figure(case: pd.Series, metric: str) -> BadgeText:
    if case["status"] == "failed":
        return BadgeText("failed", _WORSE_COLOUR)
    return {SPEEDUP: _speedup, BREAK_EVEN: _break_even, THROUGHPUT: _throughput}[metric](case)


def _speedup(case: pd.Series) -> BadgeText:
    if pd.isna(case["speedup"]):
        return BadgeText(NO_DATA, _UNKNOWN_COLOUR)
    if case["first_look"]:
        return BadgeText(f"{units.ratio(case['speedup'])} (first look)", _UNKNOWN_COLOUR)
    text, low, high = units.ratio(case["speedup"]), case["speedup_low"], case["speedup_high"]
    # Too few trials have no interval, and show nothing either.
    if pd.isna(low) or pd.isna(high) or low <= 1 <= high:
        return BadgeText(f"{text} (not shown)", _UNKNOWN_COLOUR)
    return BadgeText(text, _WORSE_COLOUR if high < 1 else theme.BLUE)


def _break_even(case: pd.Series) -> BadgeText:
    if case["first_look"]:
        return BadgeText("first look", _UNKNOWN_COLOUR)
    if not is_shown(of := case.to_dict()):
        return BadgeText(repaid_words(of), _UNKNOWN_COLOUR)
    if case["break_even"] == units.NEVER:
        return BadgeText(units.NEVER, _WORSE_COLOUR)
    if pd.isna(case["break_even_steps"]):
        return BadgeText(NO_DATA, _UNKNOWN_COLOUR)
    return BadgeText(units.steps(int(case["break_even_steps"])), theme.BLUE)


def _throughput(case: pd.Series) -> BadgeText:
    if pd.isna(case["throughput_per_s"]):
        return BadgeText(NO_DATA, _UNKNOWN_COLOUR)
    return BadgeText(throughputs_text(items_of(case.to_dict())[1], case["throughput_per_s"]), theme.BLUE)


def draw(label: str, badge_text: BadgeText) -> str:
    """The SVG. `label` may hold anything; what XML cannot hold is an escape."""
    shown = visible(label)
    shown = shown if len(shown) <= _LONGEST_LABEL else f"{shown[: _LONGEST_LABEL - 1]}…"
    left, right = (len(text) * _PX_PER_CHARACTER + _PADDING_PX for text in (shown, badge_text.text))
    title = html.escape(f"{shown}: {badge_text.text}" + (f", {badge_text.about}" if badge_text.about else ""))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
        f'aria-label="{title}"><title>{title}</title>'
        f'<clipPath id="r"><rect width="{left + right}" height="20" rx="3"/></clipPath>'
        f'<g clip-path="url(#r)"><rect width="{left}" height="20" fill="{_LABEL_COLOUR}"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{badge_text.colour}"/></g>'
        '<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f"{_text(shown, left / 2, left)}{_text(badge_text.text, left + right / 2, right)}</g></svg>"
    )


def _text(text: str, middle: float, width: int) -> str:
    return f'<text x="{middle:g}" y="14" textLength="{width - _PADDING_PX}">{html.escape(text)}</text>'
