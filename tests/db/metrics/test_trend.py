"""Points of a history: one per run or build, their bands, and what a suspect point looks like."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal
from scipy import stats

from compilewatch.db.columns.metrics import POINT_COLUMNS
from compilewatch.db.metrics.cases import summarize_cases
from compilewatch.db.metrics.trend import series_points
from tests.db.metrics.frames import START, trial, trials_frame
from tests.few_examples import FEW


def night(number: int, latency: float, **fields: Any) -> dict[str, Any]:
    return trial(
        run_id=f"R{number}",
        started_at=START + timedelta(days=number),
        **({"latency_ns": latency, "control_latency_ns": 200.0, "graphs": 1} | fields),
    )


def test_one_point_per_run_oldest_first() -> None:
    rows = [night(2, 50.0), night(1, 100.0), night(1, 110.0), night(1, 120.0)]
    points = series_points(trials_frame(rows))
    assert points["run_id"].tolist() == ["R1", "R2"]
    latency = (100 * 110 * 120) ** (1 / 3)
    assert points["latency_ns"].tolist() == pytest.approx([latency, 50])
    assert points["speedup"].tolist() == pytest.approx([200 / latency, 4])
    assert points["first_started_at"].tolist() == [START + timedelta(days=1), START + timedelta(days=2)]


def test_bands_across_and_within_trials() -> None:
    # quantiles of 100, 110 ... 200 at positions 1 and 9
    rows = [
        night(1, 100.0 + 10 * step, latency_p05_ns=90.0 + step, latency_p95_ns=300.0 - step)
        for step in range(11)
    ]
    point = series_points(trials_frame(rows)).iloc[0]
    assert (point["latency_ns_p10"], point["latency_ns_p90"]) == (110, 190)
    means = [stats.gmean([start + step * n for n in range(11)]) for start, step in ((100, 10), (290, 1))]
    assert point[["latency_ns", "latency_p95_ns"]].tolist() == pytest.approx(means)
    assert (point["speedup_p10"], point["speedup_p90"]) == pytest.approx((200 / 190, 200 / 110))
    single = series_points(trials_frame([night(1, 100.0)])).iloc[0]
    assert single[["latency_ns_p10", "latency_ns_p90"]].isna().all()


def test_a_run_over_two_builds_is_two_points_and_a_build_over_two_runs_is_one() -> None:
    rows = [night(1, 100.0), night(1, 90.0, torch="2.12.0"), night(2, 80.0)]
    assert len(series_points(trials_frame(rows))) == 3
    by_build = series_points(trials_frame(rows), by="build").set_index("torch")
    assert by_build["latency_ns"].to_dict() == {"2.12.0": 90, "2.13.0": pytest.approx(8000**0.5)}
    assert by_build.loc["2.13.0", "run_id"] == "R2"


def test_a_point_of_suspect_trials_alone_is_drawn_and_marked() -> None:
    rows = [night(1, 100.0), night(1, 900.0, suspect=True), night(2, 300.0, suspect=True)]
    points = series_points(trials_frame(rows))
    assert points["point_suspect"].tolist() == [False, True]
    assert points["latency_ns"].tolist() == [100, 300]
    assert points["suspect_trials"].tolist() == [1, 1]


def test_a_failed_point_stays_with_no_value() -> None:
    rows = [night(1, 100.0), night(2, 1.0, status="failed", failure_kind="crash", suspect=True)]
    points = series_points(trials_frame(rows))
    assert points["status"].tolist() == ["ok", "failed"]
    assert pd.isna(points["latency_ns"][1])
    assert not points["point_suspect"][1]


def test_an_empty_frame_has_the_columns_and_types_of_a_full_one() -> None:
    empty, full = series_points(trials_frame([])), series_points(trials_frame([night(1, 1.0)]))
    assert empty.dtypes.equals(full.dtypes)
    assert dict(full.dtypes.astype(str)) == POINT_COLUMNS


@FEW
@given(st.lists(st.tuples(st.integers(1, 3), st.floats(1, 1e9)), min_size=1, max_size=15), st.randoms())
def test_a_point_is_the_summary_of_its_own_trials_in_any_order(
    nights: list[tuple[int, float]], random: Any
) -> None:
    rows = [night(number, latency) for number, latency in nights]
    points = series_points(trials_frame(random.sample(rows, len(rows))))
    for run, own in trials_frame(rows).groupby("run_id"):
        expected = summarize_cases(own)
        found = points[points["run_id"] == run][list(expected.columns)].reset_index(drop=True)
        assert_frame_equal(found, expected)
