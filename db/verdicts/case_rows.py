"""Break-even and mode choice of every workload as rows, one per strategy.

Cases as `list cases` and `/api/v1/cases` have them: each with what others of its machine and build say of
it, what its trials say of themselves, and what people wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from pandas import DataFrame

from compilewatch.db.cells import plain
from compilewatch.db.columns.case import CASE_COLUMNS, CASE_KEYS
from compilewatch.db.columns.trial import LABELS
from compilewatch.db.engine.session import Database
from compilewatch.db.metrics.break_even import price
from compilewatch.db.metrics.case_modes import Modes, modes_of, rows_by_workload
from compilewatch.db.metrics.eligibility import nanoseconds
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.metrics.mode_choice import choose, shown_envelope
from compilewatch.db.metrics.throughput import OF_WORKLOAD_BUT_RANKS
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.stored_cases import cases_and_peers, changes_of_strategies
from compilewatch.db.records.identity import FLOAT32
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import StrategyKind
from compilewatch.db.service.annotations import notes_beside
from compilewatch.db.verdicts.case_view import DOORS, Case, Door, case_view, reasons_of, remarks

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
    question = {"steps": steps, "restarts_per_day": restarts}
    return {"schema": SCHEMA, "trials_of": "build", **question, "rows": [row.to_json() for row in rows]}


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
    strategies = {option.strategy for option in modes.options}
    for left in modes.left_out:
        if left.strategy not in strategies:
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


def listed_cases(
    database: Database, filters: Filters, *, after: str | None = None, limit: int | None = None
) -> list[dict[str, Any]]:
    """The rows of `stored_cases`, which says what the arguments are, with all that `with_peers` adds; what a
    case is set against is there whatever `filters` and `limit` leave out.
    """
    cases, every = cases_and_peers(database, filters, after=after, limit=limit)
    if limit is not None:
        builds, workloads = (tuple(cases[name].unique()) for name in ("build_id", "workload"))
        filters = replace(filters, builds=builds, workloads=workloads)
    notes = notes_beside(database, filters)
    return with_peers(row_dicts(cases), row_dicts(every), changes_of_strategies(database), notes)


def with_peers(
    cases: Sequence[Case],
    every: Sequence[Case],
    changes: Mapping[str, str],
    notes: Callable[[Case], Sequence[str]],
) -> list[dict[str, Any]]:
    """`cases` with what others among `every`, of the same machine, build and workload, say of them: `whole`,
    the case that compiles as a whole what this compiles by regions, `default`, that of the strategy default,
    `float32`, that of a variant's model in float32 with the same strategy, `one_rank`, that of one rank.
    `changes` by strategy id and `notes` become columns.
    """
    known = {(*_place(case), case["strategy"]): case for case in every}
    in_float32 = {_variant_of(case, FLOAT32): case for case in every if case["variant"] == FLOAT32}
    return [
        {
            **case,
            "changes": changes.get(case["strategy_id"]),
            "notes": [*filter(None, (remarks(case),)), *notes(case), *reasons_of((case,))],
            "whole": _peer(known, case, case["strategy"].replace("+regional", "")),
            "default": _peer(known, case, "default"),
            "float32": in_float32.get(_variant_of(case, FLOAT32)),
        }
        for case in with_one_rank(cases, every)
    ]


def with_one_rank(cases: Sequence[Case], every: Sequence[Case]) -> list[dict[str, Any]]:
    """`cases` with `one_rank`, that among `every` of one rank and alike else, None where there is none."""
    of_one = {_without_ranks(case): case for case in every if plain(case["ranks"]) == 1}
    return [{**case, "one_rank": of_one.get(_without_ranks(case))} for case in cases]


def _without_ranks(case: Case) -> tuple[str, ...]:
    """What a case shares with that of one rank; eager beside a strategy has no strategy of its own."""
    strategy = plain(case["strategy_id"]) or case["strategy"]
    return strategy, *(str(plain(case[name])) for name in OF_WORKLOAD_BUT_RANKS)


def _variant_of(case: Case, variant: str) -> tuple[Any, ...]:
    """Where the case of this strategy and another `variant` of its model stands."""
    own = case["variant"]
    name = case["workload"] if plain(own) is None else case["workload"].removesuffix(own) + variant
    return case["machine_id"], case["build_id"], name, case["strategy"]


def _place(case: Case) -> tuple[Any, ...]:
    return case["machine_id"], case["build_id"], case["workload_id"]


def _peer(known: Mapping[tuple[Any, ...], Case], case: Case, strategy: str) -> Case | None:
    return None if strategy == case["strategy"] else known.get((*_place(case), strategy))
