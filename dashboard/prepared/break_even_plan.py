"""What a plan of steps per process and restarts per day costs, strategy by strategy, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from dashboard.links import Link
from db import units
from db.metrics.break_even import NANOSECONDS_PER_HOUR
from db.metrics.frame_rows import row_dicts
from db.metrics.mode_choice import ModeOption, best_option
from db.strategies import EAGER, sort_key
from db.wording.marks import bound_cell

TITLES = {
    "steps": "Break-even",
    "interval": "95 % interval",
    "time": "Reached after",
    "money": "Money until then",
    "cost": "Compile cost",
    "day": "Time per day",
    "saved": "Saved per day",
    "saved_money": "Money saved",
}

_COLUMNS = [
    *("strategy", "break_even", "break_even_steps", "break_even_time_ns", "compile_cost_ns"),
    *("break_even_interval", "break_even_low", "break_even_high"),
    "bound",
]


@dataclass(frozen=True)
class Figure:
    """A figure of the plan, and what it means."""

    title: str
    text: str
    explained: str


def figures(link: Link, options: list[ModeOption]) -> tuple[Figure, tuple[Figure, ...]]:
    """The strategy that is done first, and what it costs and saves. `options` are eager and at least one."""
    best = best_option(options, link.steps, link.restarts)
    total, eager = best.total(link.steps, link.restarts), options[0].total(link.steps, link.restarts)
    saved = float((eager - total).value)
    each = f"{link.steps:,} steps per process"
    for_day = (
        f"{units.count(link.restarts + 1)} processes a day of {link.steps:,} steps, each compiling anew."
    )
    return Figure("Done first", best.strategy, f"The strategy with the lowest total for {each}."), (
        Figure("Total per day", units.duration(float(total.value)), for_day),
        Figure(
            "Saved against eager per day", units.duration(saved), "Nothing where eager itself is done first."
        ),
        Figure(
            "Money saved per day", units.money(_money(saved, link.price)), "At the price of a device-hour."
        ),
    )


def words(link: Link, focus: str) -> str:
    """The plan in a sentence."""
    return (
        f"{focus}: {link.restarts + 1:,} process{'es' if link.restarts else ''} a day of {link.steps:,} "
        f"steps each, at ${link.price:g} per device-hour. A negative saving is a loss."
    )


def _money(ns: float, price_per_hour: float) -> float:
    return ns / NANOSECONDS_PER_HOUR * price_per_hour


def rows(link: Link, cases: pd.DataFrame, options: list[ModeOption]) -> pd.DataFrame:
    """What the plan of the sliders costs per day, a row per strategy, in words."""
    by_name = {option.strategy: option for option in options}
    return pd.DataFrame(
        _row(case, by_name.get(case["strategy"]), by_name.get(EAGER.name), link)
        for case in sorted(row_dicts(cases[_COLUMNS]), key=lambda case: sort_key(case["strategy"]))
    )


def _row(
    case: dict[str, Any], option: ModeOption | None, eager: ModeOption | None, link: Link
) -> dict[str, str]:
    total = option.total(link.steps, link.restarts) if option else None
    saved = float((eager.total(link.steps, link.restarts) - total).value) if eager and total else None
    reached = None if pd.isna(case["break_even_time_ns"]) else float(case["break_even_time_ns"])
    reference = case["strategy"] == EAGER.name
    return {
        "strategy": case["strategy"],
        "bound": bound_cell(case["bound"]),
        "steps": steps_words(case),
        "interval": _interval_words(case),
        "time": units.duration(reached),
        "money": units.MISSING if reached is None else units.money(_money(reached, link.price)),
        "cost": units.MISSING if reference else units.duration(case["compile_cost_ns"]),
        "day": units.duration(None if total is None else float(total.value)),
        "saved": units.MISSING if reference else units.duration(saved),
        "saved_money": units.MISSING
        if reference or saved is None
        else units.money(_money(saved, link.price)),
    }


def steps_words(case: dict[str, Any]) -> str:
    """Break-even of a case in words: steps, never, or unknown; "reference" of eager itself."""
    if case["strategy"] == EAGER.name:
        return "reference"
    if case["break_even"] == "steps":
        return units.steps(int(case["break_even_steps"]))
    return str(case["break_even"])


def _interval_words(case: dict[str, Any]) -> str:
    """Its 95 % interval; an end that may never be reached is said so."""
    kind, low, high = case["break_even_interval"], case["break_even_low"], case["break_even_high"]
    if kind == "bounded":
        return units.interval(int(low), int(high), units.count)
    if kind == "open":
        return f"from {units.count(int(low))} to never"
    return units.NEVER if kind == "never" else units.MISSING
