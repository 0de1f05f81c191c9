"""A change in words: rounded as the sentence beside it rounds it, and short where both values are there."""

from __future__ import annotations

import math

import pytest

from dashboard.document.sections import cell_text
from dashboard.parts import verdict_words
from dashboard.parts.column_units import UNITS, written
from dashboard.verdicts import tables as upgrade_rows
from dashboard.verdicts.tables import SIDES
from db import units
from db.columns.metrics import METRIC_UNITS
from db.judge.results import CaseKey, Row
from db.judge.words.sentences import moved
from db.records.vocabulary import Design, Metric, Verdict


def _row(
    metric: Metric, base: float | str, head: float | str, change: float | None = None, reason: str = ""
) -> Row:
    return Row(
        case=CaseKey(workload="mlp", strategy="default", workload_id="w", strategy_id="s"),
        metric=metric,
        unit=METRIC_UNITS[metric],
        base=base,
        head=head,
        change=change,
        verdict=Verdict.IMPROVED,
        trials=(5, 5),
        design=Design.SEPARATE_RUNS,
        reason=reason,
    )


@pytest.mark.parametrize("change", [-0.258473, 0.258473, 0.104951, -0.0012349, 1.666, 0.00012])
def test_a_change_is_rounded_as_its_reason_says_it(change: float) -> None:
    """-25.8473 % is no -25.9 %, which rounding to -25.85 % first would make of it."""
    reason = moved(Metric.COMPILE_COST, change, None, None, None)
    cells = upgrade_rows.row_cells(_row(Metric.COMPILE_COST, 1e9, 1e9 * (1 + change), change, reason))
    text = written(cells["change"], UNITS["change"])
    assert str(cells["reason"]).endswith(f"by {text.lstrip('+-')}.")
    assert text.startswith("-") == (change < 0)


@pytest.mark.parametrize("change", [0.0, math.expm1(1e-9), -4e-5])
def test_next_to_no_change_is_told_as_none(change: float) -> None:
    assert verdict_words.change(_row(Metric.PEAK_MEMORY, 2**20, 2**20, change)) == "0 %"


@pytest.mark.parametrize(
    ("metric", "base", "head", "alone", "beside"),
    [
        (Metric.BREAK_EVEN, 10_452, units.NEVER, "10,452 steps → never", ("10,452 steps", "never")),
        (Metric.BREAK_EVEN, units.NEVER, 5_331, "never → 5,331 steps", ("never", "5,331 steps")),
        (Metric.BREAK_EVEN, units.NEVER, units.NEVER, "never", ("never", "never")),
        (Metric.GRAPH_BREAKS, 0, 3, "0 → 3", ("0", "3")),
        (Metric.GRAPH_BREAKS, 3, 3, units.MISSING, ("3", "3")),
        (Metric.NUMERICS, "pass", "not_checked", "pass → not checked", ("pass", "not checked")),
    ],
)
def test_both_values_stand_beside_a_change_without_a_number(
    metric: Metric, base: float | str, head: float | str, alone: str, beside: tuple[str, str]
) -> None:
    row = _row(metric, base, head)
    cells = upgrade_rows.row_cells(row)
    assert verdict_words.change(row) == alone
    assert cells["change"] is None
    assert (cell_text(cells["base"], SIDES["base"]), cell_text(cells["head"], SIDES["head"])) == beside
