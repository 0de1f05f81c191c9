"""Where the figures of a case's row come from, on every door: which it shows, in which order, under what
name, with which digits.

At the end `DOORS` has the cells of each door: `run` (and `list cases` without a preset), `break-even`, the
presets of `list cases`, pages and their reports. `LISTED` has those of `list cases --json` and `--csv` and of
the API. A `Cell` reads one column of a frame of cases, or a few of them (parts 3 and 4); `db.columns.case`
defines each column, and `db.metrics.cases` computes it of the trials.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from compilewatch.db.cause.notes import reasons
from compilewatch.db.cells import plain
from compilewatch.db.columns.case import CASE
from compilewatch.db.columns.column import Column, Kind, SummaryKind
from compilewatch.db.columns.metrics import METRICS
from compilewatch.db.columns.trial import TRIAL
from compilewatch.db.metrics.break_even import is_shown, repaid_words
from compilewatch.db.metrics.throughput import items_of, throughputs_text, write_of
from compilewatch.db.records.identity import FLOAT32
from compilewatch.db.records.trial import (
    CONTROL_TIMES,
    DEVICE_TIMES,
    SPEEDUP_COLUMNS,
    StrategyKind,
    bound_cell,
    timing_text,
)
from compilewatch.db.units import (
    MISSING,
    NEVER,
    TWO_TRIALS,
    count,
    duration,
    interval,
    moment,
    percent,
    ratio,
    significant,
    size,
    words,
)

Case = Mapping[Any, Any]
"""A row of a frame of cases (`db.columns.case`); that of a list has what `db.verdicts.case_rows` adds, that
of a page `workload_label` and `noise`, the smallest change that its machine shows.
"""


class Door(StrEnum):
    """Where a row of a case is shown; the last six are the presets of `list cases`."""

    RUN = "run"
    RUN_NARROW = "run in 100 columns"
    RUN_JSON = "run --json"
    BREAK_EVEN = "break-even"
    BREAK_EVEN_JSON = "break-even --json"
    PAGE = "page"
    PLAN = "plan on a page"
    PERCENTILES = "percentiles on a page"
    SCENARIO = "scenario"
    THROUGHPUT = "throughput"
    REGIONAL = "regional"
    STRATEGIES = "strategies"
    VARIANTS = "variants"
    SCALING = "scaling"


# 1. A row is the cells of its door.

REFERENCE, FIRST_LOOK = "reference", "first look"
"""What stands for break-even of eager itself, and of a case of one trial, which decides nothing."""
PRESETS = (Door.SCENARIO, Door.THROUGHPUT, Door.REGIONAL, Door.STRATEGIES, Door.VARIANTS, Door.SCALING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One figure of a row: what JSON, CSV and --columns call it, what stands above it, its value (JSON), and
    how people read it.

    A page has raw numbers: `unit` says what in (`dashboard.parts.column_units`), `ends` that the value is
    both ends of an interval. Where there is no unit, or no interval, it has the text. `explained` stands
    behind the heading.
    """

    name: str
    heading: str
    value: Callable[[Case], Any]
    text: Callable[[Case], str]
    right: bool = True
    unit: str = ""
    ends: bool = False
    explained: str = ""


def case_view(case: Case, cells: Iterable[Cell]) -> dict[str, Any]:
    """The row of a case as JSON values by name; what could not be measured is null."""
    return {each.name: each.value(case) for each in cells}


def case_texts(case: Case, cells: Iterable[Cell]) -> list[str]:
    """The row of a case as people read it."""
    return [each.text(case) for each in cells]


# 2. What is said beside the figures, and what other cases of the same build say of one.


def remarks(case: Case) -> str:
    """What a reader must know before using the figures of this case."""
    timing = timing_text(case.get("timing_method"), case.get("bound"))
    notes = [timing] if timing else []
    if case["failed_trials"]:
        notes.append(f"{case['failed_trials']} of {case['trials']} failed: {words(case['failure_kind'])}")
    if case["suspect_trials"]:
        notes.append(f"{case['suspect_trials']} suspect")
    if case["first_look"]:
        notes.append(FIRST_LOOK)
    if case["wild_trials"]:
        notes.append(f"{case['wild_trials']} set aside, wild")
    return "; ".join(notes)


def reasons_of(cases: Iterable[Case]) -> list[str]:
    """Why the workloads and strategies of `cases` are set up so, where people said it, each once."""
    rows = list(cases)
    named = ("workload", "strategy")
    return reasons((each[name], plain(each[f"{name}_reason"])) for name in named for each in rows)


def rows_of_door(cases: Iterable[Case], door: Door) -> list[Case]:
    """Those of `listed_cases` that a preset has as rows: of regional compilation only cases with both."""
    if door is Door.REGIONAL:
        return [case for case in cases if case["whole"] is not None]
    if door is Door.VARIANTS:
        return [case for case in cases if plain(case["variant"]) is not None]
    if door is Door.SCALING:
        return [case for case in cases if plain(case["ranks"]) is not None]
    if door in (Door.THROUGHPUT, Door.STRATEGIES):
        return [case for case in cases if not _is_eager(case)]
    return list(cases)


# 3. A column as a cell: its value, its digits and its unit follow from the column.


def _is_eager(case: Case) -> bool:
    return bool(case["strategy_kind"] == StrategyKind.EAGER)


def _value(name: str) -> Callable[[Case], Any]:
    return lambda case: _plain(case[name])


def _plain(value: Any) -> Any:
    known = plain(value)
    return int(known) if isinstance(known, float) and known.is_integer() else known


def _write(column: Column, case: Case) -> Callable[..., str]:
    """How a column is written: as its metric says, else by the unit in its name."""
    if column.key:
        return write_of(column, case)
    for ending, write in (
        ("_ns", duration),
        ("_bytes", size),
        ("speedup_low", ratio),
        ("speedup_high", ratio),
    ):
        if column.column.endswith(ending):
            return write
    return {Kind.INTEGER: count, Kind.FLOAT: significant}.get(column.kind, str)


def _text(column: Column) -> Callable[[Case], str]:
    def text(case: Case) -> str:
        value = case[column.column]
        if column.kind is Kind.MOMENT:
            return moment(value)
        if column.kind is Kind.JSON:
            return ", ".join(f"{key} {each}" for key, each in (value or {}).items()) or MISSING
        if plain(value) is None:
            return MISSING
        written = _write(column, case)(value)
        # A name that people or a tool gave stays as it is, `my_models:build` too; the words are ours.
        return written if column.label and not column.choices else words(written)

    return text


def _of_compiled(text: Callable[[Case], str]) -> Callable[[Case], str]:
    return lambda case: MISSING if _is_eager(case) else text(case)


_UNITS = {"_ns": "ns", "_bytes": "bytes", "_per_s": "rate", "_steps": "steps"}


def _unit(column: Column) -> str:
    """What the raw numbers of a column are in, as pages name it."""
    if column.kind not in (Kind.INTEGER, Kind.FLOAT):
        return ""
    ending = next((unit for ending, unit in _UNITS.items() if column.column.endswith(ending)), "")
    return ending or {"": "count", "x": "ratio"}.get(column.unit, column.unit)


def _cell_of(column: Column, name: str = "", heading: str = "") -> Cell:
    """A column of a case as it is."""
    return Cell(
        name=name or column.column,
        heading=heading
        or (column.word if column.key else column.column.replace("_", " ").removesuffix(" ns")),
        value=_value(column.column),
        text=_text(column) if column.eager_too else _of_compiled(_text(column)),
        right=column.kind in (Kind.INTEGER, Kind.FLOAT),
        unit=_unit(column),
    )


_COLUMNS = {each.column: _cell_of(each) for each in CASE}
_METRICS = {key: _cell_of(each, key) for key, each in METRICS.items()}


def _named(name: str, heading: str, column: str | None = None, explained: str = "") -> Cell:
    """The cell of a column under another name or heading."""
    return replace(_COLUMNS[column or name], name=name, heading=heading, explained=explained)


# 4. Figures of several columns: a value beside eager's or with its interval, break-even in words.


def _throughputs(case: Case) -> str:
    beside = None if _is_eager(case) else case["control_throughput_per_s"]
    return throughputs_text(items_of(case)[1], case["throughput_per_s"], beside)


def _eager_throughput(case: Case) -> str:
    return throughputs_text(items_of(case)[1], case["control_throughput_per_s"])


def _speedup(case: Case) -> str:
    text = ratio(case["speedup"])
    if case["interval_method"] not in ("none", None):
        return f"{text} [{interval(case['speedup_low'], case['speedup_high'], ratio)}]"
    return f"{text} [{TWO_TRIALS}]" if case["counted_trials"] == 2 else text


def _repaid(case: Case) -> str:
    return MISSING if case["break_even"] == "unknown" else repaid_words(case)


def _repaid_value(case: Case) -> int | str | None:
    return NEVER if case["break_even"] == NEVER else _plain(case["break_even_steps"])


def _repaid_interval(case: Case) -> list[int | str] | None:
    """Its ends in steps; "never" where one lies beyond every number of steps."""
    if case["break_even_interval"] not in ("bounded", "open", "never"):
        return None
    ends = (_plain(case["break_even_low"]), _plain(case["break_even_high"]))
    return [NEVER if end is None else end for end in ends]


def _repaid_kind(case: Case) -> str | None:
    """Of its interval; None where nothing is known."""
    return None if case["break_even"] == "unknown" else _plain(case["break_even_interval"])


def _repaid_steps(case: Case) -> int | None:
    """Where they are a number that is shown."""
    known = case["break_even"] == "steps" and is_shown(case)
    return _plain(case["break_even_steps"]) if known else None


def steps_words(case: Case) -> str:
    """Break-even of a case as `repaid_words`, or that it is a first look; "reference" of eager itself."""
    if _is_eager(case):
        return REFERENCE
    return FIRST_LOOK if case["first_look"] else repaid_words(case)


def _pays_off(case: Case) -> str:
    known = not (_is_eager(case) or case["first_look"]) and _repaid_steps(case) is not None
    return "yes" if known else steps_words(case)


def _repaid_ends(case: Case) -> list[int | None] | None:
    """The ends of a bounded interval; one that is the value itself is left out."""
    if case["break_even_interval"] != "bounded":
        return None
    value = _plain(case["break_even_steps"])
    ends = [_plain(case[f"break_even_{end}"]) for end in ("low", "high")]
    known = [None if end == value else end for end in ends]
    return None if known == [None, None] else known


def _repaid_ends_text(case: Case) -> str:
    if (ends := _repaid_ends(case)) is not None:
        return interval(ends[0], ends[1], count)
    low = _plain(case["break_even_low"])
    if case["break_even_interval"] == "open" and low is not None:
        return f"from {count(low)} to never"
    return NEVER if case["break_even_interval"] == NEVER else MISSING


def _reached(case: Case) -> float | None:
    """The run time at break-even where that is shown."""
    return _plain(case["break_even_time_ns"]) if is_shown(case) else None


def _ends(case: Case) -> list[float] | None:
    ends = (_plain(case["speedup_low"]), _plain(case["speedup_high"]))
    return None if None in ends else [*ends]


def _ends_text(case: Case) -> str:
    low, high = _ends(case) or (None, None)
    return interval(low, high, ratio, trials=_plain(case["counted_trials"]))


def quotient(own: Case, other: Case, *names: str) -> tuple[float, float, float] | None:
    """The figure `names[0]` of `own` over that of `other`, and the ends of its 95 % interval, NaN where
    either has none; `names[1:]` are the ends of each, where known. None where a figure is missing or 0.

    The ends are those of a difference of logarithms by MOVER (Zou and Donner 2008, Construction of confidence
    limits about effect measures: a general approach, Statistics in Medicine 27(10), 1693 to 1702).
    """
    of_own, of_other = ([_plain(each[name]) for name in names] for each in (own, other))
    if not of_own[0] or not of_other[0]:
        return None
    known: float = of_own[0] / of_other[0]
    if len(names) == 1 or not all((*of_own, *of_other)):
        return known, math.nan, math.nan
    sides = ([math.log(each) for each in side] for side in (of_own, of_other))
    (at, low, high), (by, by_low, by_high) = sides
    down, up = math.hypot(at - low, by_high - by), math.hypot(high - at, by - by_low)
    return known, known * math.exp(-down), known * math.exp(up)


def _against_default(case: Case) -> tuple[float, float, float] | None:
    """Speedup over that of default in the same build: each speedup is against the eager of its own processes,
    so what moved between them cancels.
    """
    base = case["default"]
    return None if base is None else quotient(case, base, "speedup", "speedup_low", "speedup_high")


def _against_default_value(case: Case) -> float | None:
    known = _against_default(case)
    return known and known[0]


def _against_default_ends(case: Case) -> list[float] | None:
    known = _against_default(case)
    return None if known is None or math.isnan(known[1]) else [known[1], known[2]]


def _against_default_text(case: Case) -> str:
    known = _against_default(case)
    if known is None:
        return MISSING
    return ratio(known[0]) + ("" if math.isnan(known[1]) else f" [{interval(known[1], known[2], ratio)}]")


def _against_float32(case: Case, *names: str) -> tuple[float, float, float] | None:
    """How many times a figure of the model in float32 is that of this variant, with its interval."""
    base = case["float32"]
    return None if base is None or case["variant"] == FLOAT32 else quotient(base, case, *names)


_LATENCIES = ("latency_ns", "latency_low_ns", "latency_high_ns")


def _gain_value(case: Case) -> float | None:
    known = _against_float32(case, *_LATENCIES)
    return known and known[0]


def _gain_ends(case: Case) -> list[float] | None:
    known = _against_float32(case, *_LATENCIES)
    return None if known is None or math.isnan(known[1]) else [known[1], known[2]]


def _gain_text(case: Case) -> str:
    ends = _gain_ends(case)
    return ratio(_gain_value(case)) + (f" [{interval(ends[0], ends[1], ratio)}]" if ends else "")


_RATES_OF = ("throughput_per_s", "throughput_low_per_s", "throughput_high_per_s")


def _efficiency(case: Case, *names: str) -> list[float] | None:
    """A throughput over as many times that of one rank, with its interval; None for one rank itself."""
    base, ranks = case["one_rank"], plain(case["ranks"])
    known = None if base is None or ranks == 1 else quotient(case, base, *names)
    return known and [each / ranks for each in known]


def _ends_cell(name: str, ends: Callable[[Case], list[float] | None]) -> Cell:
    return Cell(
        name=name,
        heading="95 % interval",
        value=ends,
        text=lambda case: f"{ends(case) or MISSING}",
        ends=True,
    )


def _efficiency_of(name: str, heading: str, *names: str) -> tuple[Cell, Cell]:
    """Its value and its interval, the latter in the text of the former too."""

    def ends(case: Case) -> list[float] | None:
        known = _efficiency(case, *names)
        return None if known is None or math.isnan(known[1]) else known[1:]

    def value(case: Case) -> float | None:
        known = _efficiency(case, *names)
        return None if known is None else known[0]

    def text(case: Case) -> str:
        own = ends(case)
        beside = f" [{interval(own[0], own[1], percent)}]" if own else ""
        return percent(value(case)) + beside

    return (
        Cell(name=name, heading=heading, value=value, text=text),
        _ends_cell(f"{name}_interval", ends),
    )


def _memory_value(case: Case) -> float | None:
    base = case["float32"]
    own, of_float32 = (None if each is None else _plain(each["peak_bytes"]) for each in (case, base))
    return None if not own or not of_float32 or case["variant"] == FLOAT32 else own / of_float32


def _cost_text(case: Case) -> str:
    low, high = case["compile_cost_low_ns"], case["compile_cost_high_ns"]
    ends = "" if plain(low) is None or plain(high) is None else f" [{interval(low, high, duration)}]"
    return f"{duration(case['compile_cost_ns'])}{ends}"


def _of_whole(name: str, heading: str, cell: Cell) -> Cell:
    return Cell(
        name=name,
        heading=heading,
        value=lambda case: None if case["whole"] is None else cell.value(case["whole"]),
        text=lambda case: MISSING if case["whole"] is None else cell.text(case["whole"]),
    )


def _saved(case: Case) -> float | None:
    whole, own = (each and _plain(each["compile_cost_ns"]) for each in (case["whole"], case))
    return own / whole - 1 if whole and own is not None and whole > 0 else None


def _saved_text(case: Case) -> str:
    change = _saved(case)
    return MISSING if change is None else percent(change, signed=True)


def _milliseconds(name: str, heading: str) -> Cell:
    def text(case: Case) -> str:
        value = _plain(case[name])
        return MISSING if value is None else significant(value / 1e6)

    return Cell(name=name, heading=heading, value=_value(name), text=text)


# 5. Cells that several doors show.

_WORKLOAD, _STRATEGY = _named("workload", "workload"), _named("strategy", "mode")
_TRIALS = Cell(
    name="counted_trials",
    heading="trials",
    value=_value("counted_trials"),
    text=lambda case: f"{case['counted_trials']}",
)
_SPEEDUP = Cell(
    name="speedup", heading="speedup [95 %]", value=_value("speedup"), text=_of_compiled(_speedup)
)
_SPEEDUP_INTERVAL = _ends_cell("speedup_interval", _ends)
_NOTES = Cell(
    name="notes",
    heading="notes",
    value=lambda case: case["notes"],
    text=lambda case: "; ".join(case["notes"]) or MISSING,
    right=False,
)
_SPEEDUP_ENDS = Cell(
    name="interval",
    heading="95 % interval",
    value=_ends,
    text=_ends_text,
    unit="ratio",
    ends=True,
)
_STEP_TIMES = {
    "latency_ns": "p50",
    "latency_p95_ns": "p95",
    "latency_p99_ns": "p99",
    "latency_sd_ns": "SD within a process",
    "latency_between_sd_ns": "SD between processes",
}
_NAMED_ON_PAGES = (
    Cell(
        name="workload",
        heading="Workload",
        value=lambda case: case["workload_label"],
        text=lambda case: case["workload_label"],
        right=False,
    ),
    _named("strategy", "Strategy"),
)
_ITEM = Cell(
    name="item",
    heading="item",
    value=lambda case: None if case["trials"] == 0 else items_of(case)[1],
    text=lambda case: f"{items_of(case)[1]}s",
    right=False,
)
_REACHED = Cell(
    name="break_even_time_ns",
    heading="in time",
    value=_reached,
    text=lambda case: duration(_reached(case)),
    unit="ns",
)
_RATES = (
    _named("rate", "Throughput", "throughput_per_s"),
    _named("eager_rate", "Eager throughput", "control_throughput_per_s"),
    replace(
        _ITEM, heading="Counts", explained="What throughput counts: the workload's items, else its batch."
    ),
)
_FACTS = (
    Cell(
        name="bound",
        heading="Bound",
        value=_value("bound"),
        text=lambda case: bound_cell(case["bound"]),
        right=False,
    ),
    Cell(
        name="noise",
        heading="Noise floor",
        value=lambda case: case["noise"],
        text=lambda case: percent(case["noise"]),
        unit="share",
    ),
    _named("trials", "n", "counted_trials", "Trials that count."),
)
_REPAID = (
    Cell(
        name="steps",
        heading="Break-even",
        value=_repaid_steps,
        text=steps_words,
        unit="steps",
        explained="Empty where it is no number.",
    ),
    Cell(
        name="pays_off",
        heading="Pays off",
        value=_pays_off,
        text=_pays_off,
        right=False,
        explained="Never, unknown, or the least it can be, where no steps are shown.",
    ),
)
_NUMBER = ("control_latency_ns", "throughput_per_s", "control_throughput_per_s")
_FLAGS = ("nothing_compiled", "first_look")


def _flag(name: str) -> Cell:
    return Cell(
        name=name, heading=words(name), value=lambda case: bool(case[name]), text=lambda case: f"{case[name]}"
    )


_RUN = (
    _TRIALS,
    Cell(
        name="throughput_per_s",
        heading="throughput (eager)",
        value=_value("throughput_per_s"),
        text=_throughputs,
    ),
    _COLUMNS["latency_ns"],
    Cell(
        name="control_latency_ns",
        heading="eager",
        value=_value("control_latency_ns"),
        text=_of_compiled(_COLUMNS["control_latency_ns"].text),
    ),
    _SPEEDUP,
    _COLUMNS["compile_cost_ns"],
    Cell(name="break_even_steps", heading="break-even", value=_repaid_value, text=_of_compiled(_repaid)),
    _COLUMNS["peak_bytes"],
    _named("graph_breaks", "breaks"),
)
_THROUGHPUTS, _BREAK_EVEN = _RUN[1], _RUN[-3]
EFFICIENCY, _EFFICIENCY_ENDS = _efficiency_of("scaling_efficiency", "efficiency [95 %]", *_RATES_OF)
"""Of a case with its `one_rank` beside it: throughput over as many times that of one rank."""
_OF_EAGER, _ = _efficiency_of("control_scaling_efficiency", "eager's efficiency", "control_throughput_per_s")
_EAGER_EFFICIENCY = replace(_OF_EAGER, text=_of_compiled(_OF_EAGER.text))
_DECIDING = ("latency_ns", "control_latency_ns", "speedup", "compile_cost_ns", "break_even_steps")

# 6. The doors.

DOORS: dict[Door, tuple[Cell, ...]] = {
    Door.RUN: _RUN,
    Door.RUN_NARROW: tuple(each for each in _RUN if each.name in _DECIDING),
    Door.RUN_JSON: (
        *(_COLUMNS[name] for name in ("workload", "strategy", "build_id", "status", "latency_ns", *_NUMBER)),
        _ITEM,
        *(_COLUMNS[name] for name in ("timing_method", "bound")),
        *(_COLUMNS[name] for name in (*DEVICE_TIMES, *CONTROL_TIMES, *SPEEDUP_COLUMNS)),
        _SPEEDUP,
        _SPEEDUP_INTERVAL,
        _COLUMNS["compile_cost_ns"],
        Cell(name="break_even_steps", heading="break-even", value=_repaid_value, text=_repaid),
        Cell(
            name="break_even_interval",
            heading="95 % interval",
            value=_repaid_interval,
            text=lambda case: f"{_repaid_interval(case)}",
        ),
        _named("peak_memory_bytes", "peak memory", "peak_bytes"),
        *(_COLUMNS[each.column] for each in TRIAL if each.summary is SummaryKind.MEAN),
        *(_COLUMNS[name] for name in ("graph_breaks", "recompiles")),
        _named("numerics", "numerics", "numerics_status"),
        *map(_flag, _FLAGS),
        *(_COLUMNS[name] for name in ("trials", "failed_trials")),
    ),
    Door.BREAK_EVEN: (_THROUGHPUTS, _BREAK_EVEN, _REACHED),
    Door.BREAK_EVEN_JSON: (
        *(
            _COLUMNS[name]
            for name in ("workload", "workload_id", "machine", "machine_id", "torch", "build_id")
        ),
        *(_COLUMNS[name] for name in ("source_kind", "source_name", "timing_method", "task", "batch_size")),
        *(_COLUMNS[name] for name in ("shape", "dtype", "strategy")),
        *(_COLUMNS[name] for name in ("throughput_per_s", "control_throughput_per_s")),
        _ITEM,
        _BREAK_EVEN,
        Cell(
            name="break_even_interval",
            heading="interval",
            value=_repaid_kind,
            text=lambda case: f"{case['break_even_interval']}",
        ),
        _named("break_even_low_steps", "at least", "break_even_low"),
        _named("break_even_high_steps", "at most", "break_even_high"),
        _COLUMNS["break_even_time_ns"],
    ),
    Door.PAGE: (
        *_NAMED_ON_PAGES,
        *_RATES,
        _named("speedup", "Speedup"),
        _SPEEDUP_ENDS,
        _named("latency", "Latency", "latency_ns"),
        _named("eager", "Eager latency", "control_latency_ns"),
        *_FACTS,
        _named("cost", "Compile cost", "compile_cost_ns"),
        *_REPAID,
        _named("first", "Time to first result", "time_to_first_result_ns"),
        _named("memory", "Peak memory", "peak_bytes"),
        _named("status", "Status"),
    ),
    Door.PLAN: (
        *_NAMED_ON_PAGES,
        *_REPAID,
        Cell(
            name="interval",
            heading="95 % interval",
            value=_repaid_ends,
            text=_repaid_ends_text,
            unit="steps",
            ends=True,
        ),
        _named("cost", "Compile cost", "compile_cost_ns"),
        *_RATES,
        _named("speedup", "Speedup"),
        replace(_REACHED, name="time", heading="Reached after"),
        *_FACTS,
    ),
    Door.PERCENTILES: (
        *_NAMED_ON_PAGES,
        *(_named(name, heading) for name, heading in _STEP_TIMES.items()),
        _named("samples", "Steps", explained="Of the process that has fewest: a p99 rests on them."),
        _FACTS[-1],
    ),
    Door.SCENARIO: (
        _WORKLOAD,
        _named("batch_size", "batch"),
        _named("shape", "sizes"),
        _COLUMNS["dtype"],
        _STRATEGY,
        _milliseconds("first_call_ns", "cold ms"),
        _milliseconds("latency_ns", "warm ms"),
        _SPEEDUP,
        _NOTES,
    ),
    Door.THROUGHPUT: (
        _WORKLOAD,
        Cell(
            name="control_throughput_per_s",
            heading="baseline",
            value=_value("control_throughput_per_s"),
            text=_eager_throughput,
        ),
        _STRATEGY,
        _named("throughput_per_s", "after warm-up"),
        _NOTES,
    ),
    Door.REGIONAL: (
        _WORKLOAD,
        _STRATEGY,
        _of_whole("whole_compile_cost_ns", "whole, compile cost", _COLUMNS["compile_cost_ns"]),
        _named("compile_cost_ns", "regional, compile cost"),
        Cell(name="compile_cost_change", heading="change", value=_saved, text=_saved_text),
        _of_whole("whole_speedup", "whole, speedup [95 %]", _SPEEDUP),
        Cell(name="speedup", heading="regional, speedup [95 %]", value=_SPEEDUP.value, text=_SPEEDUP.text),
        _NOTES,
    ),
    Door.VARIANTS: (
        _WORKLOAD,
        _named("variant", "variant"),
        _STRATEGY,
        _COLUMNS["latency_ns"],
        _named("throughput_per_s", "throughput"),
        Cell(name="speed_over_float32", heading="float32 / it [95 %]", value=_gain_value, text=_gain_text),
        _ends_cell("speed_over_float32_interval", _gain_ends),
        _COLUMNS["peak_bytes"],
        Cell(
            name="memory_of_float32",
            heading="of float32's",
            value=_memory_value,
            text=lambda case: percent(_memory_value(case)),
        ),
        Cell(
            name="float32_error",
            heading="error against float32",
            value=_value("float32_error"),
            text=lambda case: percent(_plain(case["float32_error"])),
        ),
        _named("numerics", "compiled / eager", "numerics_status"),
        _NOTES,
    ),
    Door.SCALING: (
        _WORKLOAD,
        _STRATEGY,
        _COLUMNS["ranks"],
        _named("throughput_per_s", "throughput of all"),
        EFFICIENCY,
        _EFFICIENCY_ENDS,
        Cell(
            name="control_throughput_per_s",
            heading="eager beside it",
            value=_value("control_throughput_per_s"),
            text=_of_compiled(_eager_throughput),
        ),
        _EAGER_EFFICIENCY,
        _NOTES,
    ),
    Door.STRATEGIES: (
        _WORKLOAD,
        _STRATEGY,
        Cell(
            name="changes",
            heading="changes",
            value=lambda case: case["changes"],
            text=lambda case: case["changes"] or MISSING,
            right=False,
        ),
        Cell(
            name="compile_cost_ns",
            heading="compile cost [95 %]",
            value=_value("compile_cost_ns"),
            text=_cost_text,
        ),
        _COLUMNS["recompiles"],
        _COLUMNS["peak_bytes"],
        Cell(
            name="speedup_over_default",
            heading="speedup over default [95 %]",
            value=_against_default_value,
            text=_against_default_text,
        ),
        _ends_cell("speedup_over_default_interval", _against_default_ends),
        _NOTES,
    ),
}
"""The cells of each door, in its order."""

_OF_PEERS = {each.name: each for door in PRESETS for each in DOORS[door] if each.name not in _COLUMNS}
LISTED: tuple[Cell, ...] = (*_COLUMNS.values(), *_OF_PEERS.values())
"""The cells of `list cases --json` and `/api/v1/cases`: every column of a case, what its peers say of it, and
the notes.
"""
CELLS: dict[str, Cell] = {**_METRICS, **{each.name: each for each in LISTED}}
"""What --columns can name: those, and every metric by its key."""
