"""What a workload of several batches met on its first way through them: a part of the trial record."""

from __future__ import annotations

from pydantic import Field

from compilewatch.db.records.fields import Count, Finite, Name, Nanoseconds, Record, Text


class CompileAt(Record):
    """One compilation during the first iteration: at which batch, and what it cost."""

    batch: Count
    """Counted from 1."""
    part: Name
    """`forward` or `backward`."""
    took_ns: Nanoseconds
    """Wall time of it, in nanoseconds."""
    reason: Text | None = None
    """Why what was compiled before did not fit; null for the first compilation of a function."""


class StreamFacts(Record):
    """One iteration of such a workload is all its batches: an epoch, or requests of different lengths."""

    batches: Count
    """In one iteration."""
    shapes: Count
    """How many different ones the batches have."""
    policy: Name | None = None
    """How lengths are evened out: `none`, `max`, `buckets` or `dynamic`; null where all are equal."""
    tokens: Count | None = None
    """Of one iteration, padding not counted; null where nothing counts tokens."""
    padded_tokens: Count | None = None
    """Of one iteration, padding included; null where nothing is padded."""
    latency_per_token_ns: Finite | None = None
    """Median latency of an iteration over its `tokens`, in nanoseconds; null without them."""
    control_latency_per_token_ns: Finite | None = None
    """The same of eager in the same process, in nanoseconds; null for eager itself."""
    iteration_ns: Finite | None = None
    """Median time of three warm iterations beside the samples, in nanoseconds; null where time was short."""
    data_ns: Finite | None = None
    """Of those the time until each batch was there, in nanoseconds: what the loop waits for data."""
    control_iteration_ns: Finite | None = None
    """The same of eager as `iteration_ns`; null for eager itself."""
    control_data_ns: Finite | None = None
    """The same of eager as `data_ns`; null for eager itself."""
    first_batches_ns: list[Nanoseconds] = Field(default=[])
    """Host time of each batch in the first iteration, getting the batch included, in nanoseconds; the first
    of them only."""
    control_first_batches_ns: list[Nanoseconds] = Field(default=[])
    """The same of eager, in nanoseconds; empty for eager itself."""
    compiles: list[CompileAt] | None = None
    """In the order they happened; null for eager, and where torch does not tell."""

    @property
    def padding_fraction(self) -> float | None:
        """Share of the computed tokens that are padding."""
        if self.tokens is None or not self.padded_tokens:
            return None
        return 1 - self.tokens / self.padded_tokens
