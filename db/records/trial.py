"""The words: frozen, validated types of the trial record, `compilewatch.trial/1`.

Times are integer nanoseconds, memory integer bytes, timestamps aware UTC. `None` means "could not be
measured", never zero. Unknown keys are refused. Every part of the record is found here, wherever it is
defined.

The marks behind a case: where its numbers come from, how they were timed, and what bounds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, ValidationError, model_validator

from compilewatch.db.errors import RecordError
from compilewatch.db.records.evidence import (
    CacheCounters,
    ColdStart,
    CompilerEvent,
    CompilerFacts,
    DeviceState,
    Failure,
    FailureKind,
    HostState,
    Memory,
    Numerics,
    NumericsStatus,
    PhasesNs,
    Summary,
)
from compilewatch.db.records.fields import (
    INT64_MAX,
    Identifier,
    Latency,
    Name,
    Record,
    UtcDatetime,
    first_problem,
)
from compilewatch.db.records.identity import (
    Build,
    CacheState,
    Code,
    Machine,
    Source,
    SourceKind,
    Strategy,
    StrategyKind,
    Task,
    Workload,
)
from compilewatch.db.records.sampling_facts import (
    Gate,
    Headline,
    Profile,
    SamplingFacts,
    StreamFacts,
    Timing,
    TimingMethod,
    TimingSide,
    Trace,
)
from compilewatch.db.units import MISSING

__all__ = [
    "CONTROL_TIMES",
    "DEVICE_TIMES",
    "INT64_MAX",
    "SPEEDUP_COLUMNS",
    "VERSION",
    "Build",
    "CacheCounters",
    "CacheState",
    "Code",
    "ColdStart",
    "CompilerEvent",
    "CompilerFacts",
    "DeviceState",
    "Failure",
    "FailureKind",
    "Gate",
    "Headline",
    "HostState",
    "Machine",
    "Memory",
    "Numerics",
    "NumericsStatus",
    "PhasesNs",
    "Source",
    "SourceKind",
    "Status",
    "Strategy",
    "StrategyKind",
    "Summary",
    "Task",
    "Timing",
    "TimingMethod",
    "TimingSide",
    "Trial",
    "Workload",
    "compile_threads_of",
    "headline_of",
    "parse_trial",
    "timing_method_of",
]

VERSION = 1
"""Of the record, behind the name of its format."""
DEVICE_TIMES = ("device_ns", "issue_ns", "wall_sync_ns", "wall_pipelined_ns")
"""The four times of a GPU."""
CONTROL_TIMES = tuple(f"control_{name}" for name in DEVICE_TIMES)
"""The same of eager."""
SPEEDUP_COLUMNS = tuple(name.replace("_ns", "_speedup") for name in DEVICE_TIMES)
"""Of frames and documents: eager's time over the other, one for each of the four."""
_HOST_TIMES = ("host_samples_ns", "control_host_samples_ns")


class Status(StrEnum):
    """Whether a trial has a result."""

    OK = "ok"
    FAILED = "failed"


Samples = list[Latency]


class Trial(Record):
    """One fresh process that measured one case once."""

    schema_: Annotated[Literal["compilewatch.trial/1"], Field(alias="schema")] = "compilewatch.trial/1"
    """Version of this format."""
    trial_id: Identifier
    """Unique. A second arrival with equal content changes nothing, with other content it is an error."""
    run_id: Identifier
    """The run it belongs to: one execution of a suite on one machine with one build."""
    started_at: UtcDatetime
    """When the process was started, or the source says that it was measured."""
    ended_at: UtcDatetime | None = None
    """When the process had ended; null where an imported source does not say."""
    suite: Name | None = None
    """Name of the suite; null where no suite was requested."""
    label: Name | None = None
    """What the user called the run; null without a name."""
    source: Source
    """Measured here, or imported from where."""
    workload: Workload
    """What was executed."""
    strategy: Strategy
    """How it was executed."""
    machine: Machine
    """On which hardware."""
    build: Build
    """With which software."""
    code: Code | None = None
    """With which code of one's own; null where the workload's file lies in no git work tree."""
    status: Status
    """Whether there is a result."""
    failure: Failure | None = None
    """Why there is none; null with status `ok`."""
    cold_start: ColdStart | None = None
    """Process spawn to first result, by phases; null where an imported source does not say."""
    warmup_ns: Samples = Field(default=[])
    """Calls after the first one and before the samples, in nanoseconds each."""
    samples_ns: Samples = Field(default=[])
    """Warm iterations, in nanoseconds each; empty where the trial failed, an imported source has none, or
    `timing` has another headline. On a GPU without `timing`: CUDA events without a gate."""
    control_warmup_ns: Samples = Field(default=[])
    """The same of eager in the same process, in nanoseconds each; empty for eager itself. Where
    sampling was not reached, calls before anything was compiled."""
    control_samples_ns: Samples = Field(default=[])
    """Eager iterations taken by turns in the same process, in nanoseconds each; empty for eager itself."""
    device_ns: Samples = Field(default=[])
    """On a GPU: what the device needs for a step, in nanoseconds each; `timing` tells how it was taken."""
    issue_ns: Samples = Field(default=[])
    """On a GPU: host time until a step has returned, in nanoseconds each."""
    wall_sync_ns: Samples = Field(default=[])
    """On a GPU: one step and a synchronisation on an idle device, in nanoseconds each."""
    wall_pipelined_ns: Samples = Field(default=[])
    """On a GPU: several steps and one synchronisation, divided by the steps, in nanoseconds each."""
    control_device_ns: Samples = Field(default=[])
    """Device time of eager, in nanoseconds each; empty for eager itself."""
    control_issue_ns: Samples = Field(default=[])
    """Issue time of eager, in nanoseconds each; empty for eager itself."""
    control_wall_sync_ns: Samples = Field(default=[])
    """Synchronised wall time of eager, in nanoseconds each; empty for eager itself."""
    control_wall_pipelined_ns: Samples = Field(default=[])
    """Pipelined wall time of eager, in nanoseconds each; empty for eager itself."""
    host_samples_ns: Samples = Field(default=[])
    """On a GPU without `timing`: steps of the same blocks on the host's clock, until the device has finished,
    in nanoseconds each. Empty on a CPU, where `samples_ns` are that already."""
    control_host_samples_ns: Samples = Field(default=[])
    """The same of eager, in nanoseconds each; empty for eager itself."""
    timing: Timing | None = None
    """Which times there are, and how they were taken; null for imported results, where nothing was timed, and
    in the first records of a GPU."""
    sampling: SamplingFacts | None = None
    """The plan of the sampling and what ended it; null for imported results."""
    summary: Summary | None = None
    """What an imported result knows in place of samples; null for measured ones."""
    memory: Memory | None = None
    """Peaks; null where nothing was read."""
    compiler: CompilerFacts | None = None
    """What the compiler did; null for eager."""
    numerics: Numerics | None = None
    """Whether the compiled result is right; null for eager, and where the trial ended before."""
    device_state: DeviceState | None = None
    """Evidence of the GPU; null on a CPU and without NVML."""
    host_state: HostState | None = None
    """Evidence of the host; null where no sample was taken."""
    stream: StreamFacts | None = None
    """What several batches met; null for a workload of one batch."""
    profile: Profile | None = None
    """A few steps under the profiler; null unless requested."""
    trace: Trace | None = None
    """Where the compiler's own log lies; null unless requested."""

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    @model_validator(mode="after")
    def _times_fit_timing(self) -> Self:
        timed = [name for name in (*DEVICE_TIMES, *CONTROL_TIMES) if len(getattr(self, name))]
        on_device = self.timing is not None and self.timing.headline is not Headline.SAMPLES
        if timed and not on_device:
            raise ValueError(f"{timed[0]} needs a timing whose headline is a wall time")
        if on_device and (len(self.samples_ns) or len(self.control_samples_ns)):
            raise ValueError("samples_ns must be empty where the headline is a wall time")
        if self.timing is not None and any(len(getattr(self, name)) for name in _HOST_TIMES):
            raise ValueError("host_samples_ns must be empty where there is a timing")
        return self

    @model_validator(mode="after")
    def _status_fits_content(self) -> Self:
        if self.status is Status.FAILED and self.failure is None:
            raise ValueError("a failed trial must carry its failure")
        if self.status is Status.OK and self.failure is not None:
            raise ValueError("a trial with status ok cannot carry a failure")
        if self.status is Status.OK and self.summary is None and not len(getattr(self, headline_of(self))):
            raise ValueError(f"a trial with status ok needs {headline_of(self)} or summary")
        return self

    @property
    def latency_samples_ns(self) -> list[int]:
        """The array that is this trial's latency, in nanoseconds; see `Timing.headline`."""
        values: list[int] = getattr(self, headline_of(self))
        return values

    @property
    def control_latency_samples_ns(self) -> list[int]:
        """The same of eager beside it, in nanoseconds; empty for eager itself."""
        values: list[int] = getattr(self, f"control_{headline_of(self)}")
        return values

    def to_document(self) -> dict[str, Any]:
        """The record as plain values."""
        return self.model_dump(mode="json", by_alias=True)

    def to_json(self) -> str:
        """One line of JSON."""
        return self.model_dump_json(by_alias=True)


def headline_of(trial: Trial) -> str:
    return f"{(trial.timing.headline if trial.timing else Headline.SAMPLES).value}_ns"


def timing_method_of(trial: Trial) -> TimingMethod | None:
    """How the device time of a trial was taken; None where its source does not say or nothing was timed.

    Before `timing` was recorded, no gate was put before the events of a GPU.
    """
    if trial.timing is not None:
        return trial.timing.side.method
    is_timed = len(trial.samples_ns) or len(trial.control_samples_ns) or trial.summary is not None
    if trial.source.kind is not SourceKind.MEASURED or not is_timed:
        return None
    return TimingMethod.HOST if trial.machine.device == "cpu" else TimingMethod.UNGATED


def compile_threads_of(trial: Trial) -> int | None:
    """With how many threads it was compiled; None for eager and where nobody knows.

    Before `compile_pool_size` was recorded, a measured process was bound to one core as torch was loaded, and
    torch took that for all there are.
    """
    facts = trial.compiler
    if facts is None or facts.compile_threads is not None or facts.compile_pool_size is not None:
        return None if facts is None else facts.compile_threads
    return 1 if trial.source.kind is SourceKind.MEASURED else None


def parse_trial(data: bytes | str, *, where: str = "record") -> Trial:
    """Read one trial record.

    Raises RecordError naming `where`, the field and what is wrong with it.
    """
    try:
        return Trial.model_validate_json(data)
    except ValidationError as error:
        message = f"{where}: {first_problem(error, 'the whole record')}."
        raise RecordError(message, "See `compilewatch schema` for the record's fields.") from error


UNGATED = "ungated"
UNGATED_MEANS = (
    "Ungated: CUDA events around each step, with every gap in which the GPU waited for the host. "
    "Not comparable with gated times."
)
_BOUNDS = {"host": "host-bound", "device": "device-bound"}


def origin_mark(kind: object, name: object, timing_method: object = None) -> str:
    """Behind a workload: " (imported, NAME)", " (ungated)", or nothing."""
    if kind == SourceKind.IMPORTED:
        return f" (imported, {name})"
    return f" ({UNGATED})" if timing_method == TimingMethod.UNGATED else ""


def origin_mark_of(row: Mapping[Any, Any]) -> str:
    """The same of a row with the columns `source_kind`, `source_name` and, where known, `timing_method`."""
    return origin_mark(row["source_kind"], row["source_name"], row.get("timing_method"))


def timing_text(method: object, bound: object) -> str:
    """How a case was timed and what bounds it: "gated, host-bound"; empty where nothing is known."""
    known = [method if isinstance(method, str) and method != TimingMethod.HOST else "", bound_word(bound)]
    return ", ".join(filter(None, known))


def bound_word(bound: object) -> str:
    """`host-bound`, `device-bound`, or empty where it is not known."""
    return _BOUNDS.get(bound, "") if isinstance(bound, str) else ""


def bound_cell(bound: object) -> str:
    """The same in a table: a dash where it is not known."""
    return bound_word(bound) or MISSING
