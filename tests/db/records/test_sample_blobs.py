"""The blob codec and the percentiles kept of samples."""

from __future__ import annotations

import random
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilewatch.db.errors import DatabaseError
from compilewatch.db.records.sample_blobs import CODEC, Blob, decode_samples, encode_samples, percentile_ns

int64s = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=60)
near = st.integers(0, 2**62).flatmap(lambda low: st.lists(st.integers(low, low + 2**20), min_size=1))


alike = st.integers(1, 5).flatmap(lambda n: st.lists(st.integers(0, 255), min_size=n, max_size=n))


@given(values=int64s | near | alike)
def test_samples_come_back_as_they_were(values: list[int]) -> None:
    assert decode_samples(Blob(encode_samples(values), CODEC, len(values))) == values


def test_the_format_on_disk_stays_readable() -> None:
    """1, 258 and 2**62 as the first codec wrote them, and 7, 8 and 263 as this one does."""
    first = zlib.compress(bytes([1, 2, 0, 0, 1, 0] + [0] * 15 + [0, 0, 64]))
    second = bytes([7, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1])
    blobs = [Blob(first, "planes-zlib", 3), Blob(second, "offset-planes", 3), Blob(b"", "offset-planes", 0)]
    assert [*map(decode_samples, blobs)] == [[1, 258, 2**62], [7, 8, 263], []]
    assert encode_samples([7, 8, 263]) == second


def test_equal_samples_take_eight_bytes_and_steady_ones_three_each() -> None:
    generator = random.Random(0)
    samples = [round(8e6 * (1 + generator.uniform(-0.01, 0.01))) for _ in range(1000)]
    assert len(encode_samples(samples)) == 3008
    assert len(encode_samples([8_000_000] * 1000)) == 8


@pytest.mark.parametrize(
    ("data", "codec", "says"),
    [
        (b"no zlib stream", "planes-zlib", "damaged"),
        (zlib.compress(bytes(24))[:-4], "planes-zlib", "damaged"),
        (zlib.compress(bytes(16)), "planes-zlib", "16 bytes where 3 values need 24"),
        (encode_samples([1, 2, 300])[:-1], CODEC, "13 bytes for 3 values"),
        (encode_samples([1, 2, 3])[:7], CODEC, "7 bytes for 3 values"),
        (bytes(8 + 27), CODEC, "35 bytes for 3 values"),
        (encode_samples([1, 2, 3]), "zstd-9", "codec 'zstd-9'"),
    ],
)
def test_a_damaged_or_unknown_blob_is_a_sentence(data: bytes, codec: str, says: str) -> None:
    with pytest.raises(DatabaseError, match=says):
        decode_samples(Blob(data, codec, 3))


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
