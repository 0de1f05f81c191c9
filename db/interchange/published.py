"""Published speedups of torch.compile that state GPU, batch, dtype and mode, from `published.json`.

A figure is shown beside a case only where model, task, size, precision and mode agree; one whose size was not
published says so. Batch size, GPU and torch version differ almost always: the figure says its own, and is
never averaged or compared by the judge.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from compilewatch.db import units
from compilewatch.db.records.trial import Task

# Workloads of this project whose model others publish under another name.
_ALSO_KNOWN_AS: dict[str, tuple[str, ...]] = {
    "vit-b16": ("vit_base_patch16_224",),
    # A step of the text-to-image pipeline is one pass of this U-Net and of the scheduler.
    "sd-unet": ("SD1.5-txt2img",),
}
# Autocast computes in one of the two others; a speedup in 32 bit says nothing about one in 16.
_HALF_PRECISION = {"amp", "float16", "bfloat16"}


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """One published measurement. `speedup` is eager over compiled; latencies in ns where they are published.

    `scope` says what was timed when it was more than the model; `source` names document and commit.
    """

    model: str
    task: Task
    shape: Mapping[str, int]
    dtype: str
    batch_size: int
    mode: str
    device_name: str
    torch: str
    speedup: float
    eager_ns: int | None
    compiled_ns: int | None
    compile_cost_ns: int | None
    scope: str
    source: str

    def sentence(self) -> str:
        """ "published elsewhere: 1.87x (RTX 4090, torch 2.9.1, batch 1024, amp)"."""
        scope = "" if self.scope == "model" else f", {self.scope}"
        scope += "" if self.shape else ", input size not stated"
        return (
            f"published elsewhere: {units.ratio(self.speedup)} "
            f"({self.device_name}, torch {self.torch}, batch {self.batch_size}, {self.dtype}{scope})"
        )


@cache
def published_figures() -> tuple[PublishedFigure, ...]:
    """The whole table, as shipped with the package."""
    document: dict[str, Any] = json.loads(
        files("compilewatch.db.interchange").joinpath("published.json").read_text(encoding="utf-8")
    )
    rows = (dict(zip(document["columns"], row, strict=True)) for row in document["rows"])
    return tuple(
        PublishedFigure(**(row | {"task": Task(row["task"]), "source": document["sources"][row["source"]]}))
        for row in rows
    )


def published_for(
    workload: str, *, task: Task, dtype: str, shape: Mapping[str, int], mode: str | None
) -> list[PublishedFigure]:
    """The figures that speak of this case, in the order of device, torch and batch size; often none."""
    names = {workload, *_ALSO_KNOWN_AS.get(workload, ())}
    published = [
        figure
        for figure in published_figures()
        if figure.model in names
        and (figure.task, figure.mode) == (task, mode)
        and (figure.dtype == dtype or {figure.dtype, dtype} <= _HALF_PRECISION)
        and figure.shape.items() <= dict(shape).items()
    ]
    return sorted(published, key=lambda figure: (figure.device_name, figure.torch, figure.batch_size))
