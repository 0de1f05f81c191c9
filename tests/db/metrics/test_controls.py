"""Which eager value each compiled trial stands beside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pandas import DataFrame

from compilewatch.db.columns.case import CASE_KEYS
from compilewatch.db.metrics.cases import summarize_cases
from compilewatch.db.metrics.eligibility import positive
from compilewatch.db.metrics.groups import Groups
from compilewatch.db.metrics.trial_times import Control, with_same_run
from tests.db.metrics.frames import trial, trials_frame

NAN = float("nan")


def controls(rows: list[dict[str, Any]]) -> tuple[list[float], list[Control]]:
    """The control of every trial, and the origin of every case in the order of their keys."""
    frame = trials_frame(rows)
    latency = np.where(frame["suspect"].to_numpy(bool), NAN, positive(frame["latency_ns"]))
    control, origin = with_same_run(
        frame, Groups.by(frame, CASE_KEYS), positive(frame["control_latency_ns"]), latency
    )
    return control.tolist(), origin


def eager(latency: float, **fields: Any) -> dict[str, Any]:
    return trial(strategy="eager", latency_ns=latency, **fields)


def test_its_own_control_comes_before_the_eager_trials_of_its_run() -> None:
    control, origin = controls([eager(70.0), trial(latency_ns=50.0, control_latency_ns=100.0)])
    assert control == pytest.approx([NAN, 100.0], nan_ok=True)
    assert origin == [Control.IN_PROCESS, Control.NONE]


def test_a_case_with_one_control_borrows_none() -> None:
    rows = [eager(70.0), trial(latency_ns=50.0, control_latency_ns=100.0), trial(latency_ns=50.0)]
    control, origin = controls(rows)
    assert control == pytest.approx([NAN, 100.0, NAN], nan_ok=True)
    assert origin == [Control.IN_PROCESS, Control.NONE]


@pytest.mark.parametrize("other", ["run_id", "machine", "torch", "workload"])
def test_a_borrowed_control_is_the_mean_of_the_eager_trials_of_just_this_run(other: str) -> None:
    rows = [eager(70.0), eager(90.0), eager(110.0, suspect=True), eager(1.0, **{other: "other"})]
    control, origin = controls([*rows, trial(latency_ns=50.0), trial(latency_ns=40.0, suspect=True)])
    assert control == pytest.approx([NAN] * 4 + [6300**0.5, NAN], nan_ok=True)
    assert Control.SAME_RUN in origin
    assert origin.count(Control.NONE) == len(origin) - 1


def test_a_control_whose_trial_does_not_count_is_none() -> None:
    control, origin = controls([trial(latency_ns=50.0, control_latency_ns=100.0, suspect=True)])
    assert control == pytest.approx([NAN], nan_ok=True)
    assert origin == [Control.NONE]


def test_memory_borrows_like_latency_does() -> None:
    """Eager needs 30 in the run; the compiled trials need 10 and 15, so 3 and 2 times less."""
    rows = [eager(70.0, peak_bytes=30), trial(peak_bytes=10), trial(peak_bytes=15)]
    found: DataFrame = summarize_cases(trials_frame(rows)).set_index("strategy")
    assert found.loc[
        "default", ["peak_bytes", "control_peak_bytes", "memory_ratio"]
    ].tolist() == pytest.approx([150**0.5, 30.0, 6**0.5])
    assert found.loc["eager", ["peak_bytes", "memory_ratio"]].tolist() == [30.0, 1.0]
    nothing = summarize_cases(trials_frame([eager(70.0)])).iloc[0]
    assert nothing[["peak_bytes", "control_peak_bytes", "memory_ratio"]].isna().all()
