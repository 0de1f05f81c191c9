"""What one process found: cold start, memory, compiler facts, numerics, state of device and host.

A description below is also what the JSON schema, the API's document and the reference page say.
"""

from __future__ import annotations

from enum import StrEnum
from operator import attrgetter
from typing import Literal, Self

from pydantic import Field, model_validator

from compilewatch.db.records.fields import (
    Bytes,
    Count,
    Finite,
    Flag,
    Fraction,
    Integer,
    Key,
    Latency,
    LogTail,
    Name,
    Nanoseconds,
    Record,
    Text,
    Triple,
)


class FailureKind(StrEnum):
    """Why a trial has no result. `bad_record` is a worker that reported nonsense, `unsupported` what the
    device or release cannot do, `workload_error` an exception in the workload itself, without a compiler,
    `harness` one in compilewatch's own code. `not_steady`: the compiler ran until the deadline was near, or
    state, memory or latency grows with every call and could not be put back.
    """

    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    CRASH = "crash"
    COMPILE_ERROR = "compile_error"
    UNSUPPORTED = "unsupported"
    WRONG_RESULT = "wrong_result"
    MISSING_COMPILER = "missing_compiler"
    IMPORT_ERROR = "import_error"
    DISK_FULL = "disk_full"
    CANCELLED = "cancelled"
    BAD_RECORD = "bad_record"
    DEVICE_LOST = "device_lost"
    WORKLOAD_ERROR = "workload_error"
    HARNESS = "harness"
    NOT_STEADY = "not_steady"


class NumericsStatus(StrEnum):
    """How the compiled output stands against eager; see PyTorch `torch._dynamo.utils.same`."""

    PASS = "pass"  # noqa: S105
    FAIL = "fail"
    DEGENERATE = "degenerate"
    EAGER_TWO_RUNS_DIFFER = "eager_two_runs_differ"
    NOT_CHECKED = "not_checked"
    REPRODUCIBLE = "reproducible"


class Bisection(Record):
    """Which part of the compiler makes a trial fail, as PyTorch's `CompilerBisector` found it by leaving
    parts out (torch/_inductor/compiler_bisector.py).
    """

    outcome: Literal["named", "passed", "out_of_time", "unstable", "host"]
    """`passed`: it did not fail again. `unstable`: it fails by chance. `host`: Inductor compiles nothing on
    the machine."""
    backend: Name | None = None
    """The first of `eager`, `aot_eager`, `aot_eager_decomp_partition` and `inductor` that fails; null where
    nothing was named."""
    subsystem: Name | None = None
    """Of the backend: `decomposition`, `lowerings`, a group of passes, an option; null where none of them
    decides."""
    number: Count | None = None
    """How many uses of the subsystem come before the one that decides; null without a subsystem."""
    operator: Text | None = None
    """The operator or pass of that use; null where torch does not say."""
    attempts: Count
    """Compilations."""
    spent_ns: Nanoseconds
    """What they took together, in nanoseconds."""


class Failure(Record):
    """Why a trial failed, and what was known when it did."""

    kind: FailureKind
    """By its cause, so that failures can be counted."""
    phase: Text | None = None
    """What the process was doing, e.g. `first_call`; null where it had not yet said."""
    message: Text
    """One sentence for people."""
    log_tail: LogTail | None = None
    """The end of what the process printed; null where it printed nothing."""
    exit_code: Integer | None = None
    """Of the process; null where a signal ended it, or where there was none."""
    signal: Integer | None = None
    """Number of the signal that ended the process; null where none did."""
    bisection: Bisection | None = None
    """Which part of the compiler fails; null where it was not sought."""


class PhasesNs(Record):
    """Parts of the first compiled call in nanoseconds, adding up to `first_call_ns`; `other` is the rest of
    it. A part that did not run, or that this release of torch does not tell apart, is null.
    """

    dynamo: Nanoseconds | None = None
    """Capturing the graph from Python's bytecode, in nanoseconds; null where not observed."""
    aot_autograd: Nanoseconds | None = None
    """Tracing forward and backward, decomposing, partitioning, in nanoseconds; null where not observed."""
    inductor: Nanoseconds | None = None
    """Lowering, fusing and writing code, in nanoseconds; null where not observed."""
    kernel_compile: Nanoseconds | None = None
    """Waiting for Triton or the C++ compiler, in nanoseconds; null where not observed."""
    isa_probe: Nanoseconds | None = None
    """Compiler runs that find the CPU's vector instructions, in nanoseconds; null where not observed."""
    autotune: Nanoseconds | None = None
    """Trying candidates of kernels, in nanoseconds; null where not observed."""
    backward: Nanoseconds | None = None
    """Compiling the backward pass, all its parts, in nanoseconds; null where not observed."""
    cudagraph_capture: Nanoseconds | None = None
    """Recording CUDA graphs, in nanoseconds; null where not observed."""
    other: Nanoseconds | None = None
    """What is left of the first call, its first execution included, in nanoseconds."""


_PHASES = attrgetter(*PhasesNs.model_fields)


class ColdStart(Record):
    """Process spawn to first result (`total_ns`) and its parts, on the host's monotonic clock."""

    total_ns: Nanoseconds | None = None
    """Spawn of the process to its first result, in nanoseconds; null where it got none."""
    interpreter_ns: Nanoseconds | None = None
    """Spawn to the first line of the benchmark harness, in nanoseconds; null where not measured."""
    import_torch_ns: Nanoseconds | None = None
    """`import torch`, in nanoseconds; null where not reached."""
    harness_ns: Nanoseconds | None = None
    """What the benchmark harness itself needs: its own modules, and the facts of machine and build, in
    nanoseconds; null where not measured."""
    import_libraries_ns: Nanoseconds | None = None
    """Importing the workload's module and what it imports, in nanoseconds; null where not reached."""
    import_compile_stack_ns: Nanoseconds | None = None
    """Importing Dynamo and Inductor, in nanoseconds; null for eager."""
    build_model_ns: Nanoseconds | None = None
    """Making the model and its inputs, in nanoseconds; null where not reached."""
    eager_first_ns: Nanoseconds | None = None
    """The first eager iteration, in nanoseconds; null where not reached."""
    first_call_ns: Nanoseconds | None = None
    """`torch.compile` and the first compiled iteration, in nanoseconds; null for eager."""
    calls_until_steady: Count | None = None
    """First calls that took over twice the steady latency, the first one always counted, and every other one
    in which the compiler ran; null where the trial did not become steady."""
    until_steady_ns: Nanoseconds | None = None
    """What those calls took together, in nanoseconds; null where the trial did not become steady."""
    process_tree_cpu_ns: Nanoseconds | None = None
    """CPU time of the process and its children up to the first result, in nanoseconds; null where there was
    none."""
    first_call_cpu_ns: Nanoseconds | None = None
    """CPU time of the process and its children in `torch.compile` and the first compiled iteration, in
    nanoseconds; null for eager and where not measured."""
    first_call_instructions: Count | None = None
    """Instructions that they executed in user mode then; null where the kernel does not count them."""
    phase_source: Name | None = None
    """How `phases_ns` was measured: `dynamo_timed_events`, `calculate_time_spent` or `wall` (not at all);
    null for eager."""
    phases_ns: PhasesNs | None = None
    """Parts of the first compiled call, in nanoseconds each; null for eager."""

    @model_validator(mode="after")
    def _phases_add_up(self) -> Self:
        if self.phases_ns is None or self.first_call_ns is None:
            return self
        total = sum(filter(None, _PHASES(self.phases_ns)))
        if abs(total - self.first_call_ns) > max(1_000, self.first_call_ns // 1_000):
            raise ValueError(f"phases_ns add up to {total}, first_call_ns is {self.first_call_ns}")
        return self


class HeldMemory(Record):
    """Tensors of one shape and dtype, or blocks of memory, that one line of the workload made."""

    tensor: Text | None = None
    """Shape and dtype, e.g. `512x1024 float32`; null for a block of the allocator."""
    place: Text | None = None
    """File and line that made them; null where torch does not tell."""
    count: Count = 1
    """How many."""
    size_bytes: Bytes
    """All together, in bytes."""


class SavedForBackward(Record):
    """What one forward pass keeps for the backward pass, beside weights, buffers and inputs. A storage that
    several tensors share counts once.
    """

    count: Count
    """Tensors."""
    size_bytes: Bytes
    """Of all of them, in bytes."""
    largest: list[HeldMemory]
    """The largest first, 40 at most."""


class Memory(Record):
    """Peaks, each reset and read where it means something: see *How a trial is measured*."""

    peak_bytes: Bytes | None = None
    """Of one warm step, in bytes; null where torch does not tell."""
    peak_reserved_bytes: Bytes | None = None
    """What the caching allocator held in that step, CUDA graph pools included, in bytes; null on a CPU."""
    graph_pool_bytes: Bytes | None = None
    """Of `peak_bytes`: the pools of CUDA graphs, whole segments of the allocator, where eager's peak has what
    its tensors take; null without such a pool."""
    peak_with_compile_bytes: Bytes | None = None
    """Of the first compiled call, compiling and autotuning included, in bytes; null for eager."""
    peak_rss_bytes: Bytes | None = None
    """Most memory that the host process had resident, in bytes; null where the system does not tell."""
    control_peak_bytes: Bytes | None = None
    """Of one warm eager step in the same process, in bytes; null for eager itself."""
    growth_bytes_per_call: Finite | None = None
    """By how much memory grows with each warm call, in bytes: that of the tensors of a state that grows;
    else that of the process, on a GPU what the allocator has given out; null where it does not grow
    steadily."""
    saved: SavedForBackward | None = None
    """By a step with gradients, through `torch.autograd.graph.saved_tensors_hooks`; null where it has none or
    they could not be read."""
    control_saved: SavedForBackward | None = None
    """The same of eager; null for eager itself."""
    peak_blocks: list[HeldMemory] | None = None
    """On a GPU: the largest blocks that a step has allocated at its peak, 40 at most, from the allocator's
    history; null on a CPU and where torch does not tell."""


class CompilerEvent(Record):
    """A graph break or a recompilation: reason, user file:line, how often."""

    reason: Text
    """In the compiler's words."""
    location: Text | None = None
    """File and line of the user's code; null where the compiler does not say."""
    count: Count = 1
    """How often."""


class CacheCounters(Record):
    """What the compiler's caches answered during the trial. A cache that was not used is null throughout.

    A bypass is a graph that the cache refuses to hold; it is compiled each time, hit or miss never counts it.
    """

    fx_graph_hits: Count | None = None
    """Graphs found in the cache of compiled FX graphs; null where it was not used."""
    fx_graph_misses: Count | None = None
    """Graphs not found there, and compiled; null where it was not used."""
    fx_graph_bypasses: Count | None = None
    """Graphs it cannot hold; null where it was not used."""
    aot_autograd_hits: Count | None = None
    """Graphs found in the cache of AOTAutograd; null where it was not used, as before torch 2.7."""
    aot_autograd_misses: Count | None = None
    """Graphs not found there; null where it was not used."""
    aot_autograd_bypasses: Count | None = None
    """Graphs it cannot hold; null where it was not used."""


class GeneratedGraph(Record):
    """The kernels that the compiler wrote for one graph."""

    hash: Name
    """Of their source, without headers and launch settings; equal where they are."""
    size_bytes: Bytes
    """Of that source, in bytes."""
    kernels: Count
    """How many."""


class AutotunedOperation(Record):
    """An operation that the compiler timed candidates for, and the one that it took."""

    operation: Name
    """As the compiler calls it, e.g. `addmm`; or the Triton kernel whose launch configurations were tried."""
    inputs: Text | None = None
    """Sizes and dtypes, e.g. `64x512 float32, 512x512 float32`; null for a Triton kernel."""
    candidate: Name
    """The implementation that was taken, without its number; a Triton kernel has one."""
    configuration: Text | None = None
    """Block sizes, warps and stages of a Triton candidate; null for others."""
    time_ns: Nanoseconds | None = None
    """What it took when it was tried, in nanoseconds; null where a later search found it."""
    candidates: Count
    """How many were timed."""
    count: Count = 1
    """Operations of this name and these inputs."""


class RankCompile(Record):
    """One compilation of a rank."""

    step: Count | None = None
    """At which of its steps, counted from 1; null where the source does not say."""
    part: Name
    """`forward` or `backward`."""
    took_ns: Nanoseconds | None = None
    """Wall time of it, in nanoseconds; null where the source does not say."""
    reason: Text | None = None
    """Why what was compiled before did not fit; null for the first compilation of a function."""


class RankFacts(Record):
    """What one of several processes that take each step together compiled."""

    rank: Count
    """Counted from 0."""
    steps: Count | None = None
    """How many it took; null where the source does not say."""
    latency_ns: Nanoseconds | None = None
    """Median of its steps since its last compilation, waiting for others included, in nanoseconds; null on
    a GPU."""
    cpu_ns: Nanoseconds | None = None
    """Median CPU time of the process in those steps, in nanoseconds; null on a GPU."""
    compile_ns: Nanoseconds | None = None
    """Time in which it compiled, in nanoseconds; null where torch does not tell."""
    compiles: list[RankCompile] | None = None
    """In the order they happened; null where torch does not tell."""


class CompileKind(StrEnum):
    """What a job compiled after it was ready."""

    COMPILATION = "compilation"
    """A function for the first time."""
    RECOMPILATION = "recompilation"
    """A function again, since a guard failed."""
    BACKWARD = "backward"
    AUTOTUNING = "autotuning"
    CUDA_GRAPH = "cuda-graph"
    """A CUDA graph recorded anew."""
    TRITON = "triton"
    """A Triton kernel of the job's own, for a signature new to the process; its folder may have had it."""


class CompiledInput(Record):
    """A tensor that a compilation was for."""

    source: Name
    """As Dynamo calls it: `L['x']` is the argument x."""
    size: list[Count]
    """Its sizes; none for a number."""
    dtype: Key
    """As torch names it, without `torch.`."""


class RequestInput(Record):
    """An argument of what answers a request, or an entry of one; exactly one of size, literal and made_of."""

    source: Name
    """As of a compiled function: `L['x']` is the argument x."""
    size: list[Count] | None = None
    """Of a tensor its sizes."""
    dtype: Key | None = None
    """Of a tensor its type, without `torch.`."""
    filled_with: Integer | None = None
    """The value that all of a tensor of whole numbers has; null where it has several."""
    literal: Text | None = None
    """A number, a text, true, false, null, or an empty list or object, as JSON."""
    made_of: Name | None = None
    """What it is else: no warm-up can make it."""


class CompileAfterReady(Record):
    """One compilation that somebody waited for."""

    after_ns: Count
    """When it began, in nanoseconds since the job was ready."""
    cost_ns: Count
    """How long it took, in nanoseconds."""
    kind: CompileKind
    """What it was."""
    function: Name | None = None
    """Name, file and line of what was compiled; null where torch does not tell."""
    reason: Text | None = None
    """The guard that failed, or the signature of a Triton kernel; null for the first of a function."""
    inputs: list[CompiledInput] | None = None
    """The tensors among the arguments; null where they are not told."""
    objects: list[Name] | None = None
    """Arguments that are objects with tensors of their own, as a cache is; null where there are none."""
    request: Text | None = None
    """What the job called the request that waited; null where it did not."""
    request_inputs: list[RequestInput] | None = None
    """What that request was called with; null where the job does not tell."""


class AfterReady(Record):
    """What a job compiled after it said that it was ready."""

    watched_ns: Count | None = None
    """From then to its end, in nanoseconds; null for one that was killed."""
    count: Count
    """How many compilations."""
    cost_ns: Count
    """Their time together, in nanoseconds."""
    compiles: list[CompileAfterReady]
    """In the order they began; of more than 1,000 the first."""


class CacheLookup(Record):
    """A cache that was asked for a graph or a kernel, and its key by component."""

    cache: Name
    """`fx_graph`, `aotautograd` or `triton`."""
    answer: Name
    """`hit`, `miss` or `bypass`."""
    key: Name | None = None
    """As the cache calls it; null for a bypass."""
    reason: Text | None = None
    """Why the cache cannot hold it; null for a hit or a miss."""
    what: Name | None = None
    """The function with its place, or the Triton kernel; null where torch does not tell."""
    saved_ns: Count | None = None
    """What compiling it took the process that stored it, in nanoseconds; null where nobody tells."""
    took_ns: Count | None = None
    """What compiling took after a miss, in nanoseconds; null where nobody tells."""
    source: Name | None = None
    """Hash of the graph, and of the Triton kernels in it; null where the key was not made."""
    inputs: Name | None = None
    """Hash of the inputs: sizes, strides, types, devices; null where the key was not made."""
    tensors: Text | None = None
    """Types and sizes of the first 8 tensors among the inputs; null without any."""
    settings: dict[Name, Text | None] = Field(default={})
    """What differs from `settings` of the process; null for what is not set here."""


class CacheKeys(Record):
    """What a process asked the compiler's caches, and what the keys were made of."""

    surroundings: dict[Name, Text] = Field(default={})
    """What compiled code depends on beside the keys, by name: torch, Triton, GPU, compiler."""
    settings: dict[Name, Text] = Field(default={})
    """Hash and text of each option in a key, as it was first; those at none, false and 0 are left out."""
    lookups: list[CacheLookup]
    """In the order they were answered; of more than 1,000 the first."""


class CompilerFacts(Record):
    """What the compiler did with the workload. `graphs` 0 means that nothing was compiled."""

    graphs: Count | None = None
    """Different graphs that Dynamo captured; null where the source does not say."""
    ops_captured: Count | None = None
    """Calls in those graphs; null where the source does not say."""
    graph_breaks: list[CompilerEvent] | None = None
    """Where capture was interrupted, from the compiler's log; null where unknown."""
    break_hints: list[Text] | None = None
    """What torch proposes against each break, "file:line: hint"; null where there is none."""
    recompiles: list[CompilerEvent] | None = None
    """What was compiled again, and the guard that failed; null where unknown."""
    skipped_frames: list[Text] | None = None
    """Functions that Dynamo looked at and left to Python; null where torch does not tell."""
    recompile_limit_hit: Flag | None = None
    """Whether a function reached the limit, after which it runs eagerly; null where unknown."""
    cudagraph_skips: list[Text] | None = None
    """Why CUDA graphs were not used; null where none were requested."""
    cudagraph_launches: Count | None = None
    """CUDA graphs that one warm step launches; null on a CPU."""
    compiled_share: Fraction | None = None
    """Of the operators that an eager step calls, the share that a warm compiled one does not call outside of
    generated code: 1 where nothing is left to Python; null where torch does not tell (before 2.9)."""
    compiled_time_share: Fraction | None = None
    """Share of generated code in the host's time in it and in operators outside of it, of that step; null on
    a GPU and where `compiled_share` is."""
    cache: CacheCounters | None = None
    """Hits and misses of the compiler's caches; null where unknown."""
    generated: list[GeneratedGraph] | None = None
    """Inductor's code, graph by graph in the order it was written; null where there is none."""
    autotuned: list[AutotunedOperation] | None = None
    """What was autotuned in this process; null where nothing was, or torch does not tell."""
    warnings: list[Text] | None = None
    """What the compiler warned of, each once; null where it warned of nothing."""
    cache_bypasses: list[Text] | None = None
    """Why caches cannot hold graphs, each once; null where none was refused."""
    already_compiled: list[Text] | None = None
    """Parts of the workload that it compiles itself, and that eager ran as they are written; null where there
    are none."""
    ranks: list[RankFacts] | None = None
    """Of a workload of several ranks each; of a job the one of this process; else null."""
    compile_threads: Count | None = None
    """With how many threads Inductor compiled; null where torch does not tell. Records without
    `compile_pool_size` were compiled with 1."""
    compile_pool_size: Count | None = None
    """Processes that Inductor kept for compiling after the first call, with the one that starts them; 0 where
    it used threads alone."""
    after_ready: AfterReady | None = None
    """What a job compiled after it said that it was ready; null where it did not say so."""
    cache_keys: CacheKeys | None = None
    """What a job asked the compiler's caches; null where nothing was asked, or the source does not say."""


class LossPath(Record):
    """A compiled training beside eager's, step by step, from equal weights, batches and draws; and eager
    again from other seeds, with weights moved by their rounding and with draws of its own."""

    seeds: Count
    """How many of those others there were."""
    losses: list[Finite | None]
    """Compiled, of each step; null where not finite."""
    control_losses: list[Finite | None]
    """Eager's, of each step; null where not finite."""
    band: list[Finite | None]
    """How far the loss of the farthest other seed has been from eager's until each step; null where not
    finite."""
    left_at_step: Count | None = None
    """The first step, counted from 1, after which the loss, a gradient or a weight is over thirty times as
    far from eager's as the farthest other seed has been; null where none is."""
    left_by: Name | None = None
    """What is farthest out then: `the loss`, `the gradient of NAME` or the weight's name; null where none
    is."""
    times_band: Finite | None = None
    """How many times as far as the farthest other seed; null where none is out, or not finite."""


class Numerics(Record):
    """Compiled against eager against float64. Of several results the worst one. Results are all that a call
    returns, and the inputs, buffers and attributes that it changes."""

    status: NumericsStatus
    """`pass` or `fail` by that rule; else why nothing can be said: the output is near zero everywhere, two
    eager runs differ, or it was not checked. `reproducible`: it draws random numbers, and eager and compiled
    each repeat their own results from one seed."""
    reference: Name | None = None
    """`float64` where the workload can run in it; `finite differences` where random gradients were held to
    those of their loss; else null, and the plain tolerance decides."""
    cosine_similarity: Finite | None = None
    """Between compiled and eager; null where not finite or not compared."""
    max_abs_error: Finite | None = None
    """Largest absolute difference of compiled and eager; null where not finite or not compared."""
    rmse_reference: Finite | None = None
    """Root mean squared error of eager against float64; null without that reference."""
    rmse_result: Finite | None = None
    """The same of compiled; null without that reference."""
    rms_exact: Finite | None = None
    """Root mean square of the float64 result: the size that the errors are relative to; null without it."""
    dtype: Name | None = None
    """Of the result, e.g. `bfloat16`; a step of it is its unit roundoff; null without float64."""
    multiplier: Finite | None = None
    """How many times eager's own error was allowed; null where the plain tolerance was enough."""
    tolerance: Finite | None = None
    """Relative and absolute tolerance in force; null where nothing was compared."""
    not_compared: list[Text] | None = None
    """Results that are nothing that could be compared, and where they are `reproducible` what is not compared
    with eager; null where there are none."""
    reason: Text | None = None
    """What was missing where it was not checked; null where nothing was."""
    float32_error: Finite | None = None
    """Of a variant how far its compiled outputs are from those of the same model in float32: the root mean
    square of the differences over that of the outputs; null for other workloads."""
    training: LossPath | None = None
    """A training of many steps beside eager's; null where none was asked for."""


class DeviceState(Record):
    """GPU evidence around the timed region; triples are [min, median, max]. What the driver does not tell is
    null. Of several ranks it is the first one's GPU; energy and what is suspect are those of all.
    """

    sm_clock_mhz: Triple | None = None
    """Clock of the multiprocessors, in MHz; null where unknown."""
    memory_clock_mhz: Triple | None = None
    """Clock of the memory, in MHz; null where unknown."""
    temperature_c: Triple | None = None
    """Of the GPU, in degrees Celsius; null where unknown."""
    power_w: Triple | None = None
    """Power drawn, in watts; null where unknown."""
    utilization_percent: Finite | None = None
    """Median share of time in which a kernel ran, in percent; null where unknown."""
    throttle_reasons: list[Name] | None = None
    """Every reason that limited the clocks at some reading, by NVML's names; null where unknown."""
    other_processes: Count | None = None
    """Most processes of others on the GPU; null where unknown, as in a container."""
    ecc: Flag | None = None
    """Whether memory errors are corrected; null where unknown."""
    ecc_errors: Count | None = None
    """New ones that could not be corrected; null where unknown."""
    energy_mj: Count | None = None
    """Energy drawn from the first to the last reading, in millijoules; null where unknown."""
    suspect: Flag | None = None
    """Whether the samples should not be trusted; null where not known."""
    suspect_reasons: list[Text] | None = None
    """Why not, one sentence each; null where not known."""


class HostState(Record):
    """Host evidence: pressure stall, CPU over wall time, and a sha256 canary per block."""

    cpu_stall_fraction: Finite | None = None
    """Share of a block's time in which some task waited for a CPU, median over blocks; null where the kernel
    does not tell."""
    cpu_over_wall: Finite | None = None
    """CPU time of the process over wall time, median over blocks; above 1 with several threads; null
    where no block was timed."""
    canary_ns: list[Nanoseconds] | None = None
    """Time of one SHA-256 over 1 MiB before each round, in nanoseconds; null where there was none."""
    blocks: Count | None = None
    """Blocks of samples that were timed; null where unknown."""
    blocks_rejected: Count | None = None
    """Blocks of them that were disturbed; null where unknown."""
    launching_cpu: Count | None = None
    """The CPU that the thread which feeds a GPU was bound to; null on a CPU, and where it could not be."""
    launching_cpu_siblings: list[Count] | None = None
    """CPUs of the same core, its hyperthreads; null without a bound thread."""
    backward_cpu: Count | None = None
    """The CPU that autograd's threads were bound to, away from the launching one; null on a CPU, and where
    there was none for them."""
    compile_pool_ended: bool | None = None
    """Whether none of the compiler's processes was left when sampling began; null where there were none."""
    clock_set_back_ns: Nanoseconds | None = None
    """How far the host's clock was set back during the trial, whose moments are those of the new clock, in
    nanoseconds; null where it was not."""
    address_layout: Name | None = None
    """`random` or `fixed`: whether the process's memory was placed anew; null on a CPU, or where unknown."""


class Summary(Record):
    """What an imported result knows when it carries no samples.

    `latency_ns` is null where the source has none (an accuracy run, a compile-time count). `metrics` holds
    the source's figures without a field in this record, by the source's own names and units.
    """

    latency_ns: Latency | None = None
    """The source's latency of one iteration, in nanoseconds; null where it has none."""
    control_latency_ns: Latency | None = None
    """The source's eager latency beside it, in nanoseconds; null where it has none."""
    n: Count | None = None
    """How many measurements the source made it of; null where it does not say."""
    throughput_per_s: Finite | None = None
    """Items per second by the source; null where it has none."""
    metrics: dict[Key, Finite] = Field(default={})
    """Its other figures, by its own names and in its own units."""
