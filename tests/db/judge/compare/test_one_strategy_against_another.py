"""One strategy against another by the judge, and code from the cache against fresh code."""

from __future__ import annotations

import numpy as np
import pytest
from pandas import DataFrame, array

from compilewatch.db.judge.compare.sides import VerdictError
from compilewatch.db.judge.compare.strategies import (
    compare_strategies,
    differences,
    from_cache,
    left_out_parts,
)
from compilewatch.db.records.vocabulary import Metric, Verdict
from tests.db.metrics.frames import trial, trials_frame


def measured(
    latencies: dict[str, float], *, rounds: int = 5, cv: float = 0.01, seed: int = 0, cases: int = 2
) -> DataFrame:
    """Rounds of one run: in each, every strategy of every workload once."""
    noise = np.random.default_rng(seed)
    return trials_frame(
        [
            trial(
                f"w{case}",
                strategy,
                run_id="R",
                cache="warm" if strategy.endswith("+warm") else "cold",
                latency_ns=latency * np.exp(cv * noise.standard_normal()),
                control_latency_ns=200.0 * np.exp(cv * noise.standard_normal()),
            )
            for _ in range(rounds)
            for case in range(cases)
            for strategy, latency in latencies.items()
        ]
    )


def verdicts(trials: DataFrame, base: str, head: str) -> set[Verdict]:
    rows = compare_strategies(trials, base, head).rows
    return {row.verdict for row in rows if row.metric is Metric.LATENCY}


def test_a_faster_strategy_is_improved_and_the_reverse_regressed() -> None:
    trials = measured({"default": 100.0, "max-autotune": 90.0})
    assert verdicts(trials, "default", "max-autotune") == {Verdict.IMPROVED}
    assert verdicts(trials, "max-autotune", "default") == {Verdict.REGRESSED}


def test_every_pair_is_tested_once() -> None:
    trials = measured({"eager": 200.0, "default": 100.0, "max-autotune": 90.0})
    pairs = [(each.base, each.row.strategy, each.row.workload) for each in differences(trials)]
    assert len(pairs) == len(set(pairs)) == 3 * 2


@pytest.mark.parametrize(("warm", "verdict"), [(100.0, Verdict.UNCHANGED), (108.0, Verdict.REGRESSED)])
def test_code_from_the_cache_is_held_against_fresh_code(warm: float, verdict: Verdict) -> None:
    trials = measured({"default": 100.0, "default+warm": warm}, rounds=8, cv=0.005)
    assert {(each.base, each.row.verdict) for each in from_cache(trials)} == {("default", verdict)}


def test_a_strategy_that_was_not_measured_is_a_sentence() -> None:
    with pytest.raises(VerdictError, match="Nothing was measured with max-autotune"):
        compare_strategies(measured({"default": 100.0}), "default", "max-autotune")


def test_eager_is_the_one_within_each_compiled_trial() -> None:
    """Whether or not eager had trials of its own: the change is that of the speedup."""
    alone = measured({"default": 100.0})
    with_own = measured({"eager": 170.0, "default": 100.0})
    for trials in (alone, with_own):
        found = compare_strategies(trials, "eager", "default")
        assert (found.matched, found.total) == (2, 2)
        for row in (row for row in found.rows if row.metric is Metric.LATENCY):
            mine = trials[(trials["workload"] == row.workload) & (trials["strategy"] == "default")]
            ratio = (np.log(mine["latency_ns"]) - np.log(mine["control_latency_ns"])).mean()
            assert row.change == pytest.approx(np.expm1(ratio), rel=1e-9)
        assert Metric.COMPILE_COST not in {row.metric for row in found.rows}


def test_without_eager_beside_it_its_own_trials_stand() -> None:
    trials = measured({"eager": 170.0, "default": 100.0}).assign(
        control_latency_ns=array([None] * 20, "Float64")
    )
    found = compare_strategies(trials, "eager", "default")
    assert (found.matched, found.total) == (2, 2)
    assert all(
        row.base == pytest.approx(170.0, rel=0.02) for row in found.rows if row.metric is Metric.LATENCY
    )


@pytest.mark.parametrize(
    ("latency", "cost", "finding", "steps"),
    [
        # 4 s more to compile, 10 ms less a step: 400 steps.
        (90e6, 8e9, "earns it", 400),
        (90e6, 12e9, "gains for nothing", None),
        (100e6, 8e9, "does not earn it", None),
        (100e6, 16e9, "saves compile time", None),
        (100e6, 12e9, "changes neither", None),
        (112e6, 8e9, "slows the step down", None),
    ],
)
def test_a_part_that_is_left_out_tells_what_it_earns(
    latency: float, cost: float, finding: str, steps: int | None
) -> None:
    """`cost` is without the part; the whole compiles for 12 s, and the step without the part takes 100 ms."""
    without = "default+without:pattern_matcher"
    trials = measured({"default": latency, without: 100e6, "eager": 200e6}, cases=1, rounds=8)
    noise = np.random.default_rng(1)
    costs = [
        None
        if name == "eager"
        else (12e9 if name == "default" else cost) * np.exp(0.005 * noise.standard_normal())
        for name in trials["strategy"]
    ]
    (part,) = left_out_parts(trials.assign(trial_compile_cost_ns=array(costs, "Float64")))
    assert (part.strategy, part.part, part.finding) == ("default", "pattern_matcher", finding)
    assert (None if part.steps is None else part.steps) == (steps and pytest.approx(steps, rel=0.1))


def test_a_part_is_undecided_where_trials_do_not_decide() -> None:
    trials = measured({"default": 95.0, "default+without:shape_padding": 100.0}, rounds=2, cv=0.2)
    assert {part.finding for part in left_out_parts(trials)} == {"undecided"}
    assert list(left_out_parts(trials, whole="max-autotune")) == []
