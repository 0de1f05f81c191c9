"""The words: frozen, validated types of the trial record `compilewatch.trial/1`.

Times are integer nanoseconds, memory integer bytes, timestamps aware UTC. `None` means "could not be
measured", never zero. Unknown keys are refused.
"""

from __future__ import annotations

from enum import StrEnum
from operator import attrgetter
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, ValidationError, model_validator

from db.diagnosis import Profile, SamplingFacts, Trace
from db.errors import RecordError, one_line
from db.fields import (
    INT64_MAX,
    Bytes,
    Count,
    Finite,
    Identifier,
    Integer,
    JsonObject,
    Key,
    LogTail,
    Name,
    Nanoseconds,
    Record,
    Text,
    Triple,
    UtcDatetime,
)
from db.streams import StreamFacts

SCHEMA: Literal["compilewatch.trial/1"] = "compilewatch.trial/1"


class Task(StrEnum):
    INFERENCE = "inference"
    TRAINING = "training"
    FUNCTION = "function"


class StrategyKind(StrEnum):
    EAGER = "eager"
    COMPILE = "compile"
    EXPORT = "export"
    AOT_PACKAGE = "aot_package"


class CacheState(StrEnum):
    """What a process found on disk before its first call.

    `none` belongs to eager, `unknown` to imported results whose source does not say.
    """

    COLD = "cold"
    WARM = "warm"
    PORTABLE = "portable"
    PACKAGED = "packaged"
    NONE = "none"
    UNKNOWN = "unknown"


class Status(StrEnum):
    OK = "ok"
    FAILED = "failed"


class FailureKind(StrEnum):
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


class SourceKind(StrEnum):
    MEASURED = "measured"
    IMPORTED = "imported"


class NumericsStatus(StrEnum):
    """How the compiled output stands against eager; see PyTorch `torch._dynamo.utils.same`."""

    PASS = "pass"  # noqa: S105
    FAIL = "fail"
    DEGENERATE = "degenerate"
    EAGER_TWO_RUNS_DIFFER = "eager_two_runs_differ"
    NOT_CHECKED = "not_checked"


class Source(Record):
    kind: SourceKind
    name: Name


class Workload(Record):
    """A model or function with its inputs and task, at one size."""

    name: Name
    version: Name
    task: Task
    batch_size: Annotated[int, Field(ge=1, le=INT64_MAX)] | None = None
    shape: dict[Key, Integer] = Field(default={})
    dtype: Name
    items_per_iteration: Finite | None = None
    item: Name | None = None


class Strategy(Record):
    """How a workload is executed. `name` is the short name shown everywhere."""

    name: Name
    kind: StrategyKind
    backend: Name | None = None
    mode: Name | None = None
    dynamic: bool | None = None
    fullgraph: bool = False
    scope: Name = "full"
    cache: CacheState
    options: JsonObject = Field(default={})


class Machine(Record):
    """Hardware that must match for a comparison. `name` and `device_uuid` are no part of its identity."""

    name: Name
    device: Name
    device_name: Name
    device_count: Count | None = None
    device_uuid: Name | None = None
    device_memory_bytes: Bytes | None = None
    power_limit_w: Finite | None = None
    cpu_name: Name | None = None
    cpu_count: Count | None = None
    ram_bytes: Bytes | None = None
    threads: Count | None = None


class Build(Record):
    """The software stack that is compared. `label` is no part of its identity."""

    torch: Name
    torch_git: Name | None = None
    torch_variant: Name | None = None
    cuda: Name | None = None
    driver: Name | None = None
    triton: Name | None = None
    cudnn: Name | None = None
    python: Name | None = None
    os: Name | None = None
    compiler: Name | None = None
    packages: dict[Key, Key] = Field(default={})
    settings: JsonObject = Field(default={})
    label: Name | None = None


class Failure(Record):
    kind: FailureKind
    phase: Text | None = None
    message: Text
    log_tail: LogTail | None = None
    exit_code: Integer | None = None
    signal: Integer | None = None


class PhasesNs(Record):
    """Parts of the first compiled call, adding up to `first_call_ns`; `other` is the rest of it."""

    dynamo: Nanoseconds | None = None
    aot_autograd: Nanoseconds | None = None
    inductor: Nanoseconds | None = None
    kernel_compile: Nanoseconds | None = None
    isa_probe: Nanoseconds | None = None
    autotune: Nanoseconds | None = None
    backward: Nanoseconds | None = None
    cudagraph_capture: Nanoseconds | None = None
    other: Nanoseconds | None = None


_PHASES = attrgetter(*PhasesNs.model_fields)


class ColdStart(Record):
    """Process spawn to first result (`total_ns`) and its parts, on the host's monotonic clock."""

    total_ns: Nanoseconds | None = None
    interpreter_ns: Nanoseconds | None = None
    import_torch_ns: Nanoseconds | None = None
    harness_ns: Nanoseconds | None = None
    """What the measuring program itself needs: its own modules, and the facts of machine and build."""
    import_libraries_ns: Nanoseconds | None = None
    import_compile_stack_ns: Nanoseconds | None = None
    build_model_ns: Nanoseconds | None = None
    eager_first_ns: Nanoseconds | None = None
    first_call_ns: Nanoseconds | None = None
    calls_until_steady: Count | None = None
    until_steady_ns: Nanoseconds | None = None
    process_tree_cpu_ns: Nanoseconds | None = None
    phase_source: Name | None = None
    phases_ns: PhasesNs | None = None

    @model_validator(mode="after")
    def _phases_add_up(self) -> Self:
        if self.phases_ns is None or self.first_call_ns is None:
            return self
        total = sum(filter(None, _PHASES(self.phases_ns)))
        if abs(total - self.first_call_ns) > max(1_000, self.first_call_ns // 1_000):
            raise ValueError(f"phases_ns add up to {total}, first_call_ns is {self.first_call_ns}")
        return self


class Memory(Record):
    peak_bytes: Bytes | None = None
    peak_reserved_bytes: Bytes | None = None
    peak_with_compile_bytes: Bytes | None = None
    peak_rss_bytes: Bytes | None = None
    control_peak_bytes: Bytes | None = None


class CompilerEvent(Record):
    """A graph break or a recompilation: reason, user file:line, how often."""

    reason: Text
    location: Text | None = None
    count: Count = 1


class CacheCounters(Record):
    fx_graph_hits: Count | None = None
    fx_graph_misses: Count | None = None
    aot_autograd_hits: Count | None = None
    aot_autograd_misses: Count | None = None


class CompilerFacts(Record):
    graphs: Count | None = None
    ops_captured: Count | None = None
    graph_breaks: list[CompilerEvent] | None = None
    recompiles: list[CompilerEvent] | None = None
    skipped_frames: list[Text] | None = None
    recompile_limit_hit: bool | None = None
    cudagraph_skips: list[Text] | None = None
    cudagraph_launches: Count | None = None
    cache: CacheCounters | None = None


class Numerics(Record):
    status: NumericsStatus
    reference: Name | None = None
    cosine_similarity: Finite | None = None
    max_abs_error: Finite | None = None
    rmse_reference: Finite | None = None
    rmse_result: Finite | None = None
    multiplier: Finite | None = None
    tolerance: Finite | None = None


class DeviceState(Record):
    """GPU evidence around the timed region; triples are [min, median, max]."""

    sm_clock_mhz: Triple | None = None
    memory_clock_mhz: Triple | None = None
    temperature_c: Triple | None = None
    power_w: Triple | None = None
    utilization_percent: Finite | None = None
    throttle_reasons: list[Name] | None = None
    other_processes: Count | None = None
    ecc: bool | None = None
    ecc_errors: Count | None = None
    """New ones that could not be corrected."""
    energy_mj: Count | None = None
    suspect: bool | None = None
    suspect_reasons: list[Text] | None = None


class HostState(Record):
    """Host evidence: pressure stall, CPU over wall time, and a sha256 canary per block."""

    cpu_stall_fraction: Finite | None = None
    cpu_over_wall: Finite | None = None
    canary_ns: list[Nanoseconds] | None = None
    blocks: Count | None = None
    blocks_rejected: Count | None = None


class Summary(Record):
    """What an imported result knows when it carries no samples.

    `latency_ns` is null where the source has none (an accuracy run, a compile-time count). `metrics` holds
    the source's figures that have no field in this record, by the source's own names and in its own units.
    """

    latency_ns: Nanoseconds | None = None
    control_latency_ns: Nanoseconds | None = None
    n: Count | None = None
    throughput_per_s: Finite | None = None
    metrics: dict[Key, Finite] = Field(default={})


Samples = list[Nanoseconds]


class Trial(Record):
    """One fresh process that measured one case once."""

    schema_: Annotated[Literal["compilewatch.trial/1"], Field(alias="schema")] = SCHEMA
    trial_id: Identifier
    run_id: Identifier
    started_at: UtcDatetime
    ended_at: UtcDatetime | None = None
    suite: Name | None = None
    label: Name | None = None
    source: Source
    workload: Workload
    strategy: Strategy
    machine: Machine
    build: Build
    status: Status
    failure: Failure | None = None
    cold_start: ColdStart | None = None
    warmup_ns: Samples = Field(default=[])
    samples_ns: Samples = Field(default=[])
    control_warmup_ns: Samples = Field(default=[])
    control_samples_ns: Samples = Field(default=[])
    host_samples_ns: Samples = Field(default=[])
    """On a GPU, where `samples_ns` are device times: steps of the same blocks on the host's clock, each until
    the device has finished it. Empty on a CPU, where `samples_ns` are that already."""
    control_host_samples_ns: Samples = Field(default=[])
    sampling: SamplingFacts | None = None
    summary: Summary | None = None
    memory: Memory | None = None
    compiler: CompilerFacts | None = None
    numerics: Numerics | None = None
    device_state: DeviceState | None = None
    host_state: HostState | None = None
    stream: StreamFacts | None = None
    profile: Profile | None = None
    trace: Trace | None = None

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True)

    @model_validator(mode="after")
    def _status_fits_content(self) -> Self:
        if self.status is Status.FAILED and self.failure is None:
            raise ValueError("a failed trial must carry its failure")
        if self.status is Status.OK and self.failure is not None:
            raise ValueError("a trial with status ok cannot carry a failure")
        if self.status is Status.OK and not self.samples_ns and self.summary is None:
            raise ValueError("a trial with status ok needs samples_ns or summary")
        return self

    def to_json(self) -> str:
        """One line of JSON, as `export --format jsonl` writes it."""
        return self.model_dump_json(by_alias=True)


def parse_trial(data: bytes | str, *, where: str = "record") -> Trial:
    """Read one trial record.

    Raises RecordError naming `where`, the field and what is wrong with it.
    """
    try:
        return Trial.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        field = one_line(".".join(str(part) for part in first["loc"])) or "the whole record"
        message = f"{where}: {field}: {one_line(first['msg'])}."
        raise RecordError(message, "See `compilewatch schema` for the record's fields.") from error
