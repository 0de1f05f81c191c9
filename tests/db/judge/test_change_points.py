"""Parts of change-point detection against scipy, and what must and must not be found."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import ruptures
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from compilewatch.db.judge.change_points import (
    autocorrelation,
    boundaries,
    boundaries_by_row,
    candidates,
    examine_boundary,
    noise_scale,
    spread_within,
)
from compilewatch.db.judge.policy import HistoryPolicy
from compilewatch.db.metrics.groups import Floats
from tests.db.judge.series import steps

RULES = HistoryPolicy()


def segment_starts(y: Floats, policy: HistoryPolicy) -> list[int]:
    return [boundary.start for boundary in boundaries(y, policy)]


sides = st.lists(st.integers(0, 30), min_size=8, max_size=30)


@given(sides, sides)
def test_the_rank_statistic_is_that_of_scipy_ties_included(before: list[int], after: list[int]):
    a, b = np.array(before, dtype=float), np.array(after, dtype=float)
    independent = RULES.model_copy(update={"autocorrelation_limit": 0.0})
    step = examine_boundary(np.concatenate([a, b]), 0, len(a), len(a) + len(b), independent)
    if len(set(before + after)) == 1:
        assert step.p_here == 1.0
        return
    expected = stats.mannwhitneyu(b, a, use_continuity=False, method="asymptotic")
    assert step.p_here == pytest.approx(expected.pvalue)


@pytest.mark.parametrize("cv", [0.001, 0.02])
def test_the_scale_is_the_noise_and_not_the_step(cv: float):
    y = np.log(steps([(60, 10.0), (60, 10.0 * (1 + 2 * cv))], cv=cv))
    assert noise_scale(y) == pytest.approx(cv, rel=0.35)


def test_correlated_noise_has_a_larger_scale_than_its_differences_show():
    generator = np.random.default_rng(0)
    slow = np.repeat(generator.normal(0, 0.02, 40), 5)
    y = slow + generator.normal(0, 0.002, 200)
    assert noise_scale(y) > 3 * np.std(np.diff(y)) / np.sqrt(2) / 3
    assert noise_scale(y) > 0.01


def test_autocorrelation_of_residuals_is_that_of_both_sides_and_bounded():
    generator = np.random.default_rng(1)
    noise = np.zeros(4000)
    for i in range(1, 4000):
        noise[i] = 0.5 * noise[i - 1] + generator.normal()
    noise[2000:] += 100.0
    assert autocorrelation(noise[:2000], noise[2000:], 0.7) == pytest.approx(0.5, abs=0.05)
    walk = np.cumsum(generator.normal(size=500))
    assert autocorrelation(walk[:250], walk[250:], 0.7) == 0.7
    assert autocorrelation(np.ones(5), np.ones(5), 0.7) == 0.0


@given(st.lists(st.floats(-3, 3).map(lambda value: round(value, 2)), min_size=10, max_size=60))
def test_candidates_are_those_of_ruptures(values: list[float]):
    y = np.array(values) + np.repeat([0.0, 2.0], [5, len(values) - 5])
    scale = noise_scale(y)
    detector = ruptures.KernelCPD("rbf", min_size=RULES.minimum_segment, params={"gamma": RULES.kernel_gamma})
    expected = detector.fit((y / scale)[:, None]).predict(pen=RULES.candidate_penalty)[:-1]
    assert candidates(y[None], RULES) == [expected]


@pytest.mark.parametrize("factor", [1.05, 0.95])
def test_a_clear_step_is_dated_and_sized(factor: float):
    y = np.log(steps([(60, 10.0), (40, 10.0 * factor)]))
    (found,) = boundaries(y, RULES)
    assert abs(found.start - 60) <= 1
    assert found.difference == pytest.approx(np.log(factor), abs=0.006)
    assert found.p_value < RULES.p_value
    assert found.error == pytest.approx(0.01 * np.sqrt(1 / 60 + 1 / 40), rel=0.6)


def test_two_steps_are_two_boundaries():
    y = np.log(steps([(50, 10.0), (50, 10.8), (50, 10.2)]))
    assert [round(start / 50) * 50 for start in segment_starts(y, RULES)] == [50, 100]


@pytest.mark.parametrize(
    "y",
    [
        np.log(steps([(120, 10.0)])),
        np.log(steps([(60, 10.0), (60, 10.1)], cv=0.001)),  # sure, but below the minimum effect
        np.zeros(100),
        np.log(steps([(6, 10.0)])),
        np.array([]),
    ],
    ids=["calm", "small", "constant", "short", "empty"],
)
def test_nothing_is_found_where_nothing_is(y: np.ndarray):
    assert boundaries(y, RULES) == []


def test_a_step_far_beyond_the_noise_is_found_though_the_points_drift():
    y = np.log(np.concatenate([np.full(60, 10.0), np.full(40, 12.0)])) + 1e-4 * np.arange(100)
    assert segment_starts(y, RULES) == [60]


def test_one_outlier_is_no_change():
    y = np.log(steps([(100, 10.0)]))
    y[50:53] += 0.5
    assert boundaries(y, RULES) == []


@given(st.floats(-5, 5), st.integers(0, 50))
def test_other_units_find_the_same_boundaries(shift: float, seed: int):
    y = np.log(steps([(40, 10.0), (40, 10.6)], seed=seed))
    assert segment_starts(y + shift, RULES) == segment_starts(y, RULES)


@pytest.mark.parametrize(
    ("rules", "found"),
    [
        ({}, True),
        ({"kernel_gamma": 1e-6}, False),  # all points are near each other
        ({"candidate_penalty": 1000.0}, False),
        ({"minimum_segment": 51}, False),
        ({"minimum_effect": 0.06}, False),
        ({"p_value": 1e-30}, True),  # obvious without a rank test
        ({"p_value": 1e-30, "obvious_size": 50.0}, False),
    ],
)
def test_each_rule_decides_what_a_change_is(rules: dict[str, float], found: bool):
    y = np.log(steps([(50, 10.0), (50, 10.5)], cv=0.004))
    assert bool(boundaries(y, HistoryPolicy.model_validate(rules))) is found


@pytest.mark.parametrize(
    ("before", "after"),
    [([0.0, 0.2], [1.0]), ([0.0, 0.2, 0.0, 0.2], [1.0, 1.2]), ([0.0, 0.2], [1.0, 1.2, 1.0, 1.2])],
)
def test_a_step_has_the_error_and_the_size_of_two_means(before: list[float], after: list[float]):
    """Neighbours that alternate count as independent, so nothing is widened."""
    n, m = len(before), len(after)
    found = examine_boundary(np.array(before + after), 0, n, n + m, RULES)
    squares = n * np.var(before) + m * np.var(after)
    spread = np.sqrt(squares / (n + m - 2))
    assert found.difference == pytest.approx(np.median(after) - 0.1)
    assert found.error == pytest.approx(spread * np.sqrt(1 / n + 1 / m))
    assert found.size == pytest.approx(found.difference / spread)


def test_one_value_a_side_has_a_score_too():
    """U of 1 against 1/2, with a deviation of 1/2."""
    assert examine_boundary(np.array([1.0, 2.0]), 0, 1, 2, RULES).p_here == pytest.approx(
        2 * stats.norm.sf(1)
    )


def stepped(generator: np.random.Generator, rows: int, length: int) -> Floats:
    """Series with up to three steps, some of them drifting, constant or of few distinct values."""
    points: Floats = generator.normal(0, 10.0 ** generator.integers(-4, 0), (rows, length))
    for row in points:
        for _ in range(generator.integers(0, 4)):
            row[generator.integers(0, length) :] += generator.normal(0, 0.2)
    points[::5] = np.round(points[::5], 2)
    points[1::7] = np.round(points[1::7, :1], 1)
    points[2::7] = np.cumsum(points[2::7], axis=1)
    return points


@pytest.mark.parametrize("length", [1, 2, 5, 7, 9, 10, 15, 30, 64, 130])
def test_series_are_searched_together_as_each_alone(length: int) -> None:
    points = stepped(np.random.default_rng(length), 60, length)
    found = [boundaries(row, RULES) for row in points]
    assert boundaries_by_row(points, RULES) == found
    spreads = []
    for row, mine in zip(points, found, strict=True):
        edges = [0, *(boundary.start for boundary in mine), length]
        around = sum(float(np.var(row[i:j])) * (j - i) for i, j in pairwise(edges))
        spreads.append((pytest.approx(around, abs=1e-12), length - len(edges) + 1.0))
    assert spread_within(points, RULES) == spreads
    assert any(found) or length <= 15
