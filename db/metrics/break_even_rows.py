"""Break-even and mode choice of every workload as rows, one per strategy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pandas as pd
from pandas import DataFrame

from compilewatch.db.metrics.break_even import price
from compilewatch.db.metrics.case_modes import Modes, modes_of, rows_by_workload
from compilewatch.db.metrics.mode_choice import choose, shown_envelope
from compilewatch.db.metrics.quantities import nanoseconds
from compilewatch.db.metrics.throughput import items_of
from compilewatch.db.units import NEVER

SCHEMA = "compilewatch.break-even/1"
_LABELS = (
    *("workload", "workload_id", "machine", "machine_id", "torch", "build_id"),
    *("source_kind", "source_name"),
)
_NOT_REPAID: dict[str, Any] = dict.fromkeys(
    (
        *("break_even_steps", "break_even_interval", "break_even_low_steps", "break_even_high_steps"),
        *("break_even_time_ns", "break_even_price", "reason"),
    )
)
_RATES = ("throughput_per_s", "control_throughput_per_s")
_NO_RATES: dict[str, Any] = dict.fromkeys((*_RATES, "item"))
_UNKNOWN: dict[str, Any] = {**_NOT_REPAID, "total_ns": None, "chosen": False, "fastest_from_steps": None}


def break_even_document(
    cases: Iterable[DataFrame], steps: int, restarts: int, price_per_hour: Decimal | None
) -> dict[str, Any]:
    """The `break_even_rows` of several frames of cases, one after the other, and what they were made for: of
    all trials of a build, where a history has each run by itself.
    """
    rows = [row for each in cases for row in break_even_rows(each, steps, restarts, price_per_hour)]
    asked = {"steps": steps, "restarts_per_day": restarts}
    return {"schema": SCHEMA, "trials_of": "build", **asked, "rows": rows}


def break_even_rows(
    cases: DataFrame, steps: int, restarts: int, price_per_hour: Decimal | None
) -> list[dict[str, Any]]:
    """One row per machine, build, workload and strategy; JSON values.

    `cases` are rows of `summarize_cases`. `total_ns` is for `steps` steps per process and `restarts`
    restarts, on the clock of one eager, `fastest_from_steps` where the strategy enters the lower envelope
    (null: nowhere), `reason` why a case never pays off, has no figures or decides nothing. A strategy is not
    chosen where its interval does not set its total apart from another's; neither is it, nor fastest from a
    step on, where one of unknown compile cost may be done before it. Break-even is null for eager, "never"
    where it does not exist; its interval is that of a case (`db.columns.case`). Raises UnitError as
    `best_option` does.
    """
    groups = rows_by_workload(cases).values()
    return [row for group in groups for row in _rows(group, steps, restarts, price_per_hour)]


def _rows(
    group: list[dict[str, Any]], steps: int, restarts: int, hourly: Decimal | None
) -> Iterator[dict[str, Any]]:
    modes = modes_of(group)
    methods = (row["timing_method"] for row in group if isinstance(row["timing_method"], str))
    common = {name: group[0][name] for name in _LABELS}
    common |= {"timing_method": next(methods, None)} | _sizes(group[0])
    rates = {row["strategy"]: _rates(row) for row in group}
    if modes.options:
        for row in _options(modes, steps, restarts, hourly):
            yield common | rates.get(row["strategy"], _NO_RATES) | row
    told = {option.strategy for option in modes.options}
    for case in modes.left_out:
        if case.strategy not in told:
            rate = rates.get(case.strategy, _NO_RATES)
            yield {**common, "strategy": case.strategy, **rate, **_UNKNOWN, "reason": case.reason}


def _options(modes: Modes, steps: int, restarts: int, hourly: Decimal | None) -> Iterator[dict[str, Any]]:
    """What the strategies that can be chosen cost, and which is; eager first."""
    options = modes.options

    def sure(total: Fraction, count: int) -> bool:
        return not any(
            option.has_paid_off(count, restarts) and option.total_ns(count, restarts) < total
            for option in modes.unpriced
        )

    chosen = choose(options, steps, restarts)
    best = chosen.option
    known = chosen.is_shown and sure(best.total_ns(steps, restarts), steps)
    looks = [option.is_first_look for option in options if option.eager_latency_ns is not None]
    firsts = {
        segment.strategy: segment.first_steps
        for segment in (() if looks and all(looks) else shown_envelope(options, restarts))
        if sure(segment.total_at_first_ns, segment.first_steps)
    }
    repaid = [_NOT_REPAID, *(_repayment(case, hourly) for case in modes.compiled)]
    for option, repayment in zip(options, repaid, strict=True):
        yield {
            "strategy": option.strategy,
            **repayment,
            "total_ns": float(option.total_ns(steps, restarts)),
            "chosen": known and option is best,
            "fastest_from_steps": firsts.get(option.strategy),
        }


def _rates(case: dict[str, Any]) -> dict[str, Any]:
    """What the case and the eager beside it work off in a second, and what of."""
    known = {name: None if pd.isna(case[name]) else float(case[name]) for name in _RATES}
    return {**known, "item": items_of(case)[1]}


def _sizes(labels: dict[str, Any]) -> dict[str, Any]:
    """What tells workloads of one name apart."""
    batch, shape = labels["batch_size"], labels["shape"]
    return {
        "task": labels["task"],
        "batch_size": None if pd.isna(batch) else int(batch),
        "shape": shape if isinstance(shape, dict) else {},
        "dtype": labels["dtype"],
    }


def _repayment(case: dict[str, Any], hourly: Decimal | None) -> dict[str, Any]:
    """Break-even of a case by its own clock, as it is told everywhere, in steps, time and money."""
    ends: dict[str, Any] = {"break_even_interval": case["break_even_interval"]}
    for end in ("low", "high"):
        value = case[f"break_even_{end}"]
        ends[f"break_even_{end}_steps"] = None if pd.isna(value) else int(value)
    if case["break_even"] != "steps":
        steps = NEVER if case["break_even"] == NEVER else None
        return {**_NOT_REPAID, **ends, "break_even_steps": steps, "reason": case["break_even_reason"]}
    time = nanoseconds(case["break_even_time_ns"])
    return {
        **ends,
        "break_even_steps": int(case["break_even_steps"]),
        "break_even_time_ns": float(time),
        "break_even_price": None if hourly is None else float(price(time, hourly)),
        "reason": None,
    }
