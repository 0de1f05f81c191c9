"""Summaries of samples against hand-computed quantiles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from db.errors import UnitError
from db.metrics.summary import SampleSummary, summarize_samples


def test_quantiles_are_interpolated_linearly() -> None:
    # 21 samples 0, 10 ... 200: the q quantile lies at position 20 q
    found = summarize_samples(list(range(200, -10, -10)))
    assert (found.n, found.latency_ns, found.p05_ns, found.p95_ns) == (21, 100, 10, 190)
    assert found.p99_ns == pytest.approx(198)


def test_one_sample_is_all_its_quantiles_and_none_is_none() -> None:
    assert summarize_samples([8_123_456]) == SampleSummary(1, 8_123_456, 8_123_456, 8_123_456, 8_123_456)
    assert summarize_samples([8_123_456, 8_130_001]).latency_ns == 8_126_728.5  # type: ignore[union-attr]
    assert summarize_samples([]) is None


def test_a_negative_sample_is_refused() -> None:
    with pytest.raises(UnitError):
        summarize_samples([5, -1])


@given(st.lists(st.integers(0, 2**53), min_size=1, max_size=60))
def test_quantiles_ascend_within_the_samples_in_any_order(samples: list[int]) -> None:
    found = summarize_samples(samples)
    assert min(samples) <= found.p05_ns <= found.latency_ns <= found.p95_ns <= found.p99_ns <= max(samples)
    assert summarize_samples(samples[::-1]) == found
