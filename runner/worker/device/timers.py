"""The timer of each side of a trial, on the device that it runs on."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from compilewatch.runner.worker.device.cuda import CudaDevice
from compilewatch.runner.worker.device.gpu_timer import GateChoice, GpuTimer
from compilewatch.runner.worker.device.tracing import Tracer
from compilewatch.runner.worker.timing.timer import CpuTimer, SideTimes, Step, Timer


class Timers:
    """Makes the timer of each side on one device. On a GPU both sides share the gate, chosen by trying."""

    def __init__(self, device: torch.device, *, flush_l2: bool) -> None:
        self._timers: list[Timer] = []
        self._gate: GateChoice | None = None
        if device.type != "cpu":
            self._gpu = CudaDevice(device, flush_l2=flush_l2)
            self._gate = GateChoice(self._gpu)
            self._tracer = Tracer(self._gpu)

    def side(self) -> Timer:
        """The timer of one more side."""
        timer = CpuTimer() if self._gate is None else GpuTimer(self._gpu, self._gate)
        self._timers.append(timer)
        return timer

    def trace(self, sides: Sequence[tuple[Timer, Step, SideTimes]]) -> list[SideTimes]:
        """What is kept of the sides of one trial, with what the device itself noted of their steps; on a CPU
        nothing. Leaves the process slower, so it comes last.
        """
        timers = [timer for timer, _, _ in sides if isinstance(timer, GpuTimer)]
        if not timers:
            return [results for _, _, results in sides]
        return traced(self._tracer, timers, [each[1] for each in sides], [each[2] for each in sides])

    def release(self) -> None:
        """See `Timer.release`."""
        for timer in self._timers:
            timer.release()


def traced(
    tracer: Tracer, timers: Sequence[GpuTimer], steps: Sequence[Step], results: Sequence[SideTimes]
) -> list[SideTimes]:
    """Device times of one method for all sides of a trial, or there is no speedup on the device: where no
    gate held one of them, all are those that the device noted, with the gated ones beside them.
    """
    needed = any(facts["method"] != "gated" for _, facts in results)
    found, waits = tracer.observe(steps, with_times=needed)
    by_tracing = needed and all(each.problem is None for each in found)
    return [
        timer.traced(step, each, observed, waits, by_tracing=by_tracing)
        for timer, step, each, observed in zip(timers, steps, results, found, strict=True)
    ]
