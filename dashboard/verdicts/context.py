"""The line of context of a page: which machine and builds it is about, how the machine is, its last run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

import pandas as pd

from compilewatch.dashboard.links.links import PAGES, Link, Page
from compilewatch.dashboard.read.choices import NEWEST_RUNS
from compilewatch.dashboard.read.data import read_choices, read_choices_on, read_runs, read_trial
from compilewatch.dashboard.read.database import reader
from compilewatch.dashboard.verdicts.pair import comparison_of, with_builds
from compilewatch.db import units
from compilewatch.db.errors import NotFoundError
from compilewatch.db.judge.results import Comparison
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.records.ids import machine_identity
from compilewatch.db.records.requests import RunStatus
from compilewatch.db.records.trial import SourceKind
from compilewatch.db.service.schedules import SCHEDULES


def context_line(link: Link, now: datetime, *, why: str = "", dated: bool = False) -> str:
    """Machine and device and `why` they are shown, builds, suite, how the machine is, its last run and the
    next one, as far as each is known of what `link` shows at `now`. What is read on other days is `dated`.
    """
    written = units.moment if dated else partial(when, now=now)
    link = _of_its_machine(link)
    return " · ".join(
        [*_subject(link, why), *_last_run(link.machine, written), *_next_run(link.machine, now, written)]
    )


def _of_its_machine(link: Link) -> Link:
    """A trial is of its own machine, whichever its link names or leaves open."""
    if not link.trial:
        return link
    try:
        return replace(link, machine=machine_identity(read_trial(link.trial).machine))
    except NotFoundError:
        return link


def _subject(link: Link, why: str) -> Iterator[str]:
    if link.machine is None:
        return
    name = read_choices().machines_with_device.get(link.machine, link.machine)
    yield f"{name}: {why}" if why else name
    if not PAGES[link.page].filtered or link.trial or PAGES[link.page].all_machines:
        return
    pair = pair_of(link)
    names = read_choices_on(link.machine).builds
    comparison = comparison_of(pair)
    if comparison is None or not comparison.matched:
        if link.build:
            yield names[link.build]
    else:
        yield f"{names[str(pair.head)]} against {names[str(pair.base)]}"
    if link.suite:
        yield f"suite {link.suite}"
    if comparison is not None and comparison.matched:
        yield _steadiness(comparison)


def pair_of(link: Link) -> Link:
    """The builds that Upgrade sets against each other for what `link` shows."""
    if link.page is Page.UPGRADE:
        return with_builds(link)
    return with_builds(replace(link, page=Page.UPGRADE, build=None, base=None, head=link.build))


def _steadiness(comparison: Comparison) -> str:
    """ "machine steady, canary +0.3 %": whether the machine explains what moved, and its control series."""
    aside = comparison.tally.set_aside
    word = f"machine moved, {units.plural(aside, 'case')} set aside" if aside else "machine steady"
    if comparison.canary_change is None:
        return f"{word}, no canary"
    return f"{word}, canary {units.percent(comparison.canary_change, signed=True)}"


def last_run(machine: str | None) -> dict[str, Any] | None:
    """The row of the run that measured last, on `machine` or on any; None where none is known."""
    runs, places = read_runs(NEWEST_RUNS)
    runs = runs[(runs["source"] == SourceKind.MEASURED.value) & runs["last_seen_at"].notna()]
    if machine is not None:
        runs = runs[runs["run_id"].isin(places.loc[places["machine_id"] == machine, "run_id"])]
    return row_dicts(runs.sort_values("last_seen_at").tail(1))[0] if len(runs) else None


def _last_run(machine: str | None, written: Callable[[datetime], str]) -> Iterator[str]:
    run = last_run(machine)
    if run is None:
        return
    began, last = run["started_at"], run["last_seen_at"]
    status = run["status"] if isinstance(run["status"], str) else None
    verb = {None: "measured", RunStatus.RUNNING.value: "runs, newest result"}.get(status, status)
    took = f", took {units.duration((last - began).total_seconds() * 1e9)}" if last > began else ""
    planned = run["planned_trials"]
    trials = units.plural(int(run["trials"]), "trial")
    if not pd.isna(planned):
        trials = f"{units.count(run['trials'])} of {units.plural(int(planned), 'trial')}"
    failed = int(run["failed_trials"])
    yield (
        f"last run {verb} {written(last)}{took}, {trials}, {units.count(failed) if failed else 'none'} failed"
    )


def _next_run(machine: str | None, now: datetime, written: Callable[[datetime], str]) -> Iterator[str]:
    """The next firing of a schedule that is not paused, of this machine or of any."""
    name = read_choices().machine_names.get(machine or "")
    coming = [
        each.next_run_at
        for each in SCHEDULES.all(reader())
        if each.next_run_at is not None
        and not each.paused
        and each.next_run_at >= now
        and (name is None or fnmatchcase(name, each.spec.machine or "*"))
    ]
    if coming:
        yield f"next run {written(min(coming))}"


def when(moment: datetime, now: datetime) -> str:
    """A time with "today" or "yesterday" where that is what a reader would say."""
    day = {0: "today", 1: "yesterday", -1: "tomorrow"}.get((now.date() - moment.date()).days)
    return f"{moment:%H:%M} UTC {day}" if day else units.moment(moment)
