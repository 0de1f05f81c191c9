"""One sample on a CPU: the time of one step, in integer nanoseconds, converted once. Imports no torch."""

from __future__ import annotations

import time

from compilewatch.runner.worker.timing.timer import BlockTimes, Kept, Step, Times


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

    def results(self, times: Times) -> Kept:
        return times, {"method": "host"}

    def release(self) -> None:
        return
