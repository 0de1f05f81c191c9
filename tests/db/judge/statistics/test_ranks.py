"""Cases with two modes: when ranks decide, and what they find that means do not."""

from __future__ import annotations

import numpy as np
import pytest

from compilewatch.db.judge import modes
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.statistics.evidence import RankTest, is_bimodal_in_both, rank_test, with_run_noise
from tests.db.verdicts.h100 import judge_values

POLICY = Policy()


def two_modes(generator: np.random.Generator, n: int) -> np.ndarray:
    """Log values in two modes 30 % apart, each 1 % wide."""
    return 0.3 * (generator.random(n) < 0.5) + 0.01 * generator.standard_normal(n)


def test_a_change_in_a_bimodal_case_is_found_by_ranks():
    generator = np.random.default_rng(3)
    found = 0
    for _ in range(30):
        x = np.stack([two_modes(generator, 50), two_modes(generator, 50) + np.log(1.05)])[None]
        found += bool(judge_values(x, None, families=1).regressed[0])
    assert found >= 15


def test_the_same_bimodal_code_on_both_sides_raises_nothing():
    generator = np.random.default_rng(4)
    alarms = 0
    for _ in range(100):
        judged = judge_values(two_modes(generator, 30).reshape(1, 2, 15), None, families=1)
        alarms += bool(judged.regressed[0] or judged.improved[0])
    assert alarms <= 10


def test_two_sides_that_are_only_apart_have_no_two_modes():
    generator = np.random.default_rng(5)
    base, head = 0.01 * generator.standard_normal((2, 12))
    assert not have_two_modes(base, head + 0.2)
    assert have_two_modes(two_modes(generator, 12), two_modes(generator, 12))


def have_two_modes(base: np.ndarray, head: np.ndarray) -> bool:
    known = modes.two_modes(np.concatenate([base, head]), POLICY.history)
    return known is not None and is_bimodal_in_both(base, head, known)


def test_the_shift_is_the_median_of_all_differences():
    found = rank_test(np.array([0.0, 1.0, 2.0]), np.array([10.0, 11.0, 13.0]))
    assert found.shift == pytest.approx(10.0)
    assert found.p_value == pytest.approx(0.1)


def test_what_runs_shift_is_added():
    test = RankTest(0.05, 0.01, 1e-6)
    assert with_run_noise(test, 0.0) is test
    apart = with_run_noise(test, 0.03**2)
    assert apart.error == pytest.approx(np.hypot(0.01, 0.03))
    assert apart.p_value == pytest.approx(0.114, abs=0.001)
