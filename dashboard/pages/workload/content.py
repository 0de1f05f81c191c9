"""What the first tab of Models says: all models in a list, of one its history and what went wrong with it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.pages.workload import history
from compilewatch.dashboard.pages.workload.models import models
from compilewatch.dashboard.parts import parts
from compilewatch.dashboard.parts.cases import cases_of, floors_of, no_case, of_cases
from compilewatch.dashboard.parts.model import facts, headline, on_one_build
from compilewatch.dashboard.parts.parts import Folded, Lines, PageContent, Part
from compilewatch.dashboard.read.data import (
    filters_of,
    of_workload,
    read_newest_trials,
    read_regressions,
)
from compilewatch.dashboard.read.versions import cached
from compilewatch.dashboard.verdicts import inbox
from compilewatch.dashboard.verdicts.pair import focus_on
from compilewatch.db import units
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.records.identity import version_key
from compilewatch.db.records.trial import Status

OVER_TIME = "over-time"


@cached
def workloads(link: Link) -> list[str]:
    """The models to choose from."""
    return sorted(set(cases_of(on_one_build(link))["workload_label"]), key=version_key)


@cached
def page(link: Link) -> PageContent:
    """The model in focus, or the only one of those that `link` chooses; else all of them in a list."""
    newest = on_one_build(link)
    every, floors = cases_of(newest), floors_of(link.machine)
    if every.empty:
        return of_cases((no_case(link),), every, link, floors)
    if link.focus is None and not (link.workload and every["workload_label"].nunique() == 1):
        over_time = Folded("Every case over time", partial(_over_time, link), OVER_TIME)
        return of_cases((*models(newest, every), over_time), every, link, floors)
    focus = focus_on(newest, every)
    whole = cases_of(replace(newest, strategy=()))
    mine = whole[whole["workload_label"] == focus]
    over = history.page(replace(over_all(link), focus=focus))
    shown: tuple[Part, ...] = (
        *facts(over.link),
        headline(focus, mine),
        *over.parts,
        *_regressions(link, str(mine["workload"].iloc[0])),
        *_last_failure(link, focus),
    )
    return replace(over, parts=shown, link=replace(link, focus=focus, axis=over.link.axis))


def over_all(link: Link) -> Link:
    """Of a link to one model its own build, where it names one; a list is of one, its history of all."""
    return link if link.focus else replace(link, build=None, build_run=())


def _over_time(link: Link) -> tuple[Part, ...]:
    return history.page(over_all(link)).parts


def _regressions(link: Link, workload: str) -> tuple[Part, ...]:
    """What is recorded of it, open or closed."""
    of_it = Link(page=Page.REGRESSIONS, machine=link.machine, workload=(workload,))
    recorded = inbox.chosen(read_regressions(), of_it)
    title = units.plural(len(recorded), "recorded regression")
    return parts.listed(title, inbox.first_names(recorded, inbox.line), key="workload-regressions")


def _last_failure(link: Link, focus: str) -> tuple[Part, ...]:
    """How the newest failed trial of any build ended; nothing where none failed."""
    everywhere = filters_of(over_all(replace(link, focus=None)))
    filters = replace(of_workload(everywhere, focus), statuses=(Status.FAILED,))
    trials, total = read_newest_trials(filters, 1)
    if trials.empty:
        return ()
    last = row_dicts(trials)[-1]
    what = f"{last['strategy']}: {units.words(str(last['failure_kind']))}. {last['failure_message'] or ''}"
    when = f"{units.moment(last['started_at'])}; {units.plural(total, 'failed trial')} in all."
    return (Lines((what.strip(), when), "Last failure", key="workload-failure"),)
