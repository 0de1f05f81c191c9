"""What is known of one model in a sentence, which stands above each of its tabs, and what to run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from compilewatch.dashboard.links import links
from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.parts import parts
from compilewatch.dashboard.parts.cases import cases_of
from compilewatch.dashboard.parts.cold_start import largest_phases
from compilewatch.dashboard.parts.parts import Lines, PageHeadline
from compilewatch.dashboard.read.data import filters_of, newest_build
from compilewatch.db import units
from compilewatch.db.metrics.break_even import about_words, is_shown, repaid_words
from compilewatch.db.metrics.case_modes import Fastest, fastest
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.records.strategies import EAGER, sort_key
from compilewatch.db.records.trial import CacheState
from compilewatch.db.verdicts.case_view import FIRST_LOOK, reasons_of

FACTS = "facts"
"""The key of the sentence."""


def leading(rows: Sequence[dict[str, Any]], found: Fastest) -> dict[str, Any]:
    """The case whose figures a model has: the fastest, else the compiled one nearest to it, else eager."""
    if found.case is not None:
        return found.case
    compiled = [row for row in rows if row["strategy"] != EAGER.name and not pd.isna(row["speedup"])]
    if not compiled:
        return min(rows, key=lambda row: sort_key(row["strategy"]))
    return max(compiled, key=lambda row: (row["cache"] != CacheState.WARM, float(row["speedup"])))


def warm_ns(rows: Sequence[dict[str, Any]], case: dict[str, Any]) -> float | None:
    """Time to the first result of the strategy of `case` with a filled cache; None where it is not known."""
    filled = f"{case['strategy']}+{CacheState.WARM}"
    known = (row["time_to_first_result_ns"] for row in rows if row["strategy"] == filled)
    return next((ns for ns in known if not pd.isna(ns)), None)


def pays(case: dict[str, Any]) -> str:
    """From how many steps on a case pays."""
    if case["strategy"] == EAGER.name:
        return units.MISSING
    return FIRST_LOOK if case["first_look"] else about_words(case)


def on_one_build(link: Link) -> Link:
    """Of a link to all builds one to the newest, whenever it was measured: figures are of one."""
    ever = replace(link, since=None, until=None)
    return ever if link.build else replace(ever, build=newest_build(filters_of(ever)))


def facts(link: Link) -> tuple[Lines, ...]:
    """Those of the leading strategy of the model in focus, whatever the tab shows of it."""
    link = on_one_build(replace(links.beside(link, Page.WORKLOAD), strategy=()))
    every = cases_of(link)
    cases = every[every["workload_label"] == link.focus]
    if cases.empty:
        return ()
    rows = row_dicts(cases)
    case = leading(rows, fastest(rows))
    key = case["workload_label"], case["strategy"], str(case["cache"])
    clauses = [
        f"{case['task']} with {case['strategy']}",
        *_gain(case),
        *_first_result(rows, case),
        largest_phases(link, cases).get(key, ""),
        f"peak {units.size(case['peak_bytes'])}" if not pd.isna(case["peak_bytes"]) else "",
    ]
    return (*parts.notes([" · ".join(filter(None, clauses))], key=FACTS), *parts.notes(_reasons(rows)))


def _reasons(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Why the model and its strategies are set up so, as sentences."""
    in_order = sorted(rows, key=lambda row: sort_key(row["strategy"]))
    return [f"{units.capitalized(text).rstrip('.')}." for text in reasons_of(in_order)]


def _gain(case: dict[str, Any]) -> tuple[str, ...]:
    """Speedup and break-even; nothing of eager."""
    if pd.isna(case["speedup"]):
        return ()
    ends = (case["speedup_low"], case["speedup_high"])
    interval = "" if pd.isna(ends[0]) else f" [{', '.join(map(units.ratio, ends))}]"
    words = pays(case)
    steps = f"break-even {words}{' steps' if words.startswith('about') else ''}"
    return f"{units.ratio(case['speedup'])} eager{interval}", steps


def _first_result(rows: Sequence[dict[str, Any]], case: dict[str, Any]) -> tuple[str, ...]:
    cold = case["time_to_first_result_ns"]
    if pd.isna(cold):
        return ()
    warm = warm_ns(rows, case)
    beside = "" if warm is None else f" cold, {units.duration(warm)} warm"
    return (f"first result {units.duration(cold)}{beside}",)


def headline(model: str, cases: pd.DataFrame) -> PageHeadline:
    """Which strategy, and from how many steps on; `cases` are its on one build."""
    rows = row_dicts(cases)
    found = fastest(rows)
    if not found.compared and any(row["strategy"] != EAGER.name for row in rows):
        return PageHeadline(f"{model}: no compiled strategy has a speedup", "warning")
    if not found.compared:
        return PageHeadline(f"{model}: only eager was measured")
    if found.case is None and found.rivals:
        return PageHeadline(f"{model}: no strategy is shown to be faster than eager", "warning")
    if found.case is None:
        return PageHeadline(f"{model}: stay eager, it is the fastest", "bad")
    best = f"{found.case['strategy']} is {units.ratio(found.case['speedup'])} eager"
    if found.rivals:
        rivals = [name for name in found.rivals if name != EAGER.name] or [EAGER.name]
        return PageHeadline(f"{model}: {best}, not told apart from {rivals[0]}", "warning")
    steps = ""
    if not is_shown(found.case):
        steps = f", pays {repaid_words(found.case)} steps"
    elif found.case["break_even"] == "steps":
        steps = f", pays after about {units.two_digits(found.case['break_even_steps'])} steps"
    return PageHeadline(f"{model}: {best}{steps}", "good")
