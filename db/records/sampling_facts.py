"""How the samples were taken, and why they are as they are: parts of the record that explain its figures.

Profile and trace come from processes of their own, so nothing of their overhead is in a timed figure.

What a workload of several batches met on its first way through them: a part of the trial record.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from compilewatch.db.records.fields import (
    Bytes,
    Count,
    Finite,
    Flag,
    Fraction,
    LogTail,
    Name,
    Nanoseconds,
    Record,
    Text,
    Triple,
)

FEWEST_FOR_P99 = 100
"""Of fewer steps the 99th percentile is the largest of them, whatever it is."""
Joules = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]


class TimedState(Record):
    """At which length of its state a workload was timed whose calls change it. Both sides were put back
    before each block and called equally often.
    """

    name: Text | None = None
    """What grows, or else what changes; null where only the workload's own `reset` knows."""
    first_call: Count
    """The first timed call since the state was put back; alike for both sides."""
    last_call: Count
    """The last one of a block."""
    first_length: Count | None = None
    """How long it is at the first timed call; null where nothing grows."""
    last_length: Count | None = None
    """The same at the last; null where nothing grows."""
    unit: Name | None = None
    """Of the lengths: `entries` of a container or `elements` of a tensor; null without them."""
    fails_at: Count | None = None
    """The call at which eager fails where it is not put back, as its state is full; null where none was
    found."""


class SamplingFacts(Record):
    """The plan of the sampling, and what ended it."""

    samples: Count
    """Asked for per side, at least."""
    max_samples: Count
    """Asked for per side, at most."""
    relative_interval: Finite | None = None
    """The target: half the width of the median's 95 % interval, over the median; null where not requested."""
    reached_interval: Finite | None = None
    """What the wider side had in the end; null with too few samples for an interval."""
    ended_by: Name
    """`interval`, `samples` (the limit), `time`, `deadline` (of the trial), or `disturbed` (too few calm
    blocks)."""
    warmup_ended_by: Name | None = None
    """Of the measured side: `steady`, `calls`, `time` or `deadline`; null where not known."""
    flush_l2: Flag | None = None
    """Whether the device's L2 cache was overwritten before each sample; null on a CPU."""
    block_ns: Nanoseconds
    """Longest stretch on one side before the other has its turn, in nanoseconds."""
    settle_ns: Nanoseconds | None = None
    """Untimed steps at the start of each block took about this long, in nanoseconds; null in records
    older than the rule."""
    order: Name
    """`ABBA`: the sides alternate in going first. `A`: there is one side."""
    garbage_collector: Flag
    """Whether Python's was on while timing."""
    state: TimedState | None = None
    """At which length it was timed; null where no call changes the state."""


class TimingMethod(StrEnum):
    """How the device time of a step was taken. Figures of different methods are never compared.

    `host`: on a CPU, the host's clock around a step. `gated`: CUDA events behind a gate that holds the device
    until the host has enqueued the whole step. `cupti`: union of the kernels' intervals, from the profiler.
    `ungated`: CUDA events around a step, with every gap in which the device waited for the host.
    """

    HOST = "host"
    GATED = "gated"
    CUPTI = "cupti"
    UNGATED = "ungated"


class Headline(StrEnum):
    """Which array of a trial is its latency: the samples of a CPU, or one of the two wall times of a GPU."""

    SAMPLES = "samples"
    WALL_SYNC = "wall_sync"
    WALL_PIPELINED = "wall_pipelined"


class Gate(Record):
    """What held the device while the host enqueued a step, and how often that worked."""

    kind: Literal["spin_kernel", "stream_wait"]
    """`spin_kernel`: a kernel that runs for a set time; `stream_wait`: the stream waits for a host flag."""
    steps: Count
    """Steps behind one gate."""
    samples: Count
    """Samples taken behind gates."""
    verified: Count
    """Samples of them in which the device had not begun when the step had been enqueued."""
    retries: Count
    """Samples that were taken again behind a longer gate."""


class Tracing(Record):
    """What the device's own tracing (CUPTI's) gave of one side, a session a step."""

    sessions: Count
    """Steps that were traced; a first one, which counts nowhere, left out."""
    whole: Count
    """Of them those that lost no kernel: as many kernels as in the fullest."""
    problem: Text | None = None
    """Why it can give no device time; null where it can."""


class TimingSide(Record):
    """How one side was timed. What was not measured, or means nothing on a CPU, is null."""

    method: TimingMethod
    """How `device_ns` was taken; `host` where there is none, as on a CPU."""
    gate: Gate | None = None
    """The gate; null where the method needs none."""
    launches: Finite | None = None
    """Calls of the host that start work on the device, per step; null where not counted."""
    synchronises: Flag | None = None
    """Whether the step waits for the device inside; null where not known."""
    streams: Count | None = None
    """Streams that the step uses; null where not counted. A gate holds one of them."""
    tracing: Tracing | None = None
    """The device's own tracing; null on a CPU, and where it was not reached."""
    gated_ns: list[Nanoseconds] = Field(default=[])
    """Gated device times that `device_ns` leaves out, since no gate held the other side, in nanoseconds."""
    unflushed_ns: Nanoseconds | None = None
    """Median device time by the same method with the L2 cache as the step left it, in nanoseconds; null where
    `device_ns` is unflushed itself, and where there were too few."""
    pipelined_steps: Count | None = None
    """Steps before one synchronisation in `wall_pipelined_ns`; null where not measured."""
    energy_per_step_j: Joules | None = None
    """Energy of the whole GPU while steps ran for a second with nothing between them, in joules a step; null
    where the driver counts none, and of eager beside a compiled strategy."""
    sm_clock_mhz: Triple | None = None
    """Clock of the multiprocessors while sampling, as [min, median, max] in MHz; null where unknown."""
    throttle_reasons: list[Name] = Field(default=[])
    """Every reason that limited the clocks while sampling, by NVML's names."""


class Timing(Record):
    """Which times a trial holds, and how they were taken."""

    headline: Headline
    """The array that is the trial's latency: the wall time that people pay."""
    flush_l2: Flag | None = None
    """Whether the device's L2 cache was overwritten before each sample; null on a CPU."""
    side: TimingSide
    """The measured strategy."""
    control: TimingSide | None = None
    """Eager in the same process; null where the strategy is eager."""


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
    """Operators called from outside of any other operator; null where unknown."""
    device_busy_fraction: Fraction | None = None
    """Share of the time in which the GPU did anything; null on a CPU."""
    launch_ns: Nanoseconds | None = None
    """Host time inside the calls that start work on a GPU, in nanoseconds; null on a CPU."""
    python_ns: Nanoseconds | None = None
    """Host time outside of every operator, in nanoseconds: Python, guards, and waiting for a GPU; null before
    torch 2.9 for compiled code."""
    copied_bytes: Bytes | None = None
    """What copies and casts of a step read and write, in bytes by their shapes and dtypes; null where
    generated code may copy too, and where torch does not say."""
    matrix_fraction: Fraction | None = None
    """Share of matrix products and convolutions in the kernels' time, on a CPU in the operators' own time;
    null where there was none."""
    top: list[ProfileEntry] = Field(default=[])
    """The thirty that take longest; ten in records of earlier releases."""


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
    """What the operators of an eager step read and write, each input and output once; null where unknown."""


class GeneratedSource(Record):
    """The code that the compiler wrote for one graph, without comments, headers and launch settings."""

    hash: Name
    """That of the graph's kernels in `compiler.generated`."""
    source: LogTail
    """The kernels, then the function that calls them; the first 60,000 characters."""


class Trace(Record):
    """The compiler's own log of the case, on the machine that measured it, and the code that it wrote."""

    directory: Text
    """Below that machine's data directory."""
    size_bytes: Bytes
    """Of the whole directory, in bytes."""
    report: Text | None = None
    """First page of tlparse's report, below the data directory; null where tlparse is not installed."""
    sources: list[GeneratedSource] | None = None
    """That of the first eight graphs, in the order they were written; null where there is none."""


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
