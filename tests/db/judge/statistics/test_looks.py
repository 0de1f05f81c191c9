"""Trials that are judged as they come: the level is shared over the looks, and holds over all of them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from compilewatch.db.judge.statistics.looks import (
    LOOKS,
    share_of_level,
    standard_error,
    trials_to_equal,
    visible_after,
)
from tests.db.verdicts.h100 import judge_values
from tests.qa.benchmarks.test_until_decided import NOISES, Setting, alarms, found
from tests.qa.benchmarks.verdict_rules import FAMILIES

COMPARISONS = 100
ERROR = np.sqrt(0.05 * 0.95 / COMPARISONS)


def test_the_parts_of_the_level_are_one_level_together():
    parts = [Fraction(3, (look + 2) * (look + 3)) for look in range(1, len(LOOKS) + 1)]
    assert share_of_level(LOOKS) == pytest.approx([float(part) for part in parts])
    assert 0.9 < sum(parts) < 1


def test_trials_that_end_between_two_looks_have_the_part_of_the_next():
    assert share_of_level(np.array([1, 4, 5, 6, 7])) == pytest.approx([0.25, 0.25, 0.15, 0.15, 0.10])


@pytest.mark.parametrize("noise", ["normal", "two modes", "recorded, 2 vCPUs"])
def test_gates_over_unchanged_code_raise_something_in_a_twentieth_at_most(noise: str):
    here = Setting(cases=2, cv=0.30, noise=noise, most=24, families=FAMILIES)
    assert alarms(here, COMPARISONS) <= 0.05 + ERROR


def test_judged_over_and_over_at_the_whole_level_more_than_a_twentieth_raise_something():
    """What the parts are for: the same looks without them."""
    generator = np.random.default_rng(1)
    raised = 0
    for _ in range(COMPARISONS):
        x = 0.30 * NOISES["normal"]((2, 2, 64), generator)
        raised += any(judge_values(x[:, :, :look], None, families=1).changed.any() for look in LOOKS[:9])
    assert raised / COMPARISONS > 0.05 + ERROR


def test_twice_as_slow_is_found_within_twenty_trials_at_thirty_percent_between_processes():
    share, trials = found(Setting(cases=2, cv=0.30, effect=1.0, most=20, families=FAMILIES), COMPARISONS)
    assert share >= 0.95
    assert trials <= 12


def test_a_standard_error_is_told_from_the_interval_of_its_look():
    # At 6 trials a side the look has 3/20 of the level: 99.25 %, 10 degrees of freedom.
    half = 0.04 * stats.t.ppf(1 - 0.05 * 0.15 / 2, 10)
    assert standard_error(half, 6, 0.95) == pytest.approx(0.04)


def test_four_times_the_trials_show_less_than_half_the_change_but_for_the_later_look():
    at_6, at_24 = (visible_after(0.10, 6, later, 0.01) for later in (6, 24))
    assert at_6 == pytest.approx(0.10 * stats.t.ppf(1 - 0.01 * 0.15 / 2, 10))
    assert at_24 == pytest.approx(0.05 * stats.t.ppf(1 - 0.01 * 3 / 72 / 2, 46))
    assert visible_after(0.10, 6, 31, 0.01) == at_24, "31 trials are looked at after 24"


def test_equal_sides_are_shown_to_be_so_at_the_first_look_that_is_narrow_enough():
    needed = trials_to_equal(0.05, 8, np.log1p(0.03), 0.05)
    assert needed is not None
    looks = LOOKS.tolist()
    for trials, is_enough in ((needed, True), (looks[looks.index(needed) - 1], False)):
        part = 3 / ((looks.index(trials) + 3) * (looks.index(trials) + 4))
        bound = 0.05 * np.sqrt(8 / trials) * stats.t.ppf(1 - 0.05 * part, 2 * trials - 2)
        assert bool(bound <= np.log1p(0.03)) is is_enough
    assert trials_to_equal(50.0, 8, np.log1p(0.03), 0.05) is None
