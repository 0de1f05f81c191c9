"""Two machines side by side: the newest figures of every case that both measured, and what it costs on each.

No verdict: nothing regressed because another machine is slower.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from compilewatch.db.cells import plain
from compilewatch.db.judge.compare.sides import COMPONENTS, VerdictError, as_text, plain_settings
from compilewatch.db.metrics.break_even import price
from compilewatch.db.metrics.throughput import items_of
from compilewatch.db.units import (
    MISSING,
    interval,
    money,
    plural,
    ratio,
    words,
)
from compilewatch.db.verdicts.case_view import CELLS, Case, Cell, quotient

_MILLION = 1_000_000
_NS_PER_S = 1_000_000_000
_DIFFERENCES = ("threads", *COMPONENTS)


@dataclass(frozen=True)
class SideBySide:
    """`rows`: the cases of both machines, each that of `head` with that of `base` as its `base`, the greatest
    loss first. `alone` counts the cases of each that the other lacks; `unmatched` says what differs besides
    the machine, by name the two values; `priced` are those of an hour, by machine id.
    """

    base: Case
    head: Case
    rows: list[Case]
    alone: tuple[int, int]
    unmatched: dict[str, tuple[str, str]]
    priced: Mapping[str, Decimal]


def side_by_side(
    cases: Iterable[Case], base_id: str, head_id: str, priced: Mapping[str, Decimal]
) -> SideBySide:
    """`cases`: rows of `db.queries.stored_cases`; of each case the build that was measured last counts.

    Raises VerdictError where no case with a latency is on both.
    """
    newest: dict[str, dict[tuple[str, str], Case]] = {base_id: {}, head_id: {}}
    for case in sorted(cases, key=lambda each: each["last_started_at"]):
        if case["machine_id"] in newest and plain(case["latency_ns"]) is not None:
            newest[case["machine_id"]][case["workload_id"], case["strategy_id"]] = case
    base, head = newest[base_id], newest[head_id]
    common: list[Case] = [{**case, "base": base[key]} for key, case in head.items() if key in base]
    if not common:
        raise VerdictError(
            "No case was measured on both machines.",
            "Measure the same suite on both; `compilewatch list cases` shows what is stored.",
        )
    rows = sorted(common, key=lambda case: -case["latency_ns"] / case["base"]["latency_ns"])
    return SideBySide(
        base=rows[0]["base"],
        head=rows[0],
        rows=rows,
        alone=(len(base) - len(common), len(head) - len(common)),
        unmatched=_unmatched(rows),
        priced=priced,
    )


def _unmatched(rows: Iterable[Case]) -> dict[str, tuple[str, str]]:
    by_machine: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for row in rows:
        base, head = ({**_conditions(each)} for each in (row["base"], row))
        for name in dict.fromkeys((*base, *head)):
            values = as_text(base.get(name)), as_text(head.get(name))
            if values[0] != values[1]:
                for side, value in zip(by_machine.setdefault(name, ({}, {})), values, strict=True):
                    side[value] = None
    return {name: (", ".join(base), ", ".join(head)) for name, (base, head) in by_machine.items()}


def _conditions(case: Case) -> dict[str, Any]:
    return {**{name: plain(case[name]) for name in _DIFFERENCES}, **plain_settings(case["settings"])}


def sentences(found: SideBySide) -> list[str]:
    """What a reader must know of the table, a sentence each."""
    names = as_text(found.base["machine"]), as_text(found.head["machine"])
    lines = [
        f"{plural(len(found.rows), 'case')} of {names[0]} ({_device(found.base)}) and {names[1]} "
        f"({_device(found.head)}), "
        "each in the build that was measured last. A difference of machines is no regression."
    ]
    alone = [f"{count} of {name}" for count, name in zip(found.alone, names, strict=True) if count]
    if alone:
        lines.append(f"Only on one: {' and '.join(alone)}.")
    if found.unmatched:
        differs = (f"{words(name)} {base} / {head}" for name, (base, head) in found.unmatched.items())
        lines.append(f"Not only the machine differs: {'; '.join(differs)}.")
    return lines


def _device(case: Case) -> str:
    return as_text(plain(case["device_name"]) or case["device"])


def cells(found: SideBySide) -> list[Cell]:
    """A row of the table: latency and speedup on both, how they differ, and what a million items cost where a
    price is known.
    """
    names = as_text(found.base["machine"]), as_text(found.head["machine"])
    both = list(zip(("base_", ""), names, (_base, _own), strict=True))
    shown = [CELLS["workload"], CELLS["strategy"]]
    shown += [_of(CELLS["latency_ns"], side, f"latency, {name}", pick) for side, name, pick in both]
    shown.append(_FASTER)
    shown += [_of(CELLS["speedup"], side, f"speedup, {name}", pick) for side, name, pick in both]
    for side, name, pick in both:
        hourly = found.priced.get(pick(found.rows[0])["machine_id"])
        if hourly is not None:
            shown.append(_cost(f"{side}million_items_price", f"a million items, {name}", pick, hourly))
    return shown


def _own(row: Case) -> Case:
    return row


def _base(row: Case) -> Case:
    base: Case = row["base"]
    return base


def _of(cell: Cell, side: str, heading: str, pick: Callable[[Case], Case]) -> Cell:
    return Cell(
        name=f"{side}{cell.name}",
        heading=heading,
        value=lambda row: cell.value(pick(row)),
        text=lambda row: cell.text(pick(row)),
    )


def _cost(name: str, heading: str, pick: Callable[[Case], Case], hourly: Decimal) -> Cell:
    def value(row: Case) -> float | None:
        per_second = plain(pick(row)["throughput_per_s"])
        if not per_second:
            return None
        return float(price(Fraction(_MILLION * _NS_PER_S) / Fraction(per_second), hourly))

    def text(row: Case) -> str:
        return f"{money(value(row))} ({items_of(row)[1]}s)" if value(row) is not None else MISSING

    return Cell(name=name, heading=heading, value=value, text=text)


def _faster(row: Case) -> tuple[float, float, float] | None:
    return quotient(row["base"], row, "latency_ns", "latency_low_ns", "latency_high_ns")


def _faster_text(row: Case) -> str:
    known = _faster(row)
    if known is None:
        return MISSING
    ends = "" if math.isnan(known[1]) else f" [{interval(known[1], known[2], ratio)}]"
    return f"{ratio(known[0])}{ends}"


_FASTER = Cell(
    name="times_as_fast",
    heading="times as fast [95 %]",
    value=lambda row: (known := _faster(row)) and known[0],
    text=_faster_text,
)
