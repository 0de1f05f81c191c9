"""What a workload is before it is built: names and sizes, without importing torch."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compilewatch.db.errors import ConfigError
from compilewatch.db.records.trial import Task, Workload
from compilewatch.runner.catalog.targets import locate_module, split_target

# The source that a workload is made of: its builder's file, and the files of ours that this one shares.

_ROOM = "compilewatch.runner.workloads."
# What every builder returns. It computes nothing, so a change in it makes no other workload.
_RETURNED = "compilewatch.runner.workloads.built"


def source_of(target: str, path: tuple[str, ...] = ()) -> bytes:
    """The file that holds `target`, and after it, by name, each module below runner/workloads that it or
    one of those imports.

    A module of the user's own that the file imports is not followed: that is the code under measurement, and
    its history goes on when it changes. Raises ConfigError when a file cannot be found or read.
    """
    module = split_target(target)[0]
    own = _read(module, path)
    shared: dict[str, bytes] = {}
    waiting = [own]
    while waiting:
        for name in _shared_by(waiting.pop()):
            if name not in shared and name != module:
                shared[name] = _read(name, ())
                waiting.append(shared[name])
    return own + b"".join(b"\n# %b\n%b" % (name.encode(), shared[name]) for name in sorted(shared))


def _read(module: str, path: tuple[str, ...]) -> bytes:
    file: Path = locate_module(module, path)
    try:
        # A checkout with Windows line ends is the same workload.
        return file.read_bytes().replace(b"\r\n", b"\n")
    except OSError as error:
        raise ConfigError(
            f"The source of {module} cannot be read: {error.strerror}.",
            "Make the file readable; its hash is the workload's version.",
        ) from error


def _shared_by(source: bytes) -> Iterator[str]:
    """Modules below runner/workloads that `source` imports, wherever it does."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        # Whoever builds it is told the line; a file that cannot be read as Python imports nothing.
        return
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(name), level=0):
                names = [name]
            case ast.Import(names=aliases):
                names = [alias.name for alias in aliases]
            case _:
                continue
        yield from (name for name in names if name.startswith(_ROOM) and name != _RETURNED)


@dataclass(frozen=True)
class WorkloadDefinition:
    """A model or function with its inputs and task, at one size.

    `target` is the "module:function" that builds it; it is called with `batch_size`, every entry of `shape`
    and `kwargs`, and with `device` and `dtype`, as far as it declares them. `items_per_iteration` counts
    `item`s (images, sequences, tokens) in one iteration; None stands for `count_items`, or the batch size
    without it, or else a step, of each rank. `regions` are classes of repeated blocks in place of the
    builder's own. `packages` are modules it imports besides torch. `path` holds directories for the
    worker's `sys.path`.
    """

    name: str
    target: str
    task: Task = Task.INFERENCE
    summary: str = ""
    batch_size: int | None = None
    shape: Mapping[str, int] = field(default_factory=dict)
    dtype: str = "float32"
    item: str = "item"
    items_per_iteration: float | None = None
    count_items: Callable[[WorkloadDefinition], float] | None = None
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    ranks: int | None = None
    """Processes of the process group that takes each step together; None where there is none."""
    regions: tuple[str, ...] = ()
    has_regions: bool = True
    """Whether the model has repeated blocks, so that compiling them one by one means something."""
    is_stream: bool = False
    """Whether one iteration goes through several batches, which no exported program can."""
    packages: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    task_is_open: bool = False
    """Whether what the builder returns decides the task, which nobody named."""
    variant: str | None = None
    """Which of several of one model: `float32`, `bf16`, `int8` or `fp8`."""
    reason: str | None = None
    """Why it is set up so, as the configuration says; no part of its version."""

    @property
    def version(self) -> str:
        """First 8 hex digits of the SHA-256 of the builder's source (`source_of`), its name, `kwargs`
        and `regions`.

        Batch size, shape, dtype and ranks are fields of the record of their own, so they are left out.
        Raises ConfigError when a module of it cannot be found or read.
        """
        parts = [self.target, dict(self.kwargs), *([list(self.regions)] if self.regions else [])]
        call = json.dumps(parts, sort_keys=True, separators=(",", ":"))
        digest = hashlib.sha256(call.encode())
        digest.update(source_of(self.target, self.path))
        return digest.hexdigest()[:8]

    def record(self) -> Workload:
        """The workload as a trial record names it."""
        items, item = self.items_per_iteration, self.item
        if items is None:
            items = self.batch_size if self.count_items is None else self.count_items(self)
            if items is None and self.ranks is not None:
                items, item = 1, "step"
            items = None if items is None else items * (self.ranks or 1)
        return Workload(
            name=self.name,
            version=self.version,
            task=self.task,
            batch_size=self.batch_size,
            shape=dict(self.shape),
            dtype=self.dtype,
            items_per_iteration=items,
            item=item,
            ranks=self.ranks,
            variant=self.variant,
            reason=self.reason,
        )


def sequence_tokens(definition: WorkloadDefinition) -> float:
    """Of one batch of sequences of equal length."""
    return (definition.batch_size or 1) * definition.shape["sequence_length"]
