"""Pages about the cases of one build: which they are, and every one as a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from compilewatch.dashboard.links.links import Link
from compilewatch.dashboard.parts import parts
from compilewatch.dashboard.parts.parts import CASE_FACTS, Empty, PageContent, Part, Table, TableColumn
from compilewatch.dashboard.read import shaping
from compilewatch.dashboard.read.data import filters_of, read_cases, read_noise_floors
from compilewatch.db import units
from compilewatch.db.json_rows import rows_of
from compilewatch.db.judge.statistics.noise_floor import NoiseFloor
from compilewatch.db.metrics.case_modes import with_strategies
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.metrics.repayment import is_shown, repaid_words
from compilewatch.db.metrics.throughput import items_of
from compilewatch.db.records.marks import bound_cell
from compilewatch.db.records.strategies import EAGER, sort_key
from compilewatch.db.verdicts.noise_words import smallest_change

CASE = {"workload": parts.WORKLOAD, "strategy": TableColumn("Strategy")}
"""The columns that name a case."""

NO_DIFFERENCE = "no difference shown"
"""In the place of a best strategy that none is shown to be."""

NO_CASE = Empty("No case fits these filters.", "Widen them above.")

SPEEDUP_INTERVAL = TableColumn("95 % interval", "interval", numeric=True, unit="ratio")
BREAK_EVEN = {
    "steps": TableColumn("Break-even", numeric=True, unit="steps", explained="Empty where it is no number."),
    "pays_off": TableColumn(
        "Pays off", explained="Never, unknown, or the least it can be, where no steps are shown."
    ),
}
"""Break-even of a case as a number, and in a word where it is none: the cells of `repayment`."""

RATES = {
    **parts.quantities("rate", {"rate": "Throughput", "eager_rate": "Eager throughput"}),
    "item": TableColumn("Counts", explained="What throughput counts: the workload's items, else its batch."),
}
"""Throughput of both sides: the cells of `rates`."""

COLUMNS = {
    **CASE,
    **RATES,
    **parts.quantities("ratio", {"speedup": "Speedup"}),
    "interval": SPEEDUP_INTERVAL,
    **parts.quantities("ns", {"latency": "Latency", "eager": "Eager latency"}),
    **CASE_FACTS,
    **parts.quantities("ns", {"cost": "Compile cost"}),
    **BREAK_EVEN,
    **parts.quantities("ns", {"first": "Time to first result"}),
    **parts.quantities("bytes", {"memory": "Peak memory"}),
    "status": TableColumn("Status"),
}
"""Every figure of a case."""


def cases_of(link: Link) -> pd.DataFrame:
    """The cases that `link` lets through, strategies and cache states included."""
    cases = with_strategies(read_cases(filters_of(link)), link.strategy)
    return shaping.with_caches(cases, link.cache)


def floors_of(machine_id: str | None) -> tuple[NoiseFloor, ...]:
    """The noise floors of a machine; none where they are not known."""
    return read_noise_floors(machine_id).get(machine_id, ()) if machine_id else ()


RATES_OF = (*("throughput_per_s", "control_throughput_per_s", "items_per_iteration", "batch_size", "item"),)
"""The columns of a case that `rates` reads."""

NO_FACTS: dict[str, Any] = {"bound": None, "counted_trials": None}
"""What `case_facts` reads of a case, where it is not known."""


def case_facts(
    case: Mapping[str, Any], floors: Sequence[NoiseFloor], metric: str = "latency"
) -> dict[str, Any]:
    """The cells of `CASE_FACTS` for a case, the noise floor that of `metric`."""
    return {
        "bound": bound_cell(case["bound"]),
        "noise": smallest_change(floors, metric, case["bound"]),
        "trials": case["counted_trials"],
    }


def speedup_interval(case: Mapping[str, Any]) -> tuple[float, float] | str:
    """The cell of a case in `SPEEDUP_INTERVAL`."""
    return interval_cell(case["speedup_low"], case["speedup_high"], case["counted_trials"])


def interval_cell(low: Any, high: Any, trials: Any) -> tuple[float, float] | str:
    """The cell of an interval of so many trials."""
    if pd.isna(low) or pd.isna(high):
        return units.interval(None, None, str, trials=trials)
    return low, high


def rates(case: Mapping[str, Any]) -> dict[str, Any]:
    """The cells of a case in `RATES`."""
    eager = None if case["strategy"] == EAGER.name else case["control_throughput_per_s"]
    return {"rate": case["throughput_per_s"], "eager_rate": eager, "item": f"{items_of(case)[1]}s"}


REPAID = ("break_even", "break_even_steps", "break_even_interval", "break_even_low", "first_look")
"""The columns of a case that `repayment` and `steps_words` read, beside its strategy."""

FIRST_LOOK = "first look"
"""What a case of one trial is, which decides nothing."""


def repayment(case: Mapping[str, Any]) -> dict[str, Any]:
    """The cells of a case in `BREAK_EVEN`."""
    if case["strategy"] == EAGER.name:
        return {"steps": None, "pays_off": "reference"}
    known = case["break_even"] == "steps" and is_shown(case)
    word = FIRST_LOOK if case["first_look"] else "yes" if known else repaid_words(case)
    return {"steps": case["break_even_steps"] if known else None, "pays_off": word}


def focus_of(link: Link, workloads: Iterable[str], passed: Iterable[str] = ()) -> str:
    """The workload that a page is about: the one asked for, else the first of those that `passed`, of others
    where none did. `workloads` is not empty.
    """
    labels = set(workloads)
    return link.focus if link.focus in labels else min(labels.intersection(passed) or labels)


def of_cases(
    shown: tuple[Part, ...], cases: pd.DataFrame, link: Link, floors: Sequence[NoiseFloor]
) -> PageContent:
    """A page that shows `cases`, each of them a row of its report's appendix. `floors` of their machine."""
    return PageContent(
        shown,
        link,
        builds=shaping.newest_builds(cases, "last_started_at"),
        data=lambda: {"cases": rows_of(cases)},
        appendix=lambda: every_case(cases, floors),
    )


def every_case(cases: pd.DataFrame, floors: Sequence[NoiseFloor]) -> tuple[Table, ...]:
    """Every case as a row; nothing where there is none."""
    ordered = sorted(row_dicts(cases), key=lambda case: (case["workload_label"], sort_key(case["strategy"])))
    frame = pd.DataFrame([case_row(case, floors) for case in ordered])
    return parts.table("cases", "Every case with its figures", frame, COLUMNS, title="Every case")


def case_row(case: dict[str, Any], floors: Sequence[NoiseFloor]) -> dict[str, Any]:
    """The cells of `COLUMNS` for a case."""
    return {
        "workload": case["workload_label"],
        "strategy": case["strategy"],
        **rates(case),
        "speedup": case["speedup"],
        "interval": speedup_interval(case),
        "latency": case["latency_ns"],
        "eager": case["control_latency_ns"],
        **case_facts(case, floors),
        "cost": case["compile_cost_ns"],
        **repayment(case),
        "first": case["time_to_first_result_ns"],
        "memory": case["peak_bytes"],
        "status": case["status"],
    }


def steps_words(case: dict[str, Any]) -> str:
    """Break-even of a case as `repaid_words`, or that it is a first look; "reference" of eager itself."""
    if case["strategy"] == EAGER.name:
        return "reference"
    if case["first_look"]:
        return FIRST_LOOK
    return repaid_words(case)
