"""What one process on a GPU is asked beside the trials, against a simulated device and a real process."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import pytest

from compilewatch.runner.cli.measure.validation import Probes, plan_validation, probe
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.worker import probes
from compilewatch.runner.worker.device.gpu_timer import GateChoice
from compilewatch.runner.worker.device.tracing import Tracer
from tests.runner.simulated_device import US, Entry, SimulatedDevice, SimulatedStep


class Flushed:
    """The same device where each sample begins with a flush of its cache."""

    def __init__(self, device: SimulatedDevice) -> None:
        self._device = device
        self.flushes = True
        self.flushed = 0

    def flush(self) -> None:
        self.flushed += 1
        self._device.cold = True
        self._device.enqueue(Entry(self._device.now, 100 * US))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)


class Device(SimulatedDevice):
    cold = False


def timed(step: SimulatedStep, device: Device, ratio: float | None = None) -> tuple[dict[str, Any], int]:
    """What `time_step` says beside a tool that reads the true device time over `ratio`."""
    asked: list[object] = []

    def bench(given: object) -> float:
        asked.append(given)
        return step.true_device_ns / (ratio or 1.0)

    choice = GateChoice(device)
    return probes.time_step(device, Flushed(device), choice, step, bench if ratio else None), len(asked)


@pytest.mark.parametrize("ratio", [1.0, 0.9])
def test_a_step_that_keeps_the_device_busy_is_set_against_another_tool_in_turns(ratio: float):
    device = Device()
    step = SimulatedStep(device, 1, 900 * US, 30 * US)
    found, asked = timed(step, device, ratio)
    assert found["gated_ns"] == pytest.approx(step.true_device_ns, rel=0.01)
    assert found["do_bench_ratio"] == pytest.approx(ratio, rel=0.01)
    assert asked == probes.ROUNDS


def test_under_a_power_cap_both_tools_meet_the_same_clock():
    """The clock falls by a tenth and comes back, ten times a second: one after the other they differ."""
    device = Device(slowdown=lambda now: 1.1 if now // (50_000 * US) % 2 else 1.0)
    step = SimulatedStep(device, 1, 900 * US, 30 * US)

    def bench(given: Callable[[], object]) -> float:
        device.worked = []
        for _ in range(10):
            given()
            device.synchronize()
        return statistics.median(device.worked)

    found = probes.time_step(device, Flushed(device), GateChoice(device), step, bench)
    assert found["do_bench_ratio"] == pytest.approx(1.0, abs=0.02)


def test_a_host_bound_step_is_not_set_against_a_tool_that_measures_the_host():
    device = Device()
    step = SimulatedStep(device, 40, 5 * US, 20 * US)
    found, asked = timed(step, device, 1.0)
    assert found["gated_ns"] == pytest.approx(step.true_device_ns, rel=0.01)
    assert found["wall_pipelined_ns"] > 1.10 * found["gated_ns"]
    assert (found["do_bench_ratio"], asked) == (None, 0)


def test_without_triton_there_is_no_ratio():
    device = Device()
    found, _ = timed(SimulatedStep(device, 1, 900 * US, 30 * US), device)
    assert found["do_bench_ratio"] is None
    assert found["gated_ns"] is not None


def test_a_step_that_no_gate_holds_has_no_gated_time():
    device = Device()
    found, asked = timed(SimulatedStep(device, 5, 50 * US, 10 * US, waits=True), device, 1.0)
    assert (found["gated_ns"], found["do_bench_ratio"], asked) == (None, None, 0)


def test_the_effect_of_a_flush_is_that_of_the_device_alone():
    device = Device()

    def reduce() -> None:
        # From memory it takes half as long again as from the cache; the host needs longer than both.
        device.launch(15 * US if device.cold else 10 * US, host_ns=40 * US)
        device.cold = False

    flushed = Flushed(device)
    found = probes.flush_effect(device, flushed, GateChoice(device), reduce)
    assert found["warm_ns"] == pytest.approx(10 * US, rel=0.01)
    assert found["cold_ns"] == pytest.approx(15 * US, rel=0.01)
    assert flushed.flushed > probes.FLUSH_ROUNDS


def test_what_tracing_saw():
    device = Device()
    step = SimulatedStep(device, 40, 5 * US, 20 * US)
    found = probes.observe_step(Tracer(device), step)
    assert found["kernels_ns"] == pytest.approx(step.true_device_ns, rel=0.01)
    assert (found["launches"], found["graph_launches"], found["streams"]) == (40, 0, 1)
    blind = probes.observe_step(Tracer(Device(has_tracing=False)), step)
    assert blind.pop("error") == "the device's own tracing shows no kernel"
    assert set(blind.values()) == {None}


@pytest.mark.parametrize("falls", [0, 40])
def test_a_clock_that_falls_while_gate_and_tracing_take_turns_is_no_difference(falls: int):
    """By `falls` percent a second: one after the other they differ by more than the aim of 2 %."""
    device = Device(slowdown=lambda now: 1 + falls * now / 1e11, session_ns=2_000 * US)
    step, tracer, choice = SimulatedStep(device, 1, 900 * US, 30 * US), Tracer(device), GateChoice(device)
    first = probes.Timed(device, step, choice, probes.SAMPLES).block().device_ns
    found = probes.beside_tracing(device, choice, tracer, step)
    assert found["gated_ns"] / found["kernels_ns"] == pytest.approx(1.0, abs=0.01)
    assert (abs(first / found["kernels_ns"] - 1) > 0.02) == bool(falls)


def test_without_tracing_the_gated_time_is_there_and_why_it_has_no_other():
    device = Device(has_tracing=False)
    step = SimulatedStep(device, 1, 900 * US, 30 * US)
    found = probes.beside_tracing(device, GateChoice(device), Tracer(device), step)
    assert found["gated_ns"] == pytest.approx(step.true_device_ns, rel=0.01)
    assert (found["kernels_ns"], found["error"]) == (None, "the device's own tracing shows no kernel")


def test_what_is_sent_is_what_is_read():
    device = Device()
    step = SimulatedStep(device, 1, 900 * US, 30 * US)
    sent = {
        "has_do_bench": True,
        "workloads": [
            {"workload": "a", **timed(step, device, 1.0)[0], **probes.observe_step(Tracer(device), step)}
        ],
        "l2": {"read_bytes": 1, **probes.flush_effect(device, Flushed(device), GateChoice(device), step)},
        "graph": {"kernels": 200, "gated_ns": 5.0, **probes.observe_step(Tracer(device), step)},
    }
    assert Probes.model_validate(sent).workloads[0].workload == "a"


def test_a_real_process_without_a_gpu_says_why_it_has_nothing():
    specs = plan_validation(Settings(), "cpu", 3).trials[:4]
    found = probe(specs[0], [spec.workload for spec in specs], lambda: False)
    assert found.probes is None
    assert len(found.problem) > 10
    assert "Traceback" not in found.problem
