"""What times the steps of a side, which of its times is a case's latency; a CPU's timer. No torch."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

Step = Callable[[], Any]
Times = dict[str, list[int]]
"""Nanoseconds by the name of their array in the record."""
SideTimes = tuple[Times, dict[str, Any]]
"""What is kept of a side's times, and its side of the record's `timing`."""


@dataclass(frozen=True)
class BlockTimes:
    """One block's times by the name of their array in the record, and what the block cost altogether."""

    times: Times
    spent_ns: int


class Timer(Protocol):
    """Times the steps of one side of a trial, in nanoseconds."""

    def once(self, step: Step) -> int:
        """Host time of one step until the device has finished it."""

    def prepare(self, step: Step, size: int, settling_calls: int) -> None:
        """Get ready for blocks of `size` samples, each after `settling_calls` untimed steps."""

    def block(self, step: Step, size: int) -> BlockTimes:
        """About `size` samples of every time that this device has."""

    def results(self, times: Times) -> SideTimes:
        """What is kept of a side's `times`."""

    def release(self) -> None:
        """Give back the memory that timing needed, before a workload's own is measured."""


def headline_of(device: str, task: str, wanted: str | None) -> str:
    """Which of the times is a case's latency: what people pay. A loop of training steps pays the pipelined
    wall time, a request the synchronised one; `wanted` is what the workload itself says.
    """
    if device == "cpu":
        return "samples"
    return wanted or ("wall_pipelined" if task == "training" else "wall_sync")


class CpuTimer:
    """`perf_counter_ns` around each step: a CPU step is finished when it returns."""

    def once(self, step: Step) -> int:
        return self.time_steps(step, 1)[0]

    def time_steps(self, step: Step, count: int) -> list[int]:
        """Nanoseconds of each of `count` steps."""
        clock = time.perf_counter_ns
        samples = []
        for _ in range(count):
            start = clock()
            step()
            samples.append(clock() - start)
        return samples

    def prepare(self, step: Step, size: int, settling_calls: int) -> None:  # noqa: ARG002
        return

    def block(self, step: Step, size: int) -> BlockTimes:
        samples = self.time_steps(step, size)
        return BlockTimes({"samples_ns": samples}, sum(samples))

    def results(self, times: Times) -> SideTimes:
        return times, {"method": "host"}

    def release(self) -> None:
        return
