"""The blob codec and the percentiles kept of samples."""

from __future__ import annotations

import random
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from db.errors import DatabaseError
from db.samples import CODEC, decode_samples, encode_samples, percentile_ns

int64s = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=200)


@given(values=int64s)
def test_samples_come_back_as_they_were(values: list[int]) -> None:
    assert decode_samples(encode_samples(values), codec=CODEC, n=len(values)) == values


def test_the_format_on_disk_stays_readable() -> None:
    """Written by the first release: 1, 258 and 2**62 in byte planes, lowest bytes first."""
    planes = bytes([1, 2, 0, 0, 1, 0] + [0] * 15 + [0, 0, 64])
    assert decode_samples(zlib.compress(planes), codec="planes-zlib", n=3) == [1, 258, 2**62]


def test_a_steady_latency_takes_three_bytes_a_sample() -> None:
    generator = random.Random(0)
    samples = [round(8e6 * (1 + generator.uniform(-0.01, 0.01))) for _ in range(1000)]
    assert len(encode_samples(samples)) / len(samples) < 3


@pytest.mark.parametrize(
    ("data", "codec", "says"),
    [
        (b"no zlib stream", CODEC, "damaged"),
        (encode_samples([1, 2, 3])[:-4], CODEC, "damaged"),
        (encode_samples([1, 2]), CODEC, "16 bytes where 3 values need 24"),
        (encode_samples([1, 2, 3]), "zstd-9", "codec 'zstd-9'"),
    ],
)
def test_a_damaged_or_unknown_blob_is_a_sentence(data: bytes, codec: str, says: str) -> None:
    with pytest.raises(DatabaseError, match=says):
        decode_samples(data, codec=codec, n=3)


@given(
    values=st.lists(st.integers(0, 10**12), min_size=1, max_size=60),
    share=st.sampled_from([0.0, 0.05, 0.5, 0.95, 0.99, 1.0]),
)
def test_percentiles_are_those_of_numpy(values: list[int], share: float) -> None:
    expected = np.quantile(np.asarray(values, dtype=float), share)
    assert percentile_ns(sorted(values), share) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [([7], 0.99, 7.0), ([1, 2], 0.5, 1.5), ([10, 20, 30], 0.5, 20.0), ([0, 100], 0.05, 5.0), ([], 0.5, None)],
)
def test_percentiles_by_hand(values: list[int], share: float, expected: float | None) -> None:
    assert percentile_ns(values, share) == expected
