"""Pages about the cases of one build: which they are, and every one as a row."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from compilewatch.dashboard.links.links import Link
from compilewatch.dashboard.parts import parts
from compilewatch.dashboard.parts.parts import CASE_FACTS, Empty, PageContent, Part, Table, TableColumn
from compilewatch.dashboard.read import shaping
from compilewatch.dashboard.read.data import (
    filters_of,
    read_cases,
    read_newest_trials,
    read_noise_floors,
)
from compilewatch.db import units
from compilewatch.db.cells import rows_of
from compilewatch.db.judge.statistics.noise_floor import NoiseFloor
from compilewatch.db.metrics.case_modes import with_strategies
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.records.identity import version_key
from compilewatch.db.records.strategies import sort_key
from compilewatch.db.verdicts.case_view import DOORS, Cell, Door
from compilewatch.db.verdicts.noise_floors import smallest_change

NO_DIFFERENCE = "no difference shown"
"""In the place of a best strategy that none is shown to be."""

_SHARED = {"workload": parts.WORKLOAD, **CASE_FACTS}
"""Columns that tables of something else have too."""


def columns_of(door: Door) -> dict[str, TableColumn]:
    """The columns of a table of cases by the names of their cells."""
    return {
        each.name: _SHARED.get(each.name)
        or TableColumn(
            each.heading,
            "interval" if each.ends else "text",
            numeric=each.right,
            unit=each.unit,
            explained=each.explained,
        )
        for each in DOORS[door]
    }


def row_of(
    case: Mapping[str, Any], door: Door = Door.PAGE, names: Container[str] | None = None
) -> dict[str, Any]:
    """The cells of a case in `columns_of`, those of `names` alone where any are given."""
    return {each.name: _raw(each, case) for each in DOORS[door] if names is None or each.name in names}


def _raw(cell: Cell, case: Mapping[str, Any]) -> Any:
    """A number or both ends of an interval as they are, and the text of all else."""
    if not cell.unit:
        return cell.text(case)
    value = cell.value(case)
    if cell.ends:
        return cell.text(case) if value is None else tuple(value)
    return value


COLUMNS = columns_of(Door.PAGE)
"""Every figure of a case."""
CASE, RATES, BREAK_EVEN = (
    {name: COLUMNS[name] for name in names}
    for names in (("workload", "strategy"), ("rate", "eager_rate", "item"), ("steps", "pays_off"))
)
"""The columns that name a case, its throughput with eager's, and its break-even as a number and in a word."""
SPEEDUP_INTERVAL = COLUMNS["interval"]


def no_case(link: Link) -> Empty:
    """Why no case passes the filters of `link`: a trial that was cancelled makes none."""
    filters = filters_of(link)
    if read_cases(filters).empty and read_newest_trials(filters, 1)[1]:
        return Empty("Every trial here was cancelled.", "Measure again: `compilewatch run`.")
    return Empty("No case fits these filters.", "Widen them above.")


def cases_of(link: Link) -> pd.DataFrame:
    """The cases that `link` lets through, strategies and cache states included."""
    cases = with_strategies(read_cases(filters_of(link)), link.strategy)
    return shaping.with_caches(cases, link.cache)


def models_of(link: Link) -> list[str]:
    """The models that have a case among `cases_of` the link."""
    return sorted(set(cases_of(link)["workload_label"]), key=version_key)


def floors_of(machine_id: str | None) -> tuple[NoiseFloor, ...]:
    """The noise floors of a machine; none where they are not known."""
    return read_noise_floors(machine_id).get(machine_id, ()) if machine_id else ()


RATES_OF = (*("throughput_per_s", "control_throughput_per_s", "items_per_iteration", "batch_size", "item"),)
"""The columns of a case that `RATES` reads."""

NO_FACTS: dict[str, Any] = {"bound": None, "counted_trials": None}
"""What `case_facts` reads of a case, where it is not known."""


def case_facts(
    case: Mapping[str, Any], floors: Sequence[NoiseFloor], metric: str = "latency"
) -> dict[str, Any]:
    """The cells of `CASE_FACTS` for a case, the noise floor that of `metric`."""
    return row_of(_with_noise(case, floors, metric), names=CASE_FACTS)


def _with_noise(
    case: Mapping[str, Any], floors: Sequence[NoiseFloor], metric: str = "latency"
) -> dict[str, Any]:
    return {**case, "noise": smallest_change(floors, metric, case["bound"])}


def interval_cell(low: Any, high: Any, trials: Any) -> tuple[float, float] | str:
    """The cell of an interval of so many trials."""
    if pd.isna(low) or pd.isna(high):
        return units.interval(None, None, str, trials=trials)
    return low, high


REPAID = (
    *("break_even", "break_even_steps", "break_even_interval", "break_even_low", "first_look"),
    "strategy_kind",
)
"""The columns of a case that `BREAK_EVEN` and `db.verdicts.case_view.steps_words` read."""


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


def case_row(case: Mapping[str, Any], floors: Sequence[NoiseFloor], door: Door = Door.PAGE) -> dict[str, Any]:
    """The cells of a case in `columns_of(door)`."""
    return row_of(_with_noise(case, floors), door)
