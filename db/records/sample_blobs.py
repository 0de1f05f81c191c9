"""Samples as compact blobs, and the percentiles a trial's row keeps of them.

The codec `offset-planes` writes the smallest value as little-endian int64, then every value's distance from
it byte plane by byte plane (all lowest bytes, then all second lowest, ...) in as many planes as the largest
distance needs: 3.1 bytes per sample of a steady 8 ms latency. `planes-zlib`, the codec of earlier releases,
took 2.8 and most of the time of an import; it is still read.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilewatch.db.errors import DatabaseError

CODEC = "offset-planes"
_FIRST_CODEC = "planes-zlib"
_ITEM_BYTES = 8


class Blob(NamedTuple):
    """One stored array: `n` values in `data`, written by `codec`."""

    data: bytes
    codec: str
    n: int


def encode_samples(values: Sequence[int] | NDArray[Any]) -> bytes:
    """A not empty array of int64 as a blob of `CODEC`; the caller stores `CODEC` and the length beside it."""
    samples = np.asarray(values, dtype=np.int64)
    low = samples.min()
    # Differences wrap where they exceed int64, to what is right as uint64.
    offsets = (samples - low).view(np.uint64)
    width = (int(offsets.max()).bit_length() + 7) // 8
    planes = offsets.astype("<u8").view(np.uint8).reshape(-1, _ITEM_BYTES).T[:width]
    head = int(low).to_bytes(_ITEM_BYTES, "little", signed=True)
    return head + bytes(planes.tobytes())


def decode_samples(blob: Blob) -> list[int]:
    """The values of a stored blob.

    Raises DatabaseError where the codec is unknown or the blob does not hold its `n` values.
    """
    low, planes = _planes(blob)
    offsets = np.zeros((blob.n, _ITEM_BYTES), dtype=np.uint8)
    offsets[:, : len(planes)] = planes.T
    values: list[int] = (offsets.view("<i8").ravel() + np.int64(low)).tolist()
    return values


def _planes(blob: Blob) -> tuple[int, NDArray[Any]]:
    """The smallest value, and the byte planes of the distances from it, a row each."""
    if blob.codec == _FIRST_CODEC:
        try:
            raw = zlib.decompress(blob.data)
        except zlib.error as error:
            raise _damaged(str(error)) from error
        if len(raw) != blob.n * _ITEM_BYTES:
            raise _damaged(f"{len(raw)} bytes where {blob.n} values need {blob.n * _ITEM_BYTES}")
        return 0, np.frombuffer(raw, dtype=np.uint8).reshape(_ITEM_BYTES, blob.n)
    if blob.codec != CODEC:
        raise DatabaseError(
            f"Samples are stored with the codec {blob.codec!r}, which this release does not know.",
            "Install the release of compilewatch that wrote them, or a newer one.",
        )
    if blob.n == 0 and not blob.data:
        return 0, np.empty((0, 0), dtype=np.uint8)
    width, rest = divmod(len(blob.data) - _ITEM_BYTES, blob.n) if blob.n else (0, 1)
    if rest or not 0 <= width <= _ITEM_BYTES:
        raise _damaged(f"{len(blob.data)} bytes for {blob.n} values")
    low = int.from_bytes(blob.data[:_ITEM_BYTES], "little", signed=True)
    return low, np.frombuffer(blob.data, dtype=np.uint8, offset=_ITEM_BYTES).reshape(width, blob.n)


def _damaged(reason: str) -> DatabaseError:
    return DatabaseError(f"Stored samples are damaged ({reason}).", "Restore the database from a backup.")


def percentile_ns(ordered_ns: Sequence[int], share: float) -> float | None:
    """The `share` quantile of ascending samples, in ns; None where there are none.

    Linear interpolation between order statistics (type 7 of Hyndman & Fan 1996, numpy's default), written out
    because `numpy.quantile` costs 30 times as much on the hundred samples of a trial.
    """
    if not ordered_ns:
        return None
    position = (len(ordered_ns) - 1) * share
    below = int(position)
    if below == len(ordered_ns) - 1:
        return float(ordered_ns[below])
    low, high = ordered_ns[below], ordered_ns[below + 1]
    return low + (high - low) * (position - below)
