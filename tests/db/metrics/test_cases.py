"""Cases from trials: golden numbers, what counts, and what must hold for any frame."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pandas import DataFrame
from pandas.testing import assert_frame_equal

from compilewatch.db.columns.case import CASE_COLUMNS
from compilewatch.db.metrics.break_even import Never, steps_to_break_even
from compilewatch.db.metrics.cases import summarize_cases
from tests.db.metrics.frames import START, trial, trials_frame
from tests.few_examples import FEW


def one(*rows: dict[str, Any]) -> pd.Series:
    cases = summarize_cases(trials_frame(list(rows)))
    assert len(cases) == 1
    return cases.iloc[0]


def compiled(latency: float, control: float, cost: float = 1000.0, **fields: Any) -> dict[str, Any]:
    return trial(
        latency_ns=latency, control_latency_ns=control, trial_compile_cost_ns=cost, **({"graphs": 1} | fields)
    )


def test_a_case_by_hand() -> None:
    names = (
        *("peak_bytes", "control_peak_bytes", "time_to_first_result_ns"),
        *("process_tree_cpu_ns", "first_call_cpu_ns"),
    )
    trials = (
        ((50.0, 100.0, 900.0), (10, 20, 7000, 20, 12)),
        ((40.0, 120.0, 1100.0), (10, 10, 5000, 10, 5)),
        ((60.0, 90.0, 1000.0), (10, 30, 6000, 30, 19)),
    )
    row = one(*(compiled(*times, **dict(zip(names, rest, strict=True))) for times, rest in trials))
    assert (row["status"], row["trials"], row["counted_trials"], row["failed_trials"]) == ("ok", 3, 3, 0)
    latency, eager = (50 * 40 * 60) ** (1 / 3), (100 * 120 * 90) ** (1 / 3)
    speedup = eager / latency
    assert (row["latency_ns"], row["control_latency_ns"]) == pytest.approx((latency, eager))
    assert row["control"] == "in_process"
    logs = [math.log(50), math.log(40), math.log(60)]
    half = 4.302653 * np.std(logs, ddof=1) / math.sqrt(3)  # t(0.975, 2)
    assert row["latency_low_ns"] == pytest.approx(latency * math.exp(-half), rel=1e-6)
    assert row["latency_high_ns"] == pytest.approx(latency * math.exp(half), rel=1e-6)
    assert row["speedup"] == pytest.approx(speedup)  # of 2, 3, 1.5
    assert row["interval_method"] == "student_t"
    logs = [math.log(2), math.log(3), math.log(1.5)]
    half = 4.302653 * np.std(logs, ddof=1) / math.sqrt(3)
    assert row["speedup_low"] == pytest.approx(speedup * math.exp(-half), rel=1e-6)
    assert row["speedup_high"] == pytest.approx(speedup * math.exp(half), rel=1e-6)
    cost = (900 * 1100 * 1000) ** (1 / 3)
    half = 4.302653 * np.std(np.log([900, 1100, 1000]), ddof=1) / math.sqrt(3)
    assert row["compile_cost_ns"] == pytest.approx(cost)
    assert row["compile_cost_low_ns"] == pytest.approx(cost * math.exp(-half), rel=1e-6)
    assert row["compile_cost_high_ns"] == pytest.approx(cost * math.exp(half), rel=1e-6)
    assert row["pooled_eager_ns"] == pytest.approx(eager)
    steps = math.ceil(cost / (eager - latency))
    assert (row["break_even"], row["break_even_steps"]) == ("steps", steps)
    assert row["break_even_time_ns"] == pytest.approx(cost + steps * latency)
    assert row["break_even_interval"] == "bounded"  # savings of 51, 69 and 34
    assert row["throughput_per_s"] == pytest.approx(8e9 / latency)
    assert row["memory_ratio"] == pytest.approx(row["control_peak_bytes"] / row["peak_bytes"])
    others = row[["time_to_first_result_ns", "process_tree_cpu_ns", "first_call_cpu_ns"]].tolist()
    assert others == pytest.approx([5943.921952763, 6000 ** (1 / 3), 1140 ** (1 / 3)])
    assert pd.isna(row["first_call_instructions"])


def test_what_failed_or_is_wrong_counts_in_nothing() -> None:
    row = one(
        compiled(50.0, 100.0),
        compiled(1.0, 100.0, numerics_status="fail", peak_bytes=1),
        compiled(2.0, 100.0, status="failed", failure_kind="crash", peak_bytes=2),
        trial(status="failed", failure_kind="wrong_result", numerics_status="fail"),
    )
    assert (row["status"], row["trials"], row["failed_trials"], row["counted_trials"]) == ("mixed", 4, 3, 1)
    assert (row["latency_ns"], row["speedup"]) == (50, 2)
    assert pd.isna(row["peak_bytes"])
    assert (row["failure_kind"], row["numerics_status"]) == ("wrong_result", "fail")


def test_a_case_of_failures_has_no_number() -> None:
    row = one(trial(status="failed", failure_kind="timeout", numerics_status=None))
    assert (row["status"], row["failure_kind"]) == ("failed", "timeout")
    assert row["break_even"] == "unknown"
    assert row["break_even_reason"] == "no trial with a latency"
    assert row[["latency_ns", "speedup", "compile_cost_ns", "peak_bytes", "numerics_status"]].isna().all()


def test_a_suspect_trial_counts_in_memory_but_in_no_time() -> None:
    row = one(compiled(50.0, 100.0, peak_bytes=10), compiled(500.0, 100.0, 9e9, suspect=True, peak_bytes=30))
    assert (row["status"], row["suspect_trials"], row["counted_trials"]) == ("ok", 1, 1)
    assert (row["latency_ns"], row["speedup"], row["compile_cost_ns"]) == (50, 2, 1000)
    assert row["peak_bytes"] == pytest.approx(300**0.5)
    only = one(compiled(500.0, 100.0, suspect=True))
    assert only["status"] == "ok"
    assert pd.isna(only["latency_ns"])


def test_unknown_suspicion_is_no_suspicion() -> None:
    assert one(compiled(50.0, 100.0, suspect=None))["counted_trials"] == 1


def test_eager_is_its_own_reference() -> None:
    row = one(trial(strategy="eager", latency_ns=100.0, trial_compile_cost_ns=5.0, graphs=0))
    assert (row["speedup"], row["speedup_low"], row["speedup_high"]) == (1, 1, 1)
    assert (row["interval_method"], row["break_even_reason"]) == ("reference", "eager is the reference")
    assert pd.isna(row["compile_cost_ns"])
    assert not row["nothing_compiled"]
    failed = one(trial(strategy="eager", status="failed", failure_kind="crash"))
    assert pd.isna(failed["speedup"])


def test_without_a_control_the_eager_trials_of_the_same_run_stand_in() -> None:
    rows = [
        trial(strategy="eager", latency_ns=100.0, peak_bytes=30),
        trial(strategy="eager", latency_ns=110.0, peak_bytes=30),
        trial(strategy="eager", latency_ns=900.0, run_id="R2"),
        trial(strategy="eager", latency_ns=1.0, suspect=True),
        trial(latency_ns=50.0, peak_bytes=10, trial_compile_cost_ns=550.0),
        trial(latency_ns=50.0, peak_bytes=10, trial_compile_cost_ns=550.0),
    ]
    cases = summarize_cases(trials_frame(rows)).set_index("strategy")
    row = cases.loc["default"]
    assert (row["control"], row["control_latency_ns"]) == ("same_run", pytest.approx(11_000**0.5))
    assert row["speedup"] == pytest.approx(11_000**0.5 / 50)
    assert (row["interval_method"], row["break_even_steps"]) == ("none", 7)  # 215 ns in all runs
    assert row["break_even_interval"] == "none"
    assert pd.isna(row["speedup_low"])
    assert row["memory_ratio"] == 3
    assert cases.loc["eager", "control"] == "none"


def test_never_is_told_with_its_reason_and_its_interval() -> None:
    row = one(*(compiled(100.0 + noise, 50.0, 1000.0 + noise) for noise in (0, 1, 2)))
    assert (row["break_even"], row["break_even_interval"]) == ("never", "never")
    assert row["break_even_reason"] == "it is not faster than eager (0.495x)"
    assert row[["break_even_steps", "break_even_low", "break_even_high", "break_even_time_ns"]].isna().all()


def test_nothing_compiled_is_flagged_only_where_something_should_have_been() -> None:
    assert one(compiled(50.0, 50.0, graphs=0))["nothing_compiled"]
    assert not one(compiled(50.0, 50.0, graphs=None))["nothing_compiled"]
    assert not one(compiled(50.0, 50.0, graphs=0, strategy_kind="aot_package"))["nothing_compiled"]


def test_counts_are_the_worst_and_numerics_the_most_serious() -> None:
    row = one(
        compiled(1.0, 1.0, graph_breaks=2, recompiles=0, numerics_status="pass"),
        compiled(1.0, 1.0, graph_breaks=3, recompiles=1, numerics_status="degenerate"),
        compiled(1.0, 1.0, graph_breaks=None, recompiles=0, numerics_status="not_checked"),
    )
    assert (row["graphs"], row["graph_breaks"], row["recompiles"]) == (1, 3, 1)
    assert row["numerics_status"] == "degenerate"
    unchecked = one(compiled(1.0, 1.0, numerics_status="not_checked"), compiled(1.0, 1.0))
    assert unchecked["numerics_status"] == "pass"


def test_labels_are_those_of_the_newest_trial() -> None:
    newest = compiled(1.0, 1.0, started_at=START.replace(year=2027), build_label="after", shape={"n": 2})
    row = one(newest, compiled(1.0, 1.0, build_label="before", shape={"n": 1}))
    assert (row["build_label"], row["shape"]) == ("after", {"n": 2})
    assert row["last_started_at"] == START.replace(year=2027)


def test_a_latency_of_zero_is_unknown_not_infinitely_fast() -> None:
    row = one(compiled(0.0, 100.0), compiled(50.0, 0.0))
    assert row["counted_trials"] == 1
    assert row["latency_ns"] == 50
    assert pd.isna(row["speedup"])


def test_machines_builds_workloads_and_strategies_are_kept_apart() -> None:
    rows = [
        compiled(1.0, 1.0, machine=machine, torch=torch, workload=workload, strategy=strategy)
        for machine in ("a", "b")
        for torch in ("2.12.0", "2.13.0")
        for workload in ("x", "y")
        for strategy in ("default", "max-autotune")
    ]
    assert len(summarize_cases(trials_frame(rows))) == 16


def test_an_empty_frame_has_the_columns_and_types_of_a_full_one() -> None:
    empty, full = summarize_cases(trials_frame([])), summarize_cases(trials_frame([compiled(1.0, 2.0)]))
    assert len(empty) == 0
    assert list(empty.columns) == list(CASE_COLUMNS)
    assert empty.dtypes.equals(full.dtypes)
    assert dict(full.dtypes.astype(str)) == CASE_COLUMNS
    assert summarize_cases(DataFrame()).dtypes.equals(full.dtypes)


def test_a_missing_column_is_an_error_not_a_blank() -> None:
    with pytest.raises(KeyError, match="trial_compile_cost_ns"):
        summarize_cases(trials_frame([compiled(1.0, 2.0)]).drop(columns="trial_compile_cost_ns"))


# medians of whole nanoseconds: nothing lies between 0 and one half
_amounts = st.none() | st.just(0.0) | st.floats(0.5, 1e12)
_trials = st.builds(
    trial,
    workload=st.sampled_from(["a", "b"]),
    strategy=st.sampled_from(["eager", "default"]),
    run_id=st.sampled_from(["R1", "R2"]),
    status=st.sampled_from(["ok", "ok", "ok", "failed"]),
    failure_kind=st.none() | st.sampled_from(["crash", "timeout"]),
    suspect=st.none() | st.booleans(),
    numerics_status=st.sampled_from([None, "pass", "fail", "not_checked"]),
    latency_ns=_amounts,
    control_latency_ns=_amounts,
    trial_compile_cost_ns=st.none() | st.floats(-1e9, 1e12),
    items_per_iteration=st.none() | st.just(8.0),
    peak_bytes=st.none() | st.integers(0, 2**40),
    control_peak_bytes=st.none() | st.integers(0, 2**40),
    graphs=st.none() | st.integers(0, 3),
)


# A failure would take minutes to be made smaller.
@settings(FEW, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(st.lists(_trials, max_size=16), st.randoms(use_true_random=False))
def test_any_frame_gives_the_same_cases_in_any_order_and_no_hidden_nan(
    rows: list[dict[str, Any]], order: random.Random
) -> None:
    shuffled = order.sample(rows, len(rows))
    cases = summarize_cases(trials_frame(rows))
    for name, dtype in CASE_COLUMNS.items():
        if dtype in ("Float64", "Int64"):
            known = cases[name].dropna().to_numpy(dtype=float)
            assert np.isfinite(known).all(), name
            assert not any(isinstance(value, float) and math.isnan(value) for value in cases[name].array), (
                name
            )
    assert_frame_equal(summarize_cases(trials_frame(shuffled)), cases)
    for _, row in cases.iterrows():
        _assert_consistent(row)


def _assert_consistent(row: pd.Series) -> None:
    for value, low, high in (
        ("latency_ns", "latency_low_ns", "latency_high_ns"),
        ("speedup", "speedup_low", "speedup_high"),
        ("compile_cost_ns", "compile_cost_low_ns", "compile_cost_high_ns"),
        ("break_even_steps", "break_even_low", "break_even_high"),
    ):
        if pd.notna(row[value]) and pd.notna(row[low]):
            assert row[low] <= row[value]
        if pd.notna(row[value]) and pd.notna(row[high]):
            assert row[value] <= row[high]
    if row["break_even"] == "unknown":
        assert isinstance(row["break_even_reason"], str)
        return
    # On the clock of the eager that stands for all trials of the workload.
    eager_ns = row["pooled_eager_ns"]
    steps = steps_to_break_even(row["compile_cost_ns"], eager_ns / row["speedup"], eager_ns)
    if isinstance(steps, Never):
        assert row["break_even"] == "never"
        assert pd.isna(row["break_even_steps"])
    else:
        assert (row["break_even"], row["break_even_steps"]) == ("steps", steps)


def test_a_case_does_not_depend_on_its_neighbours() -> None:
    generator = np.random.default_rng(1)
    rows = [
        compiled(float(generator.lognormal(10, 0.1)), 40_000.0, workload=f"w{number % 3}")
        for number in range(66)
    ]
    together = summarize_cases(trials_frame(rows))
    alone = summarize_cases(trials_frame([row for row in rows if row["workload"] == "w1"]))
    assert_frame_equal(together[together["workload"] == "w1"].reset_index(drop=True), alone)


def test_eager_of_older_code_is_no_eager_of_a_case():
    """Measured again was the strategy alone: its eager is the control beside it."""
    rows = [trial(strategy="eager", latency_ns=100_000.0, code_hash="old") for _ in range(3)]
    rows += [compiled(200_000.0, 400_000.0, code_hash="new") for _ in range(3)]
    cases = summarize_cases(trials_frame(rows)).set_index("strategy")
    assert cases.loc["default", "pooled_eager_ns"] == pytest.approx(400_000.0)


@pytest.mark.parametrize("apart", ["conditions_id", "code_hash"])
@pytest.mark.parametrize("newest", ["other", None])
def test_trials_of_other_settings_or_code_are_not_averaged_with_the_newest_ones(apart, newest):
    rows = [trial(latency_ns=100.0, **{apart: "suite"}) for _ in range(3)]
    rows += [trial(latency_ns=200.0, **{apart: newest}) for _ in range(2)]
    rows += [trial("cnn", latency_ns=50.0, **{apart: "suite"})]
    cases = summarize_cases(trials_frame(rows)).set_index("workload")
    assert cases.loc["bert", ["latency_ns", "trials"]].tolist() == [200.0, 2]
    assert cases.loc["cnn", ["latency_ns", "trials"]].tolist() == [50.0, 1]
