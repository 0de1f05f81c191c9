"""Peak memory of one step: what the variant holds and the most it adds while it runs."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from compilewatch.runner.worker.step import host
from compilewatch.runner.worker.step.internals import clear_cublas_workspaces, profiled_allocations
from compilewatch.runner.worker.step.state import tensors_held
from compilewatch.runner.worker.step.steps import Variant, grad_context, input_tensors, tensors_of
from compilewatch.runner.worker.timing.sampling import GrowsError

_STATUS = Path("/proc/self/status")


def _status_bytes(key: str) -> int | None:
    try:
        for line in _STATUS.read_text().splitlines():
            if line.startswith(key + ":"):
                return int(line.split()[1]) * 1024
    except OSError:
        return None
    return None


def peak_rss_bytes() -> int | None:
    """Most memory this process had resident since the last reset, from VmHWM.

    Not `ru_maxrss`, which a child inherits from its parent across fork and exec.
    """
    return _status_bytes("VmHWM")


def rss_bytes() -> int | None:
    return _status_bytes("VmRSS")


def reset_peak_rss() -> bool:
    """Start VmHWM afresh (proc(5), clear_refs 5); False where the kernel does not let us."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def resident_bytes(variant: Variant) -> int | None:
    """Bytes of the tensors a variant keeps between steps: weights, buffers, gradients, optimizer state,
    inputs, and what attributes, variables of functions, globals and objects hold. None where one of them has
    no storage, as a sparse one.

    Storage that several tensors share counts once.
    """
    held = storages(variant)
    return None if held is None else sum(held.values())


def storages(variant: Variant) -> dict[int, int] | None:
    """Bytes by address of what `resident_bytes` counts."""
    tensors = [*input_tensors(variant.built), *tensors_held(variant.built)]
    if variant.module is not None:
        parameters = list(variant.module.parameters())
        tensors += [*parameters, *variant.module.buffers()]
        tensors += [parameter.grad for parameter in parameters if parameter.grad is not None]
    if variant.optimizer is not None:
        tensors += tensors_of(list(variant.optimizer.state.values()))
    held = {}
    for tensor in itertools.chain.from_iterable(map(_within, tensors)):
        try:
            storage = tensor.untyped_storage()
            held[storage.data_ptr()] = storage.nbytes()
        except (RuntimeError, NotImplementedError):
            return None
    return held


def _within(tensor: torch.Tensor) -> list[torch.Tensor]:
    """`tensor`, or those that a subclass around others has, as a quantised weight its numbers and scales
    (torch/utils/_python_dispatch.py, `is_traceable_wrapper_subclass`).
    """
    if not hasattr(type(tensor), "__tensor_flatten__"):
        return [tensor]
    names, _ = tensor.__tensor_flatten__()  # type: ignore[attr-defined]
    # One that is spread over ranks has its device mesh among them.
    parts = [part for name in names if isinstance(part := getattr(tensor, name), torch.Tensor)]
    return [inner for part in parts for inner in _within(part)]


def suffices_for(variant: Variant, device: torch.device, copies: float = 2) -> bool:
    """Whether `copies` of all that `variant` holds fit beside it; by default one and as much again."""
    held = resident_bytes(variant)
    free = free_bytes(device)
    return held is None or free is None or copies * held < free


def free_bytes(device: torch.device) -> int | None:
    """What is left of the memory of `device`; None where the system does not tell."""
    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else host.available_memory_bytes()


def peak_growth(sizes: list[int]) -> int:
    """The most that is held at once above the start, of allocations and releases in order of time."""
    return max(0, *itertools.accumulate(sizes)) if sizes else 0


def step_peak(
    variant: Variant, device: torch.device, others: list[Variant], *, owns_graphs: bool = True
) -> dict[str, int | None]:
    """Peak of one warm step, `bytes` and `reserved`, without what only the `others` hold; `pools` is what of
    `bytes` are pools of CUDA graphs.

    On a GPU from the caching allocator, without the workspace that torch keeps for cuBLAS; where `variant`
    `owns_graphs` with the whole pools of CUDA graphs, that workspace in them included, else without them. On
    a CPU the resident set says nothing after a warm-up, since the allocator keeps what it once had, so the
    step's own allocations are counted by the profiler's hook.
    """
    if device.type == "cpu":
        with grad_context(variant.built):
            sizes = profiled_allocations(variant.step)
        # A training step releases the gradients it found before it makes new ones.
        held = resident_bytes(variant)
        peak = None if sizes is None or held is None else held + peak_growth(sizes)
        return {"bytes": peak, "reserved": None, "pools": None}
    with grad_context(variant.built):
        # The workspace of cuBLAS is there from now on: with the step before it may have been given back.
        variant.step()
        torch.cuda.synchronize(device)
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
        # Kept until the pools are counted: what a graph returns lies in one, and is in the peak.
        result = variant.step()
    torch.cuda.synchronize(device)
    pools = graph_pools(device)
    del result
    peak, reserved = torch.cuda.max_memory_allocated(device), torch.cuda.max_memory_reserved(device)
    owned = pools.total_bytes if owns_graphs else 0
    peak += owned - pools.allocated_bytes
    foreign = [_own_bytes(other, variant, pools) for other in others]
    known = [each for each in foreign if each is not None]
    if len(known) < len(foreign):
        return {"bytes": None, "reserved": reserved, "pools": None}
    peak -= sum(known) + _workspace_bytes(device)
    return {"bytes": peak, "reserved": reserved, "pools": owned or None}


@dataclass(frozen=True)
class GraphPools:
    """The memory of CUDA graphs, by address and bytes of each segment, and how much of it tensors have: a
    graph's steps write all of it without an allocation, and nothing else may.
    """

    segments: Mapping[int, int]
    allocated_bytes: int

    @property
    def total_bytes(self) -> int:
        return sum(self.segments.values())

    def hold(self, address: int) -> bool:
        return any(start <= address < start + size for start, size in self.segments.items())


def graph_pools(device: torch.device) -> GraphPools:
    """By the allocator's snapshot (torch/_inductor/cudagraph_trees.py, `get_cudagraph_segments`)."""
    segments = [
        segment
        for segment in torch.cuda.memory_snapshot()  # type: ignore[no-untyped-call]
        if segment["device"] == (device.index or 0) and tuple(segment["segment_pool_id"]) != (0, 0)
    ]
    return GraphPools(
        {segment["address"]: segment["total_size"] for segment in segments},
        sum(segment["allocated_size"] for segment in segments),
    )


def _workspace_bytes(device: torch.device) -> int:
    """What torch keeps for cuBLAS between calls, 32 MiB on Hopper: the same for every model with a matrix
    product, so it would hide what a small one needs. Given back by asking, and allocated again when needed.
    """
    before = torch.cuda.memory_allocated(device)
    clear_cublas_workspaces()
    return max(0, before - torch.cuda.memory_allocated(device))


def _own_bytes(other: Variant, variant: Variant, pools: GraphPools) -> int | None:
    """What `other` holds and `variant` does not, outside of `pools`, where a graph's gradients lie; inference
    variants mostly share model and inputs.
    """
    held, shared = storages(other), storages(variant)
    if held is None or shared is None:
        return None
    return sum(size for address, size in held.items() if address not in shared and not pools.hold(address))


class CompilePeak:
    """Peak during the first compiled call, compilation and autotuning included."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._before: int | None = None

    def begin(self) -> None:
        """Forget the peak until now."""
        if self._device.type == "cpu":
            self._before = rss_bytes() if reset_peak_rss() else None
        else:
            torch.cuda.reset_peak_memory_stats(self._device)

    def end(self, variant: Variant) -> int | None:
        """Bytes; on a CPU the growth of the resident set during the call, and what the variant holds."""
        if self._device.type != "cpu":
            return torch.cuda.max_memory_allocated(self._device)
        peak = peak_rss_bytes()
        held = resident_bytes(variant)
        if self._before is None or peak is None or held is None:
            return None
        return max(0, peak - self._before) + held


_LEAST_GROWTH = 1 << 20
"""Over all calls; below it an allocator fills its pages."""


def growth_per_call(readings: Sequence[tuple[int, int]]) -> float | None:
    """Bytes by which memory grows with each call, from (calls so far, bytes) between blocks of samples; None
    where it does not grow in the middle third over the first and in the last over the middle one alike.
    """
    third = len(readings) // 3
    if third < 2:
        return None
    parts = readings[:third], readings[third : 2 * third], readings[2 * third : 3 * third]
    calls, held = ([statistics.median(each[column] for each in part) for part in parts] for column in (0, 1))
    steps = [(held[n + 1] - held[n]) / max(1, calls[n + 1] - calls[n]) for n in range(2)]
    if held[2] - held[0] < _LEAST_GROWTH or min(steps) <= 0 or max(steps) > 2 * min(steps):
        return None
    return (held[2] - held[0]) / (calls[2] - calls[0])


_READ_EVERY_NS = 20_000_000
_LEAST_ENDED = 512 << 20
_STEADY_READINGS = 4
_STEADY_SPREAD = 3.0


class Watch:
    """Ends a process whose memory grows with every call, well before the host has none left: once it has
    taken a quarter of what was free when the watch began, as evenly as calls are made.
    """

    def __init__(self, device: torch.device) -> None:
        free = free_bytes(device)
        self._device = device
        self._most = None if free is None else max(_LEAST_ENDED, free // 4)
        self._calls = 0
        self._read_ns = 0
        self._readings: list[tuple[int, int]] = []
        self._first: int | None = None

    def add(self, calls: int) -> None:
        """So many calls more. Raises GrowsError."""
        self._calls += calls
        now = time.monotonic_ns()
        if self._most is None or now - self._read_ns < _READ_EVERY_NS:
            return
        self._read_ns = now
        on_cpu = self._device.type == "cpu"
        held = rss_bytes() if on_cpu else torch.cuda.memory_allocated(self._device)
        if held is None:
            return
        self._first = held if self._first is None else self._first
        # A reading counts once an eighth of the most is added, so that a single step up is one reading.
        if not self._readings or held - self._readings[-1][1] >= self._most // (2 * _STEADY_READINGS):
            self._readings.append((self._calls, held))
        if held - self._first >= self._most and (rate := self._rate()) is not None:
            raise GrowsError(
                f"Its memory grows with every call, by about {rate / 1024:,.1f} KiB: it was ended at "
                f"{(held - self._first) / 2**20:,.0f} MiB more after {self._calls:,} calls. Let it free what "
                "it keeps; a smaller batch_size only delays this."
            )

    def _rate(self) -> float | None:
        """Bytes per call by the last readings; None where they did not come evenly."""
        last = self._readings[-_STEADY_READINGS:]
        if len(last) < _STEADY_READINGS:
            return None
        rates = [
            (late[1] - early[1]) / max(1, late[0] - early[0]) for early, late in itertools.pairwise(last)
        ]
        even = min(rates) > 0 and max(rates) < _STEADY_SPREAD * min(rates)
        return (last[-1][1] - last[0][1]) / max(1, last[-1][0] - last[0][0]) if even else None


def held_bytes(device: torch.device) -> int | None:
    """What the process has resident; on a GPU what its allocator has given out."""
    return rss_bytes() if device.type == "cpu" else torch.cuda.memory_allocated(device)


def memory_record(
    own: dict[str, int | None],
    control: dict[str, int | None] | None,
    *,
    with_compile: int | None,
    peak_rss: int | None,
    growth: float | None,
    saved: Mapping[str, Any],
) -> dict[str, Any]:
    """`Memory` of the record."""
    return {
        "growth_bytes_per_call": growth,
        "peak_bytes": own["bytes"],
        "peak_reserved_bytes": own["reserved"],
        "graph_pool_bytes": own["pools"],
        "peak_with_compile_bytes": with_compile,
        "peak_rss_bytes": peak_rss,
        "control_peak_bytes": None if control is None else control["bytes"],
        **saved,
    }
