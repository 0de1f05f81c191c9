"""One mode or two, and whether a step only goes from one to the other."""

from __future__ import annotations

import numpy as np
import pytest

from compilewatch.db.judge.modes import is_flip, two_modes
from compilewatch.db.judge.policy import HistoryPolicy

RULES = HistoryPolicy()
LOW, HIGH, DEVIATION = 2.0, 2.1, 0.005


def mixed(n: int, share: float, *, low: float = LOW, high: float = HIGH, seed: int = 0) -> np.ndarray:
    """Exactly that share of points in the higher mode, in random order."""
    generator = np.random.default_rng(seed)
    upper = generator.permutation(np.arange(n) < round(share * n))
    return np.where(upper, high, low) + DEVIATION * generator.standard_normal(n)


def blocks(*states: int, length: int = 10) -> np.ndarray:
    """Stretches in the low (0) and high (1) state, with a little noise that repeats itself."""
    level = np.repeat([HIGH if state else LOW for state in states], length)
    return level + DEVIATION * np.sin(np.arange(len(level)))


@pytest.mark.parametrize("share", [0.15, 0.3, 0.5, 0.8])
def test_both_modes_are_found_where_they_are(share: float):
    y = mixed(400, share)
    found = two_modes(y, RULES)
    upper = y > (LOW + HIGH) / 2
    assert found.low == pytest.approx(y[~upper].mean(), abs=1e-6)
    assert found.high == pytest.approx(y[upper].mean(), abs=1e-6)
    assert found.high_share == pytest.approx(share, abs=1e-6)
    residual = y - np.where(upper, y[upper].mean(), y[~upper].mean())
    assert found.deviation == pytest.approx(np.std(residual), rel=1e-5)


@pytest.mark.parametrize("n", [100, 200])
def test_the_fit_is_that_of_an_independent_search(n: int):
    """Modes that overlap: the likelihood of the fit is the largest that a general optimiser finds."""
    from scipy import optimize, stats

    y = mixed(n, 0.4, high=LOW + 4 * DEVIATION)
    found = two_modes(y, RULES.model_copy(update={"two_mode_bic_gain": 0.01}))

    def cost(p: np.ndarray) -> float:
        low, high, log_sd, logit = p
        share = 1 / (1 + np.exp(-logit))
        return -float(
            np.sum(
                np.log(
                    (1 - share) * stats.norm.pdf(y, low, np.exp(log_sd))
                    + share * stats.norm.pdf(y, high, np.exp(log_sd))
                )
            )
        )

    start = np.array([LOW, LOW + 4 * DEVIATION, np.log(DEVIATION), 0.0])
    best = optimize.minimize(cost, start, method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-8})
    assert (found.low, found.high) == pytest.approx((best.x[0], best.x[1]), abs=2e-5)
    assert found.deviation == pytest.approx(np.exp(best.x[2]), rel=1e-2)


@pytest.mark.parametrize(
    "y",
    [
        mixed(19, 0.5),
        np.full(100, LOW),
        mixed(400, 0.05),
        mixed(400, 0.95),
        mixed(400, 0.5, high=LOW + DEVIATION),
        np.random.default_rng(3).standard_normal(400),
        np.random.default_rng(4).uniform(size=60),
    ],
    ids=["short", "constant", "rarely high", "rarely low", "not apart", "normal", "uniform"],
)
def test_these_have_one_mode(y: np.ndarray):
    assert two_modes(y, RULES) is None


def test_twenty_points_are_enough_and_both_modes_may_be_exact():
    assert two_modes(mixed(20, 0.5), RULES) is not None
    found = two_modes(np.repeat([1.0, 2.0], 10), RULES)
    assert (found.low, found.high, found.high_share) == pytest.approx((1.0, 2.0, 0.5))


def test_two_modes_must_beat_one_by_the_gain_asked_for():
    y = mixed(60, 0.5, high=LOW + 4.5 * DEVIATION)
    gains = [
        two_modes(y, RULES.model_copy(update={"two_mode_bic_gain": g})) is not None for g in (1.0, 500.0)
    ]
    assert gains == [True, False]


def test_a_state_that_came_and_went_before_flips():
    y = blocks(0, 1, 0, 1, 0)
    assert is_flip(y, 40, RULES)
    assert is_flip(y[:40], 30, RULES)
    assert is_flip(blocks(1, 0, 1, 0), 30, RULES)


@pytest.mark.parametrize(
    ("y", "start"),
    [
        (blocks(0, 1, 0), 20),  # only came back once
        (blocks(0, 0, 0, 1), 30),
        (blocks(0, 1, 0, 1, 1), 40),  # no step from one mode to the other
        (np.concatenate([blocks(0, 1, 0, 1), blocks(0) + 0.3]), 40),  # beyond both modes
        (np.concatenate([blocks(0, 1, 0, 1), blocks(0) - 0.3]), 40),
        (np.full(50, LOW), 40),
    ],
)
def test_these_steps_are_changes(y: np.ndarray, start: int):
    assert not is_flip(y, start, RULES)


def test_a_visit_shorter_than_a_segment_is_none():
    """Four single nights in the other state are outliers, not visits."""
    y = blocks(0, 0, 0, 0, 0, 1)
    y[[8, 20, 30, 44]] = HIGH
    assert two_modes(y, RULES) is not None
    assert not is_flip(y, 50, RULES)


def test_a_visit_of_exactly_a_segment_counts():
    assert is_flip(blocks(0, 1, 0, 1, 0, length=RULES.minimum_segment), 4 * RULES.minimum_segment, RULES)


def test_two_modes_must_stand_as_far_apart_as_asked_for():
    """They stand 0.1 / 0.005 = 20 of their deviations apart."""
    y = mixed(400, 0.5)
    found = [
        two_modes(y, RULES.model_copy(update={"two_mode_separation": far})) is not None for far in (17, 23)
    ]
    assert found == [True, False]
