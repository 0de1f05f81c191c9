"""What runner and measured process send each other, one JSON object a line: a specification in; phases,
facts, pauses and one record out. Standard library only: both sides of the pipe import it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, TypeVar

from compilewatch.runner.worker.timing.sampling import SamplingPlan

_T = TypeVar("_T")


def read(kind: type[_T], content: Mapping[str, Any]) -> _T:
    """A `kind` from the object of that shape; keys that are none of its fields are passed over.

    Raises TypeError where a field without a default is missing. Values are not checked.
    """
    names = [each.name for each in fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: content[name] for name in names if name in content})


@dataclass(frozen=True)
class Workload:
    """What the worker builds and how; the record's workload says more."""

    name: str
    task: str
    dtype: str
    target: str = ""
    batch_size: int | None = None
    shape: dict[str, int] = field(default_factory=dict)
    kwargs: dict[str, Any] = field(default_factory=dict)
    regions: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    task_is_open: bool = False
    """Whether what the builder returns decides the task; `task` is then a guess."""
    ranks: int | None = None
    """Processes of the process group that takes each step together; None where there is none."""
    variant: str | None = None
    """Of one model: `float32`, `bf16`, `int8` or `fp8`; None where it has no variants."""


@dataclass(frozen=True)
class Strategy:
    """How it is executed, as in the record."""

    kind: str
    cache: str = "cold"
    backend: str | None = None
    mode: str | None = None
    dynamic: bool | None = None
    fullgraph: bool = False
    scope: str = "full"
    options: dict[str, Any] = field(default_factory=dict)
    regions: dict[str, Any] = field(default_factory=dict)


Purpose = (
    Literal["measure", "prime", "trace", "profile", "bisect", "canaries"]
    | Literal["probes", "submodules", "explain", "fit", "hold", "rank", "losses"]
)
"""What one process is for. `prime` fills a cache, `trace` compiles for the compiler's own log, `profile`
takes a few steps under the profiler, `bisect` finds the part of the compiler that fails; canaries and probes
are of several workloads in one process, `submodules` only builds the model, `explain`
generates no code, `fit` tries a few steps of one side alone, `hold` finds what its memory is held for,
`rank` takes the steps of rank 0 with it, and `losses` trains beside eager.
"""


@dataclass(frozen=True)
class Specification:
    """What one process does. `workloads` are those of canaries and probes, in place of `workload`."""

    workload: Workload
    strategy: Strategy
    sampling: SamplingPlan
    device: str
    threads: int
    seed: int
    settings: dict[str, Any]
    timeout_s: float | None = None
    """After so many seconds the process is ended; None where nobody says."""
    device_state: bool = False
    """Whether the runner answers pauses with the state of the device."""
    purpose: Purpose = "measure"
    workloads: tuple[Workload, ...] = ()
    cpus: tuple[int, ...] = ()
    """CPUs near the GPU that no other GPU of the host is fed from; empty where that is not known."""
    cpus_of_ranks: tuple[tuple[int, ...], ...] = ()
    """The same of the GPU of each rank but the first; empty for one rank."""
    artifacts: str = ""
    """File that carries caches or a package from one process to the next."""
    work_tree: str | None = None
    """The git work tree of the workload's file, whose imported modules are hashed."""
    rank: int = 0
    """Which of the workload's ranks this process is."""
    meeting: str = ""
    """File by which the ranks find each other."""
    steps: int = 0
    """Of a training whose losses are compared."""

    def line(self) -> bytes:
        """As the worker gets it on its standard input."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Specification:
        """What `line` wrote."""
        content = json.loads(line)
        parts = {
            "workload": read(Workload, content["workload"]),
            "strategy": read(Strategy, content["strategy"]),
            "sampling": read(SamplingPlan, content["sampling"]),
            "workloads": tuple(read(Workload, each) for each in content["workloads"]),
            "cpus": tuple(content["cpus"]),
            "cpus_of_ranks": tuple(tuple(each) for each in content["cpus_of_ranks"]),
        }
        return read(cls, content | parts)


@dataclass(frozen=True)
class Phase:
    """What begins now, so that a process that is killed still tells how far it came."""

    phase: str
    at_ns: int | None = None


@dataclass(frozen=True)
class Facts:
    """What the process runs on, as parts of the record; early, so that a failed trial has them too."""

    machine: dict[str, Any]
    build: dict[str, Any]


@dataclass(frozen=True)
class Pause:
    """The runner may read the device's state, after a block of `side` or before the first one."""

    side: str = ""


@dataclass(frozen=True)
class Energy:
    """The device's energy counter is to be read now: before (`steps` 0) or after so many steps of `side`."""

    side: str
    steps: int = 0


SLOWED = b"slowed\n"
"""The runner's answer to a pause when the device is below its clock for heat or lack of power."""


@dataclass(frozen=True)
class Failure:
    """What ended the trial, from inside."""

    kind: str
    phase: str
    message: str


class RankFailedError(Exception):
    """Another rank failed by itself, with `failure`."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


@dataclass
class Record:
    """The last message: everything that was measured, or the failure. Null is what did not come about.

    Fields that a trial has too are parts of it by the same name.
    """

    status: str | None = None
    task: str | None = None
    """What the builder's result is, where the specification left that open."""
    failure: Failure | None = None
    entered_ns: int | None = None
    first_result_ns: int | None = None
    cold_start: dict[str, Any] = field(default_factory=dict)
    warmup_ns: list[int] | None = None
    samples_ns: list[int] | None = None
    device_ns: list[int] | None = None
    issue_ns: list[int] | None = None
    wall_sync_ns: list[int] | None = None
    wall_pipelined_ns: list[int] | None = None
    control_warmup_ns: list[int] | None = None
    control_samples_ns: list[int] | None = None
    control_device_ns: list[int] | None = None
    control_issue_ns: list[int] | None = None
    control_wall_sync_ns: list[int] | None = None
    control_wall_pipelined_ns: list[int] | None = None
    timing: dict[str, Any] | None = None
    sampling: dict[str, Any] | None = None
    memory: dict[str, Any] | None = None
    compiler: dict[str, Any] | None = None
    numerics: dict[str, Any] | None = None
    host_state: dict[str, Any] | None = None
    stream: dict[str, Any] | None = None
    profile: dict[str, Any] | None = None
    canaries: dict[str, dict[str, Any]] | None = None
    """Parts of a record by the canary's name."""
    sources: list[dict[str, Any]] | None = None
    """The code that the compiler wrote, of a process that traces."""
    probes: dict[str, Any] | None = None
    bisection: dict[str, Any] | None = None
    losses: dict[str, Any] | None = None
    source_hash: str | None = None
    """Of the code that was imported from the work tree."""
    source_files: list[str] | None = None
    """Which files of it that were, from its root."""


@dataclass(frozen=True)
class Partial:
    """What a record has so far, for a process that does not live to send it."""

    record: dict[str, Any]


Message = Phase | Facts | Pause | Energy | Partial | Record
_KINDS: dict[str, type[Any]] = {
    "phase": Phase,
    "facts": Facts,
    "pause": Pause,
    "energy": Energy,
    "kept": Partial,
    "record": Record,
}


def from_worker(line: bytes) -> Message:
    """The message of one line. Raises ValueError, TypeError, KeyError or RecursionError where it is none."""
    content = json.loads(line)
    if content["mark"] == "record" and content.get("failure") is not None:
        content["failure"] = read(Failure, content["failure"])
    message: Message = read(_KINDS[content["mark"]], content)
    return message


class Channel:
    """The worker's end of the pipe, on `descriptor`; never stdout, where models print."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._descriptor = descriptor
        self.phase = "interpreter"

    def send(self, message: Message) -> None:
        """Write one line, all of it."""
        (mark,) = (name for name, kind in _KINDS.items() if isinstance(message, kind))
        content = {name: value for name, value in asdict(message).items() if value is not None}
        data = json.dumps({"mark": mark, **content}, allow_nan=False).encode() + b"\n"
        while data:
            data = data[os.write(self._descriptor, data) :]

    def enter(self, phase: str) -> None:
        """Say that `phase` begins now."""
        self.phase = phase
        self.send(Phase(phase, time.monotonic_ns()))

    def keep(self, record: Record) -> None:
        """Send what `record` has so far."""
        self.send(Partial({name: value for name, value in asdict(record).items() if value is not None}))

    def pause(self, side: str = "") -> bool:
        """Let the runner read the device's state; whether the device was slowed."""
        self.send(Pause(side))
        return sys.stdin.buffer.readline() == SLOWED

    def energy(self, side: str, steps: int) -> None:
        """Let the runner read the device's energy counter."""
        self.send(Energy(side, steps))
        sys.stdin.buffer.readline()
