"""Slow drift against a reference, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from compilewatch.db.judge.change_points import noise_scale
from compilewatch.db.judge.history.series import Drift, drift_from_reference
from compilewatch.db.judge.policy import HistoryPolicy, Policy
from compilewatch.db.records.vocabulary import Metric, Verdict

POLICY = Policy()
THREE = Policy(history=HistoryPolicy(drift_points=3))


def drift(
    y: np.ndarray,
    *,
    pinned: list[int] | None = None,
    steps: np.ndarray | None = None,
    metric: Metric = Metric.LATENCY,
    policy: Policy = POLICY,
) -> Drift | None:
    reference = np.isin(np.arange(len(y)), pinned or [])
    return drift_from_reference(y, reference, np.zeros(len(y)) if steps is None else steps, metric, policy)


def raised(change: float, *, size: int = 10) -> np.ndarray:
    return np.repeat([0.0, math.log1p(change)], size)


def test_the_error_is_that_of_two_means_of_ten_points():
    """Both sides are constant, so neighbours tell nothing and only the scale of the whole counts."""
    y = raised(0.1)
    found = drift(y)
    error = noise_scale(y) * math.sqrt(1 / 10 + 1 / 10)
    assert (found.total, found.unexplained) == (pytest.approx(0.1), pytest.approx(0.1))
    assert found.p_value == pytest.approx(2 * stats.norm.sf(math.log1p(0.1) / error))
    assert np.log1p(found.interval) == pytest.approx(
        math.log1p(0.1) + np.array([-1.959964, 1.959964]) * error
    )
    assert found.reason == (
        "Latency drifted by +10.0 % against the oldest points, beyond the announced steps."
    )


def test_a_series_that_stands_still_is_unchanged_within_the_smallest_noise_believed():
    found = drift(np.full(30, 3.0))
    half = 1.959964 * POLICY.noise_floor * math.sqrt(0.2)
    assert np.log1p(found.interval) == pytest.approx([-half, half])
    assert (found.total, found.p_value, found.verdict) == (0.0, 1.0, Verdict.UNCHANGED)
    assert found.reason.endswith("that is no sure drift.")


def test_neighbours_that_resemble_each_other_count_for_less():
    slow = np.tile([0.0, 0.0, 0.01, 0.01, 0.01, 0.0, 0.0, 0.0, 0.01, 0.01], 3)
    found = drift(slow)
    # of the nine pairs of neighbours a side six are alike and three are not, around ten points a side
    rho = 2 * (6 - 3) / 20
    error = noise_scale(slow) * math.sqrt(0.2) * math.sqrt((1 + rho) / (1 - rho))
    low, high = np.log1p(found.interval)
    assert (high - low) / 2 == pytest.approx(1.959964 * error)


@pytest.mark.parametrize(
    ("change", "metric", "verdict"),
    [
        (0.1, Metric.LATENCY, Verdict.REGRESSED),
        (-0.1, Metric.LATENCY, Verdict.IMPROVED),
        (0.1, Metric.SPEEDUP, Verdict.IMPROVED),
        (-0.1, Metric.SPEEDUP, Verdict.REGRESSED),
    ],
)
def test_which_way_is_worse_depends_on_the_metric(change: float, metric: Metric, verdict: Verdict):
    found = drift(raised(change), metric=metric)
    assert found.verdict is verdict


def test_a_drift_below_the_minimum_effect_and_beyond_no_margin_is_unchanged():
    tiny = drift(raised(0.015))
    assert tiny.p_value < 0.01
    assert tiny.verdict is Verdict.UNCHANGED
    strict = Policy.model_validate(
        {"thresholds": {"latency": {"minimum_effect": 0.01, "unchanged_margin": 0.015}}}
    )
    open_ = drift(raised(0.015), policy=strict)
    assert open_.verdict is Verdict.INCONCLUSIVE


def test_announced_steps_are_taken_off():
    y = raised(0.1)
    found = drift(y, steps=y)
    assert (found.total, found.unexplained) == (pytest.approx(0.1), 0.0)
    assert found.verdict is Verdict.UNCHANGED


def test_the_pinned_build_is_the_reference_by_its_first_points():
    y = np.concatenate([np.full(5, 5.0), np.zeros(10), np.full(20, 7.0), np.full(10, math.log1p(0.1))])
    found = drift(y, pinned=[*range(5, 15), *range(20, 25)])
    assert found.total == pytest.approx(0.1)
    assert "against the reference build" in found.reason


@pytest.mark.parametrize(
    ("points", "pinned", "known"),
    [
        (6, None, True),
        (5, None, False),  # both sides would hold the third point
        (9, [0, 1, 2], True),
        (9, [0, 1], False),
        (9, [3, 4, 5], True),
        (9, [4, 5, 6], False),
        (2, None, False),
        (0, None, False),
    ],
)
def test_sides_of_three_points_that_do_not_meet_are_needed(
    points: int, pinned: list[int] | None, known: bool
):
    assert (drift(np.zeros(points), pinned=pinned, policy=THREE) is not None) is known


def test_a_p_at_the_level_itself_is_a_drift():
    y = raised(0.1) + 0.05 * (-1.0) ** np.arange(20)
    found = drift(y)
    assert 0 < found.p_value < 1
    for level, verdict in ((found.p_value, Verdict.REGRESSED), (found.p_value * 0.999, Verdict.INCONCLUSIVE)):
        judged = drift(y, policy=Policy(history=HistoryPolicy(p_value=level)))
        assert judged.verdict is verdict
