"""Device, issue and wall times on a GPU: what the gate gives, against CUPTI, `do_bench` and the L2 flush."""

from __future__ import annotations

import statistics
import time

import pytest
import torch

from compilewatch.runner.worker.device.cuda import CudaDevice, SpinGate, StreamWaitGate
from compilewatch.runner.worker.device.gpu_timer import GateChoice, GpuTimer
from compilewatch.runner.worker.device.timers import traced
from compilewatch.runner.worker.device.tracing import Tracer
from compilewatch.runner.worker.probes import captured

pytestmark = pytest.mark.gpu

AGREEMENT = 0.02
ROUNDS = 7
SAMPLES = 100


def matmul_step(device, size=4096):
    """Of zeros: random numbers draw so much power that the clock falls under the cap while two ways are
    compared."""
    left = torch.zeros(size, size, device=device, dtype=torch.bfloat16)
    right, out = left.clone(), torch.empty_like(left)
    return lambda: torch.mm(left, right, out=out)


def elementwise_step(device, elements=1 << 26):
    x = torch.randn(elements, device=device)
    out = torch.empty_like(x)
    return lambda: torch.mul(x, 1.5, out=out)


def chain_step(device, launches=50):
    """Tiny kernels one after the other: the host takes longer to issue them than the device to run them."""
    x = torch.ones(16, device=device)

    def tiny():
        y = x
        for _ in range(launches):
            y = y + 1
        return y

    return tiny


def waiting_step(device):
    """Reads a value in the middle, as a loss that is printed does."""
    x = torch.ones(1 << 16, device=device)

    def waits():
        scale = float((x * 2).sum())
        return x * scale

    return waits


def timed(device, step, *, flush_l2=False, size=SAMPLES, settling=0):
    """One side's arrays and facts, of one block."""
    timer = GpuTimer(gpu := CudaDevice(device, flush_l2=flush_l2), GateChoice(gpu))
    for _ in range(20):
        timer.once(step)
    timer.prepare(step, size, settling)
    kept = timer.results(timer.block(step, size).times)
    ((times, facts),) = traced(Tracer(gpu), [timer], [step], [kept])
    return times, facts


def is_held(device, step, hold_ns=200_000_000):
    """Whether the host enqueues the whole step while a gate holds the device: the queue takes it."""
    gpu, gate = CudaDevice(device, flush_l2=False), SpinGate(device)
    gate.prepare()
    start = gpu.event()
    step()
    gpu.synchronize()
    gate.close(hold_ns)
    gpu.record(start)
    step()
    held = not gpu.is_reached(start)
    gpu.synchronize()
    return held


@pytest.mark.parametrize("kind", [SpinGate, StreamWaitGate])
def test_each_gate_holds_the_stream_until_it_is_opened_or_its_time_is_over(device, kind):
    gpu, gate = CudaDevice(device, flush_l2=False), kind(device)
    gate.prepare()
    event = gpu.event()
    gpu.synchronize()
    gate.close(1_000_000)
    gate.open()
    gpu.synchronize()
    for hold_ns in (5_000_000, 50_000_000):
        began = time.perf_counter_ns()
        gate.close(hold_ns)
        gpu.record(event)
        assert not gpu.is_reached(event)
        gpu.synchronize()
        took = time.perf_counter_ns() - began
        print(f"{gate.kind}: asked {hold_ns / 1e6:.0f} ms, held {took / 1e6:.3f} ms")
        assert 0.8 * hold_ns <= took <= 1.5 * hold_ns + 2_000_000


def test_the_gate_is_chosen_by_trying(device):
    gate = GateChoice(CudaDevice(device, flush_l2=False)).gate()
    print(f"gate: {gate.kind}")


@pytest.mark.parametrize("make", [matmul_step, elementwise_step, chain_step])
def test_gated_device_time_agrees_with_the_kernels_that_cupti_saw(device, make):
    """Between kernels the device needs about a microsecond; CUPTI's intervals leave that out."""
    step = make(device)
    times, facts = timed(device, step)
    assert facts["method"] == "gated", facts
    assert facts["gate"]["verified"] >= 0.9 * facts["gate"]["samples"]
    assert facts["synchronises"] is False
    assert facts["streams"] == 1
    (observed,), _ = Tracer(CudaDevice(device, flush_l2=False)).observe([step], with_times=True)
    assert observed.problem is None
    gated, kernels = statistics.median(times["device_ns"]), statistics.median(observed.busy_ns)
    print(f"{make.__name__}: gated {gated / 1e3:.2f} us, kernels {kernels / 1e3:.2f} us, {facts}")
    launches = observed.fullest.launches
    assert facts["launches"] == launches
    assert 0.98 * kernels <= gated <= 1.02 * kernels + 2_000 * (launches + 1)


def test_a_host_bound_step_takes_the_host_longer_than_the_device(device):
    times, _ = timed(device, chain_step(device))
    medians = {name: statistics.median(values) for name, values in times.items()}
    print({name: f"{value / 1e3:.1f} us" for name, value in medians.items()})
    assert medians["wall_pipelined_ns"] > 1.10 * medians["device_ns"]
    # Nothing of one synchronised step: behind a gate launching may be slower than without one.
    assert medians["issue_ns"] > medians["device_ns"]


def test_a_step_that_synchronises_ends_in_time_and_is_labelled(device):
    began = time.perf_counter_ns()
    times, facts = timed(device, waiting_step(device))
    assert time.perf_counter_ns() - began < 30e9
    assert (facts["method"], facts["gate"], facts["synchronises"]) == ("cupti", None, True)
    assert min(times["device_ns"]) > 0


def test_a_step_with_more_launches_than_the_queue_takes_ends_in_time_and_is_labelled(device):
    """How many that is, is measured first: it differs between drivers."""
    counts = (500, 1000, 2000, 4000, 8000, 16000)
    too_many = next((count for count in counts if not is_held(device, chain_step(device, count))), None)
    print(f"launches that fill the queue: {too_many} of {counts}")
    if too_many is None:
        pytest.skip(f"the queue of this device takes {counts[-1]} launches")
    _, facts = timed(device, chain_step(device, launches=2 * too_many), size=3)
    assert facts["method"] == "cupti", facts
    assert facts["launches"] == 2 * too_many


def test_a_side_that_no_gate_holds_has_a_speedup_over_one_that_a_gate_holds(device):
    """A graph of the same launches is one of them."""
    many = chain_step(device, 4000)
    if is_held(device, many):
        pytest.skip("the queue of this device takes 4000 launches")
    gpu = CudaDevice(device, flush_l2=True)
    choice, steps = GateChoice(gpu), (many, captured(device))
    timers, kept = [], []
    for step in steps:
        timers.append(timer := GpuTimer(gpu, choice))
        timer.once(step)
        timer.prepare(step, 20, 0)
        kept.append(timer.results(timer.block(step, 20).times))
    (_, eager), (times, graph) = traced(Tracer(gpu), timers, steps, kept)
    print(eager, {**graph, "gated_ns": len(graph["gated_ns"])})
    assert eager["method"] == graph["method"] == "cupti"
    gated = statistics.median(graph["gated_ns"])
    assert 0.5 * gated < statistics.median(times["device_ns"]) < 1.05 * gated


def test_a_cuda_graph_is_held_as_a_whole(device):
    replay = captured(device)
    if not is_held(device, replay):
        pytest.skip("the queue of this device does not take a graph of 200 kernels")
    times, facts = timed(device, replay, size=20)
    assert facts["method"] == "gated"
    assert facts["graph_launches"] == 1
    # Before 2.7 torch fills two tensors of its own before each replay.
    assert 1 <= facts["launches"] <= 3
    assert len(times["device_ns"]) >= 3


@pytest.mark.parametrize("nodes", [2000, 10000])
def test_a_large_cuda_graph_has_a_device_time_by_one_method_or_the_other(device, nodes):
    replay = captured(device, nodes)
    held = is_held(device, replay)
    _, facts = timed(device, replay, size=20)
    print(f"{nodes} nodes: held {held}, {facts['method']}")
    assert facts["method"] == ("gated" if held else "cupti")


def test_a_process_whose_first_session_of_cupti_is_a_step_sees_all_its_kernels(device):
    (observed,), waits = Tracer(CudaDevice(device, flush_l2=False)).observe(
        [chain_step(device)], with_times=True
    )
    print(f"{observed.whole} of {observed.sessions} sessions whole, {observed.fullest}, {waits} own waits")
    assert observed.fullest.kernels == 50
    assert observed.problem is None


def test_a_step_whose_input_fits_into_l2_is_faster_without_the_flush_and_not_host_bound(device):
    cached = torch.cuda.get_device_properties(device).L2_cache_size // 2
    x = torch.randn(cached // 4, device=device)
    times, facts = timed(device, x.amax, flush_l2=True)
    flushed = statistics.median(times["device_ns"])
    print(f"flushed {flushed / 1e3:.2f} us, unflushed {facts['unflushed_ns'] / 1e3:.2f} us")
    assert facts["unflushed_ns"] < flushed


@pytest.mark.parametrize("make", [matmul_step, elementwise_step])
def test_device_time_agrees_with_do_bench_on_steps_that_keep_the_device_busy(device, make):
    """Sample by sample in turns: the clock of a busy GPU falls, and each of the two gives it other pauses."""
    testing = pytest.importorskip("triton.testing")
    step = make(device)
    timer = GpuTimer(gpu := CudaDevice(device, flush_l2=True), GateChoice(gpu))
    for _ in range(20):
        timer.once(step)
    timer.prepare(step, 10, 0)
    ratios = []
    for number in range(8 * ROUNDS):
        both = {}
        for which in ("ours", "theirs")[:: 1 if number % 2 == 0 else -1]:
            # The same work before each: otherwise one of them meets a device that has rested. Each is
            # waited for, or the next sample would pay for what is still queued.
            for _ in range(20):
                timer.once(step)
            if which == "ours":
                both[which] = timer.block(step, 10).times["device_ns"]
            else:
                both[which] = testing.do_bench(step, warmup=1, rep=5, return_mode="median")
        # A block that follows an expensive sample saves up for its own.
        if both["ours"]:
            ratios.append(statistics.median(both["ours"]) / 1e6 / both["theirs"])
    assert len(ratios) > 4 * ROUNDS
    low, *_, high = statistics.quantiles(ratios, n=20)
    print(f"{make.__name__}: {statistics.median(ratios):.4f} of do_bench, 90 % in {low:.4f} to {high:.4f}")
    assert abs(statistics.median(ratios) - 1) <= AGREEMENT


def test_a_flush_takes_the_input_out_of_the_l2_cache(device):
    """A reduction over half the cache reads it from there, unless it was overwritten in between. Device time
    alone shows it: on the host's clock the flush hides the launch.
    """
    cached = torch.cuda.get_device_properties(device).L2_cache_size // 2
    x = torch.randn(cached // 4, device=device)
    medians = {False: [], True: []}
    for _ in range(ROUNDS):
        for flush, found in medians.items():
            timer = GpuTimer(gpu := CudaDevice(device, flush_l2=flush), GateChoice(gpu))
            for _ in range(20):
                timer.once(x.amax)
            timer.prepare(x.amax, SAMPLES, 0)
            found.extend(timer.block(x.amax, SAMPLES).times["device_ns"])
    warm, cold = statistics.median(medians[False]), statistics.median(medians[True])
    print(f"half of L2, {cached >> 20} MiB: {warm / 1e3:.2f} us from the cache, {cold / 1e3:.2f} us flushed")
    assert cold > 1.05 * warm


def test_the_flush_buffer_is_given_back_before_memory_is_measured(device):
    torch.cuda.synchronize(device)
    before = torch.cuda.memory_allocated(device)
    gpu = CudaDevice(device, flush_l2=True)
    assert torch.cuda.memory_allocated(device) == before
    gpu.flush()
    assert torch.cuda.memory_allocated(device) > before
    gpu.release()
    assert torch.cuda.memory_allocated(device) == before
