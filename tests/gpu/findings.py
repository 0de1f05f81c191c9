"""What to know first of a GPU: each part in seconds, one line of JSON a finding.

`python -m tests.gpu.findings` runs every part in a process of its own; with `--simulated` all of them in this
one, on the simulated device.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import torch

from compilewatch.runner.worker import probes, setup
from compilewatch.runner.worker.device.cuda import CudaDevice
from compilewatch.runner.worker.device.gpu_timer import GateChoice, GpuTimer
from compilewatch.runner.worker.device.interface import Device
from compilewatch.runner.worker.device.timers import traced
from compilewatch.runner.worker.device.tracing import Tracer
from compilewatch.runner.worker.step import host
from compilewatch.runner.worker.timing.timer import Step
from tests.gpu.conftest import NO_DEVICE
from tests.runner.simulated_device import US, SimulatedDevice, SimulatedStep

PART_S = 60
LAUNCHES = (500, 900, 980, 1000, 1015, 1022, 1030, 1100, 1500, 2000, 4000)
NODES = (200, 2000, 10000)
SESSIONS = 12
MS = 1_000_000


class Bench(Protocol):
    """A device, and steps for it whose size is known."""

    torch_device: torch.device

    def device(self, *, flush_l2: bool = False) -> Device:
        """The device as timing sees it."""

    def chain(self, launches: int) -> Step:
        """Tiny kernels one after the other."""

    def graph(self, nodes: int) -> Step:
        """One launch of a graph of tiny kernels."""

    def product(self, fill: str) -> Step:
        """A matrix product of `random` numbers, or of `zeros`, which draw less power."""

    def cached(self) -> Step:
        """A step whose input fits into the L2 cache."""


class Gpu:
    """The first CUDA device."""

    torch_device = torch.device("cuda:0")

    def device(self, *, flush_l2: bool = False) -> Device:
        return CudaDevice(self.torch_device, flush_l2=flush_l2)

    def chain(self, launches: int) -> Step:
        x = torch.ones(16, device=self.torch_device)

        def step() -> torch.Tensor:
            y = x
            for _ in range(launches):
                y = y + 1
            return y

        return step

    def graph(self, nodes: int) -> Step:
        return probes.captured(self.torch_device, nodes)

    def product(self, fill: str) -> Step:
        make = torch.zeros if fill == "zeros" else torch.randn
        a = make(4096, 4096, device=self.torch_device).bfloat16()
        out = torch.empty_like(a)
        return lambda: torch.mm(a, a, out=out)

    def cached(self) -> Step:
        return probes.half_of_l2(self.torch_device).amax


class Simulation:
    """The simulated device, for the machinery."""

    torch_device = torch.device("cpu")

    def __init__(self) -> None:
        self._device = SimulatedDevice()

    def device(self, *, flush_l2: bool = False) -> Device:
        self._device.flush_ns = 60 * US if flush_l2 else 0
        return self._device

    def chain(self, launches: int) -> Step:
        return SimulatedStep(self._device, launches, 2 * US, 5 * US)

    def graph(self, nodes: int) -> Step:
        return SimulatedStep(self._device, 1, nodes * US, 20 * US)

    def product(self, fill: str) -> Step:
        return SimulatedStep(self._device, 1, (180 if fill == "zeros" else 230) * US, 10 * US)

    def cached(self) -> Step:
        return SimulatedStep(self._device, 1, 10 * US, 20 * US, cold_ns=5 * US)


Say = Callable[..., None]


def behind(device: Device, step: Step, hold_ns: int) -> dict[str, Any]:
    """One step behind a spinning kernel: how long the host took, whether the gate held until then."""
    gate = device.gates()[0]
    gate.prepare()
    start, end = device.event(), device.event()
    step()
    device.synchronize()
    gate.close(hold_ns)
    device.record(start)
    began = device.now_ns()
    step()
    took = device.now_ns() - began
    device.record(end)
    held = not device.is_reached(start)
    device.synchronize()
    return {"host_ms": took / MS, "held": held, "device_ms": device.elapsed_ns(start, end) / MS}


def gates(bench: Bench, say: Say) -> None:
    """Does each gate hold for as long as it was asked to, and which is chosen?"""
    device = bench.device()
    for gate in device.gates():
        event, began = device.event(), device.now_ns()
        gate.prepare()
        say(gate=gate.kind, prepare_ms=(device.now_ns() - began) / MS)
        for hold_ms in (1, 5, 50):
            device.synchronize()
            began = device.now_ns()
            gate.close(hold_ms * MS)
            device.record(event)
            reached = device.is_reached(event)
            device.synchronize()
            took = (device.now_ns() - began) / MS
            say(gate=gate.kind, asked_ms=hold_ms, held_ms=took, reached_at_once=reached)
    chosen = GateChoice(device).gate()
    say(chosen=chosen and chosen.kind)


def queue(bench: Bench, say: Say) -> None:
    """How many launches does the queue take before the host waits?"""
    device = bench.device()
    for launches in LAUNCHES:
        say(launches=launches, **behind(device, bench.chain(launches), 150 * MS))


def graph(bench: Bench, say: Say) -> None:
    """Does a gate hold a large graph, and does tracing see its kernels?"""
    device = bench.device()
    for nodes in NODES:
        replay = bench.graph(nodes)
        found = behind(device, replay, 100 * MS)
        device.trace(replay)
        seen = device.trace(replay)
        say(nodes=nodes, **found, traced_kernels=seen and seen.kernels)


def sessions_empty_first(bench: Bench, say: Say) -> None:
    """Does a process whose first sessions are empty see kernels afterwards?"""
    device = bench.device()
    for _ in range(3):
        device.trace(lambda: None)
    _sessions(device, bench, say)


def sessions_step_first(bench: Bench, say: Say) -> None:
    """How many of a process's sessions lose kernels when the first is one of a step?"""
    device = bench.device()
    _sessions(device, bench, say)
    empty = device.trace(lambda: None)
    say(waits_of_empty_last=empty and empty.waits)


def _sessions(device: Device, bench: Bench, say: Say) -> None:
    step, rows = bench.chain(50), []
    for _ in range(SESSIONS):
        began = device.now_ns()
        found = device.trace(step)
        rows.append((found and found.kernels, found and found.launches, (device.now_ns() - began) / MS))
    say(kernels_launches_ms=rows, whole=sum(kernels == 50 for kernels, _, _ in rows), of=SESSIONS)


def methods(bench: Bench, say: Say) -> None:
    """Two sides of which no gate holds one: which methods, which speedup, and what does it take?"""
    device = bench.device()
    choice, steps = GateChoice(device), (bench.chain(4000), bench.graph(200))
    timers, kept = [], []
    for step in steps:
        timers.append(timer := GpuTimer(device, choice))
        timer.once(step)
        timer.prepare(step, 10, 0)
        kept.append(timer.results(timer.block(step, 10).times))
    began = device.now_ns()
    found = traced(Tracer(device), timers, steps, kept)
    for (times, facts), name in zip(found, ("chain", "graph"), strict=True):
        median_us = statistics.median(times["device_ns"]) / 1e3
        gated = facts.pop("gated_ns", [])
        say(side=name, device_us=median_us, gated_us=gated and statistics.median(gated) / 1e3, **facts)
    say(tracing_s=(device.now_ns() - began) / 1e9)


def flush(bench: Bench, say: Say) -> None:
    """What does a flush cost a step whose input the cache holds, by either method?"""
    for flushed in (False, True):
        device, step = bench.device(flush_l2=flushed), bench.cached()
        times = _gated(device, step)
        (seen,), _ = Tracer(device).observe([step], with_times=True)
        traced_us = statistics.median(seen.busy_ns) / 1e3 if seen.busy_ns else None
        say(flushed=flushed, gated_us=statistics.median(times) / 1e3 if times else None, traced_us=traced_us)


def power(bench: Bench, say: Say) -> None:
    """Does a matrix product of zeros keep the clock where one of random numbers meets the power cap?"""
    for fill in ("random", "zeros"):
        device, step = bench.device(), bench.product(fill)
        times = _gated(device, step)
        (seen,), _ = Tracer(device).observe([step], with_times=True)
        say(
            fill=fill,
            gated_us=statistics.median(times) / 1e3 if times else None,
            lowest_us=min(times) / 1e3 if times else None,
            traced_us=statistics.median(seen.busy_ns) / 1e3 if seen.busy_ns else None,
        )


def _gated(device: Device, step: Step) -> list[int]:
    timer = GpuTimer(device, GateChoice(device))
    for _ in range(50):
        timer.once(step)
    timer.prepare(step, 100, 0)
    return timer.block(step, 100).times["device_ns"]


def autograd_inherited(bench: Bench, say: Say) -> None:
    """How long does the launching thread wait where autograd's thread has its core?"""
    os.sched_setaffinity(0, {host.launching_core(host.ALL, host.interrupts_by_cpu()) or 0})
    _train(bench, say)


def autograd_apart(bench: Bench, say: Say) -> None:
    """And where it has one of its own, as in a trial?"""
    host.bind_feeding_threads(setup.start_backward_threads)
    _train(bench, say)


def _train(bench: Bench, say: Say) -> None:
    torch.set_num_threads(1)
    layers = [torch.nn.Linear(256, 256) for _ in range(8)]
    model = torch.nn.Sequential(*layers).to(bench.torch_device)
    data = torch.randn(32, 256, device=bench.torch_device)

    def step() -> None:
        model(data).square().mean().backward()
        if bench.torch_device.type == "cuda":
            torch.cuda.synchronize(bench.torch_device)

    for _ in range(30):
        step()
    before, began, walls = _waited(), time.perf_counter_ns(), []
    for _ in range(100):
        each = time.perf_counter_ns()
        step()
        walls.append(time.perf_counter_ns() - each)
    took = time.perf_counter_ns() - began
    stall, waited = ((now - then) / took for now, then in zip(_waited(), before, strict=True))
    tasks = {
        (task / "comm").read_text().strip(): sorted(os.sched_getaffinity(int(task.name)))
        for task in Path("/proc/self/task").iterdir()
    }
    threads = {name: cpus for name, cpus in tasks.items() if name.startswith(("pt_autograd", "python"))}
    say(wall_us=statistics.median(walls) / 1e3, stall=stall, launching_waited=waited, threads=threads)


def _waited() -> tuple[int, int]:
    """Nanoseconds in which any task of the host, and this thread, waited for a CPU."""
    pressure = Path("/proc/pressure/cpu").read_text().splitlines()[0]
    delay = Path("/proc/self/schedstat").read_text().split()[1]
    return int(pressure.rpartition("total=")[2]) * 1000, int(delay)


PARTS: tuple[Callable[[Bench, Say], None], ...] = (
    *(gates, queue, graph, sessions_empty_first, sessions_step_first, methods, flush, power),
    *(autograd_inherited, autograd_apart),
)


def say(part: str, **facts: Any) -> None:
    print(json.dumps({"part": part, **facts}), flush=True)


def run_part(name: str, bench: Bench) -> None:
    part = next(each for each in PARTS if each.__name__ == name)
    part(bench, lambda **facts: say(name, **facts))


def run_apart(name: str) -> None:
    """What a part does to its process, and one that hangs, is no other's business."""
    command = [sys.executable, "-m", "tests.gpu.findings", "--part", name]
    try:
        done = subprocess.run(command, timeout=PART_S, check=False, stderr=subprocess.PIPE, text=True)
    except subprocess.TimeoutExpired:
        say(name, error=f"still running after {PART_S} s")
        return
    if done.returncode:
        say(name, error=done.stderr[-400:], exit_code=done.returncode)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part")
    parser.add_argument("--simulated", action="store_true")
    options = parser.parse_args()
    if not options.simulated and not torch.cuda.is_available():
        sys.exit(NO_DEVICE)
    if options.part:
        run_part(options.part, Gpu())
        return
    for part in PARTS:
        if options.simulated:
            run_part(part.__name__, Simulation())
        else:
            run_apart(part.__name__)


if __name__ == "__main__":
    main()
