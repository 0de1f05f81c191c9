"""How fast trials become cases: CPU time beside the plain medians of the same frame."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from db.metrics.case_columns import CASE_KEYS
from db.metrics.cases import summarize_cases
from tests.db.metrics.frames import trial, trials_frame

pytestmark = pytest.mark.benchmark

TRIALS, PER_CASE = 20_000, 10


def best_cpu_seconds(work: Callable[[], object]) -> float:
    """Of five repeats, CPU time of this process: the machine may be shared."""
    seconds = []
    for _ in range(5):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return min(seconds)


def test_cases_of_20000_trials_with_bootstrap_intervals() -> None:
    random = np.random.default_rng(0)
    frame = trials_frame(
        [
            trial(
                workload=f"w{number // PER_CASE}",
                latency_ns=float(random.lognormal(17, 0.02)),
                control_latency_ns=float(random.lognormal(17.4, 0.02)),
                trial_compile_cost_ns=float(random.normal(3e10, 1e9)),
                peak_bytes=10**9,
                control_peak_bytes=2 * 10**9,
                graphs=1,
            )
            for number in range(TRIALS)
        ]
    )
    cases = summarize_cases(frame)
    assert len(cases) == TRIALS // PER_CASE
    assert set(cases["interval_method"]) == {"bootstrap"}
    seconds = best_cpu_seconds(lambda: summarize_cases(frame))
    plain = best_cpu_seconds(lambda: frame.groupby(CASE_KEYS)[["latency_ns", "control_latency_ns"]].median())
    print(
        f"\n{TRIALS:,} trials to {len(cases):,} cases, 2,000 resamples: {seconds:.2f} s CPU; "
        f"pandas medians of two columns alone: {plain:.3f} s"
    )
