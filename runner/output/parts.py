"""What the parts of a model, and those of the compiler, cost and gain: the tables of `run --submodules` and
`--leave-out`.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.table import Table

from compilewatch.db.cells import plain
from compilewatch.db.judge.compare.strategies import UNDECIDED, LeftOutPart
from compilewatch.db.judge.results import Row
from compilewatch.db.metrics.break_even import is_shown, repaid_words
from compilewatch.db.records.trial import Trial
from compilewatch.db.units import MISSING, count, duration, interval, percent, plural, ratio
from compilewatch.runner.output.tables import plain_table

_SCOPE = "submodule:"
_FIGURES = ("compile cost without", "it adds [95 %]", "latency without", "it changes [95 %]", "repaid after")
_FASTER, _OPEN, _NOT_FASTER = "faster", "not shown", "not faster"


def submodule_rows(trials: Iterable[Trial], cases: Iterable[Mapping[Any, Any]]) -> list[dict[str, Any]]:
    """One row for each case of one submodule, what is most worth compiling first: parts that are shown to
    make the model faster, then those of which it is not shown, then the rest, each by what they save a step.

    `cases` are rows of a frame of cases: speedup is that of the whole model with this part alone compiled.
    `first_call_ns` is the median of its trials, and null where none passed; graphs and kernels are those of
    the newest.
    """
    of_cases: dict[tuple[str, str], list[Trial]] = {}
    for trial in trials:
        if trial.strategy.scope.startswith(_SCOPE):
            of_cases.setdefault((trial.workload.name, trial.strategy.name), []).append(trial)
    known = {(case["workload"], case["strategy"]): case for case in cases}
    rows = [_row(each, known.get(key, {})) for key, each in of_cases.items()]
    order = (_FASTER, _OPEN, _NOT_FASTER)
    return sorted(rows, key=lambda row: (order.index(row["finding"]), -(row["saved_ns"] or 0)))


def _row(trials: list[Trial], case: Mapping[Any, Any]) -> dict[str, Any]:
    newest = max(trials, key=lambda trial: trial.started_at)
    times = [trial.cold_start.first_call_ns for trial in trials if trial.cold_start is not None]
    first_calls = [value for value in times if value is not None]
    compiler = newest.compiler
    generated = None if compiler is None else compiler.generated
    figures = {
        name: plain(case.get(name))
        for name in ("speedup", "speedup_low", "speedup_high", "latency_ns", "control_latency_ns")
    }
    own, eager = figures.pop("latency_ns"), figures.pop("control_latency_ns")
    repaid = plain(case.get("break_even_steps")) if case and is_shown(case) else None
    return {
        "workload": newest.workload.name,
        "strategy": newest.strategy.name,
        "submodule": newest.strategy.scope.removeprefix(_SCOPE),
        "trials": len(trials),
        "finding": _finding(figures["speedup_low"], figures["speedup_high"]),
        **figures,
        "saved_ns": None if own is None or eager is None else eager - own,
        "compile_cost_ns": plain(case.get("compile_cost_ns")),
        "break_even_steps": repaid,
        "break_even": repaid_words(case) if case else MISSING,
        "first_call_ns": statistics.median(first_calls) if first_calls else None,
        "graphs": None if compiler is None else compiler.graphs,
        "kernels": None if generated is None else sum(graph.kernels for graph in generated),
    }


def _finding(low: float | None, high: float | None) -> str:
    if low is not None and low > 1:
        return _FASTER
    return _NOT_FASTER if high is not None and high <= 1 else _OPEN


def submodule_table(rows: Sequence[dict[str, Any]]) -> Table:
    """The rows for a person."""
    names = ("submodule", "strategy", "the model is")
    figures = (
        "speedup [95 %]",
        "saved a step",
        "compile cost",
        "pays after",
        "first call",
        "graphs",
        "kernels",
    )
    cells = []
    for row in rows:
        speedup = ratio(row["speedup"])
        if row["speedup_low"] is not None:
            speedup += f" [{interval(row['speedup_low'], row['speedup_high'], ratio)}]"
        numbers = (
            *(speedup, _saved(row["saved_ns"]), duration(row["compile_cost_ns"]), row["break_even"]),
            *(duration(row["first_call_ns"]), count(row["graphs"]), count(row["kernels"])),
        )
        cells.append((*(row[name] for name in ("submodule", "strategy", "finding")), *numbers))
    return plain_table((*names, *figures), cells, right=figures)


def _saved(saved_ns: float | None) -> str:
    if saved_ns is None:
        return MISSING
    return duration(saved_ns)


def submodule_lines(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Which parts are worth compiling, in a sentence."""
    worth = [
        f"{row['submodule']} ({ratio(row['speedup'])}, {duration(row['compile_cost_ns'])} to compile)"
        for row in rows
        if row["finding"] == _FASTER
    ]
    if worth:
        return [f"Worth compiling alone, most first: {', '.join(worth)}. The parts do not add up."]
    return ["No part is shown to be worth compiling alone; more --trials decide more."] if rows else []


def left_out_rows(parts: Iterable[LeftOutPart]) -> list[dict[str, Any]]:
    """One row for each part of a strategy that was left out: what it adds to compiling and to a step."""
    return [
        {
            "workload": each.workload,
            "strategy": each.strategy,
            "part": each.part,
            **_change("compile_cost", each.cost),
            **_change("latency", each.latency),
            "finding": each.finding,
            "steps": None if each.steps is None else round(each.steps),
        }
        for each in parts
    ]


def _change(name: str, row: Row | None) -> dict[str, Any]:
    if row is None:
        return dict.fromkeys((f"{name}_without_ns", f"{name}_ns", f"{name}_change", f"{name}_interval"))
    return {
        f"{name}_without_ns": row.base,
        f"{name}_ns": row.head,
        f"{name}_change": row.change,
        f"{name}_interval": row.interval,
    }


LEFT_OUT = ("workload", "strategy", "part", *_FIGURES, "it")
"""Headings of `left_out_cells`."""


def left_out_cells(rows: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """The rows for a person: with the part against without it."""
    return [
        (
            *(row["workload"], row["strategy"], row["part"]),
            *(duration(row["compile_cost_without_ns"]), _ends(row, "compile_cost")),
            *(duration(row["latency_without_ns"]), _ends(row, "latency")),
            MISSING if row["steps"] is None else f"{count(row['steps'])} steps",
            row["finding"],
        )
        for row in rows
    ]


def left_out_table(rows: Sequence[dict[str, Any]]) -> Table:
    """The same as a table."""
    return plain_table(LEFT_OUT, left_out_cells(rows), right=_FIGURES)


def left_out_lines(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Which parts earn their compile time, as far as trials decide it, in a sentence."""
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(row["finding"], []).append(row["part"])
    undecided = len(found.pop(UNDECIDED, ()))
    shown = "; ".join(f"{', '.join(parts)} ({finding})" for finding, parts in found.items())
    lines = [f"What is shown: {shown}."] if shown else []
    if undecided:
        lines.append(f"{undecided} of {plural(len(rows), 'part')} undecided: more --trials decide more.")
    return lines


def _ends(row: Mapping[str, Any], name: str) -> str:
    change, ends = row[f"{name}_change"], row[f"{name}_interval"]
    if change is None:
        return MISSING
    of = "" if ends is None else f" [{' to '.join(percent(end, signed=True) for end in ends)}]"
    return percent(change, signed=True) + of
