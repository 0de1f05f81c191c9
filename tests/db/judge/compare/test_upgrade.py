"""Upgrade verdicts: what each row says, and what must never change it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from compilewatch.db.judge.compare.sides import Selection
from compilewatch.db.judge.compare.upgrade import compare_builds
from compilewatch.db.judge.policy import Override, Policy
from compilewatch.db.judge.results import Comparison, Row
from compilewatch.db.metrics.cases import case_values
from compilewatch.db.records.vocabulary import CauseClass, Design, Metric, Verdict, WhoMoved
from tests.db.judge.frames import MS, sides, trial
from tests.db.metrics.frames import trials_frame
from tests.few_examples import FEW

CALM = (10.0, 10.05, 9.95, 10.02, 9.98)
APART = ("R1", "R2")


def case(
    change: float = 1.0,
    *,
    workload: str = "bert",
    eager: float = 1.0,
    trials: int = 5,
    noise: float = 0.005,
    seed: int = 0,
    runs: tuple[str, str] = ("R1", "R1"),
    **head_fields: Any,
) -> list[dict[str, Any]]:
    """Trials of one case whose compiled and eager latencies change by these factors."""
    generator = np.random.default_rng([seed, *workload.encode()])
    rows = []
    for _ in range(trials):
        for build, run, (compiled, control) in (
            ("old", runs[0], (1.0, 1.0)),
            ("new", runs[1], (change, eager)),
        ):
            jitter = np.exp(noise * generator.standard_normal(3))
            fields = {
                "run_id": run,
                "latency_ns": 10 * MS * compiled * jitter[0],
                "control_latency_ns": 15 * MS * control * jitter[1],
                "trial_compile_cost_ns": 8e9 * jitter[2],
            }
            rows.append(trial(workload, build=build, **fields | (head_fields if build == "new" else {})))
    return rows


def background(cases: int = 8, **fields: Any) -> list[dict[str, Any]]:
    return [row for i in range(cases) for row in case(workload=f"calm-{i}", **fields)]


def judge(rows: list[dict[str, Any]], policy: Policy | None = None, **options: Any) -> Comparison:
    return compare_builds(trials_frame(rows), "old", "new", policy, **options)


def row_of(comparison: Comparison, metric: Metric, workload: str = "bert") -> Row:
    (found,) = [row for row in comparison.rows if row.workload == workload and row.metric is metric]
    return found


def verdicts(comparison: Comparison) -> dict[tuple[str, str, Metric], Verdict]:
    return {(row.workload, row.strategy, row.metric): row.verdict for row in comparison.rows}


def test_a_slower_compiled_model_is_a_regression_of_the_compiler():
    comparison = judge(case(1.06) + background())
    latency, speedup = (row_of(comparison, metric) for metric in (Metric.LATENCY, Metric.SPEEDUP))
    assert (latency.verdict, latency.who_moved, latency.cause) == (
        Verdict.REGRESSED,
        WhoMoved.COMPILED,
        CauseClass.COMPILER,
    )
    assert latency.change == pytest.approx(0.06, abs=0.01)
    assert latency.interval[0] < 0.06 < latency.interval[1]
    assert latency.trials == (5, 5)
    assert latency.design is Design.INTERLEAVED
    assert speedup.reason == "Speedup fell because compiled got slower."
    assert comparison.verdict is Verdict.REGRESSED
    assert row_of(comparison, Metric.LATENCY, "calm-0").verdict is Verdict.UNCHANGED


def test_speedup_that_rose_because_eager_got_slower_is_said_in_those_words():
    comparison = judge(case(eager=1.08) + background())
    speedup = row_of(comparison, Metric.SPEEDUP)
    assert (speedup.verdict, speedup.who_moved, speedup.cause) == (
        Verdict.IMPROVED,
        WhoMoved.EAGER,
        CauseClass.EAGER,
    )
    assert speedup.reason == "Speedup rose because eager got slower."


def test_speedup_that_fell_because_eager_got_faster_is_no_regression_of_the_build():
    comparison = judge(case(eager=0.92) + background())
    speedup = row_of(comparison, Metric.SPEEDUP)
    assert speedup.verdict is Verdict.REGRESSED
    assert speedup.reason == "Speedup fell because eager got faster."
    assert comparison.verdict is not Verdict.REGRESSED


def test_the_two_levels_of_a_row_differ_by_its_change():
    """Medians over trials would say something else than the means that were tested."""
    rows = sides([10, 10, 13, 13, 13], [10, 10, 10, 13, 13])
    row = row_of(judge(rows), Metric.LATENCY)
    assert row.change == pytest.approx((10 / 13) ** 0.2 - 1)
    assert row.base == pytest.approx((10**2 * 13**3) ** 0.2 * MS)
    assert float(row.head or 0) / float(row.base or 1) - 1 == pytest.approx(row.change)


def test_the_two_break_evens_of_a_row_are_those_of_its_cases_and_differ_by_its_change():
    rows = trials_frame(sides([10, 10, 10, 13, 13], [5, 6, 10, 10, 10]))
    row = row_of(compare_builds(rows, "old", "new"), Metric.BREAK_EVEN)
    steps = case_values(rows).set_index("build_id")["break_even_steps"]
    assert math.ceil(float(row.base or 0)) == steps["old"]
    assert math.ceil(float(row.head or 0)) == steps["new"]
    assert float(row.head or 0) / float(row.base or 1) - 1 == pytest.approx(row.change)


def test_a_break_even_of_next_to_no_saving_is_told_and_not_decided():
    shares = (1.2, 1 / 1.2, 1.1, 1 / 1.1, 1.0001)
    rows = [
        trial(build=build, latency_ns=10.0 * MS, control_latency_ns=10.0 * MS * share)
        for build, order in (("old", 1), ("new", -1))
        for share in shares[::order]
    ]
    row = row_of(compare_builds(trials_frame(rows), "old", "new"), Metric.BREAK_EVEN)
    assert row.verdict is not Verdict.REGRESSED
    assert row.visible_change is None or math.isfinite(row.visible_change)


def test_parts_add_up_to_the_change_of_speedup_exactly():
    speedup = row_of(judge(case(1.06, eager=0.97) + background()), Metric.SPEEDUP)
    assert speedup.who_moved is WhoMoved.BOTH
    assert None not in (speedup.change, speedup.eager_change, speedup.compiled_change)
    parts = np.log1p(speedup.eager_change) - np.log1p(speedup.compiled_change)
    assert np.log1p(speedup.change) == pytest.approx(parts, abs=1e-12)


def test_the_machine_is_blamed_when_the_canary_moved_as_well():
    canary = sides(CALM, [x * 1.55 for x in CALM], workload="canary-gemm", strategy="eager", runs=APART)
    comparison = judge(case(1.6, eager=1.6, runs=APART) + background(runs=APART) + canary)
    assert row_of(comparison, Metric.LATENCY).cause is CauseClass.MACHINE
    assert comparison.canary_change == pytest.approx(0.55)
    assert comparison.verdict is Verdict.INCONCLUSIVE
    assert any("set aside, machine" in sentence for sentence in comparison.sentences)


@pytest.mark.parametrize("canary", [1.0, 1.02, 1.1, 0.95])
def test_a_canary_that_moved_less_or_the_other_way_blames_nobody(canary: float):
    rows = sides(CALM, [x * canary for x in CALM], workload="canary-gemm", strategy="eager", runs=APART)
    rows += case(1.6, runs=APART) + background(runs=APART)
    assert row_of(judge(rows), Metric.LATENCY).cause is CauseClass.COMPILER


def test_what_a_canary_leaves_of_a_change_is_judged():
    """A machine that lost a fifth does not explain a model that takes 2.5 times as long."""
    canary = sides(CALM, [x * 1.22 for x in CALM], workload="canary-gemm", strategy="eager", runs=APART)
    comparison = judge(case(2.51, eager=2.51, runs=APART) + background(runs=APART) + canary)
    latency = row_of(comparison, Metric.LATENCY)
    assert (latency.verdict, latency.cause) == (Verdict.REGRESSED, CauseClass.EAGER)
    assert latency.reason.endswith("The machine's canary changed by +22.0 %, which does not explain it.")
    assert comparison.verdict is Verdict.REGRESSED


def test_a_canary_that_differs_between_sides_that_took_turns_is_not_the_machine():
    """What the machine did is in both sides; torch's own launches are part of the canary."""
    canary = sides(CALM, [x * 1.05 for x in CALM], workload="canary-launch", strategy="eager")
    comparison = judge(case(1.06, eager=1.06) + background() + canary)
    assert row_of(comparison, Metric.LATENCY).cause is CauseClass.EAGER
    assert comparison.verdict is Verdict.REGRESSED


@pytest.mark.parametrize("canary", [None, 1.0, 1.6])
def test_the_same_build_on_both_sides_is_judged_and_only_a_canary_can_blame_the_machine(
    canary: float | None,
):
    """The code under review is no part of the build."""
    rows = case(1.6, build_id="old", runs=APART) + background(build_id="old", runs=APART)
    if canary is not None:
        moved = [x * canary for x in CALM]
        canaries = sides(CALM, moved, workload="canary-gemm", strategy="eager", runs=APART)
        rows += [row | {"build_id": "old"} for row in canaries]
    base, head = (Selection(name=run, run_ids=(run,)) for run in APART)
    comparison = compare_builds(trials_frame(rows), base, head)
    latency = row_of(comparison, Metric.LATENCY)
    is_machine = canary == 1.6
    assert latency.verdict is (Verdict.INCONCLUSIVE if is_machine else Verdict.REGRESSED)
    assert latency.cause is (CauseClass.MACHINE if is_machine else None)
    assert comparison.verdict is (Verdict.INCONCLUSIVE if is_machine else Verdict.REGRESSED)


def test_several_components_that_changed_at_once_are_listed_and_none_is_named():
    comparison = judge(case(driver="590.2") + background(driver="590.2"))
    assert comparison.changed_components == ("torch", "driver")
    assert "torch and driver changed at once, so their effects cannot be told apart." in comparison.sentences


def test_one_trial_a_side_is_never_a_verdict_but_may_be_suspected_by_its_own_history():
    past = [
        trial("bert", build=f"night-{i}", run_id=f"night-{i}", latency_ns=10 * MS * (1 + 0.005 * (-1) ** i))
        for i in range(24)
    ]
    alone = judge(case(1.2, trials=1))
    assert row_of(alone, Metric.LATENCY).verdict is Verdict.INCONCLUSIVE
    assert not row_of(alone, Metric.LATENCY).suspected
    latency = row_of(judge(case(1.2, trials=1), history=trials_frame(past)), Metric.LATENCY)
    assert latency.verdict is Verdict.INCONCLUSIVE
    assert latency.suspected
    assert latency.reason.startswith("1 trial on the smaller side is never a verdict")
    calm = row_of(judge(case(1.005, trials=1), history=trials_frame(past)), Metric.LATENCY)
    assert not calm.suspected


def test_two_trials_a_side_suffice_only_with_a_long_history():
    def past(nights: int) -> list[dict[str, Any]]:
        return [
            trial("bert", build="old", run_id=f"night-{i}", latency_ns=10 * MS * (1 + 0.003 * (-1) ** j))
            for i in range(nights)
            for j in range(2)
        ]

    rows = case(1.15, trials=2)
    assert row_of(judge(rows), Metric.LATENCY).verdict is Verdict.INCONCLUSIVE
    assert row_of(judge(rows, history=trials_frame(past(19))), Metric.LATENCY).verdict is Verdict.INCONCLUSIVE
    assert row_of(judge(rows, history=trials_frame(past(20))), Metric.LATENCY).verdict is Verdict.REGRESSED


def test_sides_from_different_runs_carry_the_variance_between_runs():
    together = row_of(judge(case(1.02)), Metric.LATENCY)
    apart = row_of(judge(case(1.02, runs=("R1", "R2"))), Metric.LATENCY)
    assert apart.design is Design.SEPARATE_RUNS
    assert apart.interval[1] - apart.interval[0] > together.interval[1] - together.interval[0]


def test_compile_cost_names_its_cache_state_and_memory_its_own_threshold():
    comparison = judge(case(trial_compile_cost_ns=9.5e9, peak_bytes=int(1.04 * 2**30)) + background())
    cost, memory = row_of(comparison, Metric.COMPILE_COST), row_of(comparison, Metric.PEAK_MEMORY)
    assert (cost.verdict, cost.case.cache) == (Verdict.REGRESSED, "cold")
    assert memory.verdict is not Verdict.REGRESSED  # 4 % is below memory's minimum effect


def test_eager_cases_have_a_latency_and_a_pass_set_only():
    rows = sides(CALM, [x * 1.1 for x in CALM], strategy="eager")
    comparison = judge(rows)
    assert {row.metric for row in comparison.rows} == {Metric.LATENCY, Metric.NUMERICS}
    assert row_of(comparison, Metric.LATENCY).cause is CauseClass.EAGER


def test_failed_suspect_and_wrong_trials_enter_no_time():
    bad = [
        trial(build="new", latency_ns=90 * MS, numerics_status="fail"),
        trial(build="new", latency_ns=90 * MS, suspect=True),
        trial(build="new", status="failed", failure_kind="timeout", latency_ns=None),
    ]
    latency = row_of(judge(case() + bad), Metric.LATENCY)
    assert latency.trials == (5, 5)
    assert latency.verdict is Verdict.UNCHANGED


def test_thresholds_of_one_workload_move_its_verdict_only():
    rows = case(1.06) + case(1.06, workload="mlp") + background()
    policy = Policy(overrides=(Override(workload="bert", minimum_effect=0.2, unchanged_margin=0.2),))
    comparison = judge(rows, policy)
    assert row_of(comparison, Metric.LATENCY).verdict is Verdict.UNCHANGED
    assert row_of(comparison, Metric.LATENCY, "mlp").verdict is Verdict.REGRESSED
    assert comparison.to_json()["policy"]["overrides"][0]["minimum_effect"] == 0.2


FLIPPED = {Verdict.REGRESSED: Verdict.IMPROVED, Verdict.IMPROVED: Verdict.REGRESSED}
factors = st.floats(min_value=0.9, max_value=1.12)
seeds = st.integers(min_value=0, max_value=10_000)


@FEW
@given(st.lists(st.tuples(factors, factors), min_size=1, max_size=4), st.integers(1, 5), seeds)
def test_swapping_base_and_head_flips_regressed_and_improved(
    changes: list[tuple[float, float]], trials: int, seed: int
):
    rows = [
        row
        for i, (compiled, eager) in enumerate(changes)
        for row in case(compiled, eager=eager, workload=f"w{i}", trials=trials, seed=seed)
    ]
    table = trials_frame(rows)
    forth, back = compare_builds(table, "old", "new"), compare_builds(table, "new", "old")
    assert verdicts(back) == {key: FLIPPED.get(v, v) for key, v in verdicts(forth).items()}


@FEW
@given(factors, st.sampled_from([1e-3, 0.37, 1024.0]), seeds)
def test_measuring_in_other_units_changes_no_verdict(change: float, scale: float, seed: int):
    table = trials_frame(case(change, seed=seed) + background(3, seed=seed))
    scaled = table.assign(
        **{
            name: table[name] * scale
            for name in ("latency_ns", "control_latency_ns", "trial_compile_cost_ns")
        }
    )
    assert verdicts(compare_builds(scaled, "old", "new")) == verdicts(compare_builds(table, "old", "new"))


@FEW
@given(factors, factors, st.integers(3, 6), st.floats(0.001, 0.02), seeds)
def test_an_unrelated_case_never_turns_unchanged_into_regressed(
    change: float, other: float, trials: int, noise: float, seed: int
):
    rows = case(1 + (change - 1) / 4, trials=trials, noise=noise, seed=seed) + background(2, seed=seed)
    more = rows + case(other, workload="unrelated", trials=trials, noise=noise, seed=seed)
    before, after = verdicts(judge(rows)), verdicts(judge(more))
    for key, verdict in before.items():
        if verdict is Verdict.UNCHANGED:
            assert after[key] in (Verdict.UNCHANGED, Verdict.INCONCLUSIVE)


@FEW
@given(st.permutations(list(range(3))), seeds)
def test_the_order_of_cases_changes_nothing(order: list[int], seed: int):
    blocks = [
        case(1.05, workload="a", seed=seed),
        case(workload="b", seed=seed),
        case(0.9, workload="c", seed=seed),
    ]
    straight = [row for block in blocks for row in block]
    mixed = [row for i in order for row in blocks[i]]
    assert judge(mixed).rows == judge(straight).rows


@pytest.mark.parametrize(
    ("compiled", "eager", "said"),
    [
        (1.0, 1.0, "Latency: no slowdown shown in 10 cases."),
        (1.0, 1.2, "Latency: 1 of 10 cases slower. Only eager code slowed."),
        (1.2, 1.2, "Latency: 2 of 10 cases slower. Compiled and eager code moved."),
    ],
)
def test_who_got_slower_is_said_of_compiled_and_eager_cases(compiled: float, eager: float, said: str):
    rows = case(compiled) + sides(CALM, [x * eager for x in CALM], strategy="eager")
    assert said in judge(rows + background()).sentences


def test_each_part_of_speedup_is_held_to_the_whole_level():
    """Eager's p lies between half the level and the level: a second family would hide that it moved."""
    base, head = np.array([-4, -2, 0, 2, 4]) / 100, 0.051 + np.array([2, -4, 4, 0, -2]) / 100
    assert 0.025 < stats.ttest_ind(base, head).pvalue < 0.05
    rows = []
    for old, new, jitter in zip(np.exp(base), np.exp(head), CALM, strict=True):
        rows.append(trial(control_latency_ns=15 * MS * old, latency_ns=jitter * MS))
        rows.append(trial(build="new", control_latency_ns=15 * MS * new, latency_ns=2 * jitter * MS))
    assert row_of(judge(rows), Metric.LATENCY).who_moved is WhoMoved.BOTH
