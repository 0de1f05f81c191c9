"""Speedup over trials: the mean of the trials' own ratios, and what must always hold of it."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilewatch.db.metrics.cases import case_values, summarize_cases
from tests.db.metrics.frames import trial, trials_frame
from tests.few_examples import FEW


def case(eager: Sequence[float], compiled: Sequence[float]) -> pd.Series:
    """The case of these trials: entry i of both is trial i's latency."""
    pairs = zip(eager, compiled, strict=True)
    rows = [trial(latency_ns=own, control_latency_ns=control, graphs=1) for control, own in pairs]
    return summarize_cases(trials_frame(rows)).iloc[0]


def test_it_is_the_geometric_mean_of_the_trials_own_ratios() -> None:
    # ratios 2, 1.5, 3, 1.5
    found = case([20, 30, 45, 15], [10, 20, 15, 10])
    assert found["speedup"] == pytest.approx((2 * 1.5 * 3 * 1.5) ** 0.25)
    assert found["control_latency_ns"] / found["latency_ns"] == pytest.approx(found["speedup"], rel=1e-12)


def test_pairing_removes_what_both_sides_share() -> None:
    # processes differ three times, ratios by 2 %
    found = case([100, 204, 294, 100, 200], [50, 100, 150, 50, 100])
    assert found["speedup"] == pytest.approx(2, rel=0.01)
    assert found["speedup_low"] > 1.9


def test_two_trials_have_no_interval() -> None:
    methods = [case([3.0] * n, [2.0] * n)["interval_method"] for n in (1, 2, 3, 20)]
    assert methods == ["none", "none", "student_t", "student_t"]
    one = case([3], [2])
    assert one["speedup"] == 1.5
    assert one[["speedup_low", "speedup_high"]].isna().all()


@FEW
@given(st.lists(st.tuples(st.floats(1.0, 2.0), st.floats(1.0, 2.0)), min_size=3, max_size=9))
def test_swapping_the_sides_turns_the_interval_over(pairs: list[tuple[float, float]]) -> None:
    eager, compiled = zip(*pairs, strict=True)
    there, back = case(eager, compiled), case(compiled, eager)
    assert there["speedup"] == pytest.approx(1 / back["speedup"])
    assert there["speedup_low"] == pytest.approx(1 / back["speedup_high"])
    assert there["speedup_low"] <= there["speedup"] <= there["speedup_high"]


@FEW
@given(st.lists(st.tuples(st.floats(1.0, 1e9), st.floats(1.0, 1e9)), min_size=1, max_size=7))
def test_a_speedup_is_the_quotient_of_the_latencies_beside_it(pairs: list[tuple[float, float]]) -> None:
    rows = [trial(latency_ns=own, control_latency_ns=control, graphs=1) for control, own in pairs]
    (row,) = summarize_cases(trials_frame(rows)).to_dict("records")
    assert row["control_latency_ns"] / row["latency_ns"] == pytest.approx(row["speedup"], rel=1e-9)
    (short,) = case_values(trials_frame(rows)).to_dict("records")
    assert short["speedup"] == pytest.approx(row["speedup"], rel=1e-9)
