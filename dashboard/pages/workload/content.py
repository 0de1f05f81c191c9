"""What the page Models says: all models in a list, and all that people ask of one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.pages.workload.models import models
from compilewatch.dashboard.parts import parts
from compilewatch.dashboard.parts.break_even import curves_chart
from compilewatch.dashboard.parts.cases import COLUMNS as FIGURES
from compilewatch.dashboard.parts.cases import NO_CASE, case_row, cases_of, floors_of, of_cases
from compilewatch.dashboard.parts.cold_start import starts_chart
from compilewatch.dashboard.parts.parts import Folded, Lines, PageContent, PageHeadline, Part, TableColumn
from compilewatch.dashboard.parts.trials import trials_table
from compilewatch.dashboard.read.data import (
    filters_of,
    of_workload,
    read_choices_on,
    read_newest_trials,
    read_profiled,
    read_regressions,
    read_trial,
)
from compilewatch.dashboard.read.versions import cached
from compilewatch.dashboard.verdicts import inbox
from compilewatch.dashboard.verdicts.history import history_parts
from compilewatch.dashboard.verdicts.pair import focus_on
from compilewatch.db import units
from compilewatch.db.cause.profile_words import why
from compilewatch.db.cause.trial_words import step_times
from compilewatch.db.judge.results import CaseKey
from compilewatch.db.metrics.case_modes import Fastest, fastest, mode_options
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.metrics.repayment import is_shown, repaid_words
from compilewatch.db.records.strategies import EAGER, sort_key
from compilewatch.db.records.trial import Status
from compilewatch.db.records.versions import version_key
from compilewatch.db.records.vocabulary import Metric
from compilewatch.db.verdicts.noise_floors import floor_sentence

MOST_TRIALS = 50
_DECIDE = ("speedup", "rate", "latency", "first", "steps")
_STRATEGIES: dict[str, TableColumn] = {
    "strategy": TableColumn("Strategy", pinned=True),
    **{name: FIGURES[name] for name in _DECIDE},
    **parts.hidden(
        {name: each for name, each in FIGURES.items() if name not in ("workload", "strategy", *_DECIDE)}
    ),
}


@cached
def workloads(link: Link) -> list[str]:
    """The workloads to choose from."""
    return sorted(set(cases_of(link)["workload_label"]), key=version_key)


@cached
def page(link: Link) -> PageContent:
    """The workload in focus, or the only one of those that `link` chooses; else all of them in a list."""
    every, floors = cases_of(link), floors_of(link.machine)
    if every.empty:
        return of_cases((NO_CASE,), every, link, floors)
    if link.focus is None and not (link.workload and every["workload_label"].nunique() == 1):
        return of_cases(models(link, every), every, link, floors)
    focus = focus_on(link, every)
    cases = every[every["workload_label"] == focus]
    rows = sorted(row_dicts(cases), key=lambda row: sort_key(row["strategy"]))
    found = fastest(rows)
    leading = found.case or _leading(rows)
    options, _ = mode_options(cases)
    shown: tuple[Part, ...] = (
        _headline(focus, found, rows),
        *parts.table(
            "workload-strategies",
            f"Every strategy on {focus}: speedup, throughput, latency, first result and break-even",
            pd.DataFrame([case_row(row, floors) for row in rows]),
            _STRATEGIES,
        ),
        *_trend(link, leading),
        curves_chart(link, cases, options if len(options) > 1 else [], focus),
        starts_chart(link, cases),
        *_regressions(link, str(rows[0]["workload"])),
        *_causes(link, rows),
        *_last_failure(link, focus),
        Folded("Its trials", partial(_trials, link, focus), "workload-trials"),
        *parts.how_sure(*parts.notes([floor_sentence(floors) or ""])),
    )
    return of_cases(shown, cases, replace(link, focus=focus), floors)


def _leading(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The compiled case with the largest speedup; of eager alone that one."""
    return max(rows, key=lambda row: -1.0 if pd.isna(row["speedup"]) else float(row["speedup"]))


def _headline(focus: str, found: Fastest, rows: Sequence[dict[str, Any]]) -> PageHeadline:
    """Which strategy, and from how many steps."""
    if not found.compared and any(row["strategy"] != EAGER.name for row in rows):
        return PageHeadline(f"{focus}: no compiled strategy has a speedup", "warning")
    if not found.compared:
        return PageHeadline(f"{focus}: only eager was measured")
    if found.case is None and found.rivals:
        return PageHeadline(f"{focus}: stay eager, no strategy is shown to be faster", "warning")
    if found.case is None:
        return PageHeadline(f"{focus}: stay eager, it is the fastest", "bad")
    best = f"{found.case['strategy']} is {units.ratio(found.case['speedup'])} eager"
    if found.rivals:
        rivals = [name for name in found.rivals if name != EAGER.name] or [EAGER.name]
        return PageHeadline(f"{focus}: {best}, not told apart from {rivals[0]}", "warning")
    pays = "" if found.case["break_even"] != "steps" else f", pays after {repaid_words(found.case)}"
    if not is_shown(found.case):
        pays = f", pays {repaid_words(found.case)} steps"
    return PageHeadline(f"{focus}: {best}{pays}", "good")


def _trend(link: Link, case: Mapping[str, Any]) -> tuple[Part, ...]:
    """The history of the leading strategy, with the steps that are judged real."""
    names = {name: str(case[name]) for name in ("workload", "strategy", "workload_id", "strategy_id")}
    key = CaseKey.model_validate(names)
    metric = Metric.LATENCY if case["strategy"] == EAGER.name else Metric.SPEEDUP
    return history_parts(link.machine, key, metric, key="workload-trend")


def _regressions(link: Link, workload: str) -> tuple[Part, ...]:
    """What is recorded of it, open or closed."""
    of_it = Link(page=Page.REGRESSIONS, machine=link.machine, workload=(workload,))
    recorded = inbox.chosen(read_regressions(), of_it)
    title = units.plural(len(recorded), "recorded regression")
    return parts.listed(title, inbox.first_names(recorded, inbox.line), key="workload-regressions")


def _causes(link: Link, rows: Sequence[Mapping[str, Any]]) -> tuple[Part, ...]:
    """Why each profiled strategy takes its time."""
    keys = {(row["workload_id"], row["strategy_id"]): row["strategy"] for row in rows}
    profiled = read_profiled(str(link.machine), tuple(keys)) if link.machine else {}
    lines = []
    for case, trial_id in profiled.items():
        trial = read_trial(trial_id)
        text = why(trial.profile, step_times(trial)) if trial.profile else ""
        lines += [f"{keys[case]}: {text}"] if text else []
    return parts.listed("Why it takes its time", lines, key="workload-causes")


def _last_failure(link: Link, focus: str) -> tuple[Part, ...]:
    """How the newest failed trial of any build ended; nothing where none failed."""
    everywhere = filters_of(replace(link, build=None))
    filters = replace(of_workload(everywhere, focus), statuses=(Status.FAILED,))
    trials, total = read_newest_trials(filters, 1)
    if trials.empty:
        return ()
    last = row_dicts(trials)[-1]
    what = f"{last['strategy']}: {units.words(str(last['failure_kind']))}. {last['failure_message'] or ''}"
    when = f"{units.moment(last['started_at'])}; {units.plural(total, 'failed trial')} in all."
    return (Lines((what.strip(), when), "Last failure", key="workload-failure"),)


def _trials(link: Link, focus: str) -> tuple[Part, ...]:
    filters = of_workload(filters_of(link), focus)
    trials, _ = read_newest_trials(filters, MOST_TRIALS)
    mine = trials[trials["workload_label"] == focus]
    return () if mine.empty else (trials_table(mine, read_choices_on(link.machine).builds, of_one=True),)
