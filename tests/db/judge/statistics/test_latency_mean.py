"""One figure for all cases: against statsmodels, and with what runs share."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from compilewatch.db.judge.compare.upgrade import compare_builds
from tests.db.judge.frames import MS, trial
from tests.db.metrics.frames import trials_frame

CHANGES = {
    ("bert", "default"): 1.04,
    ("bert", "max-autotune"): 1.05,
    ("resnet", "default"): 0.99,
    ("gpt", "default"): 1.01,
    ("gpt", "max-autotune"): 1.02,
    ("vit", "default"): 0.97,
}


def compared(runs: tuple[str, str], changes: dict[tuple[str, str], float] = CHANGES):
    rows = []
    for (workload, strategy), change in changes.items():
        for build, run, factor in (("old", runs[0], 1.0), ("new", runs[1], change)):
            rows.append(trial(workload, strategy, build, run_id=run, latency_ns=10 * MS * factor))
    return compare_builds(trials_frame(rows), "old", "new")


def test_the_interval_is_that_of_clustered_least_squares():
    import statsmodels.api as sm

    x = np.log(list(CHANGES.values()))
    clusters = np.unique([workload for workload, _ in CHANGES], return_inverse=True)[1]
    fit = sm.OLS(x, np.ones(len(x))).fit(cov_type="cluster", cov_kwds={"groups": clusters})
    half = stats.t.ppf(0.975, 3) * fit.bse[0]
    found = compared(("R1", "R1")).geomean.compiled_latency
    assert (found.cases, found.workloads) == (6, 4)
    assert math.log1p(found.change) == pytest.approx(fit.params[0])
    assert found.interval is not None
    assert np.log1p(found.interval) == pytest.approx([fit.params[0] - half, fit.params[0] + half])


def test_what_two_runs_shift_in_all_cases_at_once_does_not_average_out():
    """200 cases that moved by nothing: their spread says 0, two runs on a machine say 0.5 % each."""
    still = {(f"w{number}", "default"): 1.0 for number in range(200)}
    one, two = (compared(runs, still).geomean.compiled_latency for runs in (("R1", "R1"), ("R1", "R2")))
    assert one.interval == (0.0, 0.0)
    assert two.interval[1] == pytest.approx(math.expm1(1.99 * math.sqrt(2) * 0.005), rel=0.01)


def test_compiled_and_eager_cases_have_each_their_own():
    mean = compared(("R1", "R1"), CHANGES | {("bert", "eager"): 1.2, ("vit", "eager"): 1.2}).geomean
    assert (mean.eager_latency.cases, mean.eager_latency.change) == (2, pytest.approx(0.2))
    assert mean.latency.cases == 8


def test_one_workload_has_a_mean_and_no_interval():
    mean = compared(("R1", "R1"), {("bert", "default"): 1.1}).geomean
    assert (mean.latency.cases, mean.latency.workloads, mean.latency.interval) == (1, 1, None)
    assert mean.latency.change == pytest.approx(0.1)
    assert mean.eager_latency is None


def test_two_workloads_have_a_mean_and_no_interval():
    two = {case: change for case, change in CHANGES.items() if case[0] in ("bert", "gpt")}
    mean = compared(("R1", "R1"), two).geomean.latency
    assert (mean.workloads, mean.interval) == (2, None)


def test_one_calm_case_among_wild_ones_is_no_witness_of_a_change():
    """Nothing moved: an interval of 95 % leaves 0 out in one of twenty, not in every second one."""
    random = np.random.default_rng(5)
    noise = {"calm": 0.002, "wild": 0.05, "wilder": 0.1}
    outside = 0
    for _ in range(15):
        rows = [
            trial(workload, "default", build, run_id="R", latency_ns=10 * MS * math.exp(random.normal(0, sd)))
            for workload, sd in noise.items()
            for build in ("old", "new") * 3
        ]
        low, high = compare_builds(trials_frame(rows), "old", "new").geomean.compiled_latency.interval
        outside += not low <= 0 <= high
    assert outside <= 2
