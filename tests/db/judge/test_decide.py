"""The rules that turn a test into a verdict, one by one, on tests made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compilewatch.db.judge.decide import Decision, Evidence, decide, enough_trials
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.significance import TTest, power_quantile, trials_needed

POLICY = Policy()
NAN = float("nan")


def examined(
    difference: list[float],
    p_value: list[float],
    *,
    trials: list[tuple[int, int]] | None = None,
    error: float = 0.01,
    cv: float = 0.01,
    past_runs: int = 0,
    past_variance: float = NAN,
    run_scale: float = 0.0,
    run_variance: float = 0.0,
) -> Evidence:
    """Cases with these log differences and p-values, seven trials a side if nothing else is said."""
    cases = len(difference)
    flags, df = np.zeros(cases, dtype=np.bool_), np.full(cases, 20.0)
    both = np.array(trials or [(7, 7)] * cases)
    test = TTest(np.array(difference), np.full(cases, error), df, np.array(p_value))
    return Evidence(
        test=test,
        within=test,
        trials=both,
        level=np.zeros((cases, 2)),
        interleaved=~flags,
        run_scale=np.full(cases, run_scale),
        run_variance=np.full(cases, run_variance),
        run_df=np.full(cases, np.inf),
        cv=np.full(cases, cv),
        scatter=np.full(cases, cv**2),
        past_runs=np.full(cases, past_runs),
        past_error=np.full(cases, np.sqrt(2 / 7 * past_variance + run_scale * run_variance)),
        rate=np.where(
            both.min(axis=1) < POLICY.few_trials, POLICY.few_trials_rate, POLICY.false_discovery_rate
        ),
        ranked=flags,
        identical=flags,
        apart=np.full(cases, -cv),
        spread=np.full(cases, cv),
        share=np.ones(cases),
    )


def judge(found: Evidence, *, families: int = 1, **options: Any) -> Decision:
    cases = len(found.test.p_value)
    return decide(
        found,
        POLICY,
        minimum_effect=np.full(cases, 0.02),
        margin=np.full(cases, 0.03),
        families=families,
        **options,
    )


def test_a_sure_and_large_change_moved_in_its_direction():
    found = judge(examined([0.1, -0.1], [0.001, 0.001]))
    assert (found.regressed.tolist(), found.improved.tolist()) == ([True, False], [False, True])
    assert found.same.tolist() == [False, False]
    assert found.more_trials.tolist() == [0, 0]


def test_a_change_counts_from_the_minimum_effect_on():
    at, below = np.log1p(0.02), np.log1p(0.02) - 1e-9
    found = judge(examined([at, -at, below, -below], [1e-6] * 4))
    assert found.changed.tolist() == [True, True, False, False]


def test_three_trials_are_held_to_the_stricter_rate():
    four, three = [(4, 7), (7, 4)], [(3, 7), (7, 3)]
    assert judge(examined([0.1, 0.1], [0.04, 0.04], trials=four)).regressed.tolist() == [True, True]
    assert judge(examined([0.1, 0.1], [0.04, 0.04], trials=three)).regressed.tolist() == [False, False]
    assert judge(examined([0.1, 0.1], [0.03, 0.03], trials=three)).regressed.tolist() == [True, True]
    assert judge(examined([0.1, 0.1], [0.05, 0.05], trials=four)).regressed.tolist() == [True, True]


def test_the_rate_is_that_of_false_discoveries_among_all_tested_cases():
    calm = [0.9] * 8
    found = judge(examined([0.1] * 10, [0.004, 0.012, *calm]))
    assert found.q_value[:2] == pytest.approx([0.04, 0.06])
    assert found.regressed.tolist() == [True] + [False] * 9


def test_nothing_is_announced_where_all_metrics_together_show_nothing():
    """Simes' p of 0.02 stands against a share of the level of 0.05 / 2 and of 0.05 / 3."""
    found = examined([0.1], [0.02])
    assert judge(found, families=2).regressed.tolist() == [True]
    assert judge(found, families=3).regressed.tolist() == [False]


def test_a_case_that_takes_no_part_has_no_say():
    found = judge(examined([0.1, 0.1], [0.03, 1e-9]), counted=np.array([True, False]))
    assert found.regressed.tolist() == [True, False]
    assert found.enough_trials.tolist() == [True, False]
    assert found.q_value == pytest.approx([0.03, NAN], nan_ok=True)


def test_unchanged_is_shown_and_never_large():
    near = examined([0.001, 0.0, 0.018], [0.9, 1.0, 0.5], error=0.008)
    assert judge(near).same.tolist() == [True, True, False]
    assert judge(examined([0.001], [0.9], error=0.03)).same.tolist() == [False]
    assert judge(examined([0.001], [0.9], trials=[(2, 7)], error=0.005)).same.tolist() == [False]
    # surely above the minimum effect and surely within the margin: a change
    large = judge(examined([0.0245], [1e-9], error=0.0001))
    assert (large.regressed.tolist(), large.same.tolist()) == ([True], [False])
    # a large change that is not sure is not unchanged either
    unsure = judge(examined([0.0245], [0.2], error=0.0001))
    assert (unsure.regressed.tolist(), unsure.same.tolist()) == ([False], [False])


@pytest.mark.parametrize(
    ("trials", "past_runs", "enough"),
    [
        ((3, 3), 0, True),
        ((2, 9), 0, False),
        ((9, 2), 0, False),
        ((2, 2), 19, False),
        ((2, 2), 20, True),
        ((1, 9), 99, False),
    ],
)
def test_trials_that_are_enough(trials: tuple[int, int], past_runs: int, enough: bool):
    found = examined([0.1], [0.5], trials=[trials], past_runs=past_runs)
    assert enough_trials(found, POLICY).tolist() == [enough]
    assert found.fewest_trials.tolist() == [min(trials)]


def test_what_cannot_be_tested_has_never_enough_trials():
    assert enough_trials(examined([NAN], [NAN]), POLICY).tolist() == [False]
    found = judge(examined([NAN, 0.1], [NAN, 0.01]))
    assert (found.regressed.tolist(), found.more_trials.tolist()) == ([False, True], [0, 0])


def test_more_trials_first_reach_the_smallest_number():
    found = judge(examined([0.05, 0.05], [0.2, 0.2], cv=0.1, trials=[(1, 7), (2, 2)]))
    assert (found.more_trials.tolist(), found.unseen.tolist()) == ([2, 1], [0, 0])
    rare = judge(examined([0.05], [0.2], cv=0.1, trials=[(2, 2)]), planned=False)
    assert rare.more_trials.tolist() == [1]


@pytest.mark.parametrize("seen", [0.05, 0.001, -0.03])
def test_more_trials_are_planned_for_a_fixed_change_whatever_was_seen(seen: float):
    # 2 (0.03 x (2.81 + 0.8416) / log 1.05)^2 = 10.1
    assert int(trials_needed(0.03, np.log1p(0.05), power_quantile(0.8))) == 11
    assert judge(examined([seen], [0.2], cv=0.03, error=0.05)).more_trials.tolist() == [11 - 7]
    few = judge(examined([seen], [0.2], cv=0.03, error=0.05, trials=[(7, 5)]))
    assert few.more_trials.tolist() == [11 - 5]
    # more than the formula wants are there already
    assert judge(examined([seen], [0.2], cv=0.001, error=0.05)).more_trials.tolist() == [0]
    assert judge(examined([seen], [0.2], cv=0.03, error=0.05), planned=False).more_trials.tolist() == [0]


def test_a_clock_that_needs_more_than_thirty_trials_a_side_cannot_see_it():
    at, above = (judge(examined([0.01], [0.9], cv=cv, error=0.1)) for cv in (0.051, 0.052))
    assert (at.more_trials.tolist(), at.unseen.tolist()) == ([30 - 7], [0])
    assert (above.more_trials.tolist(), above.unseen.tolist()) == ([0], [31])


def test_nothing_is_planned_where_the_noise_is_unknown():
    assert judge(examined([0.05], [0.2], cv=NAN)).more_trials.tolist() == [0]


@pytest.mark.parametrize(
    ("difference", "p_value", "suspected"),
    [
        (0.1, 0.10, True),
        (-0.1, 0.10, True),
        (0.1, 0.11, False),
        (np.log1p(0.015), 0.01, True),
        (np.log1p(0.0149), 0.01, False),
        (NAN, NAN, False),
    ],
)
def test_a_case_is_suspected_by_its_test(difference: float, p_value: float, suspected: bool):
    assert judge(examined([difference], [p_value])).suspected.tolist() == [suspected]


@pytest.mark.parametrize("sign", [1, -1])
def test_too_few_trials_are_suspected_by_their_own_past(sign: int):
    """Three deviations of a difference: scale 2 / 7 of the past's variance and, apart, that of runs."""
    few = {"trials": [(1, 1)], "past_variance": 0.01**2}
    alone = 3 * 0.01 * np.sqrt(2 / 7)
    apart = 3 * np.sqrt(0.01**2 * 2 / 7 + 2 * 0.02**2)
    for size, options in ((alone, {}), (apart, {"run_scale": 2.0, "run_variance": 0.02**2})):
        for factor, suspected in ((1.001, True), (0.999, False)):
            found = examined([sign * size * factor], [1e-9], **few, **options)
            assert judge(found).suspected.tolist() == [suspected]


def test_a_past_says_nothing_where_trials_are_enough_or_there_is_none():
    assert judge(examined([0.5], [0.5], past_variance=1e-6)).suspected.tolist() == [False]
    assert judge(examined([0.5], [1e-9], trials=[(1, 1)])).suspected.tolist() == [False]


def test_of_a_noisy_class_three_trials_show_what_is_obvious_and_no_less():
    noisy = POLICY.noisy_class_cv * 1.5
    sizes = [POLICY.obvious_size * noisy * factor for factor in (1.01, 0.99)]
    found = examined(sizes, [1e-9, 1e-9], trials=[(3, 3)] * 2, cv=noisy)
    decided = judge(found)
    assert decided.regressed.tolist() == [True, False]
    assert decided.held_back.tolist() == [False, True]
