"""What the past lends to the present."""

from __future__ import annotations

import numpy as np
import pytest
from pandas import DataFrame

from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.statistics.contrast import Observations
from compilewatch.db.judge.statistics.evidence import examine_cases
from compilewatch.db.judge.statistics.noise import (
    Neighbours,
    Past,
    RunNoise,
    Shown,
    repeated_runs,
    run_noise,
    series_noise,
    together,
    with_neighbours,
)

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
    from statsmodels.formula.api import ols
    from statsmodels.stats.anova import anova_lm

    generator = np.random.default_rng(1)
    level = generator.normal(0, 0.03, 12)
    rows = [(0, r, 0, level[r] + generator.normal(0, 0.01)) for r in range(12) for _ in range(4)]
    found = repeated_runs(past(rows), NOTHING, POLICY)
    table = anova_lm(ols("x ~ C(run)", DataFrame(rows, columns=["s", "run", "b", "x"])).fit())
    expected = (table["mean_sq"].iloc[0] - table["mean_sq"].iloc[1]) / 4
    assert (found.variance, found.df) == (pytest.approx(expected), 11.0)


def test_different_builds_are_no_repeated_runs():
    rows = [(0, r, r, 0.1 * r) for r in range(10) for _ in range(2)]
    found = repeated_runs(past(rows), NOTHING, POLICY)
    assert (found.variance, found.df) == (0.0, 0.0)


def test_runs_of_one_trial_need_the_present_trials_to_tell_both_variances_apart():
    generator = np.random.default_rng(2)
    rows = [(0, r, 0, generator.normal(0, 0.05)) for r in range(200)]
    own = (np.array([0.03**2]), np.array([8.0]))
    found = repeated_runs(past(rows), own, POLICY)
    assert np.sqrt(found.variance) == pytest.approx(0.04, rel=0.2)
    assert found.df == POLICY.history_df_limit


def test_many_series_that_move_together_count_as_one():
    generator = np.random.default_rng(3)
    level = generator.normal(0, 0.03, 3)
    rows = [
        (s, r, 0, level[r] + generator.normal(0, 0.001)) for s in range(50) for r in range(3) for _ in "ab"
    ]
    assert repeated_runs(past(rows), NOTHING, POLICY).df == 2.0


def test_a_calm_series_is_taken_as_one_level():
    """Steady by von Neumann's ratio, so a lone far point is noise and not a level of its own."""
    y = np.tile([0.0, 0.01], 20)
    found = series_noise(past([(0, r, r, x) for r, x in enumerate(y)]), 1, POLICY)
    assert (found.variance[0], found.df[0]) == (pytest.approx(np.var(y) * 40 / 39), 20.0)
    short = series_noise(past([(0, r, r, x) for r, x in enumerate(y[:6])]), 1, POLICY)
    assert (short.variance[0], short.df[0]) == (pytest.approx(np.var(y[:6]) * 6 / 5), 5.0)


def test_each_level_of_a_series_takes_one_degree_of_freedom():
    y = np.concatenate([np.tile([0.0, 0.01], 20), 1 + np.tile([0.0, 0.01], 15)])
    found = series_noise(past([(0, r, r, x) for r, x in enumerate(y)]), 1, POLICY)
    assert found.variance[0] == pytest.approx(70 * 0.005**2 / 68)
    assert found.df[0] == POLICY.history_df_limit


@pytest.mark.parametrize(("runs", "df"), [(2, 0.0), (3, 2.0)])
def test_three_runs_of_one_trial_each_tell_a_variance(runs: int, df: float):
    found = series_noise(past([(0, r, 0, 0.1 * r) for r in range(runs)]), 1, POLICY)
    assert found.df[0] == df
    assert np.isnan(found.variance[0]) == (df == 0)


def test_a_series_that_never_moved_has_no_variance():
    found = series_noise(past([(0, r, 0, 1.0) for r in range(6)]), 1, POLICY)
    assert (found.variance[0], found.df[0]) == (0.0, 5.0)


def test_trials_of_each_series_stay_apart_whatever_their_order():
    rows = [(1, 0, 0, 5.0), (0, 1, 0, 1.0), (1, 1, 1, 9.0), (0, 1, 0, 1.2), (1, 0, 0, 5.2), (1, 1, 1, 9.4)]
    found = series_noise(past(rows), 3, POLICY)
    assert found.variance[:2] == pytest.approx([0.02, (0.02 + 0.08) / 2])
    assert found.df.tolist() == [1.0, 2.0, 0.0]
    assert found.runs.tolist() == [1, 2, 0]
    assert np.isnan(found.variance[2])


def test_the_noise_of_a_series_is_the_same_alone_and_among_others():
    generator = np.random.default_rng(3)
    lengths = (12, 40, 12, 7, 40, 3)
    series = [generator.normal(0, 0.01, length) + 0.1 * (np.arange(length) > 20) for length in lengths]
    rows = [(s, r, r, x) for s, y in enumerate(series) for r, x in enumerate(y)]
    found = series_noise(past(rows), len(series), POLICY)
    for number, y in enumerate(series):
        alone = series_noise(past([(0, r, r, x) for r, x in enumerate(y)]), 1, POLICY)
        assert (found.variance[number], found.df[number]) == (alone.variance[0], alone.df[0])
    assert found.variance[1] == pytest.approx(1e-4, rel=0.5)  # the step is no noise


def test_nothing_repeated_tells_nothing():
    for found in (
        repeated_runs(Past.empty(), NOTHING, POLICY),
        repeated_runs(past([(0, 0, 0, 1.0)]), NOTHING, POLICY),
    ):
        assert found == RunNoise(0.0, 0.0)
    same = past([(0, r, 0, x) for r in (0, 1) for x in (1.0, 2.0)])
    assert repeated_runs(same, NOTHING, POLICY) == RunNoise(0.0, 1.0)
    lent = series_noise(Past.empty(), 2, POLICY)
    assert np.isnan(lent.variance).all()
    assert (lent.df.tolist(), lent.runs.tolist()) == ([0.0, 0.0], [0, 0])


def test_runs_of_unequal_size_and_two_builds_by_hand():
    """Build 0: runs of 2 and 1 trials around 0.1 and 0.4, level 0.2. Build 1 has one run and is passed over.

    Between: 2 x 0.1^2 + 1 x 0.2^2 = 0.06 with one degree; within: 0.02^2 x 2 = 0.0008 of the first run and
    0.0002 of build 1's, with two; a run holds 1.5 trials on average.
    """
    rows = [(0, 0, 0, 0.08), (0, 0, 0, 0.12), (0, 1, 0, 0.4), (0, 2, 1, 0.49), (0, 2, 1, 0.51)]
    found = repeated_runs(past(rows), NOTHING, POLICY)
    assert (found.variance, found.df) == (pytest.approx((0.06 - (0.0008 + 0.0002) / 2) / 1.5), 1.0)


def test_the_present_trials_lend_their_mean_variance_by_degrees_of_freedom():
    rows = [(0, r, 0, x) for r, x in enumerate((0.0, 0.1, 0.2))]
    own = (np.array([0.001, 0.004, np.nan, 0.5]), np.array([3.0, 1.0, 7.0, 0.0]))
    found = repeated_runs(past(rows), own, POLICY)
    assert found.variance == pytest.approx(0.01 - (3 * 0.001 + 0.004) / 4)
    assert repeated_runs(past(rows), NOTHING, POLICY).variance == pytest.approx(0.01)


# What else is known of the noise between runs.

UNKNOWN = RunNoise(0.0, 0.0)


def test_a_machine_that_nobody_knows_has_the_cautious_default():
    alone = run_noise(UNKNOWN, Shown(), POLICY, alone=True)
    assert alone == RunNoise(pytest.approx(POLICY.run_cv_alone**2), POLICY.run_cv_df)
    noisy = run_noise(UNKNOWN, Shown(floor=lambda: 0.2), POLICY, alone=True)
    assert noisy.variance == pytest.approx(0.04)
    calm = run_noise(UNKNOWN, Shown(floor=lambda: 0.001), POLICY, alone=True)
    assert calm.variance == alone.variance


def test_canaries_and_repeated_runs_pull_the_default_by_their_degrees_of_freedom():
    canaries = Shown(canaries=np.array([0.1, -0.1, 0.2]))
    found = run_noise(RunNoise(0.01, 5.0), canaries, POLICY, alone=False)
    squares = POLICY.run_cv_df * POLICY.run_cv**2 + (0.01 + 0.01 + 0.04) / 2 + 5 * 0.01
    df = POLICY.run_cv_df + 3 + 5
    assert found == RunNoise(pytest.approx(squares / df), df)


def test_canaries_that_stood_still_make_nothing_calmer_than_the_default():
    still = run_noise(UNKNOWN, Shown(canaries=np.zeros(3)), POLICY, alone=False)
    assert still == RunNoise(pytest.approx(POLICY.run_cv**2), POLICY.run_cv_df + 3)


def test_a_third_of_the_noise_of_runs_is_left_in_a_ratio_and_none_in_memory():
    canaries = np.array([0.3])
    whole, third = (
        run_noise(UNKNOWN, Shown(canaries=canaries, share=share), POLICY, alone=False) for share in (1, 1 / 3)
    )
    assert third.variance == pytest.approx(whole.variance / 9)
    memory = run_noise(UNKNOWN, Shown(canaries=canaries, share=0.0), POLICY, alone=False)
    assert memory == RunNoise(POLICY.between_run_floor**2, np.inf)


def neighbours(*differences: float) -> Neighbours:
    x = np.array(differences)
    return Neighbours(x, np.full(len(x), 2.0), np.zeros(len(x)), np.ones(len(x), dtype=np.bool_))


def test_without_a_canary_the_other_cases_show_the_noise_of_their_runs():
    known = run_noise(UNKNOWN, Shown(), POLICY, alone=False)
    calm, moved, two = (
        with_neighbours(known, neighbours(*rest), POLICY)
        for rest in ((0.3, 0.0, 0.0, 0.0), (0.0, 0.1, 0.1, 0.1), (0.3, 0.3))
    )
    variance, df = np.array(calm.variance), np.array(calm.df)
    assert variance[0] < known.variance < np.array(moved.variance)[0]
    assert (df > POLICY.run_cv_df).all()
    assert (np.array(two.variance) == known.variance).all()


def test_cases_that_all_changed_are_not_taken_for_noise_without_end():
    known = run_noise(UNKNOWN, Shown(), POLICY, alone=False)
    most = (POLICY.run_surprise * POLICY.run_cv) ** 2
    assert (np.array(with_neighbours(known, neighbours(*[0.9] * 5), POLICY).variance) <= most).all()


def test_beside_canaries_cases_that_moved_alike_are_no_noise():
    known = run_noise(UNKNOWN, Shown(canaries=np.array([0.01, 0.0, -0.01])), POLICY, alone=False)
    alike, apart = (
        np.array(with_neighbours(known, neighbours(*rest), POLICY).variance)
        for rest in ((0.3, 0.31, 0.3, 0.29), (0.3, -0.2, 0.0, 0.1))
    )
    assert (alike == known.variance).all(), "what they have in common may be the machine's"
    assert (apart > known.variance).all()


def test_what_two_runs_have_in_common_takes_several_cases():
    few = together(neighbours(*[0.1] * (POLICY.run_neighbours - 1)), POLICY)
    assert (few.change, few.df) == (0.0, 0.0)
    many = together(neighbours(0.5, *[0.1] * POLICY.run_neighbours), POLICY)
    assert many.change == pytest.approx(0.1)
    assert many.variance == pytest.approx(2 * POLICY.between_run_floor**2)


def test_a_variance_between_runs_that_was_estimated_counts_with_its_own_degrees_of_freedom():
    """Twelve earlier runs of one build, then one run a side: Satterthwaite's df of both variances."""
    generator = np.random.default_rng(1)
    run, level = np.repeat(np.arange(12), 4), generator.normal(0, 0.03, 12)
    none = np.zeros(48, dtype=np.int64)
    earlier = Past(none, run, none, level[run] + generator.normal(0, 0.01, 48))
    side = np.repeat([0, 1], 3)
    observed = Observations(none[:6], side, side, np.arange(6), generator.normal(0, 0.01, 6))
    found = examine_cases(observed, earlier, 1, POLICY)
    df = 11 + POLICY.run_cv_df
    assert found.run_df[0] == df
    within, between = 2 / 3 * found.cv**2, 2 * found.run_variance
    # Runs that differ by a known variance leave the trials' own degrees of freedom.
    own_df = found.within.df * (within / (within + 2 * POLICY.between_run_floor**2)) ** 2
    expected = (within + between) ** 2 / (within**2 / own_df + between**2 / df)
    assert found.test.df == pytest.approx(expected)
