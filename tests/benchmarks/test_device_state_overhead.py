"""What reading the state of device and host between blocks does to the samples inside them.

pytest -m benchmark tests/benchmarks/test_device_state_overhead.py -s

Blocks with and without a reading take turns, A B B A, in one process on one step, each after the untimed
steps that a trial's blocks begin with. A reading is what the runner does: a line through a pipe to another
process, which asks NVML for everything it records, and one back. Without a driver NVML only refuses, so the
other process also sleeps for 2 ms. The same without the untimed steps is printed beside it.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from runner.catalog.builtin import WORKLOADS
from runner.worker.step.steps import make_variant
from runner.worker.timing.clock import CpuTimer
from runner.worker.timing.evidence import BlockWatch, canary_ns
from runner.worker.timing.sampling import PAIRS, Sampler, SamplingPlan, Side, median_rank, warm_up
from tests.runner.measuring import build

ROOT = Path(__file__).parents[2]
BLOCKS = int(os.environ.get("COMPILEWATCH_BENCHMARK_BLOCKS", "600"))
BLOCK_SIZE = SamplingPlan.samples // PAIRS
LIMIT = 1.005
READER = """
import sys, time
from runner.device.state import DeviceWatch
watch = DeviceWatch("cuda:0")
for _ in sys.stdin:
    watch.sample()
    time.sleep(0.002)
    print(flush=True)
"""


@pytest.fixture
def read_state():
    """Asks the other process for a reading and waits for its answer."""
    reader = subprocess.Popen(
        [sys.executable, "-c", READER], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    )
    assert reader.stdin is not None
    assert reader.stdout is not None

    def read() -> None:
        os.write(reader.stdin.fileno(), b"\n")
        os.read(reader.stdout.fileno(), 1)

    read()
    yield read
    reader.stdin.close()
    reader.wait(10)
    reader.stdout.close()


def taken(step, read_state, settling_calls: int) -> tuple[list[list[int]], list[list[int]], list]:
    """(blocks with a reading before them, blocks without, evidence), in alternation."""
    clock, watch = CpuTimer(), BlockWatch()
    kinds, evidence = {True: [], False: []}, []
    for number in range(2 * BLOCKS):
        is_read = number % 4 in (0, 3)
        if is_read:
            canary_ns()
            read_state()
        for _ in range(settling_calls):
            clock.once(step)
        watch.begin()
        kinds[is_read].append(clock.time_steps(step, BLOCK_SIZE))
        evidence.append(watch.end())
    return kinds[True], kinds[False], evidence


def ratios(read: list[list[int]], unread: list[list[int]]) -> list[float]:
    """Of the medians of each four neighbouring blocks, A B B A: a drift of the host is in none."""
    return [
        statistics.median(read[n] + read[n + 1]) / statistics.median(unread[n] + unread[n + 1])
        for n in range(0, len(read), 2)
    ]


def interval(found: list[float]) -> tuple[float, float]:
    """95 %, of the median, by the sign test."""
    ordered = sorted(found)
    rank = median_rank(len(ordered))
    assert rank is not None
    return ordered[rank - 1], ordered[-rank]


def say(name: str, how: str, read, unread) -> tuple[float, float, float]:
    """Prints and returns the ratio and its interval."""
    each = ratios(read, unread)
    found, (low, high) = statistics.median(each), interval(each)
    own_ms = statistics.median([sample for block in unread for sample in block]) / 1e6
    print(f"{name:8} {how}: {own_ms:.4f} ms a step; after a reading x {found:.4f} [{low:.4f}, {high:.4f}]")
    return found, low, high


@pytest.mark.benchmark
@pytest.mark.parametrize("name", ["cnn", "encoder"])
def test_a_reading_between_blocks_leaves_the_samples_alone(name, read_state):
    definition = WORKLOADS[name]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        step = make_variant(build(definition)).step
        with torch.no_grad():
            side = Side(step, CpuTimer())
            warm_up(side, SamplingPlan())
            calls = Sampler(SamplingPlan(), cpu_bound=True).settling_calls(side.latency_ns())
            unsettled_read, unsettled, _ = taken(step, read_state, 0)
            read, unread, evidence = taken(step, read_state, calls)
    finally:
        torch.set_num_threads(threads)
    say(name, "no untimed steps", unsettled_read, unsettled)
    found, low, high = say(name, f"{calls} untimed steps", read, unread)
    stalls = [block.stall_fraction for block in evidence if block.stall_fraction is not None]
    if stalls and statistics.mean(stalls) > 0.05:
        pytest.skip(f"the host is too busy to tell: tasks waited {statistics.mean(stalls):.0%} of the time")
    assert low <= LIMIT
    assert found <= LIMIT or low <= 1 <= high
