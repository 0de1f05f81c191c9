"""What a plan of steps per process and restarts per day costs, strategy by strategy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from compilewatch.dashboard.links.links import Link
from compilewatch.dashboard.parts import parts
from compilewatch.dashboard.parts.cases import BREAK_EVEN, RATES, case_row, columns_of
from compilewatch.dashboard.parts.parts import CASE_FACTS, Figure, Figures, PageHeadline, Part, TableColumn
from compilewatch.db import units
from compilewatch.db.judge.statistics.noise_floor import NoiseFloor
from compilewatch.db.metrics.break_even import NANOSECONDS_PER_HOUR
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.metrics.mode_choice import Choice, ModeOption
from compilewatch.db.records.strategies import EAGER, sort_key
from compilewatch.db.verdicts.case_view import Door

_OF_CASE = columns_of(Door.PLAN)
_PLAN = {
    "strategy": replace(_OF_CASE["strategy"], pinned=True),
    **{name: _OF_CASE[name] for name in (*BREAK_EVEN, "interval", "cost")},
    **parts.quantities("ns", {"day": "Time per day", "against": "Against eager per day"}),
    **parts.hidden(
        {
            "step": TableColumn(
                "Step", numeric=True, unit="ns", explained="Eager of all processes over this speedup."
            ),
            **{name: _OF_CASE[name] for name in (*RATES, "speedup", "time")},
            **parts.quantities(
                "money", {"money": "Money until then", "against_money": "Money against eager"}
            ),
            **CASE_FACTS,
        }
    ),
}


def figures(link: Link, chosen: Choice) -> tuple[Part, ...]:
    """The strategy that is fastest overall, and what it costs and saves a day; what is not told apart where
    none is shown to be.
    """
    best = chosen.option
    total, eager = (each(link.steps, link.restarts) for each in (best.total_ns, best.eager_total_ns))
    saved = float(eager - total)
    steps = units.plural(link.steps, "step")
    for_day = f"{units.plural(link.restarts + 1, 'process')} a day of {steps}, each compiling anew."
    return (
        Figures(
            (
                Figure(
                    "Fastest overall",
                    best.strategy if chosen.is_shown else "no difference shown",
                    f"The lowest total time for {steps} per process, where its interval clears all others.",
                    name=True,
                ),
                Figure("Total per day", units.duration(float(total)), f"Of {best.strategy}. {for_day}"),
                Figure(
                    "Saved against eager per day",
                    units.duration(saved),
                    f"By {best.strategy}. Nothing where eager itself is the fastest.",
                ),
                Figure(
                    "Money saved per day",
                    units.money(_money(saved, link.price)),
                    "At the price of a device-hour.",
                ),
            ),
            width_px=190,
            key="plan",
        ),
    )


def headline(link: Link, chosen: Choice, focus: str) -> PageHeadline:
    """At most twelve words on what to run for the steps that are planned."""
    steps, best = units.plural(link.steps, "step"), chosen.option
    names = sorted({best.strategy, *(rival.strategy for rival in chosen.rivals)}, key=sort_key)
    if not chosen.is_shown:
        return PageHeadline(
            f"{focus}: no difference shown between {' and '.join(names[:2])} at {steps}", "warning"
        )
    if best.eager_latency_ns is None:
        return PageHeadline(f"{focus}: stay eager for {steps} per process", "bad")
    return PageHeadline(f"{focus}: {best.strategy} is fastest for {steps} per process", "good")


def _money(ns: float, price_per_hour: float) -> float:
    return ns / NANOSECONDS_PER_HOUR * price_per_hour


def table(
    link: Link, focus: str, cases: pd.DataFrame, options: list[ModeOption], floors: Sequence[NoiseFloor]
) -> tuple[Part, ...]:
    """What the plan of the reader costs per day, a row per strategy on the workload `focus`."""
    processes, steps = units.plural(link.restarts + 1, "process"), units.plural(link.steps, "step")
    return parts.table(
        "break-even-table",
        f"Break-even of every strategy on {focus} in steps, time and money, and the cost of a day",
        _rows(link, cases, options, floors),
        _PLAN,
        title="In steps, time and money",
        note=f"{focus}: {processes} a day of {steps} each, at ${link.price:g} per device-hour. "
        "Against eager, below 0 is saved.",
    )


def _rows(
    link: Link, cases: pd.DataFrame, options: list[ModeOption], floors: Sequence[NoiseFloor]
) -> pd.DataFrame:
    """What the plan of the reader costs per day, a row per strategy."""
    by_name = {option.strategy: option for option in options}
    ordered = sorted(row_dicts(cases), key=lambda case: sort_key(case["strategy"]))
    rows = [case_row(case, floors, Door.PLAN) for case in ordered]
    return pd.DataFrame(row | _costs(row, by_name.get(row["strategy"]), link) for row in rows)


def _costs(row: Mapping[str, Any], option: ModeOption | None, link: Link) -> dict[str, Any]:
    total = float(option.total_ns(link.steps, link.restarts)) if option else None
    against = None
    if option is not None and total is not None and row["strategy"] != EAGER.name:
        against = total - float(option.eager_total_ns(link.steps, link.restarts))
    return {
        "day": total,
        "against": against,
        "step": float(option.latency_ns) if option else None,
        "money": None if row["time"] is None else _money(row["time"], link.price),
        "against_money": None if against is None else _money(against, link.price),
    }
