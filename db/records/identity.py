"""What was measured, how, on what and with what: the parts of a trial record by which trials are compared.

A description below is also what the JSON schema, the API's document and the reference page say.

The order of versions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Any

from packaging.version import InvalidVersion, Version
from pydantic import Field

from compilewatch.db.records.fields import (
    INT64_MAX,
    Bytes,
    Commit,
    Count,
    Flag,
    IdentifyingNumber,
    Integer,
    JsonObject,
    Key,
    Name,
    Record,
    SourceHash,
    Text,
)
from compilewatch.db.units import words

FLOAT32 = "float32"
"""The variant of a model that its others are set against."""


class Task(StrEnum):
    """What one iteration is: a forward pass without gradients, a training step, or a plain function."""

    INFERENCE = "inference"
    TRAINING = "training"
    FUNCTION = "function"


class StrategyKind(StrEnum):
    """Which door of torch a strategy goes through."""

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


class SourceKind(StrEnum):
    """Whether the trial was measured by compilewatch or read from another tool's file."""

    MEASURED = "measured"
    IMPORTED = "imported"


JOB_SOURCE = "job"
"""The source of what recorded itself in production: `compilewatch_recorder`, and logs of TORCH_TRACE."""
JOB_VERSION = f"imported-{JOB_SOURCE}"
"""The version of every job, as a workload."""


class Source(Record):
    """Where a trial's figures come from."""

    kind: SourceKind
    """Measured here, or imported."""
    name: Name
    """Who measured: `compilewatch` and its version, or the format of the imported file."""


class Workload(Record):
    """A model or function with its inputs and task, at one size. `reason` is no part of its identity."""

    name: Name
    """As commands, tables and links call it."""
    version: Name
    """Hash of its definition, `imported-FORMAT` for imported results; another version is another series."""
    task: Task
    """What one iteration is."""
    batch_size: Annotated[int, Field(strict=True, ge=1, le=INT64_MAX)] | None = None
    """Of the inputs; null where there is none, or where an imported source does not say."""
    shape: dict[Key, Integer] = Field(default={})
    """Other sizes of the inputs by name, e.g. `sequence_length`."""
    dtype: Name
    """Of the inputs and the computation, by torch's name; with autocast that of autocast."""
    items_per_iteration: Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)] | None = None
    """How many of `item` one iteration works off; null where throughput has no meaning or is unknown."""
    item: Name | None = None
    """What throughput counts: image, sequence, token; null where nothing is counted."""
    ranks: Annotated[int, Field(strict=True, ge=1, le=INT64_MAX)] | None = None
    """Processes of the process group that takes each step together; null where there is none."""
    variant: Name | None = None
    """Of one model: `float32`, `bf16`, `int8` or `fp8`; null where it has no variants."""
    reason: Text | None = None
    """Why it is set up so, in people's words; null where nobody said."""


class Strategy(Record):
    """How a workload is executed. `name` is what is shown; `reason` is no part of its identity."""

    name: Name
    """Of the other fields, or one the user gave them: `default+dynamic`."""
    kind: StrategyKind
    """Eager, compiled, exported, or a package compiled ahead of time."""
    backend: Name | None = None
    """Of `torch.compile`, or what executes an export; null for eager and torch's own export, and where an
    imported source does not say."""
    mode: Name | None = None
    """Of `torch.compile`; null where none was given."""
    dynamic: Flag | None = None
    """Argument of `torch.compile`; null leaves it to torch."""
    fullgraph: Flag = False
    """Whether a graph break is an error; of a package, that Dynamo captures it instead of `torch.export`."""
    scope: Name = "full"
    """What is compiled: `full`, `regional` (repeated blocks one by one), `nested` (all as one graph, repeated
    blocks as nested compile regions), `submodule:PATH` or `regions` (those below)."""
    cache: CacheState
    """What the process found in the compiler's caches."""
    options: JsonObject = Field(default={})
    """Options of the compiler, as given to `torch.compile`."""
    regions: JsonObject = Field(default={})
    """Parts of the model that are compiled, each with fields of its own, by path; `scope` is `regions`."""
    reason: Text | None = None
    """Why it is set up so, in people's words; null where nobody said."""


class Code(Record):
    """Whose own code was measured: the git work tree in which the workload's file lies."""

    commit: Commit | None = None
    """The commit that was checked out; null where git does not tell."""
    dirty: Flag | None = None
    """Whether files that git follows differed from that commit, or one was imported that it neither follows
    nor ignores; null where git does not tell."""
    source_hash: SourceHash | None = None
    """Of the sources of the modules of the work tree that the process had imported by its end, installed
    packages left out; null where the trial failed."""


SHORT_COMMIT = 7
"""Digits of a commit that are shown, as git shows them."""


def code_name(commit: str | None, dirty: bool | None, source_hash: str | None) -> str | None:
    """What measured code is called: the commit, as `git describe --always --dirty` calls it, and of what lies
    in no commit also the first digits of the hash of its sources; None of what is not known.
    """
    of_sources = f"+{source_hash[:SHORT_COMMIT]}" if source_hash else ""
    if commit is None:
        return f"unknown{of_sources}" if of_sources else None
    return commit[:SHORT_COMMIT] + (f"-dirty{of_sources}" if dirty else "")


class Machine(Record):
    """Hardware that must match for a comparison. `name` and `device_uuid` are no part of its identity."""

    name: Name
    """The host's, at the time."""
    device: Name
    """Kind of device that was measured: `cpu`, `cuda` or `hip`; imported results may name others."""
    device_name: Name
    """Model of the GPU, on a CPU that of the processor."""
    device_count: Count | None = None
    """GPUs that were used; null on a CPU."""
    device_uuid: Name | None = None
    """The GPU's serial identity; null on a CPU and where the driver does not tell."""
    device_memory_bytes: Bytes | None = None
    """Memory of the GPU, in bytes; null on a CPU."""
    power_limit_w: IdentifyingNumber | None = None
    """Power cap in force, in watts; null on a CPU and without NVML."""
    cpu_name: Name | None = None
    """Model of the host's processor; null where neither the system nor the source tells."""
    cpu_count: Count | None = None
    """Logical processors of the host; null where unknown."""
    ram_bytes: Bytes | None = None
    """Memory of the host, in bytes; null where unknown."""
    threads: Annotated[int, Field(strict=True, ge=1, le=INT64_MAX)] | None = None
    """Threads that torch computes with; null where an imported source does not say."""


class Build(Record):
    """The software stack that is compared. `label` is no part of its identity."""

    torch: Name
    """Release without its local suffix; `unknown` where the process died before it could say."""
    torch_git: Name | None = None
    """First digits of the commit that torch was built from; null where it does not say."""
    torch_variant: Name | None = None
    """Which build of the release: `cpu`, `cu130`, `rocm6.4`; null where unknown."""
    cuda: Name | None = None
    """Release of CUDA or HIP that torch was built against; null for a CPU build."""
    driver: Name | None = None
    """Release of the GPU's driver; null on a CPU and without NVML."""
    triton: Name | None = None
    """Release of the installed Triton; null without one."""
    cudnn: Name | None = None
    """cuDNN as torch numbers it; null on a CPU."""
    python: Name | None = None
    """Release of the interpreter; null where an imported source does not say."""
    os: Name | None = None
    """Name and release of the kernel; null where an imported source does not say."""
    compiler: Name | None = None
    """Name and release of the C++ compiler; null where none was found."""
    packages: dict[Key, Key] = Field(default={})
    """Releases of other installed packages that change what is compiled, by name."""
    settings: JsonObject = Field(default={})
    """What of the configuration changes speed or code: precision, environment variables, L2 flush."""
    label: Name | None = None
    """What people call this build; null without a name."""


_NUMBER = re.compile(r"(\d+)")
# What no one can order comes before everything that can be.
_UNKNOWN = Version("0.dev0")

VersionKey = tuple[Version, tuple[tuple[int, str], ...]]


STACK = ("torch", "torch_variant", "cuda", "driver", "triton", "cudnn", "python", "os")
"""Parts of a build in the order in which they decide which of two is the newer one."""


_SPOKEN = {name: words(name) for name in ("torch_variant", "torch_git")}


def component_name(component: str) -> str:
    """What people call a part of a build; a library keeps the name under which it is installed."""
    return _SPOKEN.get(component, component)


def stack_order(build: Mapping[str, Any]) -> tuple[VersionKey, ...]:
    """The versions of a build, a row of any frame that has these, as builds are sorted by them."""
    return tuple(map(version_key, map(build.get, STACK)))


# More than a decade of nightly builds: one that is forgotten is read anew with every look at the choices.
@lru_cache(maxsize=16_384)
def version_key(version: object) -> VersionKey:
    """Sorts versions by PEP 440, and what is no such version (a driver, a kernel) by its numbers and words.

    Missing versions (what is no text) come first; equal versions that are written differently keep a fixed
    order.
    """
    text = version if isinstance(version, str) else ""
    try:
        parsed = Version(text)
    except InvalidVersion:
        parsed = _UNKNOWN
    parts = _NUMBER.split(text)
    return parsed, tuple((int(part), "") if part.isdecimal() else (-1, part) for part in parts if part)
