"""CUDA graphs: mark each step for them, and prove that they ran."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from runner.worker.internals import mark_step

Step = Callable[[], Any]


def marked(call: Callable[..., Any]) -> Callable[..., Any]:
    """`call` preceded by the mark that lets a CUDA graph reuse the memory of the call before."""

    def marked_call(*arguments: Any) -> Any:
        mark_step()
        return call(*arguments)

    return marked_call


def launches(step: Step) -> int | None:
    """How many CUDA graphs one warm step launches, counted by the profiler.

    Positive evidence: counters can say that nothing was skipped while nothing was captured either.
    """
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profiler:
        step()
        torch.cuda.synchronize()
    events = profiler.events()
    return None if events is None else sum("GraphLaunch" in event.name for event in events)
