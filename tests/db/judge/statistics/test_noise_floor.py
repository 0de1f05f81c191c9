"""What a machine can show, from identical trials, by numbers worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from compilewatch.db.engine.session import open_database
from compilewatch.db.judge.significance import trials_needed
from compilewatch.db.judge.statistics.noise_floor import (
    NoiseFloor,
    Scatter,
    floor_of,
    largest_variation,
    noise_floors,
    scatters,
    smallest_effect,
)
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.vocabulary import Bound
from compilewatch.db.store.trials import save_trials
from tests.builders import MS, make_trial

HOST, DEVICE = Bound.HOST, Bound.DEVICE


def test_the_variation_is_the_standard_deviation_of_the_logarithms(tmp_path: Path):
    # logs -0.1, 0, 0.1: squares 0.02 over 2
    trials = [
        make_trial(strategy="eager", trial_id=str(n), latency_ns=MS * math.exp(x), spread=0)
        for n, x in enumerate((-0.1, 0.0, 0.1))
    ]
    with open_database(f"sqlite:///{tmp_path / 'three.db'}", migrate=True) as database:
        save_trials(database, trials)
        (found,) = scatters(trials_frame(database))
    assert found == Scatter("latency", "bert-base", "eager", None, pytest.approx(0.1, rel=1e-5), 3)


@pytest.mark.parametrize("trials", [2, 5, 17])
def test_the_smallest_effect_is_the_one_that_needs_just_so_many_trials(trials: int):
    effect = smallest_effect(0.013, trials)
    assert int(trials_needed(0.013, effect * 1.0001)) == trials
    assert int(trials_needed(0.013, effect * 0.9999)) == trials + 1


@pytest.mark.parametrize(("trials", "cv"), [(5, 0.01775), (30, 0.04347)])
def test_the_largest_variation_is_the_one_at_which_so_many_trials_are_enough(trials: int, cv: float):
    # 0.05 / (4.455 x sqrt(2 / trials))
    assert largest_variation(0.05, trials) == pytest.approx(cv, rel=1e-3)
    assert int(trials_needed(largest_variation(0.05, trials) * 0.9999, 0.05)) == trials


def test_a_class_has_one_floor_a_metric_weighted_by_degrees_of_freedom():
    floors = noise_floors(
        [
            Scatter("issue_time", "a", "eager", HOST, 0.10, 4),
            Scatter("device_time", "a", "eager", HOST, 0.01, 4),
            Scatter("device_time", "b", "eager", DEVICE, 0.02, 10),
            Scatter("device_time", "a", "default", HOST, 0.03, 10),
        ]
    )
    # (3 x 0.01^2 + 9 x 0.03^2) / 12 = 0.0007
    assert floors == (
        NoiseFloor("device_time", DEVICE, pytest.approx(0.02), 10),
        NoiseFloor("device_time", HOST, pytest.approx(math.sqrt(0.0007)), 4),
        NoiseFloor("issue_time", HOST, pytest.approx(0.10), 4),
    )
    # 0.1 x (2.81 + 1.645) x sqrt(2 / 5)
    assert floors[2].change == pytest.approx(0.28176, abs=1e-5)


def test_without_a_class_the_noisiest_floor_of_a_metric_stands():
    floors = [NoiseFloor("latency", DEVICE, 0.01, 10), NoiseFloor("latency", HOST, 0.09, 10)]
    assert floor_of(floors, "latency", DEVICE) == floors[0]
    assert floor_of(floors, "latency") == floors[1]
    assert floor_of(floors, "speedup") is None
    assert floor_of([], "latency") is None
