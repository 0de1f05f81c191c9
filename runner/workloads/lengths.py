"""Lengths of sequences as users send them: drawn from a seeded distribution, evened out by a policy.

Without torch, since a plan has to know how many tokens an iteration has.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

POLICIES = ("none", "max", "buckets", "dynamic")


@dataclass(frozen=True)
class Lengths:
    """Token counts of `batches` times `batch_size` sequences: log-normal, between `shortest` and `longest`.

    The log-normal is what requests of a text service look like: many short ones and a long tail.
    """

    batches: int
    batch_size: int
    median: int = 48
    sigma: float = 0.6
    shortest: int = 8
    longest: int = 256
    seed: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.shortest <= self.median <= self.longest:
            raise ValueError("lengths need 1 <= shortest <= median <= longest")

    def drawn(self) -> list[list[int]]:
        """The lengths, batch by batch.

        By the inverse distribution, because `Random.random` is the one method whose values Python promises
        to keep from release to release.
        """
        source = random.Random(self.seed)  # noqa: S311
        normal = NormalDist(math.log(self.median), self.sigma)

        def one() -> int:
            length = round(math.exp(normal.inv_cdf(source.random() or 0.5)))
            return max(self.shortest, min(self.longest, length))

        return [[one() for _ in range(self.batch_size)] for _ in range(self.batches)]

    def tokens(self) -> int:
        """Of all sequences together, without padding."""
        return sum(map(sum, self.drawn()))


def padded_length(lengths: Sequence[int], policy: str, buckets: Sequence[int], longest: int) -> int:
    """How long a batch of these `lengths` is made.

    `none` and `dynamic` pad to the longest sequence of it, `buckets` to the next bucket, `max` to `longest`.
    Raises ValueError for an unknown policy and for a batch that no bucket holds.
    """
    needed = max(lengths)
    if policy in ("none", "dynamic"):
        return needed
    if policy == "max":
        return longest
    if policy != "buckets":
        raise ValueError(f"policy is one of {', '.join(POLICIES)}, not {policy!r}")
    fitting = [bucket for bucket in buckets if bucket >= needed]
    if not fitting:
        raise ValueError(f"no bucket of {', '.join(map(str, buckets))} holds a sequence of length {needed}")
    return min(fitting)
