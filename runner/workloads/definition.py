"""What a workload is before it is built: names and sizes, without importing torch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from db.records import Task, Workload
from runner.workloads.sources import source_of


@dataclass(frozen=True)
class WorkloadDefinition:
    """A model or function with its inputs and task, at one size.

    `target` is the "module:function" that builds it; it is called with `batch_size`, every entry of `shape`
    and `kwargs`, and with `device` and `dtype`, as far as it declares them. `items_per_iteration` counts
    `item`s (images, sequences, tokens) in one iteration; None stands for `count_items`, or the batch size
    without it. `regions` are classes of repeated blocks in place of the builder's own. `packages` are modules
    it imports besides torch. `path` holds the directories put on the worker's `sys.path`.
    """

    name: str
    task: Task
    target: str
    summary: str = ""
    batch_size: int | None = None
    shape: Mapping[str, int] = field(default_factory=dict)
    dtype: str = "float32"
    item: str = "item"
    items_per_iteration: float | None = None
    count_items: Callable[[WorkloadDefinition], float] | None = None
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    regions: tuple[str, ...] = ()
    has_regions: bool = True
    """Whether the model has repeated blocks, so that compiling them one by one means something."""
    is_stream: bool = False
    """Whether one iteration goes through several batches, which no exported program can."""
    packages: tuple[str, ...] = ()
    path: tuple[str, ...] = ()

    @property
    def version(self) -> str:
        """First 8 hex digits of the SHA-256 of the builder's source (`source_of`), its name, `kwargs` and
        `regions`.

        Batch size, shape and dtype are fields of the record of their own, so they are left out.
        Raises ConfigError when a module of it cannot be found or read.
        """
        parts = [self.target, dict(self.kwargs), *([list(self.regions)] if self.regions else [])]
        call = json.dumps(parts, sort_keys=True, separators=(",", ":"))
        digest = hashlib.sha256(call.encode())
        digest.update(source_of(self.target, self.path))
        return digest.hexdigest()[:8]

    def record(self) -> Workload:
        """The workload as a trial record names it."""
        items = self.items_per_iteration
        if items is None:
            items = self.batch_size if self.count_items is None else self.count_items(self)
        return Workload(
            name=self.name,
            version=self.version,
            task=self.task,
            batch_size=self.batch_size,
            shape=dict(self.shape),
            dtype=self.dtype,
            items_per_iteration=items,
            item=self.item,
        )
