"""The built-in workloads whose iteration goes through several batches. Importing this imports no torch."""

from __future__ import annotations

from typing import Any

from compilewatch.db.records.trial import Task
from compilewatch.runner.catalog.definition import WorkloadDefinition
from compilewatch.runner.workloads.lengths import Lengths

_HOW = {
    "none": "each batch padded to its longest sequence",
    "max": "each batch padded to the longest length there may be",
    "buckets": "each batch padded to 32, 64, 128 or 256 tokens",
    "dynamic": "each batch padded to its longest sequence, the length marked as varying",
}


def _varying_tokens(definition: WorkloadDefinition) -> float:
    """Of one iteration, padding not counted."""
    names = ("median", "sigma", "shortest", "seed")
    options: dict[str, Any] = {name: definition.kwargs[name] for name in names if name in definition.kwargs}
    batch_size = definition.batch_size or 1
    longest = definition.shape["longest"]
    return Lengths(definition.kwargs["batches"], batch_size, longest=longest, **options).tokens()


def _decoded_tokens(definition: WorkloadDefinition) -> float:
    return (definition.batch_size or 1) * definition.shape["new_tokens"]


def _varlen(policy: str) -> WorkloadDefinition:
    return WorkloadDefinition(
        name="varlen" if policy == "none" else f"varlen-{policy}",
        summary=f"64 batches of requests of 8 to 256 tokens through an encoder, {_HOW[policy]}",
        target="compilewatch.runner.workloads.varlen:build",
        batch_size=4,
        shape={"longest": 256},
        item="token",
        count_items=_varying_tokens,
        kwargs={"batches": 64, "policy": policy},
        is_stream=True,
    )


STREAMS = (
    *(_varlen(policy) for policy in _HOW),
    WorkloadDefinition(
        name="first-epoch",
        summary="a training epoch of a small CNN end to end: data loader, steps, ragged last batch",
        task=Task.TRAINING,
        target="compilewatch.runner.workloads.epoch:build",
        batch_size=32,
        shape={"images": 265, "image_size": 32},
        item="image",
        count_items=lambda definition: definition.shape["images"],
        is_stream=True,
    ),
    WorkloadDefinition(
        name="decode",
        summary="32 tokens one after the other with a static key-value cache, in plain torch",
        target="compilewatch.runner.workloads.decode:build",
        batch_size=4,
        shape={"prompt_length": 32, "new_tokens": 32},
        item="token",
        count_items=_decoded_tokens,
        is_stream=True,
    ),
    WorkloadDefinition(
        name="llama-decode",
        summary="64 tokens one after the other with transformers' StaticCache: a Llama of 1.1 billion",
        target="compilewatch.runner.workloads.static_cache:build",
        batch_size=1,
        shape={"prompt_length": 512, "new_tokens": 64},
        dtype="bfloat16",
        item="token",
        count_items=_decoded_tokens,
        packages=("transformers",),
        is_stream=True,
    ),
)
