"""What the Overview says: whether all is well with a build, its slowest cases, failures, every workload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pandas as pd

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.pages.overview import components, figures, headline, workloads
from compilewatch.dashboard.parts import parts
from compilewatch.dashboard.parts.cases import NO_CASE, floors_of, of_cases
from compilewatch.dashboard.parts.parts import LEFT_OUT, Folded, Lines, PageContent, Part
from compilewatch.dashboard.parts.speedups import speedups_chart
from compilewatch.dashboard.read.data import (
    filters_of,
    read_cases,
    read_cases_of_last_run,
    read_choices_on,
    read_points,
    read_regressions,
    read_steps,
    read_trial,
    read_trials,
    recent,
)
from compilewatch.dashboard.read.shaping import asides, build_changes, confounded, not_applicable
from compilewatch.dashboard.read.versions import cached
from compilewatch.dashboard.verdicts import headlines, inbox
from compilewatch.dashboard.verdicts.pair import comparison_of, with_builds
from compilewatch.db import units
from compilewatch.db.cause.numerics import numerics_sentence
from compilewatch.db.judge.results import Comparison, Tally
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.people.regressions import RegressionState
from compilewatch.db.queries.filters import Filters
from compilewatch.db.records.trial import NumericsStatus
from compilewatch.db.verdicts.noise_words import floor_sentence

_MOST_ERRORS = 8
_MOST_LINES_OPEN = 4
_NO_BOUND = "Host- or device-bound is unknown: these trials have no gated times."


@dataclass(frozen=True)
class _Overview:
    """What the page rests on: the cases `now`, those of the `last` run alone and of the build `before`, and
    the verdict between both builds.
    """

    now: pd.DataFrame
    last: pd.DataFrame
    before: pd.DataFrame
    points: pd.DataFrame
    build: str
    since: str | None
    base: str | None
    comparison: Comparison | None
    regressions: list[RegressionState]
    cured: list[RegressionState]
    any_recorded: bool


def page(link: Link, now: datetime | None = None) -> PageContent:
    """What the page shows of one build on one machine at the moment `now`."""
    content = _page(link)
    sure = _basis(link, now or datetime.now(UTC)) if content.builds else ()
    return replace(content, parts=(*content.parts, *parts.how_sure(*sure)))


@cached
def _page(link: Link) -> PageContent:
    overview = _overview(link)
    if overview is None:
        return PageContent((NO_CASE,), link)
    shown = asides(overview.now)
    covered = headline.coverage(overview.now, overview.before)
    failing = int((overview.last["failed_trials"] > 0).sum())
    tally = overview.comparison.tally if overview.comparison else Tally()
    sentence = headlines.of_overview(
        tally,
        failing=failing,
        regressions=len(overview.regressions),
        build=overview.build,
        since=overview.since,
    )
    counted = headlines.tally_lines(tally, failing=failing, regressions=len(overview.regressions))
    means = headline.headlines(overview.now, overview.before)
    floors = floors_of(link.machine)
    errors = _errors(link, overview.now)
    of_last = set(zip(overview.last["workload_label"], overview.last["strategy"], strict=True))
    without_number = [
        f"{aside}{'' if case in of_last else ', in an earlier run'}{errors.get(case, '')}"
        for aside in shown
        for case in [(aside.workload, aside.strategy)]
    ]
    without_number += covered.missing
    return of_cases(
        (
            sentence,
            Lines(counted, key="tally"),
            workloads.table(overview.now, overview.points, floors, overview.comparison),
            figures.figures(
                means,
                overview.since,
                tally,
                covered,
                overview.regressions,
                failing=failing,
                any_recorded=overview.any_recorded,
            ),
            *parts.listed(
                units.plural(len(overview.regressions), "open regression"),
                inbox.first_names(overview.regressions, inbox.line),
                key="overview-regressions",
            ),
            *parts.listed(
                f"{units.plural(len(overview.cured), 'regression')} gone, to be closed",
                inbox.first_names(overview.cured, inbox.cured_line),
                key="overview-cured",
            ),
            *_left_out(without_number),
            speedups_chart(overview.now, "overview-speedups"),
            *workloads.slowest(link, overview.now),
            *_changes(link, overview),
            *components.components(link),
            *headline.strategy_means(overview.now),
        ),
        overview.now,
        link,
        floors,
    )


@cached
def _overview(link: Link) -> _Overview | None:
    """None where no case fits the filters."""
    now = read_cases(filters_of(link))
    if now.empty:
        return None
    everything = replace(link, build=None)
    names = read_choices_on(link.machine).builds
    lately = recent(filters_of(everything), up_to=link.build)
    points = read_points(lately, columns=("speedup",))
    pair = with_builds(replace(everything, page=Page.UPGRADE, base=None, head=link.build))
    comparison = comparison_of(pair)
    base = pair.base if comparison is not None and comparison.matched else None
    recorded = read_regressions()
    like = Link(page=Page.REGRESSIONS, machine=link.machine, task=link.task, workload=link.workload)
    return _Overview(
        now=now,
        last=read_cases_of_last_run(filters_of(link)),
        before=read_cases(filters_of(replace(link, build=base))) if base else now.iloc[:0],
        points=points,
        build=names.get(link.build or "", ""),
        since=names[base] if base else None,
        base=base,
        comparison=comparison,
        regressions=[each for each in inbox.chosen(recorded, like) if each.is_open],
        cured=[each for each in inbox.chosen(recorded, like) if each.is_cured],
        any_recorded=bool(recorded),
    )


def _left_out(lines: Sequence[str]) -> tuple[Part, ...]:
    """Cases without a number: a few as a list, many folded."""
    if len(lines) <= _MOST_LINES_OPEN:
        return parts.listed(LEFT_OUT, lines)
    title = f"{LEFT_OUT} ({units.count(len(lines))})"
    return (Folded(title, lambda: (Lines(tuple(lines)),), "left-out"),)


def _basis(link: Link, now: datetime) -> tuple[Lines, ...]:
    overview = _overview(link)
    if overview is None:
        return ()
    left_out = len(overview.comparison.left_out) if overview.comparison else 0
    floor = floor_sentence(floors_of(link.machine))
    newest = overview.now["last_started_at"].max()
    sentences = headlines.basis(newest, now, noise_floor=floor, left_out=left_out, since=overview.since)
    gpu = overview.now["device"].iloc[0] != "cpu"
    unbound = (_NO_BOUND,) if gpu and overview.now["bound"].isna().all() else ()
    steps = read_steps(str(link.machine), Filters(workloads=link.workload))
    idle = [
        f"{name} is not applicable on this device: {reason}."
        for name, reason in not_applicable(overview.now, set()).items()
    ]
    return parts.notes((*sentences, *unbound, steps, *idle), key="basis")


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
            errors[case["workload_label"], case["strategy"]] = f". {sentence[0].upper()}{sentence[1:]}."
    return errors


def _changes(link: Link, overview: _Overview) -> tuple[Part, ...]:
    if overview.base is None or link.build is None:
        return parts.notes([f"No build that {overview.build} can be compared with was measured here."])
    rows = read_choices_on(link.machine).build_rows
    changes = build_changes(rows[overview.base], rows[link.build])
    title = f"What changed since {overview.since}"
    if not changes:
        return (Lines(("Only settings, packages or sources differ.",), title),)
    frame = pd.DataFrame(
        [(each.component, each.before or units.MISSING, each.after or units.MISSING) for each in changes],
        columns=["part", "before", "after"],
    )
    note = (
        "Several parts changed at once, so their effects cannot be told apart." if confounded(changes) else ""
    )
    columns = parts.texts({"part": "Part", "before": "Before", "after": "Now"})
    alt = "Parts of the build that changed"
    return parts.table("overview-build", alt, frame, columns, title=title, note=note)
