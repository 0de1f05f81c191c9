"""What a worker found out about a workload beside a trial."""

from __future__ import annotations

from pydantic import Field

from compilewatch.db.errors import CompilewatchError
from compilewatch.db.records.evidence import CompilerFacts, Memory
from compilewatch.db.records.fields import Bytes, Count, Nanoseconds, Record, Text


class ExplainedFrame(Record):
    """A function of the user that the compiler captured, or the rest of one after a graph break."""

    function: Text
    """Its name; `torch_dynamo_resume_in_F_at_N` is what follows a break at line N of `F`."""
    location: Text
    """File and line where it begins."""
    operations: Count
    """Calls in its graph."""
    guards: Count | None = None
    """What is checked before the graph is used again; null where torch does not tell."""


class Explanation(Record):
    """What the compiler takes of a workload."""

    compiler: CompilerFacts
    """Graphs, breaks with what torch proposes, recompilations; nothing of caches, as no code is generated."""
    frames: list[ExplainedFrame] = Field(default=[])
    """In the order in which they were captured; empty where torch does not tell."""
    operations: dict[Text, Count] = Field(default={})
    """ATen operations of all graphs as Inductor gets them, backward included, the most frequent first."""
    fallbacks: dict[Text, Count] = Field(default={})
    """Those that Inductor leaves to ATen."""


class Fit(Record):
    """A step of one side alone in its process."""

    latency_ns: Nanoseconds
    """Median of a few steps."""
    peak_bytes: Bytes | None = None
    """The most that was held; null where the system does not tell."""


class Held(Record):
    """What a step of one side alone in its process takes, and what its memory is held for."""

    latency_ns: Nanoseconds
    """Median of a few steps."""
    memory: Memory
    """Peak, tensors saved for backward, on a GPU the blocks at the peak."""


class NoFitError(CompilewatchError):
    """Memory does not suffice."""
