"""The tables of a comparison: every case, every figure of one, compile cost and break-even, what passes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd

from compilewatch.dashboard.parts import parts, verdict_words
from compilewatch.dashboard.parts.column_units import UNITS, SidesCell, quantity, unit_of
from compilewatch.dashboard.parts.parts import Part, Table, TableColumn, Tone
from compilewatch.dashboard.read.data import read_choices
from compilewatch.db import units
from compilewatch.db.columns.metrics import METRICS, is_counted
from compilewatch.db.judge import verdict_marks as wording
from compilewatch.db.judge.compare.recorded_regressions import Regression
from compilewatch.db.judge.decide import MOVED
from compilewatch.db.judge.results import Comparison, LatencyChange, LeftOut, Row
from compilewatch.db.judge.statistics.noise_floor import NoiseFloor
from compilewatch.db.records.trial import bound_cell, bound_word
from compilewatch.db.records.vocabulary import Metric, Verdict
from compilewatch.db.verdicts.noise_floors import smallest_change

CASE_COLUMNS = (
    *("metric", "base", "head", "change", "interval", "q", "verdict", "moved", "trials", "reason"),
)
_ENDS = (("base", "Base"), ("head", "Head"))
SIDES = {
    name: TableColumn(title, "quantity", numeric=True, explained=verdict_words.SIDES_HELP)
    for name, title in _ENDS
}
TRIALS = {
    "trials": TableColumn("n", "sides", numeric=True, unit="count", explained="Trials of base and head.")
}
Q_VALUE = {
    "q": TableColumn(
        "q", "number", form="%.2g", explained="Of the change (Benjamini and Hochberg).", hidden=True
    )
}


def change_columns(confidence: float | None) -> dict[str, TableColumn]:
    """How far a value moved, and the interval of that at `confidence`."""
    return {
        "change": TableColumn("Change", numeric=True, unit="change"),
        "interval": TableColumn(
            verdict_words.interval_title(confidence), "interval", numeric=True, unit="change", hidden=True
        ),
    }


def sides_of(metric: Metric) -> dict[str, TableColumn]:
    """Base and head of a table that is about `metric` alone: numbers, unless it may never come."""
    unit = "" if metric is Metric.BREAK_EVEN else unit_of(metric)
    return {
        name: replace(column, kind="text", unit=unit) if unit in UNITS else column
        for name, column in SIDES.items()
    }


def row_cells(row: Row, floors: Sequence[NoiseFloor] = ()) -> dict[str, object]:
    """One verdict as cells. `floors` are the noise floors of its machine."""
    two_trials = min(row.trials) == 2 and row.change is not None
    return {
        "metric": METRICS[row.metric].name,
        "base": quantity(row.metric, row.base),
        "head": quantity(row.metric, row.head),
        "change": row.change,
        "interval": row.interval or (units.TWO_TRIALS if two_trials else None),
        "q": row.q_value,
        "verdict": wording.row_verdict(row),
        "moved": verdict_words.moved(row),
        "bound": bound_cell(row.bound),
        "noise": smallest_change(floors, row.metric.value, row.bound),
        "trials": SidesCell(*row.trials),
        "reason": row.reason,
    }


def case_title(row: Row) -> str:
    """Workload and strategy of a verdict, and what bounds the case: "mlp with default, host-bound"."""
    return ", ".join(filter(None, (f"{row.workload} with {row.strategy}", bound_word(row.bound))))


def case_table(rows: Sequence[Row]) -> pd.DataFrame:
    """One row per metric of one case."""
    return pd.DataFrame([row_cells(row) for row in rows], columns=list(CASE_COLUMNS))


DIFFERS = "What differs between the builds"


def what_differs(key: str, compared: Comparison | Regression, sides: str) -> tuple[Table, ...]:
    """The parts of the build that differ between the `sides`; of sides of one build each, packages too."""
    rows = read_choices().build_rows
    base, head = (verdict_words.side_parts(side, rows) for side in (compared.base, compared.head))
    frame = pd.DataFrame(verdict_words.environment_diff(base, head, compared.changed_components))
    columns = parts.texts({"part": "Part", "base": "Base", "head": "Head"})
    alt = f"Parts of the build that differ between {sides}"
    return parts.table(key, alt, frame, columns, title=DIFFERS)


def left_out_parts(
    title: str, left_out: Sequence[LeftOut], case_columns: Mapping[str, TableColumn]
) -> tuple[Part, ...]:
    """Cases that were not compared, folded: the first of each reason by name, and all of them."""
    columns = {**case_columns, "verdict": TableColumn("Verdict"), "reason": TableColumn("Why", wide=True)}
    alt = "Every case that was left out of the comparison, with the reason"
    title, note = (
        f"{title} ({units.count(len(left_out))})",
        "  \n".join(verdict_words.left_out_lines(left_out)),
    )
    return parts.folded(
        parts.table("left-out", alt, left_out_table(left_out), columns, title=title, note=note)
    )


def left_out_table(left_out: Sequence[LeftOut]) -> pd.DataFrame:
    """One row per case that was not compared, with its reason, the most common reasons first."""
    common = Counter((case.verdict, case.reason) for case in left_out)
    ordered = sorted(
        left_out,
        key=lambda case: (-common[case.verdict, case.reason], case.reason, case.workload, case.strategy),
    )
    return pd.DataFrame(
        [(wording.workload_name(case), case.strategy, case.verdict.value, case.reason) for case in ordered],
        columns=["workload", "strategy", "verdict", "reason"],
    )


def count_changes(comparison: Comparison, labels: Mapping[str, str]) -> pd.DataFrame:
    """Cases that pass no more or again, or whose graph breaks or recompiles changed, the worst first."""
    moved = [
        row for row in comparison.rows if is_counted(row.metric) and row.verdict is not Verdict.UNCHANGED
    ]
    return pd.DataFrame(
        [
            {
                "workload": verdict_words.workload_label(row.case, labels),
                "strategy": row.strategy,
                **row_cells(row),
            }
            for row in wording.worst_first(moved)
        ]
    )


def failing_on_both(comparison: Comparison, labels: Mapping[str, str]) -> list[str]:
    """Cases that fail on either side alike: no change, and yet no pass."""
    return [
        f"{verdict_words.workload_label(row.case, labels)} with {row.strategy}: "
        f"{verdict_words.figure(row.metric, row.head)}"
        for row in comparison.rows
        if row.metric is Metric.NUMERICS and row.verdict is Verdict.UNCHANGED and row.head != "pass"
    ]


# Every case of a comparison as a row, and these summed up by verdict.


def cases_table(
    comparison: Comparison, metric: Metric, labels: Mapping[str, str], floors: Sequence[NoiseFloor] = ()
) -> pd.DataFrame:
    """One row per compared case, the worst first: its verdict on `metric`, and what speedup, eager and
    compiled did. A case without a value, for a side of it failed, has the verdict on whether it passes.
    """
    by_case: dict[tuple[str, str], dict[Metric, Row]] = {}
    for row in comparison.rows:
        by_case.setdefault(row.case.ids, {})[row.metric] = row
    shown = [
        (rows.get(metric) or rows[Metric.NUMERICS], rows)
        for rows in by_case.values()
        if metric in rows or _fails(rows.get(Metric.NUMERICS))
    ]
    order = {id(row): place for place, row in enumerate(wording.worst_first(row for row, _ in shown))}
    shown.sort(key=lambda pair: order[id(pair[0])])
    columns = sides_of(metric)
    return pd.DataFrame([_case_cells(row, rows, labels, floors, columns) for row, rows in shown])


def _fails(row: Row | None) -> bool:
    return row is not None and (row.base, row.head) != ("pass", "pass")


def _case_cells(
    row: Row,
    rows: Mapping[Metric, Row],
    labels: Mapping[str, str],
    floors: Sequence[NoiseFloor],
    columns: Mapping[str, TableColumn],
) -> dict[str, object]:
    speedup = rows.get(Metric.SPEEDUP)
    cells = row_cells(row, floors)
    if columns["base"].unit:
        ends = (("base", row.base), ("head", row.head))
        cells |= {name: None if isinstance(value, str) else value for name, value in ends}
    return {
        "workload": verdict_words.workload_label(row.case, labels),
        "strategy": row.strategy,
        **cells,
        "speedup_base": speedup.base if speedup else None,
        "speedup_head": speedup.head if speedup else None,
        "eager_ratio": None if row.eager_change is None else 1 + row.eager_change,
        "compiled_ratio": None if row.compiled_change is None else 1 + row.compiled_change,
        "tone": row.verdict.value,
        "case": (verdict_words.workload_label(row.case, labels), row.strategy),
    }


def summary_table(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per verdict of `dashboard.pages.upgrade.charts.frame` rows: how many, mean change, range."""
    summary = []
    for verdict in wording.WORST_FIRST:
        mine = rows[rows["verdict"] == verdict.value]["change"].astype(float)
        if mine.empty:
            continue
        mean = math.expm1(sum(map(math.log1p, mine)) / len(mine))
        summary.append(
            {
                "verdict": wording.marked(verdict),
                "cases": len(mine),
                "mean": mean,
                "range": (mine.min(), mine.max()),
                "tone": verdict.value,
            }
        )
    return pd.DataFrame(summary)


def tone_of(verdict: Verdict, change: LatencyChange | None) -> Tone:
    """No colour where nothing can be compared, nothing is decided, or the interval holds no change."""
    decided = verdict in MOVED
    if (
        not decided
        or change is None
        or change.interval is None
        or change.interval[0] <= 0 <= change.interval[1]
    ):
        return ""
    return "good" if change.change > 0 else "bad"
