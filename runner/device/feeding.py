"""From which CPUs of the host each GPU is fed: near it, and never two GPUs from one core."""

from __future__ import annotations

from collections.abc import Sequence

from compilewatch.runner.device.state import nvml_handle, nvml_query, whole_device
from compilewatch.runner.worker.step.host import siblings_of

_WORD_BITS = 64
_WORDS = 64
"""Of NVML's mask: more CPUs than any host has."""


def rank_devices(device: str, ranks: int | None) -> list[str]:
    """The device of each rank: the same CPU for all, or as many GPUs from "cuda:N" on; one without ranks."""
    if ranks is None:
        return [device]
    kind, _, number = device.partition(":")
    return (
        [device] * ranks if kind == "cpu" else [f"{kind}:{int(number or 0) + rank}" for rank in range(ranks)]
    )


def feeding_cpus(device: str) -> tuple[int, ...]:
    """The share of "cuda:N" in the CPUs that are near it; empty for a CPU, and where NVML does not tell.

    Inside a container NVML may show only the GPUs that it was given, so that two containers can meet.
    """
    handle = nvml_handle(device)
    if handle is None:
        return ()
    index = nvml_query("nvmlDeviceGetIndex", whole_device(handle))
    count = nvml_query("nvmlDeviceGetCount") or 0
    near = [_near(nvml_query("nvmlDeviceGetHandleByIndex", number)) for number in range(count)]
    return () if index is None or index >= count else tuple(sorted(shares(near)[index]))


def _near(handle: object) -> frozenset[int]:
    """The CPUs of the GPU's own NUMA node."""
    words = None if handle is None else nvml_query("nvmlDeviceGetCpuAffinity", handle, _WORDS)
    return frozenset(
        number * _WORD_BITS + bit
        for number, word in enumerate(words or ())
        for bit in range(_WORD_BITS)
        if word >> bit & 1
    )


def shares(near: Sequence[frozenset[int]]) -> list[frozenset[int]]:
    """One set of CPUs for each GPU, of those near it: whole cores dealt out in turn, so that no two share a
    core, and the same on every call. Core 0, where interrupts land, is dealt last. A GPU that got none has
    all that are near it.
    """
    cores = {siblings_of(cpu) for cpus in near for cpu in cpus}
    dealt: list[set[int]] = [set() for _ in near]
    for core in sorted(cores, key=lambda each: (0 in each, min(each))):
        takers = [number for number, cpus in enumerate(near) if core & cpus]
        dealt[min(takers, key=lambda number: (len(dealt[number]), number))] |= core
    return [frozenset(mine & cpus) or cpus for mine, cpus in zip(dealt, near, strict=True)]
