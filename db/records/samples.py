"""Samples as compact blobs, and the percentiles a trial's row keeps of them: many arrays at once.

The codec `offset-planes` writes the smallest value as little-endian int64, then every value's distance from
it byte plane by byte plane (all lowest bytes, then all second lowest, ...) in as many planes as the largest
distance needs: 3.1 bytes per sample of a steady 8 ms latency. `planes-zlib`, the codec of earlier releases,
took 2.8 and most of the time of an import; it is still read.
"""

from __future__ import annotations

import zlib
from array import array
from collections import defaultdict
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from db.errors import DatabaseError

CODEC = "offset-planes"
_FIRST_CODEC = "planes-zlib"
_ITEM_BYTES = 8
# From how many blobs of one shape on it pays to decode them together.
_WORTH_SHARING = 4
# The smallest span that needs one more byte plane than the one before it; the first needs none.
_SPANS = np.array([1 << (8 * plane) for plane in range(_ITEM_BYTES)], dtype=np.uint64)


class Blob(NamedTuple):
    """One stored array: `n` values in `data`, written by `codec`."""

    data: bytes
    codec: str
    n: int


class SampleArrays:
    """Arrays of int64, none of them empty, worked on together: numpy's cost per call is shared by all."""

    def __init__(self, arrays: Sequence[list[int] | NDArray[Any]]) -> None:
        parts = [values if isinstance(values, np.ndarray) else array("q", values) for values in arrays]
        self._values: NDArray[Any] = np.concatenate(parts) if parts else np.empty(0, np.int64)
        self._lengths = [len(values) for values in arrays]
        self._ends = list(accumulate(self._lengths, initial=0))
        self._starts = self._ends[:-1]

    def raw(self) -> list[bytes]:
        """Every array as little-endian int64."""
        whole = self._values.astype("<i8", copy=False).tobytes()
        return [whole[start * _ITEM_BYTES : end * _ITEM_BYTES] for start, end in pairwise(self._ends)]

    def encoded(self) -> list[bytes]:
        """Every array as a blob of `CODEC`; the caller stores `CODEC` and the length beside it."""
        if not self._lengths:
            return []
        lows = np.minimum.reduceat(self._values, self._starts)
        # Differences wrap where they exceed int64, to what is right as uint64.
        spans = (np.maximum.reduceat(self._values, self._starts) - lows).view(np.uint64)
        widths = np.searchsorted(_SPANS, spans, side="right")
        offsets = (self._values - np.repeat(lows, self._lengths)).astype("<i8", copy=False)
        by_plane = offsets.view(np.uint8).reshape(-1, _ITEM_BYTES).T
        planes = [by_plane[plane].tobytes() for plane in range(int(widths.max()))]
        heads = lows.astype("<i8", copy=False).tobytes()
        parts = [[heads[at : at + _ITEM_BYTES] for at in range(0, len(heads), _ITEM_BYTES)]]
        places = [*zip(map(slice, self._starts, self._ends[1:]), widths.tolist(), strict=True)]
        for number, plane in enumerate(planes):
            parts.append([plane[place] if width > number else b"" for place, width in places])
        return [*map(b"".join, zip(*parts, strict=True))]

    def percentiles_ns(self, shares: Sequence[float], of: Sequence[int]) -> list[list[float]]:
        """Quantiles in ns of the arrays with the numbers `of`, as `percentile_ns` computes them."""
        percentiles: list[list[float]] = [[] for _ in of]
        lengths = np.array([self._lengths[number] for number in of])
        starts = np.array([self._starts[number] for number in of])
        for length in set(lengths.tolist()):
            which = np.flatnonzero(lengths == length)
            ordered = np.sort(self._values[starts[which, None] + np.arange(length)], axis=1)
            columns = [_between(ordered, (length - 1) * share) for share in shares]
            for number, quantiles in zip(which.tolist(), np.stack(columns, axis=1).tolist(), strict=True):
                percentiles[number] = quantiles
        return percentiles


def _between(ordered: NDArray[Any], position: float) -> NDArray[Any]:
    """Each row's value at a fractional position."""
    below = int(position)
    low = ordered[:, below]
    if below == ordered.shape[1] - 1:
        return low.astype(np.float64)
    interpolated: NDArray[Any] = low + (ordered[:, below + 1] - low) * (position - below)
    return interpolated


def decode_samples(blobs: Sequence[Blob]) -> list[list[int]]:
    """The values of each stored blob.

    Raises DatabaseError where a codec is unknown or a blob does not hold its `n` values.
    """
    values, ends = decode_together(blobs)
    each = values.tolist()
    return [each[start:end] for start, end in pairwise(ends)]


def decode_together(blobs: Sequence[Blob]) -> tuple[NDArray[np.int64], list[int]]:
    """The values of all blobs one after the other, and where each begins; the last entry is where all end.

    Raises DatabaseError as `decode_samples` does.
    """
    ends = list(accumulate((blob.n for blob in blobs), initial=0))
    offsets = np.zeros((ends[-1], _ITEM_BYTES), dtype=np.uint8)
    lows = np.zeros(len(blobs), dtype="<i8")
    # numpy's cost per call is shared by those that have one shape.
    alike: dict[tuple[str, int, int], list[int]] = defaultdict(list)
    for number, blob in enumerate(blobs):
        alike[blob.codec, blob.n, len(blob.data)].append(number)
    for (codec, n, _), numbers in alike.items():
        if codec == CODEC and n and len(numbers) >= _WORTH_SHARING:
            starts = np.array([ends[number] for number in numbers])
            lows[numbers], planes = _planes_of_alike([blobs[number] for number in numbers])
            offsets[starts[:, None] + np.arange(n), : planes.shape[1]] = planes.transpose(0, 2, 1)
            continue
        for number in numbers:
            low, own = _planes(blobs[number])
            lows[number] = low
            offsets[ends[number] : ends[number + 1], : len(own)] = own.T
    return offsets.view("<i8").ravel() + np.repeat(lows, [blob.n for blob in blobs]), ends


def _planes_of_alike(blobs: Sequence[Blob]) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """As `_planes`, of blobs of CODEC that are equally long and wide, and not empty."""
    _, first = _planes(blobs[0])
    stored = np.frombuffer(b"".join([blob.data for blob in blobs]), dtype=np.uint8).reshape(len(blobs), -1)
    lows = np.ascontiguousarray(stored[:, :_ITEM_BYTES]).view("<i8").ravel()
    return lows, stored[:, _ITEM_BYTES:].reshape(len(blobs), *first.shape)


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
