"""The timer of each side of a trial, on the device that it runs on."""

from __future__ import annotations

import torch

from runner.worker.clock import CpuTimer, Timer
from runner.worker.device.cuda import CudaDevice
from runner.worker.device.timer import DeviceTimer, GateChoice


class Timers:
    """Makes the timer of each side on one device. On a GPU both sides share the gate, chosen by trying."""

    def __init__(self, device: torch.device, *, flush_l2: bool) -> None:
        self._timers: list[Timer] = []
        self._gate: GateChoice | None = None
        if device.type != "cpu":
            self._gpu = CudaDevice(device, flush_l2=flush_l2)
            self._gate = GateChoice(self._gpu)

    def side(self) -> Timer:
        """The timer of one more side."""
        timer = CpuTimer() if self._gate is None else DeviceTimer(self._gpu, self._gate)
        self._timers.append(timer)
        return timer

    def release(self) -> None:
        """See `Timer.release`."""
        for timer in self._timers:
            timer.release()
