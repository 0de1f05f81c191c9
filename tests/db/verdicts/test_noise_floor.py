"""What a machine can show, from identical trials."""

from __future__ import annotations

import math

import pytest

from db.verdicts.noise_floor import NoiseFloor, noise_floor, smallest_effect, variation
from db.verdicts.significance import trials_needed


def test_the_variation_is_the_standard_deviation_of_the_logarithms():
    # logs -0.1, 0, 0.1: squares 0.02 over 2
    assert variation([math.exp(x) for x in (-0.1, 0.0, 0.1)]) == pytest.approx(0.1)


@pytest.mark.parametrize("trials", [2, 5, 17])
def test_the_smallest_effect_is_the_one_that_needs_just_so_many_trials(trials: int):
    effect = smallest_effect(0.013, trials)
    assert int(trials_needed(0.013, effect * 1.0001)) == trials
    assert int(trials_needed(0.013, effect * 0.9999)) == trials + 1


def test_a_floor_is_told_from_three_trials_on_for_five_a_side():
    latencies = [math.exp(x) for x in (-0.1, 0.0, 0.1)]
    # 0.1 x (2.81 + 1.645) x sqrt(2 / 5)
    assert noise_floor(latencies) == NoiseFloor(pytest.approx(0.28176, abs=1e-5), 3)
    assert noise_floor(latencies[:2]) is None
