"""The four times of a GPU per case, by hand."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.statistics.noise_floor import case_bounds
from compilewatch.db.metrics.cases import case_values, summarize_cases
from compilewatch.db.metrics.trend import series_points
from compilewatch.db.records.vocabulary import Bound
from tests.db.metrics.frames import trial, trials_frame


def timed(method: str = "gated", **fields: Any) -> dict[str, Any]:
    """A trial of 100 ns on the device, 60 to issue, 180 waited for and 130 in a row; eager twice that."""
    times = {"device_ns": 100.0, "issue_ns": 60.0, "wall_sync_ns": 180.0, "wall_pipelined_ns": 130.0}
    known = times | {f"control_{name}": 2 * value for name, value in times.items()}
    known |= {"latency_ns": 180.0, "control_latency_ns": 360.0}
    return trial(**(known | {"timing_method": method, "control_timing_method": method} | fields))


def test_means_and_speedups_of_each_time() -> None:
    rows = [timed(device_ns=100.0), timed(device_ns=110.0), timed(device_ns=400.0)]
    (case,) = summarize_cases(trials_frame(rows)).to_dict("records")
    device = (100 * 110 * 400) ** (1 / 3)
    assert (case["device_ns"], case["issue_ns"], case["wall_pipelined_ns"]) == (
        pytest.approx(device),
        60,
        130,
    )
    assert case["device_speedup"] == pytest.approx(200 / device)
    assert [case[name] for name in ("issue_speedup", "wall_sync_speedup", "speedup")] == [2, 2, 2]
    assert case["timing_method"] == "gated"
    assert case_values(trials_frame(rows))["device_speedup"].tolist() == [pytest.approx(200 / device)]


@pytest.mark.parametrize(
    ("wall", "method", "bound"),
    [
        (110.0, "gated", "device"),  # a tenth more is not over a tenth
        (110.2, "gated", "host"),
        (130.0, "cupti", "host"),
        (90.0, "gated", "device"),
        (130.0, "ungated", None),
        (None, "gated", None),
    ],
)
def test_the_host_bounds_what_the_device_waits_for(
    wall: float | None, method: str, bound: str | None
) -> None:
    cases = summarize_cases(trials_frame([timed(method, wall_pipelined_ns=wall)]))
    assert [None if pd.isna(value) else value for value in cases["bound"]] == [bound]


def test_a_step_whose_input_fits_into_the_cache_is_judged_by_its_time_without_a_flush() -> None:
    """A loop of steps knows no flush: flushed, the device seems to need more of it than it does."""
    rows = [timed(device_ns=125.0, unflushed_ns=100.0), timed(device_ns=125.0, unflushed_ns=None)]
    trials = trials_frame(rows)
    cases = [summarize_cases(trials.iloc[[number]])["bound"].tolist() for number in range(2)]
    assert cases == [["host"], ["device"]]
    bounds = [
        case_bounds(trials.iloc[[number]], np.zeros(1, np.int64), 1, Policy())[0] for number in range(2)
    ]
    assert bounds == [Bound.HOST, Bound.DEVICE]


def test_methods_do_not_mix_in_a_device_time() -> None:
    rows = [timed(device_ns=100.0), timed("ungated", device_ns=900.0), timed("cupti", device_ns=500.0)]
    (case,) = summarize_cases(trials_frame(rows)).to_dict("records")
    assert (case["timing_method"], case["device_ns"]) == ("gated", 100)
    assert case["counted_trials"] == 3  # their wall times are of one kind


def test_a_device_speedup_needs_one_method_on_both_sides() -> None:
    (case,) = summarize_cases(trials_frame([timed(control_timing_method="cupti")])).to_dict("records")
    assert pd.isna(case["device_speedup"])
    assert case["speedup"] == 2


def test_ungated_events_share_no_latency_with_wall_times() -> None:
    old = trial(
        latency_ns=50.0,
        control_latency_ns=50.0,
        timing_method="ungated",
        control_timing_method="ungated",
    )
    (alone,) = summarize_cases(trials_frame([old])).to_dict("records")
    assert (alone["latency_ns"], alone["timing_method"], alone["trials"]) == (50, "ungated", 1)
    (both,) = summarize_cases(trials_frame([old, old, old, timed()])).to_dict("records")
    assert (both["latency_ns"], both["timing_method"], both["counted_trials"]) == (180, "gated", 1)


def test_a_cpu_has_none_of_them() -> None:
    rows = [trial(latency_ns=10.0, control_latency_ns=20.0, timing_method="host")]
    (case,) = summarize_cases(trials_frame(rows)).to_dict("records")
    assert case["timing_method"] == "host"
    assert all(pd.isna(case[name]) for name in ("device_ns", "issue_speedup", "bound"))


def test_a_history_has_them_with_their_spread() -> None:
    points = series_points(trials_frame([timed(device_ns=100.0), timed(device_ns=200.0)]))
    assert points["device_ns"].tolist() == [pytest.approx(20_000**0.5)]
    assert points["device_ns_p10"].tolist() == [110]
    assert points["wall_sync_speedup_p90"].tolist() == [2]


def test_eager_is_the_reference_of_every_speedup() -> None:
    rows = [timed(strategy="eager", control_device_ns=None, control_latency_ns=None)]
    (case,) = summarize_cases(trials_frame(rows)).to_dict("records")
    assert (case["speedup"], case["device_speedup"]) == (1, 1)
