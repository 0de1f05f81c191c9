"""Geometric means by hand, over the matched set, with who was left out."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandas import DataFrame
from scipy import stats

from compilewatch.db.errors import UnitError
from compilewatch.db.metrics.cases import summarize_cases
from compilewatch.db.metrics.eligibility import Excluded
from compilewatch.db.metrics.geomean import SideMean, geomean, geomeans_by_strategy, matched_geomeans
from compilewatch.db.metrics.groups import row_dicts
from tests.db.metrics.frames import trial, trials_frame

_positive = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=30)


def test_by_hand() -> None:
    assert geomean([1, 2, 4]) == pytest.approx(2)
    assert geomean([3]) == pytest.approx(3)
    assert geomean([]) is None


@given(_positive)
def test_the_mean_of_reciprocals_is_the_reciprocal_and_order_does_not_matter(values: list[float]) -> None:
    mean = geomean(values)
    assert mean is not None
    assert geomean([1 / value for value in values]) == pytest.approx(1 / mean)
    assert geomean(values[::-1]) == mean


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf])
def test_what_did_not_pass_cannot_slip_in(bad: float) -> None:
    with pytest.raises(UnitError):
        geomean([1, bad])


def passing(workload: str, speedup: float, **fields: object) -> dict[str, object]:
    return trial(workload, latency_ns=100.0, control_latency_ns=100.0 * speedup, **({"graphs": 1} | fields))


def cases(*rows: dict[str, object]) -> DataFrame:
    return summarize_cases(trials_frame(list(rows)))


def test_a_mean_does_not_rise_because_a_slow_case_fails() -> None:
    base = cases(passing("a", 4), passing("b", 1), trial("a", "eager", latency_ns=100.0))
    head = cases(passing("a", 4), trial("b", status="failed", failure_kind="crash"))
    found = matched_geomeans({"base": base, "head": head})
    assert found.matched_cases == 1
    assert found.sides["base"] == SideMean(pytest.approx(4), pytest.approx(2), 2)
    assert found.sides["head"] == SideMean(pytest.approx(4), pytest.approx(4), 1)
    assert found.left_out == (Excluded("b", "default", "failed: crash", "head"),)


def test_every_reason_is_told() -> None:
    base = cases(
        passing("mixed", 2),
        passing("uncompiled", 2),
        passing("alone", 2),
        passing("unpaired", 2),
        passing("ok", 2),
    )
    head = cases(
        passing("mixed", 2),
        trial("mixed", status="failed", failure_kind="device_lost"),
        passing("uncompiled", 2, graphs=0),
        trial("unpaired", latency_ns=5.0, graphs=1),
        passing("ok", 8),
        passing("new", 8),
    )
    found = matched_geomeans({"base": base, "head": head})
    assert {(each.workload, each.side, each.reason) for each in found.left_out} == {
        ("mixed", "head", "failed in some trials: device lost"),
        ("uncompiled", "head", "nothing was compiled"),
        ("alone", "head", "not measured"),
        ("unpaired", "head", "no speedup"),
        ("new", "base", "not measured"),
    }
    assert (found.matched_cases, found.sides["head"].matched) == (1, pytest.approx(8))
    assert found.sides["head"].naive_cases == 4


def test_strategies_are_matched_by_workload() -> None:
    frame = cases(
        passing("a", 2),
        passing("b", 8),
        passing("a", 4, strategy="max-autotune"),
        passing("c", 9, strategy="max-autotune"),
    )
    sides = {str(name): rows for name, rows in frame.groupby("strategy")}
    found = matched_geomeans(sides, on=("workload_id",))
    assert found.sides["default"] == SideMean(pytest.approx(2), pytest.approx(4), 2)
    assert found.sides["max-autotune"] == SideMean(pytest.approx(4), pytest.approx(6), 2)
    assert {(each.workload, each.side) for each in found.left_out} == {
        ("b", "max-autotune"),
        ("c", "default"),
    }


_TRIALS = {"a": (2.0, 2.1, 2.3), "b": (1.0, 1.1, 1.05, 1.2)}


def _rows_of(strategy: str, *workloads: str) -> list[dict[str, object]]:
    of = [(workload, speedup) for workload in workloads for speedup in _TRIALS[workload]]
    return [passing(workload, speedup, strategy=strategy) for workload, speedup in of]


def test_the_interval_of_a_mean_is_welchs_over_the_trials_of_its_cases() -> None:
    ((task, means),) = geomeans_by_strategy(row_dicts(cases(*_rows_of("default", "a", "b"))))
    assert (task, means.matched_cases) == ("inference", 2)
    logs = [[math.log(each) for each in of] for of in _TRIALS.values()]
    # the mean of two means is half their sum, which is a difference to one of opposite sign
    half_sum = stats.ttest_ind(logs[0], [-each for each in logs[1]], equal_var=False)
    low, high = half_sum.confidence_interval(0.95)
    assert means.sides["default"].matched_interval == pytest.approx((math.exp(low / 2), math.exp(high / 2)))
    alone = cases(*_rows_of("default", "a"))
    ((_, one),) = geomeans_by_strategy(row_dicts(alone))
    expected = (alone.iloc[0]["speedup_low"], alone.iloc[0]["speedup_high"])
    assert one.sides["default"].matched_interval == pytest.approx(expected)


def test_a_case_of_two_trials_leaves_the_mean_without_an_interval() -> None:
    rows = [*_rows_of("default", "a"), passing("c", 2), passing("c", 3)]
    ((_, means),) = geomeans_by_strategy(row_dicts(cases(*rows)))
    assert (means.matched_cases, means.sides["default"].matched_interval) == (2, None)


def test_strategies_of_a_task_share_the_workloads_that_passed_with_all_of_them() -> None:
    frame = cases(*_rows_of("default", "a", "b"), *_rows_of("max-autotune", "a"), trial("a", "eager"))
    ((_, means),) = geomeans_by_strategy(row_dicts(frame))
    assert (list(means.sides), means.matched_cases) == (["default", "max-autotune"], 1)
    assert means.sides["default"].matched == pytest.approx(geomean(_TRIALS["a"]))
    assert means.sides["default"].naive_cases == 2
    assert means.left_out == (Excluded("b", "default", "not measured", "max-autotune"),)


def test_nothing_in_common_has_no_mean() -> None:
    empty = cases()
    assert matched_geomeans({"base": empty, "head": empty}).sides["base"] == SideMean(None, None, 0)
    found = matched_geomeans({"base": cases(passing("a", 2)), "head": cases(passing("b", 3))})
    assert (found.matched_cases, found.sides["base"].matched) == (0, None)


def test_machines_are_not_mixed_and_a_side_has_one_row_per_case() -> None:
    with pytest.raises(UnitError, match="machine id"):
        matched_geomeans({"base": cases(passing("a", 2)), "head": cases(passing("a", 2, machine="laptop"))})
    two_builds = cases(passing("a", 2, torch="2.12.0"), passing("a", 2, torch="2.13.0"))
    with pytest.raises(UnitError, match="several rows"):
        matched_geomeans({"base": two_builds})
