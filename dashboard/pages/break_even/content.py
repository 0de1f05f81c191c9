"""What the tab Break-even is drawn from: curves and plan of one workload, and the steps of every one."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from compilewatch.dashboard.links.links import Link
from compilewatch.dashboard.pages.break_even import plan
from compilewatch.dashboard.pages.break_even.history import history_parts
from compilewatch.dashboard.parts import parts
from compilewatch.dashboard.parts.break_even import curves_chart
from compilewatch.dashboard.parts.cases import REPAID, cases_of, floors_of, no_case, of_cases
from compilewatch.dashboard.parts.model import facts
from compilewatch.dashboard.parts.parts import LEFT_OUT, PageContent, Part
from compilewatch.dashboard.read.data import filters_of, read_cases
from compilewatch.dashboard.read.shaping import asides
from compilewatch.dashboard.read.versions import cached
from compilewatch.dashboard.text import theme
from compilewatch.dashboard.verdicts.pair import focus_on
from compilewatch.db import units
from compilewatch.db.metrics.case_modes import mode_options
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.metrics.mode_choice import choose
from compilewatch.db.records.identity import version_key
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import bound_word
from compilewatch.db.verdicts.case_view import steps_words

EVERY_WORKLOAD = "break-even-all"
"""The key of the table of all workloads, which stands below the one in focus."""


@cached
def workloads(link: Link) -> tuple[list[str], frozenset[str]]:
    """The workloads to choose from, and the cache states that were measured."""
    cases, everything = cases_of(link), read_cases(filters_of(link))
    return sorted(set(cases["workload_label"]), key=version_key), frozenset(map(str, everything["cache"]))


@cached
def page(link: Link) -> PageContent:
    """One workload: that in focus, else what changed most."""
    cases, floors = cases_of(link), floors_of(link.machine)
    if cases.empty:
        return of_cases((no_case(link),), cases, link, floors)
    focus = focus_on(link, cases)
    mine = cases[cases["workload_label"] == focus]
    options, left_out = mode_options(mine)
    chosen = choose(options, link.steps, link.restarts) if len(options) > 1 else None
    # A case that failed is said to have failed, and no more: all else follows from that.
    failed = {str(case) for case in mine.loc[mine["status"] == "failed", "strategy"]}
    no_line = [
        f"{case.workload} with {case.strategy} has no line: {case.reason}"
        for case in left_out
        if case.strategy not in failed
    ]
    passed = mine[~mine["strategy"].isin(failed)]
    reasons = dict.fromkeys([*_reasons(passed), *no_line, *map(str, asides(mine))])
    shown = (
        *facts(replace(link, focus=focus)),
        *((plan.headline(link, chosen, focus),) if chosen else ()),
        curves_chart(link, mine, options if chosen else [], focus),
        *(plan.figures(link, chosen) if chosen else ()),
        *plan.table(link, focus, mine, options, floors),
        *parts.listed(LEFT_OUT, list(reasons)),
        *history_parts(replace(link, focus=None), focus),
        *_every_workload(cases),
    )
    return of_cases(shown, cases, replace(link, focus=focus), floors)


def _reasons(cases: pd.DataFrame) -> list[str]:
    """Why a case has no break-even."""
    return [
        f"{case['workload_label']} with {case['strategy']}: break-even is {case['break_even']}, "
        f"{case['break_even_reason']}"
        for case in row_dicts(cases[["workload_label", "strategy", "break_even", "break_even_reason"]])
        if case["strategy"] != EAGER.name and case["break_even"] != "steps"
    ]


def _every_workload(cases: pd.DataFrame) -> tuple[Part, ...]:
    """Break-even in words, a row per workload and a column per strategy; nothing for a single workload."""
    rows: dict[str, dict[str, str]] = {}
    compiled = cases[cases["strategy"] != EAGER.name]
    needed = ("workload_label", "strategy", *REPAID, "bound", "counted_trials")
    for case in row_dicts(compiled[list(needed)]):
        trials = f"n={units.count(case['counted_trials'])}"
        words = ", ".join(filter(None, (steps_words(case), bound_word(case["bound"]), trials)))
        rows.setdefault(case["workload_label"], {"workload": case["workload_label"]})[case["strategy"]] = (
            words
        )
    if len(rows) < 2:
        return ()
    return parts.table(
        EVERY_WORKLOAD,
        "Break-even steps of every workload with every strategy",
        pd.DataFrame([rows[name] for name in sorted(rows)]),
        {
            "workload": parts.WORKLOAD,
            **parts.numbers({name: name for name in theme.ordered(compiled["strategy"])}),
        },
        title="Break-even of every workload",
    )
