"""CUDA events against Triton's own timer, and what flushing the L2 cache changes."""

from __future__ import annotations

import statistics

import pytest
import torch

from runner.worker.clock import CudaClock

pytestmark = pytest.mark.gpu

AGREEMENT = 0.02
ROUNDS = 7
SAMPLES = 100


def matmul_step(device, size=4096):
    left = torch.randn(size, size, device=device, dtype=torch.bfloat16)
    right, out = left.clone(), torch.empty_like(left)
    return lambda: torch.mm(left, right, out=out)


def elementwise_step(device, elements=1 << 26):
    x = torch.randn(elements, device=device)
    out = torch.empty_like(x)
    return lambda: torch.mul(x, 1.5, out=out)


@pytest.mark.parametrize("make", [matmul_step, elementwise_step])
def test_latency_agrees_with_do_bench(device, make):
    """Both take turns, as the clock of a GPU falls while it is busy; steps of 0.1 ms and more."""
    testing = pytest.importorskip("triton.testing")
    step, clock = make(device), CudaClock(device, flush_l2=True)
    for _ in range(20):
        clock.once(step)
    ratios = []
    for _ in range(ROUNDS):
        ours = statistics.median(clock.time_steps(step, SAMPLES)) / 1e6
        theirs = testing.do_bench(step, warmup=25, rep=100, return_mode="median")
        ratios.append(ours / theirs)
        print(f"{make.__name__}: compilewatch {ours:.4f} ms, do_bench {theirs:.4f} ms, {ratios[-1]:.4f}")
    assert abs(statistics.median(ratios) - 1) <= AGREEMENT


def test_a_flush_takes_the_input_out_of_the_l2_cache(device):
    """A reduction over half the cache reads it from there, unless it was overwritten in between."""
    cached = torch.cuda.get_device_properties(device).L2_cache_size // 2
    x = torch.randn(cached // 4, device=device)
    clocks = {flush: CudaClock(device, flush_l2=flush) for flush in (False, True)}
    medians = {False: [], True: []}
    for _ in range(20):
        clocks[False].once(x.amax)
    for _ in range(ROUNDS):
        for flush, clock in clocks.items():
            medians[flush].append(statistics.median(clock.time_steps(x.amax, SAMPLES)))
    warm, cold = statistics.median(medians[False]), statistics.median(medians[True])
    print(f"half of L2, {cached >> 20} MiB: {warm / 1e3:.2f} us from the cache, {cold / 1e3:.2f} us flushed")
    assert cold > 1.05 * warm


def test_the_host_sees_launches_that_the_events_do_not(device):
    """A chain of tiny kernels behind a flush: the device runs them in a row, the host has to issue each."""
    x = torch.ones(16, device=device)

    def tiny():
        y = x
        for _ in range(50):
            y = y + 1
        return y

    clock = CudaClock(device, flush_l2=True)
    for _ in range(20):
        clock.once(tiny)
    host = statistics.median(clock.on_host(tiny, SAMPLES))
    events = statistics.median(clock.time_steps(tiny, SAMPLES))
    assert host > 0
    assert events > 0
    # Neither can be much shorter than the 50 launches at about 1 us each.
    assert min(host, events) > 25_000


def test_the_flush_buffer_is_given_back_before_memory_is_measured(device):
    torch.cuda.synchronize(device)
    before = torch.cuda.memory_allocated(device)
    clock = CudaClock(device, flush_l2=True)
    assert torch.cuda.memory_allocated(device) == before
    clock.time_steps(lambda: None, 1)
    assert torch.cuda.memory_allocated(device) > before
    clock.release()
    assert torch.cuda.memory_allocated(device) == before
