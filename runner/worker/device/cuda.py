"""A CUDA device as timing sees it: events, gates and the tracing of the device itself."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

import torch
from torch.profiler import ProfilerActivity, profile

from compilewatch.runner.worker.device.gates import SpinGate, StreamWaitGate
from compilewatch.runner.worker.device.interface import Gate, Session, Step
from compilewatch.runner.worker.step.profiling import LAUNCH, device_work, interval, on_host, union_us

_DEFAULT_L2_BYTES = 64 * 1024 * 1024
# Calls of the CUDA runtime and driver, and of HIP, in which the host waits for the device.
_WAIT = re.compile(
    r"^(cuda(Device|Stream|Event)Synchronize|cu(Ctx|Stream|Event)Synchronize|cudaMemcpy"
    r"|hip(Device|Stream|Event)Synchronize|hipMemcpy(WithStream)?)$"
)


class CudaDevice:
    """One device and its current stream.

    With `flush_l2` a buffer of twice the L2 cache's size is overwritten before each sample, as
    `triton.testing.do_bench` does: otherwise small kernels find their inputs in the cache of the last step.
    With `keeps_events` a session of tracing has all that was noted.
    """

    def __init__(self, device: torch.device, *, flush_l2: bool, keeps_events: bool = False) -> None:
        self._device = device
        self._flush_l2 = flush_l2
        self._keeps_events = keeps_events
        self._buffer: torch.Tensor | None = None

    @property
    def flushes(self) -> bool:
        return self._flush_l2

    def now_ns(self) -> int:
        return time.perf_counter_ns()

    def synchronize(self) -> None:
        torch.cuda.synchronize(self._device)

    def event(self) -> torch.cuda.Event:
        return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]

    def record(self, event: torch.cuda.Event) -> None:
        event.record(torch.cuda.current_stream(self._device))

    def is_reached(self, event: torch.cuda.Event) -> bool:
        return bool(event.query())  # type: ignore[no-untyped-call]

    def elapsed_ns(self, start: torch.cuda.Event, end: torch.cuda.Event) -> int:
        return round(float(start.elapsed_time(end)) * 1e6)

    def flush(self) -> None:
        if not self._flush_l2:
            return
        if self._buffer is None:
            # Not before the first sample: the first call's peak memory is the workload's own.
            properties = torch.cuda.get_device_properties(self._device)
            size = getattr(properties, "L2_cache_size", 0) or _DEFAULT_L2_BYTES
            self._buffer = torch.empty(2 * int(size), dtype=torch.int8, device=self._device)
        self._buffer.zero_()

    def gates(self) -> Sequence[Gate]:
        """The spinning kernel first: it ends by itself, whatever the host does."""
        return SpinGate(self._device), StreamWaitGate(self._device)

    def trace(self, step: Step) -> Session | None:
        """By CUPTI, through torch.profiler, so that no other step's work counts for this one."""
        self.synchronize()
        # With acc_events=False torch 2.11 warns of cycles, of which there is one here.
        with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as profiler:
            step()
            self.synchronize()
        events = list(profiler.events() or ())
        work = device_work(events)
        calls = [event.name for event in events if on_host(event) and LAUNCH.search(event.name)]
        return Session(
            busy_ns=round(union_us(map(interval, work)) * 1000),
            kernels=len(work),
            launches=len(calls) if calls else None,
            graph_launches=sum("GraphLaunch" in name for name in calls),
            waits=sum(on_host(event) and _WAIT.search(event.name) is not None for event in events),
            streams=len({getattr(event, "device_resource_id", 0) for event in work}),
            events=events if self._keeps_events else (),
        )

    def release(self) -> None:
        self._buffer = None
