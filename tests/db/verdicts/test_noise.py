"""What the past lends to the present."""

from __future__ import annotations

import numpy as np
import pytest
from pandas import DataFrame
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

from db.verdicts.noise import Past, run_noise, series_noise
from db.verdicts.policy import Policy

POLICY = Policy()
NOTHING = (np.array([np.nan]), np.zeros(1))


def past(rows: list[tuple[int, int, int, float]]) -> Past:
    """Rows of (series, run, build, x)."""
    series, run, build, x = (np.array(column) for column in zip(*rows, strict=True))
    return Past(series, run, build, x.astype(float))


def test_trials_within_runs_give_the_variance_of_one_trial():
    values = {0: [1.0, 1.2, 0.8], 1: [5.0, 5.1], 2: [2.0, 2.0]}
    found = series_noise(past([(0, r, 0, x) for r, xs in values.items() for x in xs]), 1, POLICY)
    squares = sum(np.var(xs) * len(xs) for xs in values.values())
    assert found.variance[0] == pytest.approx(squares / 4)
    assert (found.df[0], found.runs[0]) == (4.0, 3)


def test_runs_of_one_trial_give_the_variance_around_the_level_of_their_segment():
    generator = np.random.default_rng(0)
    y = generator.normal(0, 0.01, 80)
    y[40:] += 0.2
    found = series_noise(past([(0, r, r, x) for r, x in enumerate(y)]), 1, POLICY)
    assert np.sqrt(found.variance[0]) == pytest.approx(0.01, rel=0.25)
    assert found.df[0] == POLICY.history_df_limit
    assert found.runs[0] == 80


def test_a_series_without_a_past_lends_nothing():
    found = series_noise(past([(1, 0, 0, 1.0), (1, 0, 0, 1.1)]), 2, POLICY)
    assert np.isnan(found.variance[0])
    assert found.df.tolist() == [0.0, 1.0]


def test_variance_between_runs_is_that_of_the_analysis_of_variance():
    generator = np.random.default_rng(1)
    level = generator.normal(0, 0.03, 12)
    rows = [(0, r, 0, level[r] + generator.normal(0, 0.01)) for r in range(12) for _ in range(4)]
    found = run_noise(past(rows), NOTHING, POLICY)
    table = anova_lm(ols("x ~ C(run)", DataFrame(rows, columns=["s", "run", "b", "x"])).fit())
    expected = (table["mean_sq"].iloc[0] - table["mean_sq"].iloc[1]) / 4
    assert (found.variance, found.df) == (pytest.approx(expected), 11.0)


def test_different_builds_are_no_repeated_runs():
    rows = [(0, r, r, 0.1 * r) for r in range(10) for _ in range(2)]
    found = run_noise(past(rows), NOTHING, POLICY)
    assert (found.variance, found.df) == (POLICY.between_run_floor**2, np.inf)


def test_runs_of_one_trial_need_the_present_trials_to_tell_both_variances_apart():
    generator = np.random.default_rng(2)
    rows = [(0, r, 0, generator.normal(0, 0.05)) for r in range(200)]
    own = (np.array([0.03**2]), np.array([8.0]))
    found = run_noise(past(rows), own, POLICY)
    assert np.sqrt(found.variance) == pytest.approx(0.04, rel=0.2)
    assert found.df == POLICY.history_df_limit


def test_many_series_that_move_together_count_as_one():
    generator = np.random.default_rng(3)
    level = generator.normal(0, 0.03, 3)
    rows = [
        (s, r, 0, level[r] + generator.normal(0, 0.001)) for s in range(50) for r in range(3) for _ in "ab"
    ]
    assert run_noise(past(rows), NOTHING, POLICY).df == 2.0
