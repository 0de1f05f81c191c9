"""What Today says: whether all is well with a build, what to look at first, what failed, and how it pays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pandas as pd

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.pages.overview import (
    beside,
    components,
    failed,
    headline,
    look_first,
    strategies,
    strip,
)
from compilewatch.dashboard.parts import parts
from compilewatch.dashboard.parts.cases import floors_of, no_case, of_cases
from compilewatch.dashboard.parts.parts import LEFT_OUT, Folded, Group, Lines, PageContent, Part
from compilewatch.dashboard.parts.speedups import speedups_chart
from compilewatch.dashboard.read.data import (
    filters_of,
    read_cases,
    read_cases_of_last_run,
    read_choices,
    read_choices_on,
    read_regressions,
    read_steps,
    read_trial,
    read_trials,
)
from compilewatch.dashboard.read.database import reader
from compilewatch.dashboard.read.shaping import asides, labels_of, not_applicable
from compilewatch.dashboard.read.versions import cached
from compilewatch.dashboard.verdicts import inbox
from compilewatch.dashboard.verdicts.pair import comparison_of, with_builds
from compilewatch.db import units
from compilewatch.db.cause.trial_words import numerics_sentence
from compilewatch.db.judge.results import Comparison, Tally
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.queries.selection import Filters
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import NumericsStatus
from compilewatch.db.service.regressions import with_steps
from compilewatch.db.verdicts.noise_floors import floor_sentence

_MOST_ERRORS = 8
_NO_BOUND = "Host- or device-bound is unknown: these trials have no gated times."
_SHARES = (7, 3)


@dataclass(frozen=True)
class _Today:
    """What the page rests on: the cases `now`, those of the `last` run alone and of the build `before`, the
    verdict between both builds, and the changes that wait or look fixed.
    """

    now: pd.DataFrame
    last: pd.DataFrame
    before: pd.DataFrame
    build: str
    since: str | None
    base: str | None
    comparison: Comparison | None
    changes: list[inbox.ListedChange]


@dataclass(frozen=True)
class _Shown:
    """The page but for what the time of day changes: in its wide column, beside that, and below both."""

    wide: tuple[Part, ...]
    beside: tuple[Part, ...]
    below: tuple[Part, ...]
    content: PageContent


def page(link: Link, now: datetime | None = None) -> PageContent:
    """What the page shows of one build on one machine at the moment `now`."""
    now = now or datetime.now(UTC)
    shown = _shown(link)
    if shown is None:
        return PageContent((no_case(link),), link)
    others = beside.other_machines(link.machine, read_choices(), read_regressions(), now)
    columns = (shown.wide, (*shown.beside, *others))
    return replace(
        shown.content,
        parts=(
            Group(columns, key="overview", shares=_SHARES),
            *shown.below,
            *parts.how_sure(*_basis(link, now)),
        ),
    )


@cached
def _shown(link: Link) -> _Shown | None:
    """None where no case fits the filters."""
    today = _today(link)
    if today is None:
        return None
    comparison = today.comparison
    cases = comparison.tally if comparison else Tally()
    metric = headline.metric_of(cases)
    models = comparison.tally_of_workloads(metric) if comparison else Tally()
    labels = labels_of(today.now)
    moved = strip.model_changes(comparison, metric, labels) if comparison else ()
    failing = int((today.last["failed_trials"] > 0).sum())
    waiting = sum(each.is_open and each.is_recorded for each in today.changes)
    newest = today.now["last_started_at"].max()
    wide: tuple[Part, ...] = (
        headline.verdict(
            models,
            cases,
            moved,
            failing=failing,
            changes=waiting,
            build=today.build,
            since=today.since,
        ),
        headline.counted(models, cases, failing=failing, changes=waiting),
        *(strip.strip(moved, comparison, metric, today.since) or _speedups(today)),
        *look_first.look_first(
            link, today.changes, labels, newest, today.comparison.rows if today.comparison else ()
        ),
        *failed.failed(link, today.last),
    )
    choices = read_choices_on(link.machine)
    floors = floors_of(link.machine)
    return _Shown(
        wide,
        (
            *beside.pays(today.now, today.before, today.since),
            *beside.targets(today.now),
            *beside.first_result(today.now),
            *beside.changed(choices, today.base, link.build),
        ),
        (*_left_out(link, today), *components.components(link), *strategies.strategy_means(today.now)),
        of_cases((), today.now, link, floors),
    )


def _speedups(today: _Today) -> tuple[Part, ...]:
    """In the place of changes, where nothing can be compared, what there is to see."""
    return () if today.since else (speedups_chart(today.now, strip.KEY),)


@cached
def _today(link: Link) -> _Today | None:
    now = read_cases(filters_of(link))
    if now.empty:
        return None
    names = read_choices_on(link.machine).builds
    everything = replace(link, build=None)
    pair = with_builds(replace(everything, page=Page.UPGRADE, base=None, head=link.build))
    comparison = comparison_of(pair)
    if comparison is not None and not comparison.matched:
        comparison = None
    base = pair.base if comparison is not None else None
    recorded = read_regressions()
    like = Link(page=Page.REGRESSIONS, machine=link.machine, task=link.task, workload=link.workload)
    here = inbox.chosen(recorded, like)
    waiting = [each for each in here if each.is_open]
    cured = [each for each in here if each.is_cured]
    if comparison is not None:
        fresh = inbox.not_recorded(comparison, recorded, now["last_started_at"].max())
        waiting += with_steps(reader(), fresh)
    return _Today(
        now=now,
        last=read_cases_of_last_run(filters_of(link)),
        before=read_cases(filters_of(replace(link, build=base))) if base else now.iloc[:0],
        build=names.get(link.build or "", ""),
        since=names[base] if base else None,
        base=base,
        comparison=comparison,
        changes=[
            *inbox.changes(waiting),
            *(each for each in inbox.changes([*waiting, *cured]) if each.is_cured),
        ],
    )


def _left_out(link: Link, today: _Today) -> tuple[Folded, ...]:
    """Cases without a number, for whoever opens it."""
    errors = _errors(link, today.now)
    of_last = set(zip(today.last["workload_label"], today.last["strategy"], strict=True))
    lines = [
        f"{aside}{'' if case in of_last else ', in an earlier run'}{errors.get(case, '')}"
        for aside in asides(today.now)
        for case in [(aside.workload, aside.strategy)]
    ]
    lines += _missing(today.now, today.before)
    if not lines:
        return ()
    title = f"{LEFT_OUT} ({units.count(len(lines))})"
    return (Folded(title, lambda: (Lines(tuple(lines)),), "left-out"),)


def _missing(now: pd.DataFrame, before: pd.DataFrame) -> list[str]:
    """The compiled cases of the build before that this one has not."""
    names = ["workload_id", "strategy_id", "workload_label", "strategy"]
    have = set(zip(now["workload_id"], now["strategy_id"], strict=True))
    return [
        f"{label} with {strategy}: measured with the build before, not with this one"
        for workload, strategy_id, label, strategy in before[names].itertuples(index=False)
        if strategy != EAGER.name and (workload, strategy_id) not in have
    ]


def _basis(link: Link, now: datetime) -> tuple[Lines, ...]:
    today = _today(link)
    if today is None:
        return ()
    left_out = len(today.comparison.left_out) if today.comparison else 0
    floor = floor_sentence(floors_of(link.machine))
    newest = today.now["last_started_at"].max()
    sentences = headline.basis(newest, now, noise_floor=floor, left_out=left_out, since=today.since)
    gpu = today.now["device"].iloc[0] != "cpu"
    unbound = (_NO_BOUND,) if gpu and today.now["bound"].isna().all() else ()
    steps = read_steps(str(link.machine), Filters(workloads=link.workload))
    idle = [
        f"{name} is not applicable on this device: {reason}."
        for name, reason in not_applicable(today.now, set()).items()
    ]
    return parts.notes((_coverage(today), *sentences, *unbound, steps, *idle), key="basis")


def _coverage(today: _Today) -> str:
    """Of how many compiled cases of this build or the one before there is a speedup."""
    compiled = today.now[today.now["strategy"] != EAGER.name]
    wanted = len(compiled) + len(_missing(today.now, today.before))
    have = units.count(int(compiled["speedup"].notna().sum()))
    cases = units.plural(wanted, "compiled case")
    return f"{have} of {cases} of this build or the one before have a speedup."


def _errors(link: Link, cases: pd.DataFrame) -> dict[tuple[str, str], str]:
    """Of cases with a wrong result, by label and strategy, how wrong the newest one is, as a sentence."""
    wrong = cases[cases["numerics_status"] == NumericsStatus.FAIL.value].head(_MOST_ERRORS)
    errors = {}
    for case in row_dicts(wrong[["workload_label", "strategy", "workload_id", "strategy_id", "workload"]]):
        filters = replace(filters_of(link), workloads=(case["workload"],), strategies=(case["strategy"],))
        trials = read_trials(filters)
        mine = trials[
            (trials["workload_id"] == case["workload_id"])
            & (trials["numerics_status"] == NumericsStatus.FAIL.value)
        ]
        numerics = read_trial(str(mine["trial_id"].iloc[-1])).numerics if len(mine) else None
        sentence = numerics_sentence(numerics) if numerics else ""
        if sentence:
            errors[case["workload_label"], case["strategy"]] = f". {units.capitalized(sentence)}."
    return errors
