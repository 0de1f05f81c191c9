"""Which changes the newest night of a series announces."""

from __future__ import annotations

import numpy as np
import pytest

from compilewatch.db.judge.change_points import boundaries, candidates
from compilewatch.db.judge.history.series import nightly_boundaries
from compilewatch.db.judge.policy import HistoryPolicy
from compilewatch.db.metrics.groups import Floats

RULES = HistoryPolicy()
LENIENT = RULES.at(RULES.lasting_p_value)


def noise(seed: int, n: int) -> Floats:
    return 0.02 * np.random.default_rng(seed).standard_normal(n)


def announced_starts(y: Floats, policy: HistoryPolicy) -> list[int]:
    night = nightly_boundaries(y, policy)
    return [*(each.start for each in night.strong), *sorted(night.lasting)]


@pytest.mark.parametrize(("seed", "night", "start"), [(0, 53, 41), (29, 61, 43), (47, 55, 40)])
def test_weak_evidence_is_announced_once_it_stood_on_three_nights(seed: int, night: int, start: int):
    y = noise(seed, 70)
    y[40:] += 0.035
    assert nightly_boundaries(y[:night], RULES).strong == []
    for nights_before in (1, 2):
        known = y[: night - nights_before]
        assert boundaries(known, LENIENT) != []
        assert announced_starts(known, RULES) == []
    assert boundaries(y[: night - 3], LENIENT) == []
    assert announced_starts(y[:night], RULES) == [start]


@pytest.mark.parametrize(("seed", "night"), [(685, 15), (2445, 28)])
def test_evidence_of_a_single_night_passes(seed: int, night: int):
    y = noise(seed, 40)
    assert boundaries(y[:night], LENIENT) != []
    assert [announced_starts(y[:n], RULES) for n in range(1, 41)] == [[]] * 40


def test_strong_evidence_is_announced_the_same_night():
    y = noise(1, 60)
    y[40:] += 0.10
    (boundary,) = nightly_boundaries(y[:50], RULES).strong
    assert boundary.start == 40
    assert nightly_boundaries(y[:50], RULES).lasting == frozenset()


def test_weak_evidence_of_long_ago_is_no_news():
    y = noise(0, 70)
    y[40:] += 0.035
    short = RULES.model_copy(update={"points_per_side": 12})
    assert announced_starts(y[:53], RULES) == [41]
    assert announced_starts(y[:53], short) == []


def test_a_change_is_dated_to_where_its_levels_meet():
    """Noise of two modes: the kernel's first guess is four nights early."""
    generator = np.random.default_rng(270)
    y = 0.01 * (generator.standard_normal(70) + 2.5 * (generator.random(70) < 0.25))
    y[40:] += 0.045
    assert candidates(y[None], RULES) == [[36]]
    assert announced_starts(y, RULES) == [40]


def test_a_constant_series_announces_nothing():
    assert announced_starts(np.zeros(50), RULES) == []
    assert announced_starts(np.zeros(0), RULES) == []
