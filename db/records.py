"""The words: frozen, validated types of the trial record `compilewatch.trial/1`.

Times are integer nanoseconds, memory integer bytes, timestamps aware UTC. `None` means "could not be
measured", never zero. Unknown keys are refused. Every part of the record is found here, wherever it is
defined.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, ValidationError, model_validator

from db.complaints import first_problem
from db.diagnosis import Profile, SamplingFacts, Trace
from db.errors import RecordError
from db.fields import INT64_MAX, Identifier, Name, Nanoseconds, Record, UtcDatetime
from db.record_evidence import (
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
from db.record_identity import (
    Build,
    CacheState,
    Machine,
    Source,
    SourceKind,
    Strategy,
    StrategyKind,
    Task,
    Workload,
)
from db.streams import StreamFacts

__all__ = [
    "INT64_MAX",
    "SCHEMA",
    "Build",
    "CacheCounters",
    "CacheState",
    "ColdStart",
    "CompilerEvent",
    "CompilerFacts",
    "DeviceState",
    "Failure",
    "FailureKind",
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
    "Trial",
    "Workload",
    "parse_trial",
]

SCHEMA: Literal["compilewatch.trial/1"] = "compilewatch.trial/1"


class Status(StrEnum):
    """Whether a trial has a result."""

    OK = "ok"
    FAILED = "failed"


Samples = list[Nanoseconds]


class Trial(Record):
    """One fresh process that measured one case once."""

    schema_: Annotated[Literal["compilewatch.trial/1"], Field(alias="schema")] = SCHEMA
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
    """Name of the suite; null where no suite was asked for."""
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
    status: Status
    """Whether there is a result."""
    failure: Failure | None = None
    """Why there is none; null with status `ok`."""
    cold_start: ColdStart | None = None
    """Process spawn to first result, by phases; null where an imported source does not say."""
    warmup_ns: Samples = Field(default=[])
    """Calls after the first one and before the samples, in nanoseconds each."""
    samples_ns: Samples = Field(default=[])
    """Warm iterations, in nanoseconds each; empty where the trial failed or an imported source has none."""
    control_warmup_ns: Samples = Field(default=[])
    """The same of eager in the same process, in nanoseconds each; empty for eager itself."""
    control_samples_ns: Samples = Field(default=[])
    """Eager iterations taken by turns in the same process, in nanoseconds each; empty for eager itself."""
    host_samples_ns: Samples = Field(default=[])
    """On a GPU, where `samples_ns` are device times: steps of the same blocks on the host's clock, in
    nanoseconds each, until the device has finished it. Empty on a CPU, where `samples_ns` are that
    already."""
    control_host_samples_ns: Samples = Field(default=[])
    """The same of eager, in nanoseconds each; empty for eager itself."""
    sampling: SamplingFacts | None = None
    """What was asked of the sampling and what ended it; null for imported results."""
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
    """A few steps under the profiler; null unless asked for."""
    trace: Trace | None = None
    """Where the compiler's own log lies; null unless asked for."""

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

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
        message = f"{where}: {first_problem(error, 'the whole record')}."
        raise RecordError(message, "See `compilewatch schema` for the record's fields.") from error
