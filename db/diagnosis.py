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
    relative_interval: Finite | None = None
    """Asked for: half the width of the median's 95 % interval, over the median."""
    reached_interval: Finite | None = None
    """What the wider side had in the end; null with too few samples for an interval."""
    ended_by: Name
    """`interval`, `samples` (as many as there may be), `time`, or `disturbed` (too few calm blocks)."""
    warmup_ended_by: Name | None = None
    """Of the measured side: `steady`, `calls` or `time`."""
    flush_l2: bool | None = None
    """Whether the device's L2 cache was overwritten before each sample; null on a CPU."""
    block_ns: Nanoseconds
    """Longest stretch on one side before the other has its turn."""
    settle_ns: Nanoseconds | None = None
    """Untimed steps at the start of each block took about this long; null in records older than the rule."""
    order: Name
    """`ABBA`: the sides take turns in going first. `A`: there is one side."""
    garbage_collector: bool
    """Whether Python's was on while timing."""


class ProfileEntry(Record):
    """One kernel (of a GPU) or operator (of a CPU); per step, so `calls` need not be whole."""

    name: Text
    calls: Finite
    self_ns: Nanoseconds


class ProfileSide(Record):
    """One side under the profiler, per step. What the device cannot tell is null."""

    step_ns: Nanoseconds
    """Wall time of a step while it was profiled; longer than an unprofiled one."""
    launches: Finite | None = None
    """Calls of the host that start work on a GPU; a whole CUDA graph is one."""
    kernels: Finite | None = None
    """Kernels that the GPU executed, those of a CUDA graph one by one."""
    operators: Finite | None = None
    """Operators called from outside of any other operator."""
    device_busy_fraction: Fraction | None = None
    launch_ns: Nanoseconds | None = None
    """Host time inside the calls that start work on a GPU."""
    python_ns: Nanoseconds | None = None
    """Host time outside of every operator: Python, guards, and waiting for a GPU."""
    matrix_fraction: Fraction | None = None
    """Share of matrix products and convolutions in the kernels' time, on a CPU in the operators' own time."""
    top: list[ProfileEntry] = Field(default=[])
    """The ten that take longest."""


class Profile(Record):
    """A few warm steps under torch.profiler in a process of their own, from the caches of the trial."""

    steps: Count
    own: ProfileSide
    control: ProfileSide | None = None
    """Eager; null where the strategy is eager."""
    flops: Count | None = None
    """Floating-point operations of an eager step, as torch.utils.flop_counter counts them."""
    bytes: Bytes | None = None
    """What the operators of an eager step read and write, each input and output once."""


class Trace(Record):
    """Where the compiler's own log of the case lies, on the machine that measured it."""

    directory: Text
    """Below that machine's data directory."""
    size_bytes: Bytes
    report: Text | None = None
    """First page of tlparse's report, below the data directory; null where tlparse is not installed."""
