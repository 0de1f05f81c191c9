"""A wild trial is set aside by one rule, in every door alike."""

from __future__ import annotations

import numpy as np
import pytest

from compilewatch.db.judge.compare.upgrade import compare_builds
from compilewatch.db.metrics.cases import case_values, summarize_cases
from compilewatch.db.metrics.eligibility import wild_trials
from compilewatch.db.metrics.trend import series_points
from compilewatch.db.records.vocabulary import Metric
from tests.db.judge.frames import MS
from tests.db.metrics.frames import trial, trials_frame


@pytest.mark.parametrize(
    ("times", "wild"),
    [
        ([100, 101, 210], [210]),
        ([100, 101, 195], []),  # within twice
        ([100, 210], []),  # nothing of two
        ([100, 100, 210, 211], []),  # two modes
        ([100, 130, 280], []),  # the others differ by a third of the distance
        ([40, 100, 101, 102], [40]),
        ([100, 101, 900, 20], []),  # the others are not alike either
    ],
)
def test_what_stands_alone(times: list[float], wild: list[float]) -> None:
    frame = trials_frame([trial(latency_ns=float(each)) for each in times])
    assert frame["latency_ns"][wild_trials(frame)].tolist() == wild


def test_siblings_are_those_of_the_case_in_the_run_that_count() -> None:
    calm = [trial(latency_ns=100.0) for _ in range(2)]
    for other in ({"run_id": "R2"}, {"workload": "w2"}, {"torch": "2.9"}, {"strategy": "eager"}):
        frame = trials_frame([*calm, trial(latency_ns=900.0, **other)])
        assert not wild_trials(frame).any()
    suspect = trials_frame([*calm, trial(latency_ns=900.0, suspect=True)])
    assert not wild_trials(suspect).any()


def test_a_wild_eager_beside_it_is_wild_too() -> None:
    rows = [trial(latency_ns=100.0, control_latency_ns=each) for each in (200.0, 201.0, 800.0)]
    assert wild_trials(trials_frame(rows)).tolist() == [False, False, True]


def test_every_door_sets_it_aside_and_says_so() -> None:
    rows = [
        trial(latency_ns=each * MS, control_latency_ns=20.0 * MS, torch=torch, graphs=1)
        for torch, times in (("2.12.0", (10.0, 10.0, 10.0, 30.0)), ("2.13.0", (12.0, 12.0, 12.0)))
        for each in times
    ]
    frame = trials_frame(rows)
    for cases in (summarize_cases(frame), series_points(frame)):
        (old,) = cases[cases["torch"] == "2.12.0"].to_dict("records")
        assert (old["latency_ns"], old["speedup"]) == (pytest.approx(10 * MS), pytest.approx(2))
        assert (old["trials"], old["counted_trials"], old["wild_trials"]) == (4, 3, 1)
    assert np.sort(case_values(frame)["latency_ns"]).tolist() == pytest.approx([10 * MS, 12 * MS])
    comparison = compare_builds(frame, *(frame["build_id"].drop_duplicates().tolist()))
    (row,) = [each for each in comparison.rows if each.metric is Metric.LATENCY]
    assert (row.base, row.head, row.change) == pytest.approx((10 * MS, 12 * MS, 0.2))
    assert (row.trials, comparison.wild_trials) == ((3, 3), 1)
    assert any("1 trial set aside, wild" in each for each in comparison.sentences)
