"""What memory one step allocates, reads and writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compilewatch.runner.worker.internals.lookup import attribute


def profiled_allocations(step: Callable[[], Any]) -> list[int] | None:
    """Sizes of the CPU allocations (positive) and releases (negative) of one step, in order of time."""
    profile = attribute("torch.autograd.profiler", "profile")
    if profile is None:
        return None
    with profile(use_kineto=True, profile_memory=True) as profiler:
        step()
    results = getattr(profiler, "kineto_results", None)
    if results is None:
        return None
    events = [event for event in results.events() if event.name() == "[memory]"]
    return [event.nbytes() for event in sorted(events, key=lambda event: event.start_ns())]


def allocator_events(step: Callable[[], Any], device: int, most: int) -> list[Any] | None:
    """What the caching allocator of a GPU does in one step, in order of time, the last `most`; None where
    torch does not tell (torch/cuda/memory.py, 2.6 to 2.15).
    """
    record, snapshot = (
        attribute("torch.cuda.memory", name) for name in ("_record_memory_history", "_snapshot")
    )
    if record is None or snapshot is None:
        return None
    record(enabled="all", context="alloc", stacks="python", max_entries=most)
    try:
        step()
        traces = snapshot().get("device_traces") or []
    finally:
        record(enabled=None)
    return list(traces[device]) if device < len(traces) else None


def watch_operators(step: Callable[[], Any], note: Callable[[Any, Any], None]) -> bool:
    """Run `step` and call `note(arguments, result)` for each operator in it that reads or writes memory.

    Left out are views, whose results share what they were made of, and allocations. Returns whether this
    release lets operators be watched; the step ran in either case.
    """
    mode = attribute("torch.utils._python_dispatch", "TorchDispatchMode")
    if mode is None:
        step()
        return False

    class Watch(mode):  # type: ignore[misc,valid-type]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            if not _only_names(func):
                note((args, kwargs or {}), result)
            return result

    with Watch():
        step()
    return True


def _only_names(operator: Any) -> bool:
    """Whether an operator's result is a view of an input, or memory that nothing was written to."""
    aliases = [returned.alias_info for returned in operator._schema.returns]
    is_view = any(alias is not None and not alias.is_write for alias in aliases)
    return is_view or "empty" in operator._schema.name


def clear_cublas_workspaces() -> bool:
    """Free the workspaces of cuBLAS that torch keeps for each stream; False where it does not offer that."""
    clear = attribute("torch._C", "_cuda_clearCublasWorkspaces")
    if clear is None:
        return False
    clear()
    return True
