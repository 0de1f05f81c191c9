"""Break-even and mode choice of every workload as rows, one per strategy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from pandas import DataFrame

from compilewatch.db.columns.case import CASE_COLUMNS, CASE_KEYS
from compilewatch.db.columns.trial import LABELS
from compilewatch.db.json_rows import plain
from compilewatch.db.metrics.break_even import price
from compilewatch.db.metrics.case_modes import Modes, modes_of, rows_by_workload
from compilewatch.db.metrics.mode_choice import choose, shown_envelope
from compilewatch.db.metrics.quantities import nanoseconds
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import StrategyKind
from compilewatch.db.verdicts.case_view import DOORS, Case, Door, case_view

SCHEMA = "compilewatch.break-even/1"
_NO_CHOICE: dict[str, Any] = {"total_ns": None, "chosen": False, "fastest_from_steps": None}


class Planned(NamedTuple):
    """A case, and what the plan of so many steps and restarts says of it beside its own figures."""

    case: Case
    plan: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        return case_view(self.case, DOORS[Door.BREAK_EVEN_JSON]) | self.plan


def break_even_document(rows: Iterable[Planned], steps: int, restarts: int) -> dict[str, Any]:
    """The rows of a plan as JSON, and what they were made for: of all trials of a build, where a history has
    each run by itself.
    """
    asked = {"steps": steps, "restarts_per_day": restarts}
    return {"schema": SCHEMA, "trials_of": "build", **asked, "rows": [row.to_json() for row in rows]}


def break_even_rows(
    cases: DataFrame, steps: int, restarts: int, price_per_hour: Decimal | None
) -> list[Planned]:
    """One row per machine, build, workload and strategy.

    `cases` are rows of `summarize_cases`. `total_ns` is for `steps` steps per process and `restarts`
    restarts, on the clock of one eager, `fastest_from_steps` where the strategy enters the lower envelope
    (null: nowhere), `reason` why a case never pays off, has no figures or decides nothing. A strategy is not
    chosen where its interval does not set its total apart from another's; neither is it, nor fastest from a
    step on, where one of unknown compile cost may be done before it. Raises UnitError as `best_option` does.
    """
    groups = rows_by_workload(cases).values()
    return [row for group in groups for row in _rows(group, steps, restarts, price_per_hour)]


def _rows(
    group: list[dict[str, Any]], steps: int, restarts: int, hourly: Decimal | None
) -> Iterator[Planned]:
    modes = modes_of(group)
    methods = (row["timing_method"] for row in group if isinstance(row["timing_method"], str))
    timed = {"timing_method": next(methods, None)}
    by_strategy = {row["strategy"]: row for row in group}
    # Where eager was measured beside others alone it has no figures of its own.
    beside = dict.fromkeys(CASE_COLUMNS) | {name: group[0][name] for name in (*CASE_KEYS, *LABELS)}
    named = {"strategy": EAGER.name, "strategy_kind": EAGER.kind}
    eager = by_strategy.get(EAGER.name, beside | named)
    if modes.options:
        plans = _plans(modes, steps, restarts)
        for case, plan in zip((eager, *modes.compiled), plans, strict=True):
            yield Planned(case | timed, {**plan, **_price(case, hourly), "reason": _reason(case)})
    told = {option.strategy for option in modes.options}
    for left in modes.left_out:
        if left.strategy not in told:
            plan = {**_NO_CHOICE, "break_even_price": None, "reason": left.reason}
            yield Planned(by_strategy[left.strategy] | timed, plan)


def _plans(modes: Modes, steps: int, restarts: int) -> Iterator[dict[str, Any]]:
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
    for option in options:
        yield {
            "total_ns": float(option.total_ns(steps, restarts)),
            "chosen": known and option is best,
            "fastest_from_steps": firsts.get(option.strategy),
        }


def _price(case: Case, hourly: Decimal | None) -> dict[str, Any]:
    """What the case has cost by the time that it has paid off."""
    if hourly is None or case["break_even"] != "steps":
        return {"break_even_price": None}
    return {"break_even_price": float(price(nanoseconds(case["break_even_time_ns"]), hourly))}


def _reason(case: Case) -> str | None:
    """Why a compiled case never pays off or decides nothing."""
    is_eager = case["strategy_kind"] == StrategyKind.EAGER
    return None if is_eager else plain(case["break_even_reason"])
