"""Graph breaks, recompiles and the pass set, compared exactly."""

from __future__ import annotations

from typing import Any

import pytest

from compilewatch.db.judge.compare.upgrade import compare_builds
from compilewatch.db.judge.results import Row
from compilewatch.db.records.vocabulary import CauseClass, Metric, Verdict
from tests.db.judge.frames import trial
from tests.db.metrics.frames import trials_frame


def judge(metric: Metric, base: list[dict[str, Any]], head: list[dict[str, Any]]) -> Row:
    rows = [trial(build="old", **fields) for fields in base] + [
        trial(build="new", **fields) for fields in head
    ]
    (row,) = [r for r in compare_builds(trials_frame(rows), "old", "new").rows if r.metric is metric]
    return row


@pytest.mark.parametrize(
    ("base", "head", "verdict"),
    [
        ([2, 2], [2, 2], Verdict.UNCHANGED),
        ([2], [4], Verdict.REGRESSED),
        ([4, 4, 4], [2, 2, 2], Verdict.IMPROVED),
        ([2, 3], [4, 5], Verdict.REGRESSED),
        ([2, 3], [3, 4], Verdict.INCONCLUSIVE),
        ([2, 3], [2, 3], Verdict.UNCHANGED),
        ([0, None], [0, None], Verdict.UNCHANGED),
    ],
)
@pytest.mark.parametrize("metric", [Metric.GRAPH_BREAKS, Metric.RECOMPILES])
def test_counts_differ_only_when_every_trial_does(
    metric: Metric, base: list[int | None], head: list[int | None], verdict: Verdict
):
    row = judge(metric, [{metric.value: n} for n in base], [{metric.value: n} for n in head])
    assert row.verdict is verdict
    assert row.suspected is (verdict is Verdict.INCONCLUSIVE)
    moved = verdict in (Verdict.REGRESSED, Verdict.IMPROVED)
    assert row.cause is (CauseClass.COMPILER if moved else None)


OK: dict[str, Any] = {}
FAILED: dict[str, Any] = {
    "status": "failed",
    "failure_kind": "compile_error",
    "latency_ns": None,
    "numerics_status": None,
}
WRONG: dict[str, Any] = {"numerics_status": "fail"}


@pytest.mark.parametrize(
    ("base", "head", "verdict", "words"),
    [
        ([OK] * 3, [OK] * 3, Verdict.UNCHANGED, ("pass", "pass")),
        ([OK] * 3, [FAILED] * 3, Verdict.REGRESSED, ("pass", "compile_error")),
        ([OK], [WRONG], Verdict.REGRESSED, ("pass", "wrong_result")),
        ([FAILED] * 3, [OK] * 3, Verdict.IMPROVED, ("compile_error", "pass")),
        ([FAILED] * 2, [WRONG] * 2, Verdict.UNCHANGED, ("compile_error", "wrong_result")),
        ([OK] * 3, [OK, OK, FAILED], Verdict.INCONCLUSIVE, ("pass", "compile_error in 1 of 3")),
    ],
)
def test_pass_to_fail_is_a_regression_and_fail_to_pass_an_improvement(
    base: list[dict[str, Any]], head: list[dict[str, Any]], verdict: Verdict, words: tuple[str, str]
):
    row = judge(Metric.NUMERICS, base, head)
    assert (row.verdict, row.base, row.head) == (verdict, *words)
    assert row.suspected is (verdict is Verdict.INCONCLUSIVE)


def test_a_case_that_fails_now_regresses_the_comparison_and_leaves_the_geomean():
    rows = [trial("a", build=b) for b in ("old", "new") for _ in range(3)]
    rows += [trial("b", build="old", latency_ns=1e6) for _ in range(3)]
    rows += [trial("b", build="new", **FAILED) for _ in range(3)]
    comparison = compare_builds(trials_frame(rows), "old", "new")
    assert comparison.verdict is Verdict.REGRESSED
    assert comparison.geomean.base == pytest.approx(1.5)
    assert comparison.geomean.naive_base == pytest.approx((1.5 * 15) ** 0.5)
    assert comparison.geomean.cases == 1


IMPORTED: dict[str, Any] = {"numerics_status": None, "latency_p95_ns": None}


@pytest.mark.parametrize("status", [None, "not_checked"])
@pytest.mark.parametrize("sides", [("unsaid", "unsaid"), ("unsaid", "pass"), ("pass", "unsaid")])
def test_numbers_that_nobody_checked_are_not_called_unchanged(status: str | None, sides: tuple[str, str]):
    said = {"unsaid": {"numerics_status": status}, "pass": OK}
    rows = [trial(build=build, **said[side]) for build, side in zip(("old", "new"), sides, strict=True)]
    comparison = compare_builds(trials_frame(rows), "old", "new")
    assert Metric.NUMERICS not in {row.metric for row in comparison.rows}


def test_a_result_without_a_check_that_fails_now_is_a_regression_all_the_same():
    row = judge(Metric.NUMERICS, [IMPORTED], [FAILED])
    assert (row.base, row.head, row.verdict) == (
        "ran, numbers not checked",
        "compile_error",
        Verdict.REGRESSED,
    )
    assert row.reason == "Ran on the base side, fails now: compile error."
    assert judge(Metric.NUMERICS, [FAILED], [IMPORTED]).reason.endswith("(compile error), runs now.")


def test_a_case_that_was_mended_passes_now():
    row = judge(Metric.NUMERICS, [FAILED], [OK])
    assert row.reason == "Failed on the base side (compile error), passes now."


def test_counts_that_overlap_are_told_with_both_ends_of_each_side():
    row = judge(
        Metric.GRAPH_BREAKS, [{"graph_breaks": n} for n in (2, 3)], [{"graph_breaks": n} for n in (3, 5)]
    )
    assert row.reason == "The count varies between trials: 2 to 3 on the base side, 3 to 5 on the head."
    row = judge(
        Metric.GRAPH_BREAKS, [{"graph_breaks": n} for n in (2, 2)], [{"graph_breaks": n} for n in (4, 5)]
    )
    assert row.reason == "2 to 4 to 5, compared exactly."
