"""A change in words: rounded as the sentence beside it rounds it."""

from __future__ import annotations

import math

import pytest

from dashboard import upgrade_rows, verdict_words
from db.verdicts.results import CaseKey, Row
from db.verdicts.sentences import moved
from db.verdicts.vocabulary import METRIC_UNITS, Design, Metric, Verdict


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
    assert cells["reason"].endswith(f"by {cells['change'].lstrip('+-')}.")
    assert cells["change"].startswith("-") == (change < 0)


@pytest.mark.parametrize("change", [0.0, math.expm1(1e-9), -4e-5])
def test_next_to_no_change_is_told_as_none(change: float) -> None:
    assert verdict_words.change(_row(Metric.PEAK_MEMORY, 2**20, 2**20, change)) == "0 %"
