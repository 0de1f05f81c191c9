"""The difference of two sides against least squares and the paired t-test."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.statistics.contrast import Observations, contrast

POLICY = Policy()


def observations(rows: list[tuple[int, int, int, float]]) -> Observations:
    """Rows of (case, side, run, x) in time order."""
    case, side, run, x = (np.array(column) for column in zip(*rows, strict=True))
    return Observations(case, side, run, np.arange(len(rows)), x.astype(float))


def test_one_run_is_the_pooled_two_sample_t_test():
    generator = np.random.default_rng(0)
    a, b = generator.normal(0, 1, 4), generator.normal(1, 1, 7)
    rows = [(0, 0, 0, x) for x in a] + [(0, 1, 0, x) for x in b]
    found = contrast(observations(rows), 1, POLICY)
    expected = stats.ttest_ind(b, a)
    t = found.difference[0] / np.sqrt(found.variance[0] * found.scale[0])
    assert (t, found.df[0]) == (pytest.approx(expected.statistic), expected.df)
    assert found.interleaved[0]
    assert found.run_scale[0] == 0.0


def test_several_shared_runs_are_least_squares_with_a_level_per_run():
    import statsmodels.api as sm

    generator = np.random.default_rng(1)
    level = {0: 0.0, 1: 5.0, 2: -3.0}
    counts = {(0, 0): 3, (0, 1): 2, (1, 0): 2, (1, 1): 4, (2, 0): 3, (2, 1): 3}
    rows = [
        (0, side, run, level[run] + 0.3 * side + generator.normal())
        for (run, side), n in counts.items()
        for _ in range(n)
    ]
    found = contrast(observations(rows), 1, POLICY)
    design = np.array([[row[1], *(row[2] == run for run in range(3))] for row in rows], dtype=float)
    fit = sm.OLS([row[3] for row in rows], design).fit()
    assert found.difference[0] == pytest.approx(fit.params[0])
    assert (found.variance[0], found.df[0]) == (pytest.approx(fit.mse_resid), fit.df_resid)
    assert np.sqrt(found.variance[0] * found.scale[0]) == pytest.approx(fit.bse[0])


def test_trials_in_pairs_that_share_their_noise_are_tested_as_pairs():
    generator = np.random.default_rng(2)
    rows, pairs = [], []
    for case in range(20):
        shared = generator.normal(0, 1, 5)
        a, b = shared + generator.normal(0, 0.1, 5), shared + generator.normal(0, 0.1, 5)
        pairs.append((a, b))
        for x, y in zip(a, b, strict=True):
            rows += [(case, 0, 0, x), (case, 1, 0, y)]
    found = contrast(observations(rows), 20, POLICY)
    for case, (a, b) in enumerate(pairs):
        t = found.difference[case] / np.sqrt(found.variance[case] * found.scale[case])
        expected = stats.ttest_rel(b, a)
        assert (t, found.df[case]) == (pytest.approx(expected.statistic), expected.df)


def test_pairs_that_share_nothing_keep_all_degrees_of_freedom():
    generator = np.random.default_rng(3)
    rows = [(case, side, 0, generator.normal()) for case in range(20) for _ in range(5) for side in (0, 1)]
    assert contrast(observations(rows), 20, POLICY).df.tolist() == [8.0] * 20


def test_sides_from_different_runs_are_told_so_and_weigh_the_variance_between_runs():
    rows = [(0, 0, 0, 1.0), (0, 0, 0, 1.2), (0, 0, 0, 0.8), (0, 1, 1, 2.0), (0, 1, 2, 2.2), (0, 1, 2, 1.8)]
    found = contrast(observations(rows), 1, POLICY)
    assert not found.interleaved[0]
    assert found.run_scale[0] == pytest.approx(1 + (1 / 3) ** 2 + (2 / 3) ** 2)
    assert found.difference[0] == pytest.approx(1.0)


def test_trials_of_other_runs_stand_aside_once_the_shared_run_holds_enough():
    shared = [(0, side, 1, value + side) for value in (1.0, 1.1, 0.9) for side in (0, 1)]
    alone = [(0, 0, 0, 50.0)] * 3
    found = contrast(observations(alone + shared), 1, POLICY)
    assert found.interleaved[0]
    assert found.difference[0] == pytest.approx(1.0)
    assert found.trials.tolist() == [[3, 3]]


def test_an_empty_side_has_no_difference():
    found = contrast(observations([(0, 0, 0, 1.0), (1, 0, 0, 1.0), (1, 1, 0, 1.0)]), 2, POLICY)
    assert np.isnan(found.difference[0])
    assert found.difference[1] == 0.0
    assert found.trials.tolist() == [[1, 0], [1, 1]]


@pytest.mark.parametrize("side", [0, 1])
def test_a_shared_run_that_holds_too_little_of_a_side_is_no_block(side: int):
    shared = [(0, side, 1, 1.0)] + [(0, 1 - side, 1, 2.0)] * 3
    alone = [(0, side, 0, 3.0)] * 2
    found = contrast(observations(alone + shared), 1, POLICY)
    assert not found.interleaved[0]
    assert found.trials.sum() == 6
    # all that there is of a side is enough
    assert contrast(observations(shared), 1, POLICY).interleaved[0]


def test_a_case_with_one_side_knows_the_variance_of_that_side():
    """Sum of squares 0.08 over n - 1: no difference is taken, so none costs a degree of freedom."""
    found = contrast(observations([(0, 0, 0, x) for x in (1.0, 1.2, 0.8)]), 1, POLICY)
    assert (found.df[0], found.variance[0]) == (2.0, pytest.approx(0.08 / 2))


def test_three_pairs_are_enough_to_be_tested_as_pairs():
    base, head = np.array([1.0, 5.0, 9.0]), np.array([1.1, 5.3, 9.2])
    rows = [(0, side, 0, x) for pair in zip(base, head, strict=True) for side, x in enumerate(pair)]
    found = contrast(observations(rows), 1, POLICY)
    expected = stats.ttest_rel(head, base)
    t = found.difference[0] / np.sqrt(found.variance[0] * found.scale[0])
    assert found.paired[0]
    assert (t, found.df[0]) == (pytest.approx(expected.statistic), expected.df)
