"""Where a history is cut, and which points are left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from compilewatch.db.judge.history.events import Cut, Stretch, cut_stretches, find_cuts, points_of_build
from compilewatch.db.records.vocabulary import Metric
from tests.db.judge.series import points

LATENCY = Metric.LATENCY


@pytest.mark.parametrize(
    ("field", "before", "after"),
    [
        ("machine_id", "m1", "m2"),
        ("workload_version", "v1", "v2"),
        ("threads", 4, 8),
        ("settings", {"a": 1}, {"a": 2}),
        ("settings", {"a": {"b": 1}}, {"a": {"b": 2}}),
        ("settings", None, {"a": 1}),
    ],
)
def test_a_condition_that_changes_cuts_the_series(field: str, before: Any, after: Any):
    table = points([1.0] * 4, **{field: [before, before, after, after]})
    assert find_cuts(table) == [Cut(index=2, fields=(field,))]


def test_another_number_of_threads_to_compile_with_is_another_method():
    """A process that libgomp had bound compiled with one thread, before that was recorded."""
    bound = {"environment": {"OMP_PROC_BIND": "true"}}
    free = bound | {"compile_threads": 16}
    table = points([1.0] * 4, settings=[bound, bound, free, free])
    assert find_cuts(table) == [Cut(index=2, fields=("method",))]
    table = points([1.0] * 2, settings=[bound, bound | {"compile_threads": 1}])
    assert find_cuts(table) == []
    table = points([1.0] * 2, settings=[bound, free | {"seed": 1}])
    assert find_cuts(table) == [Cut(index=1, fields=("method", "settings"))]


def test_an_allocator_that_keeps_memory_otherwise_is_another_method():
    """Until two variables of glibc's were left out, every measured process had them."""
    kept = {"environment": {"MALLOC_MMAP_THRESHOLD_": "1073741824", "MALLOC_TRIM_THRESHOLD_": "1073741824"}}
    table = points([1.0] * 4, settings=[kept, kept, {"environment": {}}, {"environment": {}}])
    assert find_cuts(table) == [Cut(index=2, fields=("method",))]


def test_what_changes_together_is_one_cut_and_each_change_its_own():
    table = points([1.0] * 4, threads=[1, 2, 2, 1], workload_version=["a", "b", "b", "b"])
    assert find_cuts(table) == [
        Cut(index=1, fields=("workload_version", "threads")),
        Cut(index=3, fields=("threads",)),
    ]


def test_what_torch_finds_out_by_itself_and_what_stays_missing_cuts_nothing():
    table = points(
        [1.0] * 3,
        settings=[{"cpu_capability": "A"}, {"cpu_capability": "B"}, {}],
        threads=[pd.NA, pd.NA, pd.NA],
    )
    assert find_cuts(table) == []


def test_stretches_keep_the_positions_of_valid_points():
    nan = float("nan")
    values = [np.e, nan, 0.0, np.e**2, -1.0, np.e**3, np.e**4]
    table = points(values, point_suspect=[False, False, False, False, False, True, False])
    first, second = cut_stretches(table, LATENCY, [Cut(index=1, fields=("a",)), Cut(index=2, fields=("a",))])
    assert (first.y.tolist(), first.position) == ([1.0], [0])
    assert (second.y.tolist(), second.position) == ([2.0, 4.0], [3, 6])
    unmarked = cut_stretches(points(values), LATENCY, [])
    assert unmarked[0].position == [0, 3, 5, 6]


def test_the_column_is_that_of_the_metric():
    table = points([np.e, np.e], "speedup", latency_ns=[1.0, 1.0])
    (stretch,) = cut_stretches(table, Metric.SPEEDUP, [])
    assert stretch.y.tolist() == [1.0, 1.0]


def test_points_of_a_build_are_flagged():
    table = points([1.0] * 4, build_id=["a", "b", "a", "a"])
    stretch = Stretch(np.zeros(3), [0, 1, 3])
    assert points_of_build(table, stretch, "a").tolist() == [True, False, True]
    assert points_of_build(table, stretch, None).tolist() == [False] * 3
    assert points_of_build(table.drop(columns="build_id"), stretch, "a").tolist() == [False] * 3
