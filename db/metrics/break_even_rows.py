"""Break-even and mode choice of every workload as rows, one per strategy."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from pandas import DataFrame

from db.metrics.break_even import Never, break_even, price
from db.metrics.case_modes import mode_options
from db.metrics.mode_choice import ModeOption, best_option, lower_envelope
from db.metrics.quantities import Quantity
from db.units import NEVER

_UNKNOWN: dict[str, Any] = {
    "break_even_steps": None,
    "break_even_time_ns": None,
    "break_even_price": None,
    "total_ns": None,
    "chosen": False,
    "fastest_from_steps": None,
}


def break_even_rows(
    cases: DataFrame, steps: int, restarts: int, price_per_hour: Decimal | None
) -> list[dict[str, Any]]:
    """One row per machine, workload and strategy, of the workload's newest build there; JSON values.

    `cases` are rows of `summarize_cases`. `total_ns` is for `steps` steps per process and `restarts`
    restarts, `fastest_from_steps` where the strategy enters the lower envelope (null: nowhere), `reason` why
    a case has no figures. Break-even is null for eager, "never" where it does not exist. Raises UnitError as
    `best_option` does.
    """
    return [row for group in _groups(cases) for row in _rows(group, steps, restarts, price_per_hour)]


def _groups(cases: DataFrame) -> Iterator[DataFrame]:
    """The cases of one workload on one machine with its newest build."""
    for _, group in cases.groupby(["machine_id", "workload_id"], sort=False):
        newest = group.sort_values("last_started_at")["build_id"].iloc[-1]
        yield group[group["build_id"] == newest]


def _rows(group: DataFrame, steps: int, restarts: int, hourly: Decimal | None) -> Iterator[dict[str, Any]]:
    options, left_out = mode_options(group)
    if not options:
        return
    best = best_option(options, steps, restarts)
    firsts = {segment.strategy: segment.first_steps for segment in lower_envelope(options, restarts)}
    labels = group.iloc[0]
    common = {"workload": labels["workload"], "machine": labels["machine"], "torch": labels["torch"]}
    eager = options[0]
    for option in options:
        yield {
            **common,
            "strategy": option.strategy,
            **_repayment(option, eager, hourly),
            "total_ns": float(option.total(steps, restarts).value),
            "chosen": option is best,
            "fastest_from_steps": firsts.get(option.strategy),
            "reason": None,
        }
    for case in left_out:
        yield {**common, "strategy": case.strategy, **_UNKNOWN, "reason": case.reason}


def _repayment(option: ModeOption, eager: ModeOption, hourly: Decimal | None) -> dict[str, Any]:
    """Break-even of `option` against `eager` in steps, time and money; all null for eager itself."""
    if option is eager:
        return {"break_even_steps": None, "break_even_time_ns": None, "break_even_price": None}
    point = break_even(compile_cost=option.compile_cost, compiled=option.latency, eager=eager.latency)
    time: Quantity | None = point.time
    return {
        "break_even_steps": NEVER if isinstance(point.steps, Never) else point.steps,
        "break_even_time_ns": None if time is None else float(time.value),
        "break_even_price": None if time is None or hourly is None else float(price(time, hourly)),
    }
