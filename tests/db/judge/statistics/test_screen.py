"""A range of speedup by other models: how often it holds, and that it follows what tells."""

from __future__ import annotations

import numpy as np
import pytest

from compilewatch.db.judge.statistics.screen import FEWEST, features, speedup_range
from compilewatch.db.metrics.groups import Floats
from compilewatch.db.records.sampling_facts import ProfileSide


def _models(generator: np.random.Generator, n: int) -> tuple[Floats, Floats]:
    """Models that gain the more, the fewer matrix products they have."""
    known = np.column_stack([generator.uniform(0, 1, n), generator.normal(10, 2, n), np.ones(n), np.zeros(n)])
    return known, np.exp(0.8 - 0.9 * known[:, 0] + generator.normal(0, 0.1, n))


@pytest.mark.parametrize("n", [FEWEST, 20])
def test_a_new_model_lies_in_its_range_as_often_as_is_said(n: int) -> None:
    generator, held = np.random.default_rng(1), 0
    for _ in range(400):
        known, speedups = _models(generator, n + 1)
        found = speedup_range(known[:n], speedups[:n], known[n])
        assert found is not None
        assert found.low <= found.middle <= found.high
        held += found.low <= speedups[n] <= found.high
    # Of 400 ranges that hold in 80 %, 302 or more hold with 99.5 %.
    assert held >= 302


def test_the_range_follows_the_share_of_matrix_products() -> None:
    known, speedups = _models(np.random.default_rng(2), 20)
    few, many = (speedup_range(known, speedups, np.array([share, 10.0, 1.0, 0.0])) for share in (0.1, 0.9))
    assert few is not None
    assert many is not None
    assert few.low > 1.0
    assert many.middle < 1.2 < few.middle


def test_of_few_models_nothing_is_said() -> None:
    known, speedups = _models(np.random.default_rng(3), FEWEST - 1)
    assert speedup_range(known, speedups, known[0]) is None


def test_models_that_are_all_alike_are_no_slope() -> None:
    found = speedup_range(np.ones((12, 4)), np.full(12, 1.5), np.full(4, 7.0))
    assert found == pytest.approx((1.5, 1.5, 1.5))


def test_operators_that_were_not_counted_give_no_features() -> None:
    assert features(ProfileSide(step_ns=10), 10.0, 0) is None
    counted = ProfileSide(step_ns=10, operators=5, matrix_fraction=0.5)
    assert features(counted, 50.0, 0) == pytest.approx((0.5, np.log(10.0), 1.0, 0.0))
