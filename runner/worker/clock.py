"""One sample: the time of one step, in integer nanoseconds, converted once."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

import torch

Step = Callable[[], Any]
_DEFAULT_L2_BYTES = 64 * 1024 * 1024


class Clock(Protocol):
    """Times steps on one kind of device."""

    def time_steps(self, step: Step, count: int) -> list[int]:
        """Nanoseconds of each of `count` steps."""

    def on_host(self, step: Step, count: int) -> list[int]:
        """Host nanoseconds of each of `count` more steps until the device has finished it; nothing where
        `time_steps` gives just that.
        """

    def once(self, step: Step) -> int:
        """Host nanoseconds of one step, until the device has finished it."""

    def release(self) -> None:
        """Give back the memory that timing needed, before a workload's own is measured."""


class CpuClock:
    """`perf_counter_ns` around each step: a CPU step is finished when it returns."""

    def time_steps(self, step: Step, count: int) -> list[int]:
        clock = time.perf_counter_ns
        samples = []
        for _ in range(count):
            start = clock()
            step()
            samples.append(clock() - start)
        return samples

    def on_host(self, step: Step, count: int) -> list[int]:  # noqa: ARG002
        return []

    def once(self, step: Step) -> int:
        return self.time_steps(step, 1)[0]

    def release(self) -> None:
        return


class CudaClock:
    """A pair of CUDA events per step and one synchronisation at the end, so that timing adds no gap.

    Device times leave out what the host spends before the first kernel and after the last, which is what
    compiling changes most for small models; `on_host` has it, in steps of its own, since waiting for each
    step would put gaps into the device's times.

    With `flush_l2` a buffer of the L2 cache's size is overwritten before each step, as
    `triton.testing.do_bench` does: otherwise small kernels find their inputs in the cache of the last step.
    """

    def __init__(self, device: torch.device, *, flush_l2: bool) -> None:
        self._device = device
        self._flush_l2 = flush_l2
        self._buffer: torch.Tensor | None = None

    def _flush(self) -> None:
        if not self._flush_l2:
            return
        if self._buffer is None:
            # Not before the first sample: the first call's peak memory is the workload's own.
            properties = torch.cuda.get_device_properties(self._device)
            size = getattr(properties, "L2_cache_size", 0) or _DEFAULT_L2_BYTES
            self._buffer = torch.empty(2 * int(size), dtype=torch.int8, device=self._device)
        self._buffer.zero_()

    def time_steps(self, step: Step, count: int) -> list[int]:
        events = [torch.cuda.Event(enable_timing=True) for _ in range(2 * count)]  # type: ignore[no-untyped-call]
        pairs = list(zip(events[::2], events[1::2], strict=True))
        for start, end in pairs:
            self._flush()
            start.record()
            step()
            end.record()
        torch.cuda.synchronize(self._device)
        return [round(start.elapsed_time(end) * 1e6) for start, end in pairs]

    def on_host(self, step: Step, count: int) -> list[int]:
        samples = []
        for _ in range(count):
            self._flush()
            torch.cuda.synchronize(self._device)
            samples.append(self.once(step))
        return samples

    def once(self, step: Step) -> int:
        start = time.perf_counter_ns()
        step()
        torch.cuda.synchronize(self._device)
        return time.perf_counter_ns() - start

    def release(self) -> None:
        self._buffer = None


def clock_for(device: torch.device, *, flush_l2: bool) -> Clock:
    """The clock whose steps are over when the device has finished them; `flush_l2` means nothing on a CPU."""
    return CpuClock() if device.type == "cpu" else CudaClock(device, flush_l2=flush_l2)
