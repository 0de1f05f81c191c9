"""How the samples were taken, and why they are as they are: parts of the record that explain its figures.

Profile and trace come from processes of their own, so nothing of their overhead is in a timed figure.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from db.fields import Bytes, Count, Finite, Name, Nanoseconds, Record, Text

Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class SamplingFacts(Record):
    """What was asked of the sampling, and what ended it."""

    samples: Count
    """Asked for per side, at least."""
    max_samples: Count
    """Asked for per side, at most."""
    relative_interval: Finite | None = None
    """Asked for: half the width of the median's 95 % interval, over the median; null where not asked."""
    reached_interval: Finite | None = None
    """What the wider side had in the end; null with too few samples for an interval."""
    ended_by: Name
    """`interval`, `samples` (as many as there may be), `time`, or `disturbed` (too few calm blocks)."""
    warmup_ended_by: Name | None = None
    """Of the measured side: `steady`, `calls` or `time`; null where not known."""
    flush_l2: bool | None = None
    """Whether the device's L2 cache was overwritten before each sample; null on a CPU."""
    block_ns: Nanoseconds
    """Longest stretch on one side before the other has its turn, in nanoseconds."""
    settle_ns: Nanoseconds | None = None
    """Untimed steps at the start of each block took about this long, in nanoseconds; null in records
    older than the rule."""
    order: Name
    """`ABBA`: the sides take turns in going first. `A`: there is one side."""
    garbage_collector: bool
    """Whether Python's was on while timing."""


class ProfileEntry(Record):
    """One kernel (of a GPU) or operator (of a CPU); per step, so `calls` need not be whole."""

    name: Text
    """As the profiler calls it."""
    calls: Finite
    """How often in a step."""
    self_ns: Nanoseconds
    """Its own time in a step, without what it calls, in nanoseconds."""


class ProfileSide(Record):
    """One side under the profiler, per step. What the device cannot tell is null."""

    step_ns: Nanoseconds
    """Wall time of a step while it was profiled, in nanoseconds; longer than an unprofiled one."""
    launches: Finite | None = None
    """Calls of the host that start work on a GPU; a whole CUDA graph is one; null on a CPU."""
    kernels: Finite | None = None
    """Kernels that the GPU executed, those of a CUDA graph one by one; null on a CPU."""
    operators: Finite | None = None
    """Operators called from outside of any other operator; null where not told."""
    device_busy_fraction: Fraction | None = None
    """Share of the time in which the GPU did anything; null on a CPU."""
    launch_ns: Nanoseconds | None = None
    """Host time inside the calls that start work on a GPU, in nanoseconds; null on a CPU."""
    python_ns: Nanoseconds | None = None
    """Host time outside of every operator, in nanoseconds: Python, guards, and waiting for a GPU; null before
    torch 2.9 for compiled code."""
    matrix_fraction: Fraction | None = None
    """Share of matrix products and convolutions in the kernels' time, on a CPU in the operators' own time;
    null where there was none."""
    top: list[ProfileEntry] = Field(default=[])
    """The ten that take longest."""


class Profile(Record):
    """A few warm steps under torch.profiler in a process of their own, from the caches of the trial."""

    steps: Count
    """How many were watched, on each side."""
    own: ProfileSide
    """The measured strategy."""
    control: ProfileSide | None = None
    """Eager; null where the strategy is eager."""
    flops: Count | None = None
    """Floating-point operations of an eager step, by torch.utils.flop_counter; null where it cannot count."""
    bytes: Bytes | None = None
    """What the operators of an eager step read and write, each input and output once; null where not told."""


class Trace(Record):
    """Where the compiler's own log of the case lies, on the machine that measured it."""

    directory: Text
    """Below that machine's data directory."""
    size_bytes: Bytes
    """Of the whole directory, in bytes."""
    report: Text | None = None
    """First page of tlparse's report, below the data directory; null where tlparse is not installed."""
