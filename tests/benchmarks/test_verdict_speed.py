"""How long the judge takes, in CPU time of one core: the machine may be shared.

pytest tests/benchmarks/test_verdict_speed.py -m benchmark -s
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from pandas import DataFrame

from db.judge.compare.upgrade import compare_builds
from db.judge.history.series import judge_new_point, judge_series
from db.records.vocabulary import Metric
from tests.benchmarks.verdict_rules import FULL
from tests.db.judge.frames import MS, trial
from tests.db.judge.series import points
from tests.db.metrics.frames import trials_frame

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900)]

POINTS = 500
SERIES = 1000 if FULL else 200
WANTED_SECONDS_PER_1000 = 10.0
WANTED_SECONDS_PER_POINT = 0.020


def cpu_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def history(seed: int) -> DataFrame:
    """A series with two steps, its components and conditions as the queries give them."""
    generator = np.random.default_rng(seed)
    values = 10e6 * np.exp(0.015 * generator.standard_normal(POINTS))
    values[170:] *= 1.04
    values[340:] *= 0.95
    table = points(values, workload_version="v1", point_suspect=False)
    return table.assign(
        torch=[f"2.{i // 20}" for i in range(POINTS)], cuda="13.0", driver="580", python="3.11"
    )


@pytest.fixture(scope="module")
def histories() -> list[DataFrame]:
    return [history(seed) for seed in range(SERIES)]


def test_a_thousand_series_of_five_hundred_points(histories: list[DataFrame]):
    events: list[int] = []
    seconds = cpu_seconds(
        lambda: events.extend(len(judge_series(table, Metric.LATENCY).events) for table in histories)
    )
    per_thousand = 1000 * seconds / SERIES
    print(
        f"\n{SERIES} series x {POINTS} points: {seconds:.2f} s, {per_thousand:.1f} s per 1,000; "
        f"{sum(events)} events"
    )
    assert sum(events) >= 1.9 * SERIES
    assert per_thousand <= WANTED_SECONDS_PER_1000


def test_one_new_point(histories: list[DataFrame]):
    table = histories[0]
    known = judge_series(table, Metric.LATENCY).events
    times = [cpu_seconds(lambda: judge_new_point(table, Metric.LATENCY, known)) for _ in range(50)]
    slowest = float(np.quantile(times, 0.95))
    print(f"\none new point on {POINTS}: median {1e3 * np.median(times):.1f} ms, 95 % {1e3 * slowest:.1f} ms")
    assert slowest <= WANTED_SECONDS_PER_POINT


def test_a_comparison_of_three_hundred_cases():
    generator = np.random.default_rng(0)
    rows = [
        trial(
            f"workload-{case:03d}",
            build=build,
            latency_ns=10 * MS * generator.lognormal(0, 0.01),
            control_latency_ns=15 * MS * generator.lognormal(0, 0.01),
            trial_compile_cost_ns=8e9 * generator.lognormal(0, 0.05),
        )
        for case in range(300)
        for _ in range(5)
        for build in ("old", "new")
    ]
    table = trials_frame(rows)
    nights = [table.assign(run_id=f"night-{n}", trial_id=table["trial_id"] + f"-{n}") for n in range(20)]
    past = pd.concat(nights, ignore_index=True)
    alone = cpu_seconds(lambda: compare_builds(table, "old", "new"))
    with_past = cpu_seconds(lambda: compare_builds(table, "old", "new", history=past))
    print(f"\n300 cases, 5 trials a side: {alone:.2f} s; with {len(past)} past trials: {with_past:.2f} s")
