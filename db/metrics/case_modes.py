"""Mode choice over the cases of a frame: options of one workload, its chart, and the best per workload.

Each strategy was measured beside an eager of its own, and processes differ. So one eager stands for all, the
`pooled_eager_ns` of the cases, and a step of a strategy is that eager over its speedup: its crossing with
eager is the break-even of its case.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import itemgetter
from typing import Any, NamedTuple

import pandas as pd
from pandas import DataFrame

from compilewatch.db.metrics.break_even import is_shown
from compilewatch.db.metrics.eligibility import Excluded, exclusion_reason, nanoseconds, require_one
from compilewatch.db.metrics.frames import typed_frame
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.metrics.mode_choice import ModeOption, best_option, choose, shown_envelope
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import CacheState, StrategyKind

GROUP_KEYS = ["machine_id", "build_id", "workload_id"]

TOTALS_COLUMNS = {
    "strategy": "str",
    "steps": "Int64",
    "total_ns": "Float64",
    "total_low_ns": "Float64",
    "total_high_ns": "Float64",
    "best": "bool",
}
CHOICE_COLUMNS = {
    **dict.fromkeys(GROUP_KEYS, "str"),
    "workload": "str",
    "strategy": "str",
    "total_ns": "Float64",
    "eager_total_ns": "Float64",
    "saved_ns": "Float64",  # against eager; 0 where eager is the choice
    "rivals": "str",  # the strategies that the choice is not set apart from, none where it is the best
    "options": "Int64",
}


_EAGER_NEEDS = {"latency_ns": "latency"}
_COMPILED_NEEDS = {"speedup": "eager latency to compare with", "compile_cost_ns": "compile cost"}


_Row = dict[str, Any]


def _is_eager(row: _Row) -> bool:
    return bool(row["strategy_kind"] == StrategyKind.EAGER)


def _reason(row: _Row) -> str | None:
    return exclusion_reason(row, _EAGER_NEEDS | ({} if _is_eager(row) else _COMPILED_NEEDS))


class Fastest(NamedTuple):
    """The case of a workload with the largest speedup over eager, None for eager itself; `rivals` are the
    strategies that its interval does not set it apart from: only without such is it the fastest. `compared`
    counts the compiled ones.
    """

    case: _Row | None
    rivals: tuple[str, ...]
    compared: int

    @property
    def strategy(self) -> str:
        return EAGER.name if self.case is None else str(self.case["strategy"])


def fastest(rows: Iterable[_Row], ratio: str = "speedup") -> Fastest:
    """By `ratio`, above 1 better than eager. First looks are in no ranking; alone they are rivals of eager.

    Rows of one workload as `summarize_cases` makes them. A ratio without an interval sets nothing apart,
    unless it has none by nature, as memory has.
    """
    compiled = [row for row in rows if not _is_eager(row) and not pd.isna(row[ratio])]
    # A filled cache makes no step faster: the same code would stand against itself.
    cold = [row for row in compiled if row["cache"] in (CacheState.COLD, CacheState.NONE)]
    compiled = cold or compiled
    ranked = [row for row in compiled if not row["first_look"]]
    best = max(ranked, key=itemgetter(ratio), default=None)
    best = best if best is not None and best[ratio] > 1 else None

    def ends(row: _Row) -> tuple[float, float]:
        if f"{ratio}_low" not in row:
            return row[ratio], row[ratio]
        known = pd.notna([row[f"{ratio}_low"], row[f"{ratio}_high"]]).all()
        return (row[f"{ratio}_low"], row[f"{ratio}_high"]) if known else (0.0, math.inf)

    low = 1.0 if best is None else ends(best)[0]
    rivals = [row["strategy"] for row in ranked or compiled if row is not best and ends(row)[1] >= low]
    eager = [EAGER.name] if best is not None and low <= 1 else []
    return Fastest(best, (*eager, *rivals), len(compiled))


def with_strategies(cases: DataFrame, chosen: Sequence[str]) -> DataFrame:
    """Rows of the chosen strategies and of eager, which all others are set against; all for none chosen."""
    return cases[cases["strategy"].isin([*chosen, EAGER.name])] if chosen else cases


def mode_options(cases: DataFrame) -> tuple[list[ModeOption], list[Excluded]]:
    """Eager first, then every usable strategy in the order of `cases`; and the cases left out.

    `cases`: rows of `summarize_cases` of one machine, build and workload; no options where no eager latency
    is known. Raises UnitError where the rows mix machines, builds or workloads.
    """
    require_one(cases, tuple(GROUP_KEYS), "A mode choice")
    modes = modes_of(row_dicts(cases))
    return list(modes.options), list(modes.left_out)


@dataclass(frozen=True)
class Modes:
    """The strategies of one workload, and why others are none to choose.

    `options` holds eager first; `compiled` the rows behind those that follow, in their order. `unpriced` are
    left out for their compile cost alone and stand here as if they had none: no cost makes them faster.
    """

    options: tuple[ModeOption, ...]
    compiled: tuple[_Row, ...]
    unpriced: tuple[ModeOption, ...]
    left_out: tuple[Excluded, ...]


def modes_of(rows: Sequence[_Row]) -> Modes:
    """As `mode_options`, of rows as column -> value. No option, priced or not, without an eager latency."""
    reasons = [_reason(row) for row in rows]
    left_out = tuple(
        Excluded(row["workload"], row["strategy"], why) for row, why in zip(rows, reasons, strict=True) if why
    )
    usable = [row for row, why in zip(rows, reasons, strict=True) if why is None]
    if not usable:
        return Modes((), (), (), left_out)
    eager = ModeOption(EAGER.name, Fraction(0), nanoseconds(usable[0]["pooled_eager_ns"]))
    compiled = tuple(row for row in usable if not _is_eager(row))
    free = [
        row | {"compile_cost_ns": 0} for row in rows if not _is_eager(row) and pd.isna(row["compile_cost_ns"])
    ]
    return Modes(
        (eager, *map(_option, compiled)),
        compiled,
        tuple(_option(row) for row in free if _reason(row) is None),
        left_out,
    )


def rows_by_workload(cases: DataFrame) -> dict[tuple[str, ...], list[_Row]]:
    """Rows of `summarize_cases` by `GROUP_KEYS`, both in the order of `cases`.

    Rows of thousands of workloads are taken out of the frame once: a frame for each takes a hundred times
    as long.
    """
    groups: dict[tuple[str, ...], list[_Row]] = {}
    for row in row_dicts(cases.dropna(subset=GROUP_KEYS)):
        groups.setdefault(tuple(row[name] for name in GROUP_KEYS), []).append(row)
    return groups


def _option(row: _Row) -> ModeOption:
    def interval(low: float, high: float) -> tuple[Fraction, Fraction] | None:
        known = pd.notna(low) and pd.notna(high)
        return (nanoseconds(low), nanoseconds(high)) if known else None

    eager_ns = row["pooled_eager_ns"]
    return ModeOption(
        row["strategy"],
        nanoseconds(row["compile_cost_ns"]),
        nanoseconds(eager_ns / row["speedup"]),
        compile_cost_interval_ns=interval(row["compile_cost_low_ns"], row["compile_cost_high_ns"]),
        latency_interval_ns=interval(eager_ns / row["speedup_high"], eager_ns / row["speedup_low"]),
        eager_latency_ns=nanoseconds(eager_ns),
        is_first_look=bool(row["first_look"]),
        repays=is_shown(row),
    )


def totals_frame(options: Sequence[ModeOption], steps: Iterable[int], restarts: int = 0) -> DataFrame:
    """The lines of a chart: one row per option and number of steps, with the columns `TOTALS_COLUMNS`.

    The band takes both low ends together and both high ends together; it is missing where an end is unknown.
    Raises UnitError as `best_option` does.
    """
    rows: list[tuple[object, ...]] = []
    counts = list(steps)
    if counts:
        best_option(options, min(counts), restarts)  # what cannot be compared there can be nowhere
    bands = [_band(option, restarts) for option in options]
    segments = shown_envelope(options, restarts) if counts else ()
    parts, lines = _in_parts([_line(option, restarts) for option in options])
    for count in counts:
        best = next(each.strategy for each in segments if each.last_steps is None or count <= each.last_steps)
        for option, (start, per_step), band in zip(options, lines, bands, strict=True):
            total = (start + count * per_step) / parts
            rows.append((option.strategy, count, total, *_ends(band, count), option.strategy == best))
    return _frame(rows, TOTALS_COLUMNS)


class _Line(NamedTuple):
    """Total time in ns over steps per process."""

    start: Fraction
    per_step: Fraction


# Lines in whole parts of a nanosecond, and how many parts it has: as exact as fractions, which would bring
# every sum to its lowest terms. A quotient of whole numbers is rounded once, as a fraction's is.
_InParts = tuple[int, list[tuple[int, int]]]


def _in_parts(lines: Sequence[_Line]) -> _InParts:
    parts = math.lcm(*(value.denominator for line in lines for value in line))
    return parts, [(int(line.start * parts), int(line.per_step * parts)) for line in lines]


def _ends(band: _InParts | None, steps: int) -> tuple[float | None, float | None]:
    if band is None:
        return None, None
    parts, lines = band
    low, high = ((start + steps * per_step) / parts for start, per_step in lines)
    return low, high


def _line(option: ModeOption, restarts: int) -> _Line:
    """`option.total` at any number of steps."""
    return _Line(option.starts_cost_ns(restarts), (restarts + 1) * option.latency_ns)


def _band(option: ModeOption, restarts: int) -> _InParts | None:
    cost, latency = option.compile_cost_interval_ns, option.latency_interval_ns
    if cost is None or latency is None:
        return None
    ends = [_line(ModeOption(option.strategy, *end), restarts) for end in zip(cost, latency, strict=True)]
    return _in_parts(ends)


def choose_modes(cases: DataFrame, *, steps: int, restarts: int = 0) -> DataFrame:
    """The best strategy per machine, build and workload, for `steps` steps per process.

    Columns `CHOICE_COLUMNS`, totals over restarts + 1 processes; a workload without a usable case has no row.
    Raises UnitError as `best_option` does.
    """
    rows: list[tuple[object, ...]] = []
    for keys, group in sorted(rows_by_workload(cases).items(), key=itemgetter(0)):
        options = modes_of(group).options
        if not options:
            continue
        chosen = choose(options, steps, restarts)
        best = chosen.option
        total, eager = best.total_ns(steps, restarts), best.eager_total_ns(steps, restarts)
        figures = (float(each) for each in (total, eager, eager - total))
        rivals = ", ".join(rival.strategy for rival in chosen.rivals)
        rows.append((*keys, group[0]["workload"], best.strategy, *figures, rivals, len(options)))
    return _frame(rows, CHOICE_COLUMNS)


def _frame(rows: list[tuple[object, ...]], columns: dict[str, str]) -> DataFrame:
    return typed_frame({name: [row[place] for row in rows] for place, name in enumerate(columns)}, columns)
