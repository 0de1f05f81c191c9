"""The verdict on all rows together."""

from __future__ import annotations

from typing import Any

import pytest

from compilewatch.db.judge.decide import counts_as_regression, overall_verdict, verdict_of_case
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.results import CaseKey, Row
from compilewatch.db.records.vocabulary import CauseClass, Design, Metric, Verdict, WhoMoved

POLICY = Policy()
KEY = CaseKey(workload="bert", strategy="default", workload_id="w", strategy_id="s")


def row(verdict: Verdict, metric: Metric = Metric.LATENCY, **fields: Any) -> Row:
    return Row(
        case=KEY,
        metric=metric,
        unit="ns",
        verdict=verdict,
        reason="",
        **({"base": 1.0, "head": 1.0, "design": Design.INTERLEAVED, "trials": (3, 3)} | fields),
    )


WORSE = row(Verdict.REGRESSED)
BETTER = row(Verdict.IMPROVED)
SAME = row(Verdict.UNCHANGED)
OPEN = row(Verdict.INCONCLUSIVE)
OPEN_SPEEDUP = row(Verdict.INCONCLUSIVE, Metric.SPEEDUP)
COUNTED = row(Verdict.UNCHANGED, Metric.GRAPH_BREAKS)
SAME_NUMERICS = row(Verdict.UNCHANGED, Metric.NUMERICS)
BROKEN = row(Verdict.UNCHANGED, Metric.NUMERICS, base="crash", head="workload_error")
# As a failure is that somebody accepted.
ACCEPTED = row(Verdict.UNCHANGED, Metric.NUMERICS, base="pass", head="crash")
BLAMED = row(Verdict.INCONCLUSIVE, cause=CauseClass.MACHINE, change=0.5)
BARELY = row(Verdict.INCONCLUSIVE, cause=CauseClass.MACHINE, change=0.03)
APART: dict[str, Any] = {"design": Design.SEPARATE_RUNS, "visible_change": 0.2, "change": 0.02}
NO_SIGN = row(Verdict.INCONCLUSIVE, **APART)
IN_TIME = row(Verdict.INCONCLUSIVE, **APART | {"design": Design.INTERLEAVED, "until_decided": True})


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        ([], Verdict.NOT_COMPARABLE),
        ([SAME, BETTER, OPEN, WORSE], Verdict.REGRESSED),
        ([BLAMED, SAME, SAME], Verdict.INCONCLUSIVE),
        ([BARELY, SAME, SAME], Verdict.UNCHANGED),
        # Separate runs show nobody to be unchanged; what would have been seen was not.
        ([NO_SIGN, NO_SIGN], Verdict.UNCHANGED),
        ([BETTER, NO_SIGN, NO_SIGN], Verdict.IMPROVED),
        ([row(Verdict.INCONCLUSIVE, **APART | {"change": 0.1}), NO_SIGN, SAME], Verdict.INCONCLUSIVE),
        ([row(Verdict.INCONCLUSIVE, **APART | {"change": -0.1}), NO_SIGN, SAME], Verdict.UNCHANGED),
        ([row(Verdict.INCONCLUSIVE, **APART | {"q_value": 0.1}), NO_SIGN, SAME], Verdict.INCONCLUSIVE),
        ([row(Verdict.INCONCLUSIVE, **APART | {"visible_change": 0.6})], Verdict.INCONCLUSIVE),
        ([row(Verdict.INCONCLUSIVE, **APART | {"trials": (2, 3)})], Verdict.INCONCLUSIVE),
        # So it is where the time was over that was given to decide it, by turns.
        ([IN_TIME, IN_TIME], Verdict.UNCHANGED),
        ([IN_TIME.model_copy(update={"until_decided": False}), IN_TIME, SAME], Verdict.UNCHANGED),
        ([IN_TIME.model_copy(update={"until_decided": False})], Verdict.INCONCLUSIVE),
        ([IN_TIME.model_copy(update={"visible_change": 0.6})], Verdict.INCONCLUSIVE),
        ([IN_TIME.model_copy(update={"change": 0.1})], Verdict.INCONCLUSIVE),
        ([SAME, OPEN, OPEN], Verdict.INCONCLUSIVE),
        ([BETTER, OPEN, OPEN], Verdict.INCONCLUSIVE),
        ([SAME, OPEN], Verdict.UNCHANGED),
        ([BETTER, OPEN], Verdict.IMPROVED),
        ([SAME, SAME], Verdict.UNCHANGED),
        ([SAME, SAME, BETTER], Verdict.IMPROVED),
        # What was counted says nothing of timings that nobody could judge.
        ([OPEN, OPEN_SPEEDUP, COUNTED, SAME_NUMERICS, SAME_NUMERICS], Verdict.INCONCLUSIVE),
        ([OPEN, row(Verdict.IMPROVED, Metric.GRAPH_BREAKS), COUNTED], Verdict.INCONCLUSIVE),
        ([SAME, OPEN, OPEN_SPEEDUP, COUNTED, COUNTED, COUNTED], Verdict.INCONCLUSIVE),
        ([SAME, OPEN_SPEEDUP, COUNTED], Verdict.UNCHANGED),
        ([COUNTED, SAME_NUMERICS], Verdict.UNCHANGED),
        # A model that never runs is not one that got no slower.
        ([BROKEN, BROKEN], Verdict.INCONCLUSIVE),
        ([BROKEN, SAME], Verdict.UNCHANGED),
        ([ACCEPTED], Verdict.UNCHANGED),
    ],
)
def test_the_worst_that_counts_stands_for_all(rows: list[Row], verdict: Verdict):
    assert overall_verdict(rows, POLICY) is verdict


@pytest.mark.parametrize(
    ("found", "counts"),
    [
        (WORSE, True),
        (BETTER, False),
        (OPEN, False),
        (BLAMED, False),
        (row(Verdict.REGRESSED, Metric.SPEEDUP, who_moved=WhoMoved.EAGER), False),
        (row(Verdict.REGRESSED, Metric.BREAK_EVEN, who_moved=WhoMoved.EAGER), False),
        (row(Verdict.REGRESSED, Metric.SPEEDUP, who_moved=WhoMoved.COMPILED), True),
        (row(Verdict.REGRESSED, Metric.LATENCY, who_moved=WhoMoved.EAGER), True),
    ],
)
def test_a_speedup_that_fell_because_eager_got_faster_harms_nobody(found: Row, counts: bool):
    assert counts_as_regression(found) is counts
    assert (verdict_of_case([found]) is Verdict.REGRESSED) is counts


def test_what_moved_and_does_not_count_leaves_its_case_as_the_rest_says():
    harmless = row(Verdict.REGRESSED, Metric.SPEEDUP, who_moved=WhoMoved.EAGER)
    assert verdict_of_case([harmless, SAME]) is Verdict.UNCHANGED
    assert verdict_of_case([harmless, OPEN]) is Verdict.INCONCLUSIVE
    assert verdict_of_case([harmless, WORSE]) is Verdict.REGRESSED
    assert verdict_of_case([BLAMED, SAME]) is Verdict.INCONCLUSIVE
