"""A GPU's cases: three clocks judged apart, in classes, and never against another method of timing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compilewatch.db import units
from compilewatch.db.judge.compare.upgrade import compare_builds
from compilewatch.db.judge.results import Comparison, Row
from compilewatch.db.records.vocabulary import Bound, CauseClass, Metric, Verdict, WhoMoved
from tests.db.judge.frames import MS, trial
from tests.db.metrics.frames import trials_frame

US = 1_000.0
APART = ("R1", "R2")


def gpu_case(
    workload: str = "bert",
    *,
    device_us: float = 200.0,
    issue_us: float = 400.0,
    device: float = 1.0,
    eager_device: float = 1.0,
    host: float = 1.0,
    clock: float | None = None,
    trials: int = 5,
    host_noise: float = 0.01,
    method: str = "gated",
    head_method: str | None = None,
    runs: tuple[str, str] = ("R1", "R1"),
    strategy: str = "default",
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Trials of one case timed on both clocks; `device`, `eager_device` and `host` are factors of the head
    side, `clock` that of its SM clock.
    """
    generator = np.random.default_rng([seed, *workload.encode()])
    rows = []
    for _ in range(trials):
        for build, run, head in (("old", runs[0], False), ("new", runs[1], True)):
            calm = np.exp(0.003 * generator.standard_normal(2))
            mood = np.exp(host_noise * generator.standard_normal(2))
            own = device_us * US * calm[0] * (device if head else 1.0)
            control = 1.5 * device_us * US * calm[1] * (eager_device if head else 1.0)
            issue = issue_us * US * mood[0] * (host if head else 1.0)
            eager_issue = 1.2 * issue_us * US * mood[1] * (host if head else 1.0)
            fields: dict[str, Any] = {"run_id": run, "latency_ns": max(own, issue) + 10 * US}
            if strategy != "eager":
                fields["control_latency_ns"] = max(control, eager_issue) + 10 * US
            extra = {
                "timing_method": (head_method or method) if head else method,
                "device_ns": own,
                "issue_ns": issue,
                "wall_pipelined_ns": max(own, issue),
                "control_device_ns": None if strategy == "eager" else control,
                "sm_clock_mhz": None if clock is None else 1980.0 * (clock if head else 1.0),
            }
            rows.append(trial(workload, strategy, build, **fields) | extra)
    return rows


def calm_cases(count: int = 6, **fields: Any) -> list[dict[str, Any]]:
    return [row for i in range(count) for row in gpu_case(f"calm-{i}", **fields)]


def judge(rows: list[dict[str, Any]], **options: Any) -> Comparison:
    return compare_builds(trials_frame(rows), "old", "new", **options)


def row_of(comparison: Comparison, metric: Metric, workload: str = "bert") -> Row:
    (found,) = [row for row in comparison.rows if row.workload == workload and row.metric is metric]
    return found


def test_a_slower_host_is_the_hosts_and_never_the_compilers():
    comparison = judge(gpu_case(host=1.12) + calm_cases())
    latency, device, issue = (
        row_of(comparison, metric) for metric in (Metric.LATENCY, Metric.DEVICE_TIME, Metric.ISSUE_TIME)
    )
    assert (latency.verdict, latency.cause) == (Verdict.REGRESSED, CauseClass.HOST)
    assert (issue.verdict, issue.cause, issue.who_moved) == (Verdict.REGRESSED, CauseClass.HOST, None)
    assert device.verdict is Verdict.UNCHANGED
    assert "The device did not move (" in latency.reason
    assert ", the host did (+1" in latency.reason
    assert latency.issue_change == pytest.approx(0.12, abs=0.03)
    assert {row.cause for row in comparison.rows if row.workload == "bert"} == {None, CauseClass.HOST}
    assert (
        "Device time of 7 cases: 7 unchanged. Host issue time: 1 slower, 6 unchanged." in comparison.sentences
    )


def test_slower_code_on_the_device_is_the_compilers_and_the_host_is_not_blamed():
    slow = {"device_us": 900.0, "issue_us": 300.0}
    comparison = judge(gpu_case(device=1.06, **slow) + calm_cases(**slow))
    latency, device = (row_of(comparison, metric) for metric in (Metric.LATENCY, Metric.DEVICE_TIME))
    assert (latency.verdict, latency.cause) == (Verdict.REGRESSED, CauseClass.COMPILER)
    assert (device.verdict, device.cause) == (Verdict.REGRESSED, CauseClass.COMPILER)
    assert device.who_moved is WhoMoved.COMPILED
    assert device.compiled_change == pytest.approx(0.06, abs=0.01)
    assert "The host did not" in latency.reason
    assert (
        row_of(comparison, Metric.DEVICE_SPEEDUP).reason == "Device speedup fell because compiled got slower."
    )


def test_device_time_of_a_host_bound_case_moves_though_nobody_waits_for_it():
    comparison = judge(gpu_case(device=1.06) + calm_cases())
    assert row_of(comparison, Metric.DEVICE_TIME).cause is CauseClass.COMPILER
    assert row_of(comparison, Metric.LATENCY).verdict is not Verdict.REGRESSED


def test_device_time_that_eager_shares_is_not_the_compilers():
    comparison = judge(gpu_case(device=1.06, eager_device=1.06) + calm_cases())
    assert row_of(comparison, Metric.DEVICE_TIME).cause is CauseClass.EAGER


def test_every_row_says_what_the_case_waits_for():
    comparison = judge(gpu_case() + gpu_case("vit", device_us=900.0))
    assert {row.bound for row in comparison.rows if row.workload == "bert"} == {Bound.HOST}
    assert {row.bound for row in comparison.rows if row.workload == "vit"} == {Bound.DEVICE}
    ungated = judge([row | {"device_ns": None} for row in gpu_case(method="ungated")])
    assert {row.bound for row in ungated.rows} == {None}
    assert "Ungated: these times hold what the GPU waited for the host." in ungated.sentences


def test_gated_times_are_never_compared_with_ungated_ones():
    comparison = judge(gpu_case(head_method="ungated") + calm_cases(1))
    (left,) = comparison.left_out
    assert (left.workload, left.verdict, left.cause) == ("bert", Verdict.NOT_COMPARABLE, CauseClass.METHOD)
    assert left.reason == "differs in timing method (gated against ungated)"
    assert {row.workload for row in comparison.rows} == {"calm-0"}


def test_single_trials_timed_otherwise_are_left_out_and_enter_no_figure():
    rows = gpu_case() + calm_cases(1)
    stray = gpu_case(method="ungated", device=5.0, trials=1, seed=7)[0] | {"latency_ns": 90 * MS}
    comparison = judge([*rows, stray])
    (left,) = comparison.left_out
    assert (left.verdict, left.fields) == (Verdict.NOT_COMPARABLE, ("timing_method",))
    assert left.reason == "differs in timing method (ungated against gated)"
    assert row_of(comparison, Metric.LATENCY) == row_of(judge(rows), Metric.LATENCY)
    assert comparison.geomean == judge(rows).geomean


def test_what_both_sides_measured_gated_and_ungated_is_one_case():
    gated = gpu_case(trials=3) + calm_cases(1)
    ungated = gpu_case(method="ungated", device=5.0, trials=5, seed=7)
    comparison = judge([*gated, *ungated])
    assert row_of(comparison, Metric.LATENCY) == row_of(judge(gated), Metric.LATENCY)
    assert {row.case.timing_method for row in comparison.rows if row.workload == "bert"} == {"gated"}
    (left,) = comparison.left_out
    assert (left.workload, left.fields) == ("bert", ("timing_method",))
    tally = comparison.tally
    assert tally.compared == comparison.matched == comparison.total - 1


def test_a_past_that_was_timed_otherwise_says_nothing_of_todays_noise():
    past = [
        row | {"build_id": "past", "run_id": f"P{i}", "latency_ns": (10 + 5 * (i % 2)) * MS}
        for i in range(20)
        for row in gpu_case(method="ungated", trials=1, seed=i)[:1]
    ]
    rows = gpu_case(host=1.12) + calm_cases()
    with_past = judge(rows, history=trials_frame(past + rows))
    assert row_of(with_past, Metric.LATENCY) == row_of(judge(rows), Metric.LATENCY)


def canaries(launch: float = 1.0, gemm: float = 1.0) -> list[dict[str, Any]]:
    fields: dict[str, Any] = {"strategy": "eager", "runs": APART, "host_noise": 0.001}
    return [
        *gpu_case("canary-gemm", device=gemm, device_us=900.0, issue_us=20.0, **fields),
        *gpu_case("canary-copy", device=gemm, device_us=900.0, issue_us=20.0, **fields),
        *gpu_case("canary-launch", host=launch, device_us=50.0, issue_us=900.0, **fields),
    ]


def test_the_launch_canary_speaks_for_the_host_and_two_others_do_not_outvote_it():
    rows = gpu_case(host=1.12, runs=APART) + calm_cases(runs=APART) + canaries(launch=1.11)
    comparison = judge(rows)
    assert comparison.host_canary_change == pytest.approx(0.11, abs=0.01)
    assert comparison.canary_change == pytest.approx(0.0, abs=0.01)
    assert row_of(comparison, Metric.LATENCY).cause is CauseClass.MACHINE
    assert row_of(comparison, Metric.ISSUE_TIME).cause is CauseClass.MACHINE
    assert any("set aside, machine (its canary +1" in sentence for sentence in comparison.sentences)


def test_a_host_canary_explains_nothing_on_the_device():
    rows = gpu_case(device=1.6, runs=APART) + calm_cases(runs=APART) + canaries(launch=1.2)
    assert row_of(judge(rows), Metric.DEVICE_TIME).cause is CauseClass.COMPILER
    slow = gpu_case(device=1.6, runs=APART) + calm_cases(runs=APART) + canaries(gemm=1.55)
    assert row_of(judge(slow), Metric.DEVICE_TIME).cause is CauseClass.MACHINE


def test_device_time_that_only_the_clock_stretched_is_the_machines_and_told_in_cycles():
    rows = gpu_case(device=1.05, clock=1 / 1.05) + calm_cases(clock=1.0)
    row = row_of(judge(rows), Metric.DEVICE_TIME)
    assert (row.verdict, row.cause) == (Verdict.INCONCLUSIVE, CauseClass.MACHINE)
    assert row.cycles_change == pytest.approx(0.0, abs=0.01)
    assert "In cycles " in row.reason
    assert f"the SM clock changed by {units.MINUS}4." in row.reason
    steady = row_of(judge(gpu_case(device=1.05, clock=1.0) + calm_cases(clock=1.0)), Metric.DEVICE_TIME)
    assert (steady.cycles_change, steady.cause) == (None, CauseClass.COMPILER)


def test_identical_peaks_are_unchanged_at_two_trials_a_side():
    rows = [row | {"peak_bytes": 384 << 20} for row in gpu_case(trials=2)]
    peak = row_of(judge(rows), Metric.PEAK_MEMORY)
    assert (peak.verdict, peak.reason) == (Verdict.UNCHANGED, "Every trial of both sides has this value.")
    one = row_of(judge([row | {"peak_bytes": 384 << 20} for row in gpu_case(trials=1)]), Metric.PEAK_MEMORY)
    assert one.verdict is Verdict.INCONCLUSIVE


def test_an_undecided_case_does_not_drown_the_mean_of_the_others():
    rows = calm_cases(8, device_us=900.0)
    wild = gpu_case("wild", device_us=900.0, trials=3)
    factors = iter((1.0, 1.9, 1.1, 2.4, 0.9, 2.2))
    wild = [row | {"device_ns": row["device_ns"] * next(factors)} for row in wild]
    mean = judge(rows + wild).geomean.device_time
    assert mean.cases == 9
    assert mean.change == pytest.approx(0.0, abs=0.02)
    assert mean.interval[1] - mean.interval[0] < 0.06


def test_a_trial_that_failed_before_it_was_timed_belongs_to_its_case():
    nothing = {"timing_method": None, "latency_ns": None, "device_ns": None, "issue_ns": None}
    failed = {"status": "failed", "failure_kind": "crash", **nothing}
    rows = [row | (failed if row["build_id"] == "new" else {}) for row in gpu_case()]
    comparison = judge(rows)
    assert comparison.left_out == ()
    assert row_of(comparison, Metric.NUMERICS).verdict is Verdict.REGRESSED


def test_energy_of_a_step_is_judged_where_the_gpu_counts_it():
    def counted(head: float) -> list[dict[str, Any]]:
        rows = gpu_case() + calm_cases()
        generator = np.random.default_rng(1)
        for row in rows:
            grown = head if row["workload"] == "bert" and row["torch"] == "new" else 1.0
            row["energy_per_step_j"] = 0.2 * grown * float(np.exp(0.01 * generator.standard_normal()))
        return rows

    row = row_of(judge(counted(1.25)), Metric.ENERGY)
    assert (row.verdict, row.unit) == (Verdict.REGRESSED, "J")
    assert (row.base, row.head) == (pytest.approx(0.2, rel=0.02), pytest.approx(0.25, rel=0.02))
    assert row_of(judge(counted(1.0)), Metric.ENERGY).verdict is Verdict.UNCHANGED
