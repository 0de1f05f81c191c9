"""A suspicion, its budget, and what the fresh trials make of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compilewatch.db.judge.compare.confirmation import Outcome, outcomes, plan_confirmation, suspicions
from compilewatch.db.judge.compare.sides import Selection
from compilewatch.db.judge.compare.upgrade import compare_builds
from compilewatch.db.judge.policy import ConfirmPolicy, Policy
from compilewatch.db.judge.results import CaseKey, Comparison, Row
from compilewatch.db.records.vocabulary import CauseClass, Design, Metric, Verdict, WhoMoved
from tests.db.judge.frames import MS, trial
from tests.db.metrics.frames import trials_frame


def compare(
    changes: dict[str, float], trials: int = 3, seed: int = 0, policy: Policy | None = None
) -> Comparison:
    rows = [
        row
        for number, (workload, change) in enumerate(changes.items())
        for row in case(workload, change, 1.0, 1000 * seed + number, trials)
    ]
    return compare_builds(trials_frame(rows), "old", "new", policy)


def case(workload: str, compiled: float, eager: float, seed: int, trials: int = 3) -> list[dict[str, Any]]:
    """Trials of one case on both builds, the head's latencies changed by these factors."""
    generator = np.random.default_rng(seed)
    rows = []
    for _ in range(trials):
        for build, factors in (("old", (1.0, 1.0)), ("new", (compiled, eager))):
            jitter = np.exp(0.01 * generator.standard_normal(2))
            rows.append(
                trial(
                    workload,
                    build=build,
                    latency_ns=10 * MS * factors[0] * jitter[0],
                    control_latency_ns=15 * MS * factors[1] * jitter[1],
                )
            )
    return rows


CALM = {f"calm-{i}": 1.0 for i in range(20)}


def test_a_plan_asks_for_fresh_trials_of_just_those_cases_on_both_builds():
    plan = plan_confirmation(compare(CALM | {"slow": 1.3}))
    assert plan.trials_per_side == 7
    assert plan.cases[0] == ("slow", "default")
    assert plan.trials == 14 * len(plan.suspicions)


def test_nothing_suspected_asks_for_nothing():
    assert plan_confirmation(compare({"calm": 1.0}, trials=10)) is None


def test_the_same_build_on_both_sides_has_nothing_to_be_told_apart_by():
    rows = [
        row for name in CALM | {"slow": 1.3} for row in case(name, 1.3 if name == "slow" else 1.0, 1.0, 0)
    ]
    rows = [row | {"run_id": row["build_id"], "build_id": "old"} for row in rows]
    base, head = (Selection(name=run, run_ids=(run,)) for run in ("old", "new"))
    assert plan_confirmation(compare_builds(trials_frame(rows), base, head)) is None


def test_a_budget_too_small_for_one_case_asks_for_nothing():
    policy = Policy(confirm=ConfirmPolicy(budget_trials=13))
    assert plan_confirmation(compare(CALM | {"slow": 1.3}, policy=policy)) is None


def test_fresh_trials_alone_decide():
    first = compare(CALM | {"slow": 1.3, "lucky": 1.3})
    plan = plan_confirmation(first)
    assert plan is not None
    decided = {
        (c.case.workload, c.metric): c
        for c in outcomes(plan, compare({"slow": 1.3, "lucky": 1.0}, 7, seed=1))
    }
    slow, lucky = decided["slow", Metric.LATENCY], decided["lucky", Metric.LATENCY]
    assert (slow.outcome, slow.cause) == (Outcome.CONFIRMED, CauseClass.COMPILER)
    assert (lucky.outcome, lucky.cause) == (Outcome.NOT_REPRODUCED, CauseClass.NOISE)
    assert "7 and 7 fresh trials do not show it" in lucky.reason


def test_a_suspicion_that_was_not_measured_again_is_neither():
    plan = plan_confirmation(compare(CALM | {"slow": 1.3}))
    assert plan is not None
    assert {c.outcome for c in outcomes(plan, None)} == {Outcome.NOT_MEASURED}


def row(workload: str, metric: Metric = Metric.LATENCY, **fields: Any) -> Row:
    given = {
        "case": CaseKey(workload=workload, strategy="default", workload_id=workload, strategy_id="s"),
        "metric": metric,
        "unit": "",
        "base": 1.0,
        "head": 1.0,
        "change": 0.1,
        "p_value": 0.01,
        "verdict": Verdict.REGRESSED,
        "trials": (3, 3),
        "design": Design.INTERLEAVED,
        "reason": "It is slower.",
    }
    return Row(**given | fields)


def holding(*rows: Row, policy: Policy | None = None) -> Comparison:
    """A comparison of two builds with just these rows."""
    return compare({"any": 1.0}, policy=policy).model_copy(update={"rows": rows})


OPEN: dict[str, Any] = {"verdict": Verdict.INCONCLUSIVE, "suspected": True}


@pytest.mark.parametrize(
    ("fields", "suspected"),
    [
        ({}, True),
        ({"cause": CauseClass.MACHINE}, False),
        ({"p_value": None}, False),  # counted exactly, or never: a second look shows the same
        ({"verdict": Verdict.IMPROVED, "change": -0.1}, False),
        ({"verdict": Verdict.UNCHANGED, "suspected": True}, False),
        ({"verdict": Verdict.INCONCLUSIVE}, False),
        (OPEN, True),
        (OPEN | {"change": -0.1}, False),
        (OPEN | {"change": None, "p_value": None}, True),
        (OPEN | {"change": -0.1, "metric": Metric.SPEEDUP}, True),
        (OPEN | {"change": 0.1, "metric": Metric.SPEEDUP}, False),
        ({"metric": Metric.SPEEDUP, "change": -0.1, "who_moved": WhoMoved.EAGER}, False),
    ],
)
def test_what_is_suspected(fields: dict[str, Any], suspected: bool):
    assert bool(suspicions(holding(row("bert", **fields)))) is suspected


def test_the_surest_metric_and_the_surest_case_come_first_and_what_has_no_p_last():
    found = suspicions(
        holding(
            row("a", Metric.GRAPH_BREAKS, **OPEN | {"p_value": None}),
            row("b", Metric.GRAPH_BREAKS, **OPEN | {"p_value": None}),
            row("b", Metric.PEAK_MEMORY, p_value=0.02),
            row("b", Metric.LATENCY, p_value=0.01),
            row("b", Metric.SPEEDUP, verdict=Verdict.IMPROVED),
            row("c", Metric.LATENCY, p_value=0.005),
        )
    )
    assert [(each.case.workload, each.metrics, each.p_value) for each in found] == [
        ("c", (Metric.LATENCY,), 0.005),
        ("b", (Metric.LATENCY, Metric.PEAK_MEMORY, Metric.GRAPH_BREAKS), 0.01),
        ("a", (Metric.GRAPH_BREAKS,), None),
    ]


def test_a_budget_is_spent_on_whole_cases_the_surest_first():
    rows = [row(name, p_value=p) for name, p in (("a", 0.03), ("b", 0.02), ("c", 0.01))]
    policy = Policy(confirm=ConfirmPolicy(budget_trials=41, fresh_trials=10))
    plan = plan_confirmation(holding(*rows), policy)
    assert plan.cases == (("c", "default"), ("b", "default"))
    assert [each.case.workload for each in plan.over_budget] == ["a"]
    assert (plan.trials_per_side, plan.trials) == (10, 40)
    assert plan_confirmation(holding(*rows, policy=policy)) == plan


def test_each_metric_of_a_suspicion_is_decided_by_its_own_fresh_row():
    metrics = (Metric.LATENCY, Metric.PEAK_MEMORY, Metric.COMPILE_COST, Metric.SPEEDUP)
    plan = plan_confirmation(
        holding(*(row("a", metric, change=-0.1 if metric is Metric.SPEEDUP else 0.1) for metric in metrics))
    )
    slow = row("a", cause=CauseClass.COMPILER, reason="Latency rose.")
    calm = row("a", Metric.PEAK_MEMORY, verdict=Verdict.UNCHANGED, trials=(7, 6), reason="It is the same.")
    # Of two trials nothing is ever decided, so neither is that it was noise.
    none = row("a", Metric.COMPILE_COST, verdict=Verdict.INCONCLUSIVE, trials=(7, 2))
    other = row("b", Metric.SPEEDUP)
    decided = {each.metric: each for each in outcomes(plan, holding(slow, calm, none, other))}
    assert list(decided) == list(plan.suspicions[0].metrics)
    told = {metric: (each.outcome, each.cause, each.row, each.reason) for metric, each in decided.items()}
    nothing = "Too few fresh trials of both sides arrived."
    assert told == {
        Metric.LATENCY: (Outcome.CONFIRMED, CauseClass.COMPILER, slow, "Latency rose."),
        Metric.PEAK_MEMORY: (
            Outcome.NOT_REPRODUCED,
            CauseClass.NOISE,
            calm,
            "7 and 6 fresh trials do not show it: It is the same.",
        ),
        Metric.COMPILE_COST: (Outcome.NOT_MEASURED, None, none, nothing),
        Metric.SPEEDUP: (Outcome.NOT_MEASURED, None, None, nothing),
    }
    assert all(each.case == plan.suspicions[0].case for each in decided.values())
