"""What memory is held for: tensors that a forward pass saves for backward, and a GPU's blocks at its peak;
and whether a workload fits at its size, of one side alone in its process.
"""

from __future__ import annotations

import re
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from compilewatch.runner.worker.compiler import compiling
from compilewatch.runner.worker.compiler.compiler_facts import short_location
from compilewatch.runner.worker.device.timers import Timers
from compilewatch.runner.worker.step import loading, memory
from compilewatch.runner.worker.step.internals import (
    allocator_events,
    as_written,
    import_compile_stack,
    watch_partitions,
)
from compilewatch.runner.worker.step.memory import storages
from compilewatch.runner.worker.step.messages import Specification
from compilewatch.runner.worker.step.steps import Variant, first_batch, grad_context, loss_of, make_variant
from compilewatch.runner.workloads.built import TRAINING

_MOST = 40
_OWN = (f"{Path(torch.__file__).parent}/", f"{Path(__file__).parent}/")
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
_MOST_EVENTS = 1_000_000


def _place(frames: Iterable[tuple[str, int]]) -> str | None:
    """The innermost of `frames`, innermost first, that is of neither torch nor this package; of a model made
    of torch's own modules, the innermost of torch.
    """
    inner = None
    for file, line in frames:
        if not file.startswith(_OWN):
            return short_location(f"{file}:{line}")
        inner = inner or (short_location(f"{file}:{line}") if file.startswith(_OWN[0]) else None)
    return inner


def _frames() -> Iterator[tuple[str, int]]:
    """Of what calls the hook that asks `_place`, innermost first, up to this package."""
    frame = sys._getframe(3)
    while frame is not None:
        yield frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back if not frame.f_code.co_filename.startswith(_OWN[1]) else None  # type: ignore[assignment]


def _text(tensor: torch.Tensor) -> str:
    return f"{'x'.join(map(str, tensor.shape)) or 'scalar'} {str(tensor.dtype).removeprefix('torch.')}"


class Partitions:
    """Which lines the tensors come from that compiled graphs save, noted while they are compiled.

    A graph that comes from a cache is not parted again, and says nothing.
    """

    def __init__(self) -> None:
        self._places: dict[str, list[str | None]] = defaultdict(list)

    def note(self, _joint: Any, parts: tuple[torch.fx.GraphModule, torch.fx.GraphModule]) -> None:
        """Look at a forward and a backward graph: what both name is saved."""
        forward, backward = parts
        taken = {node.name for node in backward.graph.nodes if node.op == "placeholder"}
        for node in forward.graph.find_nodes(op="output")[0].all_input_nodes:
            value = node.meta.get("val")
            # What goes in was made elsewhere, and mostly is held anyway.
            if node.op != "placeholder" and node.name in taken and isinstance(value, torch.Tensor):
                frames = _FRAME.findall(node.meta.get("stack_trace") or "")
                place = _place((file, int(line)) for file, line in reversed(frames))
                self._places[_text(value)].append(place)

    def take(self, tensor: str) -> str | None:
        """The line of one more tensor of this shape and dtype."""
        places = self._places.get(tensor)
        return places.pop(0) if places else None


def saved_for_backward(variant: Variant, partitions: Partitions | None) -> dict[str, Any] | None:
    """`SavedForBackward` of the record, of one forward pass of the first batch; None where nothing is saved,
    or where a tensor has no storage of its own. `partitions` are those of compiled code.
    """
    held = storages(variant)
    if held is None:
        return None
    storages_found: dict[int, tuple[str, str | None, int]] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in held and storage.data_ptr() not in storages_found and storage.nbytes():
            text = _text(tensor)
            place = _place(_frames()) if partitions is None else partitions.take(text)
            storages_found[storage.data_ptr()] = (text, place, storage.nbytes())
        return tensor

    built, hooks = variant.built, torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor)
    if built.task == TRAINING:
        if variant.optimizer is not None:
            # As a step begins: gradients of the one before are in place, and would be added to.
            variant.optimizer.zero_grad()
        with hooks:
            loss = loss_of(built, variant.call, first_batch(built))
        loss.backward()  # type: ignore[no-untyped-call]
    elif built.with_gradients:
        with hooks:
            variant.step()
    else:
        return None
    return {
        "count": len(storages_found),
        "size_bytes": sum(size for _, _, size in storages_found.values()),
        "largest": _largest(storages_found.values()),
    }


def _largest(each: Iterable[tuple[str | None, str | None, int]]) -> list[dict[str, Any]]:
    """`HeldMemory` of the record, of tensor, place and bytes of each."""
    counts: Counter[tuple[str | None, str | None]] = Counter()
    sizes: Counter[tuple[str | None, str | None]] = Counter()
    for tensor, place, size in each:
        counts[tensor, place] += 1
        sizes[tensor, place] += size
    return [
        {"tensor": tensor, "place": place, "count": counts[tensor, place], "size_bytes": size}
        for (tensor, place), size in sizes.most_common(_MOST)
    ]


def blocks_at_peak(variant: Variant, device: torch.device) -> list[dict[str, Any]] | None:
    """`HeldMemory` of the record, of what one step has allocated at its peak; None on a CPU, where torch does
    not tell, and where a replayed CUDA graph allocates nothing.
    """
    if device.type != "cuda":
        return None
    # cuBLAS takes its workspace in a step, and keeps it: it is no part of the peak, and none of its blocks.
    variant.step()
    events = allocator_events(variant.step, device.index or 0, _MOST_EVENTS)
    return _largest((None, *each) for each in live_at_peak(events or ())) or None


def live_at_peak(events: Sequence[Mapping[str, Any]]) -> list[tuple[str | None, int]]:
    """Place and bytes of each block that is allocated at the peak, by the allocator's events in order."""
    live: dict[int, Mapping[str, Any]] = {}
    total, most, at_peak = 0, 0, 0
    for number, event in enumerate(events):
        if event["action"] == "alloc":
            live[event["addr"]] = event
            total += event["size"]
        elif event["action"] == "free_requested" and event["addr"] in live:
            total -= live.pop(event["addr"])["size"]
        if total > most:
            most, at_peak = total, number + 1
    live.clear()
    for event in events[:at_peak]:
        if event["action"] == "alloc":
            live[event["addr"]] = event
        elif event["action"] == "free_requested":
            live.pop(event["addr"], None)
    return [
        (
            _place((str(frame["filename"]), int(frame["line"])) for frame in each.get("frames", ())),
            each["size"],
        )
        for each in live.values()
    ]


_WARM_CALLS = 3
_TIMED_CALLS = 10


def fit(spec: Specification) -> dict[str, Any]:
    """{"latency_ns": median of a few steps, "peak_bytes": most that was held, with building and compiling;
    None where the system does not tell}.

    On a GPU the peak is what the allocator reserved, on a CPU the resident set of the process.
    """
    device = torch.device(spec.device)
    latency_ns = _latency_ns(_variant(spec, device), device)
    on_gpu = device.type == "cuda"
    peak = torch.cuda.max_memory_reserved(device) if on_gpu else memory.peak_rss_bytes()
    return {"latency_ns": latency_ns, "peak_bytes": peak}


def hold(spec: Specification) -> dict[str, Any]:
    """{"latency_ns": as `fit`, "memory": `Memory` of the record, of a step alone and what it is held for}."""
    device, partitions = torch.device(spec.device), Partitions()
    is_eager = spec.strategy.kind == "eager"
    if not is_eager:
        # What is not imported cannot be watched.
        import_compile_stack()
    with watch_partitions(partitions.note):
        variant = _variant(spec, device)
        latency_ns = _latency_ns(variant, device)
    with grad_context(variant.built):
        found = {
            "peak_bytes": memory.step_peak(variant, device, [])["bytes"],
            "saved": saved_for_backward(variant, None if is_eager else partitions),
            "peak_blocks": blocks_at_peak(variant, device),
        }
    return {"latency_ns": latency_ns, "memory": found}


def _variant(spec: Specification, device: torch.device) -> Variant:
    """What `spec` measures; a compiled one compiles at its first call."""
    builder = loading.import_builder(spec.workload.target, spec.workload.path)
    built = loading.build_workload(builder, spec.workload, device)
    built = replace(built, model_or_fn=as_written(built.model_or_fn))
    if spec.strategy.kind == "eager":
        return make_variant(built)
    return compiling.compiled_variant(built, spec.strategy, Path(spec.artifacts), device)


def _latency_ns(variant: Variant, device: torch.device) -> int:
    """Median of a few steps after a few."""
    timer = Timers(device, flush_l2=False).side()
    with grad_context(variant.built):
        for _ in range(_WARM_CALLS):
            variant.step()
        return round(statistics.median(timer.once(variant.step) for _ in range(_TIMED_CALLS)))
