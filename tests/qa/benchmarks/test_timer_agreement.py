"""Our samples against `torch.utils.benchmark.Timer`, on the same step in the same process.

pytest -m benchmark tests/qa/benchmarks/test_timer_agreement.py -s
"""

from __future__ import annotations

import statistics

import pytest
import torch
from torch.utils.benchmark import Timer

from compilewatch.runner.catalog.builtin import WORKLOADS
from compilewatch.runner.worker.step.steps import grad_context, make_variant
from compilewatch.runner.worker.timing.evidence import BlockWatch
from compilewatch.runner.worker.timing.sampling import SamplingPlan, Side, warm_up
from compilewatch.runner.worker.timing.timer import CpuTimer
from tests.runner.measuring import build

ROUNDS = 5
PAIRS = 60
AGREEMENT = 0.02


def medians(step) -> tuple[float, float]:
    """(ours, Timer's) in nanoseconds, of single steps that alternate: a busy host then slows both alike."""
    timer = Timer("step()", globals={"step": step}, num_threads=torch.get_num_threads())
    clock, ours, theirs = CpuTimer(), [], []
    for _ in range(PAIRS):
        # `timeit` warms up with two calls of its own; so do we.
        ours.append(clock.time_steps(step, 3)[-1])
        theirs.append(timer.timeit(1).times[0] * 1e9)
    return statistics.median(ours), statistics.median(theirs)


@pytest.mark.benchmark
@pytest.mark.parametrize("name", ["cnn", "encoder", "elementwise", "mlp-train"])
def test_latency_agrees_with_torch_timer(name):
    definition = WORKLOADS[name]
    threads, watch = torch.get_num_threads(), BlockWatch()
    torch.set_num_threads(1)
    try:
        variant = make_variant(build(definition))
        with grad_context(variant.built):
            warm_up(Side(variant.step, CpuTimer()), SamplingPlan())
            watch.begin()
            pairs = [medians(variant.step) for _ in range(ROUNDS)]
            block = watch.end()
    finally:
        torch.set_num_threads(threads)
    ratios = [mine / torchs for mine, torchs in pairs]
    for mine, torchs in pairs:
        print(
            f"{name:12} compilewatch {mine / 1e6:.4f} ms   Timer {torchs / 1e6:.4f} ms   {mine / torchs:.4f}"
        )
    print(f"{name:12} median of {ROUNDS}: {statistics.median(ratios):.4f}")
    if not block.may_count(cpu_bound=True):
        pytest.skip(f"the host is too busy to tell: {block}")
    assert abs(statistics.median(ratios) - 1) <= AGREEMENT
