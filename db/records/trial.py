"""The words: frozen, validated types of the trial record, `compilewatch.trial/1` to `compilewatch.trial/3`.

Version 2 has the four times of a GPU and how they were taken, version 3 also the code that was measured; a
record of an earlier version stays one. Times are integer nanoseconds, memory integer bytes, timestamps aware
UTC. `None` means "could not be measured", never zero. Unknown keys are refused. Every part of the record is
found here, wherever it is defined.
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
from compilewatch.db.records.fields import INT64_MAX, Identifier, Latency, Name, Record, UtcDatetime
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
    Timing,
    TimingMethod,
    TimingSide,
    Trace,
)
from compilewatch.db.records.streams import StreamFacts
from compilewatch.db.records.validation import first_problem

__all__ = [
    "CONTROL_TIMES",
    "DEVICE_TIMES",
    "INT64_MAX",
    "NEWEST_VERSION",
    "SCHEMAS",
    "SPEEDUP_COLUMNS",
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
    "foreign_parts",
    "headline_of",
    "parse_trial",
    "timing_method_of",
    "trial_schema",
    "version_of",
]

Schema = Literal["compilewatch.trial/1", "compilewatch.trial/2", "compilewatch.trial/3"]
SCHEMAS: dict[int, Schema] = {
    1: "compilewatch.trial/1",
    2: "compilewatch.trial/2",
    3: "compilewatch.trial/3",
}
NEWEST_VERSION = max(SCHEMAS)
DEVICE_TIMES = ("device_ns", "issue_ns", "wall_sync_ns", "wall_pipelined_ns")
"""The four times of a GPU."""
CONTROL_TIMES = tuple(f"control_{name}" for name in DEVICE_TIMES)
"""The same of eager."""
SPEEDUP_COLUMNS = tuple(name.replace("_ns", "_speedup") for name in DEVICE_TIMES)
"""Of frames and documents: eager's time over the other, one for each of the four."""
_HOST_TIMES = ("host_samples_ns", "control_host_samples_ns")
# Fields that some versions have and the others have not, with the first and the last that has them.
_OWN_FIELDS: tuple[tuple[int, int, tuple[str, ...]], ...] = (
    (1, 1, _HOST_TIMES),
    (2, NEWEST_VERSION, ("timing", *DEVICE_TIMES, *CONTROL_TIMES)),
    (3, NEWEST_VERSION, ("code",)),
)
# Fields of parts of the record, by the version that they came with.
_OWN_PARTS = {
    2: {
        "numerics": {"rms_exact", "dtype", "not_compared"},
        "cold_start": {"first_call_cpu_ns", "first_call_instructions"},
        "compiler": {"generated", "autotuned", "already_compiled", "warnings", "cache_bypasses"},
        "memory": {"growth_bytes_per_call"},
        "trace": {"sources"},
        "host_state": {
            "launching_cpu",
            "launching_cpu_siblings",
            "backward_cpu",
            "compile_pool_ended",
            "address_layout",
            "clock_set_back_ns",
        },
    },
    3: {
        "numerics": {"reason"},
        "failure": {"bisection"},
        "compiler": {"break_hints", "ranks", "compile_threads", "compile_pool_size"},
        "memory": {"saved", "control_saved", "peak_blocks"},
        "sampling": {"state"},
    },
}


class Status(StrEnum):
    """Whether a trial has a result."""

    OK = "ok"
    FAILED = "failed"


Samples = list[Latency]


class Trial(Record):
    """One fresh process that measured one case once."""

    schema_: Annotated[Schema, Field(alias="schema")] = SCHEMAS[1]
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
    """Version 3: with which code of one's own; null where the workload's file lies in no git work tree."""
    status: Status
    """Whether there is a result."""
    failure: Failure | None = None
    """Why there is none; null with status `ok`."""
    cold_start: ColdStart | None = None
    """Process spawn to first result, by phases; null where an imported source does not say."""
    warmup_ns: Samples = Field(default=[])
    """Calls after the first one and before the samples, in nanoseconds each."""
    samples_ns: Samples = Field(default=[])
    """Warm iterations, in nanoseconds each; empty where the trial failed or an imported source has none. On a
    GPU, version 1 has times of CUDA events without a gate here, and version 2 has nothing."""
    control_warmup_ns: Samples = Field(default=[])
    """The same of eager in the same process, in nanoseconds each; empty for eager itself. Where
    sampling was not reached, calls before anything was compiled."""
    control_samples_ns: Samples = Field(default=[])
    """Eager iterations taken by turns in the same process, in nanoseconds each; empty for eager itself."""
    device_ns: Samples = Field(default=[])
    """From version 2, on a GPU: what the device needs for a step, in nanoseconds each; `timing` tells how it
    was taken."""
    issue_ns: Samples = Field(default=[])
    """From version 2, on a GPU: host time until a step has returned, in nanoseconds each."""
    wall_sync_ns: Samples = Field(default=[])
    """From version 2, on a GPU: one step and a synchronisation on an idle device, in nanoseconds each."""
    wall_pipelined_ns: Samples = Field(default=[])
    """From version 2, on a GPU: several steps and one synchronisation, divided by the steps, in nanoseconds
    each."""
    control_device_ns: Samples = Field(default=[])
    """Device time of eager, in nanoseconds each; empty for eager itself."""
    control_issue_ns: Samples = Field(default=[])
    """Issue time of eager, in nanoseconds each; empty for eager itself."""
    control_wall_sync_ns: Samples = Field(default=[])
    """Synchronised wall time of eager, in nanoseconds each; empty for eager itself."""
    control_wall_pipelined_ns: Samples = Field(default=[])
    """Pipelined wall time of eager, in nanoseconds each; empty for eager itself."""
    host_samples_ns: Samples = Field(default=[])
    """Version 1, on a GPU: steps of the same blocks on the host's clock, until the device has finished, in
    nanoseconds each. Empty on a CPU, where `samples_ns` are that already."""
    control_host_samples_ns: Samples = Field(default=[])
    """The same of eager, in nanoseconds each; empty for eager itself."""
    timing: Timing | None = None
    """From version 2: which times there are, and how they were taken; null for imported results, and where
    nothing was timed."""
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
    def _fields_fit_version(self) -> Self:
        version = version_of(self)
        for name, since in _foreign_names(version).items():
            if _holds(getattr(self, name)):
                raise ValueError(f"{name} belongs to {SCHEMAS[since]}, not to {self.schema_}")
        for part, keys in foreign_parts(version).items():
            for name in sorted(keys):
                if getattr(getattr(self, part), name, None) is not None:
                    raise ValueError(f"{part}.{name} does not belong to {self.schema_}")
        timed = [name for name in (*DEVICE_TIMES, *CONTROL_TIMES) if len(getattr(self, name))]
        on_device = self.timing is not None and self.timing.headline is not Headline.SAMPLES
        if timed and not on_device:
            raise ValueError(f"{timed[0]} needs a timing whose headline is a wall time")
        if on_device and (len(self.samples_ns) or len(self.control_samples_ns)):
            raise ValueError("samples_ns must be empty where the headline is a wall time")
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
        """The record as plain values, without the fields of other versions."""
        return self.model_dump(mode="json", by_alias=True, exclude=_foreign_fields(self))

    def to_json(self) -> str:
        """One line of JSON, as `export --format jsonl` writes it, without the fields of other versions."""
        return self.model_dump_json(by_alias=True, exclude=_foreign_fields(self))


def _foreign_fields(trial: Trial) -> dict[str, Any]:
    version = version_of(trial)
    return dict.fromkeys(_foreign_names(version), True) | foreign_parts(version)


def _foreign_names(version: int) -> dict[str, int]:
    """Fields that records of this version do not have, with the first version that has them."""
    return {
        name: first for first, last, names in _OWN_FIELDS if not first <= version <= last for name in names
    }


def foreign_parts(version: int) -> dict[str, set[str]]:
    """Fields of the record's parts that this version does not have, by part."""
    foreign: dict[str, set[str]] = {}
    for first, parts in _OWN_PARTS.items():
        for part, keys in parts.items() if version < first else ():
            foreign[part] = foreign.get(part, set()) | keys
    return foreign


def _holds(value: Any) -> bool:
    """Whether a field of one version says anything: lists and arrays that are empty say nothing."""
    return value is not None and (not hasattr(value, "__len__") or len(value) > 0)


def version_of(trial: Trial) -> int:
    return int(trial.schema_.rpartition("/")[2])


def headline_of(trial: Trial) -> str:
    return f"{(trial.timing.headline if trial.timing else Headline.SAMPLES).value}_ns"


def timing_method_of(trial: Trial) -> TimingMethod | None:
    """How the device time of a timed trial was taken; None where its source does not say.

    Version 1 put no gate before the events of a GPU.
    """
    if trial.timing is not None:
        return trial.timing.side.method
    if version_of(trial) > 1 or trial.source.kind is not SourceKind.MEASURED:
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


def trial_schema(version: int = NEWEST_VERSION) -> dict[str, Any]:
    """The JSON Schema of the records of one version. Raises KeyError where there is no such version."""
    document: dict[str, Any] = Trial.model_json_schema(by_alias=True)
    properties: dict[str, Any] = document["properties"]
    properties["schema"] = {"const": SCHEMAS[version], **_described(properties["schema"])}
    for name in _foreign_names(version):
        del properties[name]
    for part, keys in foreign_parts(version).items():
        definition = document["$defs"][_referred(properties[part])]
        for name in keys:
            del definition["properties"][name]
    document["$defs"] = {name: document["$defs"][name] for name in _reachable(document)}
    return document


def _described(field: Mapping[str, Any]) -> dict[str, Any]:
    return {name: field[name] for name in ("description", "title", "type") if name in field}


def _referred(field: Mapping[str, Any]) -> str:
    """The definition of a part that may be null."""
    return str(next(choice["$ref"] for choice in field["anyOf"] if "$ref" in choice)).rpartition("/")[2]


def _reachable(document: Mapping[str, Any]) -> list[str]:
    """The definitions that the record's fields lead to, in the order they are defined."""
    names: set[str] = set()
    waiting: list[Any] = [document["properties"]]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            name = str(part.get("$ref", "")).rpartition("/")[2]
            if name and name not in names:
                names.add(name)
                waiting.append(document["$defs"][name])
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return [name for name in document["$defs"] if name in names]


def parse_trial(data: bytes | str, *, where: str = "record") -> Trial:
    """Read one trial record.

    Raises RecordError naming `where`, the field and what is wrong with it.
    """
    try:
        return Trial.model_validate_json(data)
    except ValidationError as error:
        message = f"{where}: {first_problem(error, 'the whole record')}."
        raise RecordError(message, "See `compilewatch schema` for the record's fields.") from error
