"""What a row says beside its verdict: of break-even that comes or goes, of counts, of what is unknown."""

from __future__ import annotations

from typing import Any

import pytest

from compilewatch.db.judge.compare.upgrade import compare_builds
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.results import Comparison, Row
from compilewatch.db.records.vocabulary import CauseClass, Design, Metric, Verdict, WhoMoved
from tests.db.judge.frames import MS, sides
from tests.db.metrics.frames import trials_frame

FIVE = [10.0, 10.01, 9.99, 10.02, 9.98]
SLOW = [2 * each for each in FIVE]


def compared(rows: list[dict[str, Any]], policy: Policy | None = None) -> Comparison:
    return compare_builds(trials_frame(rows), "old", "new", policy)


def row(comparison: Comparison, metric: Metric) -> Row:
    (found,) = [each for each in comparison.rows if each.metric is metric]
    return found


def test_a_break_even_that_goes_is_told_by_the_speedup_behind_it():
    comparison = compared(sides(FIVE, SLOW))
    speedup, gone = row(comparison, Metric.SPEEDUP), row(comparison, Metric.BREAK_EVEN)
    assert (gone.base, gone.head, gone.unit) == (1600.0, "never", "steps")
    assert gone.verdict is speedup.verdict is Verdict.REGRESSED
    assert (gone.who_moved, gone.cause) == (WhoMoved.COMPILED, CauseClass.COMPILER)
    assert gone.compiled_change == speedup.compiled_change == pytest.approx(1.0)
    assert gone.eager_change == speedup.eager_change == pytest.approx(0.0)
    assert (gone.trials, gone.design, gone.suspected) == ((5, 5), Design.INTERLEAVED, True)
    assert (gone.more_trials, gone.change, gone.interval, gone.p_value) == (None, None, None, None)
    assert gone.reason == "Compilation no longer pays off."
    assert gone.case == speedup.case


@pytest.mark.parametrize("latency_ms", [262.512, 10.0, 0.001234])
def test_the_level_of_one_trial_is_its_own_value(latency_ms: float):
    latency = row(compared(sides([latency_ms], [2 * latency_ms])), Metric.LATENCY)
    assert (latency.base, latency.head) == (round(latency_ms * MS), round(2 * latency_ms * MS))


def test_a_break_even_that_comes_is_an_improvement():
    comes = row(compared(sides(SLOW, FIVE)), Metric.BREAK_EVEN)
    assert (comes.base, comes.head, comes.verdict) == ("never", 1600.0, Verdict.IMPROVED)
    assert (comes.who_moved, comes.cause) == (WhoMoved.COMPILED, CauseClass.COMPILER)
    assert comes.reason == "Compilation pays off now."


def test_a_break_even_that_goes_without_a_sure_speedup_is_open():
    comparison = compared(sides([14.9, 10.0], [15.1, 21.0]))
    speedup, gone = row(comparison, Metric.SPEEDUP), row(comparison, Metric.BREAK_EVEN)
    assert speedup.verdict is Verdict.INCONCLUSIVE
    assert (gone.head, gone.verdict) == ("never", Verdict.INCONCLUSIVE)
    assert (gone.who_moved, gone.cause) == (None, None)
    assert gone.more_trials == speedup.more_trials
    assert gone.more_trials is not None
    assert gone.suspected == speedup.suspected
    assert gone.reason == ("Compilation no longer pays off, but the change of speedup behind it is not sure.")


def test_a_break_even_that_is_never_on_both_sides_says_so_and_is_never_suspected():
    both = row(compared(sides(SLOW, [1.5 * each for each in SLOW])), Metric.BREAK_EVEN)
    assert (both.base, both.head, both.verdict) == ("never", "never", Verdict.UNCHANGED)
    assert (both.suspected, both.more_trials, both.cause, both.who_moved) == (False, None, None, None)
    assert both.compiled_change == pytest.approx(0.5)
    assert both.reason == "Compilation never pays off, on either side."


@pytest.mark.parametrize(
    ("strategy", "kind", "cause"),
    [("default", "compile", CauseClass.COMPILER), ("eager", "eager", CauseClass.EAGER)],
)
def test_a_count_is_caused_by_who_was_counted(strategy: str, kind: str, cause: CauseClass):
    failed = {"status": "failed", "failure_kind": "crash", "latency_ns": None}
    comparison = compared(sides(FIVE, FIVE, strategy=strategy, head_fields=failed))
    gone = row(comparison, Metric.NUMERICS)
    assert (gone.verdict, gone.cause, gone.case.strategy_kind) == (Verdict.REGRESSED, cause, kind)
    assert (gone.unit, gone.design, gone.trials) == ("status", Design.SEPARATE_RUNS, (5, 5))
    assert gone.reason == "Passed on the base side, fails now: crash."


def test_a_row_says_what_is_missing_for_a_verdict():
    few = compared(sides(FIVE[:2], SLOW[:2]))
    assert row(few, Metric.LATENCY).reason == (
        "2 trials on the smaller side are never a verdict; 3 a side are needed."
    )
    loud = compared(sides([10.0, 10.6, 9.5, 10.2], [10.3, 9.7, 10.7, 10.2]))
    open_ = row(loud, Metric.LATENCY)
    assert open_.interval is not None
    assert open_.reason.startswith("Cannot tell: ")
    assert open_.reason.endswith(f"about {open_.more_trials} more trials a side would show 5 %.")
    assert open_.significance_threshold is not None
    assert open_.significance_threshold > abs(open_.change or 0)
    wild = row(compared(sides([10, 14, 8, 12], [11, 9, 13, 15])), Metric.LATENCY)
    assert (wild.more_trials, wild.unseen) == (None, 597)
    assert wild.reason.endswith("; this clock cannot show 5 % here: that takes about 597 trials a side.")


def test_a_speedup_borrowed_from_eager_trials_of_the_run_cannot_be_tested():
    nothing = {"control_latency_ns": None}
    rows = sides(FIVE, FIVE, base_fields=nothing, head_fields=nothing)
    rows += sides([15.0] * 5, [15.0] * 5, strategy="eager")
    comparison = compared(rows)
    (speedup,) = [each for each in comparison.rows if each.metric is Metric.SPEEDUP]
    assert (speedup.base, speedup.head) == (pytest.approx(1.5, rel=1e-5), pytest.approx(1.5, rel=1e-5))
    assert (speedup.verdict, speedup.change, speedup.interval) == (Verdict.INCONCLUSIVE, None, None)
    assert (speedup.eager_change, speedup.compiled_change, speedup.who_moved) == (None, None, None)
    assert (speedup.p_value, speedup.q_value, speedup.significance_threshold) == (None, None, None)
    assert speedup.reason == (
        "No trial of one side has eager measured in the same process; measure both sides again."
    )


def test_unchanged_names_the_margin_of_its_own_case():
    wide = Policy.model_validate(
        {"overrides": [{"workload": "bert", "metric": "latency", "unchanged_margin": 0.04}]}
    )
    said = row(compared(sides(FIVE, FIVE), wide), Metric.LATENCY)
    assert said.verdict is Verdict.UNCHANGED
    assert said.reason.startswith("Shown to be within 4.00 %: ")
    assert (said.base, said.cause, said.who_moved) == (pytest.approx(10 * MS, rel=1e-3), None, None)


def test_a_metric_that_a_side_lacks_has_no_row():
    rows = sides(FIVE, FIVE, head_fields={"peak_bytes": None})
    metrics = {each.metric for each in compared(rows).rows}
    assert Metric.PEAK_MEMORY not in metrics
    assert Metric.LATENCY in metrics


def test_a_machine_explains_a_break_even_as_it_explains_the_speedup():
    apart = {"runs": ("R1", "R2")}
    rows = sides(FIVE, SLOW, **apart)  # type: ignore[arg-type]
    rows += sides(FIVE, SLOW, workload="canary-gemm", strategy="eager", **apart)  # type: ignore[arg-type]
    comparison = compared(rows)
    for metric in (Metric.LATENCY, Metric.SPEEDUP, Metric.BREAK_EVEN):
        assert row(comparison, metric).cause is CauseClass.MACHINE
    assert comparison.canary_change == pytest.approx(1.0)


@pytest.mark.parametrize("head", [FIVE, SLOW, [1.001 * each for each in FIVE], [10.0], [14.9, 10.0]])
def test_rows_are_what_a_check_of_their_fields_makes_of_them(head: list[float]) -> None:
    for found in compared(sides(FIVE, head)).rows:
        checked = Row.model_validate(
            {name: getattr(found, name) for name in found.model_fields_set}, strict=True
        )
        assert checked == found
        assert repr(checked) == repr(found)
        assert checked.model_fields_set == found.model_fields_set
        assert checked.model_dump_json() == found.model_dump_json()
