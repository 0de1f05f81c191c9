"""The four times of a step against a simulated device, whose truth is known."""

from __future__ import annotations

import ctypes
import itertools
import statistics
import time

import pytest
import torch

from compilewatch.runner.worker.device.cuda import Flag, SpinGate
from compilewatch.runner.worker.device.gpu_timer import TRIES, GateChoice, GpuTimer
from compilewatch.runner.worker.device.timers import traced
from compilewatch.runner.worker.device.tracing import LONGEST_NS, Tracer
from compilewatch.runner.worker.timing.sampling import Sampler, SamplingPlan, Side, warm_up
from tests.runner.simulated_device import US, SimulatedDevice, SimulatedStep
from tests.runner.worker.test_sampling import CALM, FakeWatch

MS = 1_000 * US
MODES = (1.0, 1.7)
"""Of the host: issue time of one and the same code differed so between fresh processes of an H100."""


def measured(device, *steps, **plan):
    """The sides of one trial on `device`, sampled as a trial does it; the last step is the strategy's."""
    settings, choice = SamplingPlan(**plan), GateChoice(device)
    names = ("control", "side")[-len(steps) :]
    sides = [Side(step, GpuTimer(device, choice), name) for step, name in zip(steps, names, strict=True)]
    for side in reversed(sides):
        warm_up(side, settings)
    sampler = Sampler(settings, cpu_bound=False, watch=FakeWatch(itertools.repeat(CALM)), canary=lambda: 1)
    sampler.take(sides)
    found = kept(device, sides)
    return found if len(found) > 1 else found[0]


def kept(device, sides):
    """What a trial keeps of its sides, once the device was traced."""
    steps, timers = [side.step for side in sides], [side.timer for side in sides]
    untraced = [timer.results(side.times) for timer, side in zip(timers, sides, strict=True)]
    return traced(Tracer(device), timers, steps, untraced)


def process(number, **device):
    """A fresh process: the host in one of two modes, 25 % apart from the next one of its mode."""
    mode = MODES[number % 2] * (1 + 0.25 * ((number * 7) % 5 - 2) / 2)
    return SimulatedDevice(host_mode=mode, seed=number, **device)


def variation(values):
    return statistics.stdev(values) / statistics.mean(values)


@pytest.mark.parametrize(
    ("gate", "launches", "kernel_ns", "launch_ns"),
    [
        ("spin_kernel", 40, 5 * US, 20 * US),
        ("stream_wait", 1, 900 * US, 30 * US),
        ("spin_kernel", 80, 4 * US, 6 * US),
        ("stream_wait", 1, 5 * US, 40 * US),
    ],
    ids=["host-bound", "device-bound", "encoder", "tiny"],
)
def test_device_time_is_the_device_s_in_processes_whose_host_differs_by_a_quarter(
    gate, launches, kernel_ns, launch_ns
):
    medians = {"device_ns": [], "issue_ns": [], "wall_sync_ns": []}
    for number in range(10):
        device = process(number, has_gates=(gate,))
        step = SimulatedStep(device, launches, kernel_ns, launch_ns)
        times, facts = measured(device, step)
        assert facts["method"] == "gated"
        assert facts["gate"]["kind"] == gate
        assert facts["synchronises"] is False
        assert facts["launches"] == launches
        for name, values in medians.items():
            values.append(statistics.median(times[name]))
        assert statistics.median(times["device_ns"]) == pytest.approx(step.true_device_ns, rel=0.01)
        assert statistics.median(times["issue_ns"]) == pytest.approx(step.true_issue_ns, rel=0.05)
        # The last kernel runs after the host has issued everything; a device-bound step waits for it longer.
        wall = max(step.true_issue_ns + kernel_ns, launch_ns * device.host_mode + step.true_device_ns)
        assert statistics.median(times["wall_sync_ns"]) == pytest.approx(wall, rel=0.06, abs=13 * US)
        steady = max(step.true_issue_ns, step.true_device_ns)
        pipelined = statistics.median(times["wall_pipelined_ns"])
        assert steady * 0.95 <= pipelined <= steady * 1.05 + wall / facts["pipelined_steps"]
    assert variation(medians["device_ns"]) <= 0.01
    assert variation(medians["issue_ns"]) > 0.2


def test_every_sample_was_enqueued_before_the_device_began_or_is_not_there():
    """On a host that stalls now and then beyond the gate, the gate is doubled and the sample is true."""
    device = SimulatedDevice(seed=3)
    stalls = itertools.cycle([0, 0, 0, 2 * MS])

    class Stalling(SimulatedStep):
        def __call__(self):
            device.now += next(stalls)
            super().__call__()

    step = Stalling(device, 10, 5 * US, 20 * US)
    times, facts = measured(device, step)
    assert facts["method"] == "gated"
    assert facts["gate"]["verified"] == facts["gate"]["samples"] >= len(times["device_ns"]) >= 10
    assert max(times["device_ns"]) < 1.1 * step.true_device_ns


def test_a_gate_that_opens_too_early_is_closed_for_longer_and_counted():
    device = SimulatedDevice()
    sudden = itertools.chain([0] * 200, itertools.repeat(500 * US))

    class Slower(SimulatedStep):
        def __call__(self):
            device.now += next(sudden)
            super().__call__()

    step = Slower(device, 10, 5 * US, 20 * US)
    timer = GpuTimer(device, GateChoice(device))
    timer.prepare(step, 5, 0)
    for _ in range(195):
        timer.once(step)
    times = {}
    for _ in range(10):
        for name, values in timer.block(step, 5).times.items():
            times.setdefault(name, []).extend(values)
    ((times, facts),) = kept(device, [Side(step, timer, times=times)])
    assert facts["gate"]["retries"] >= 1
    assert max(times["device_ns"]) < 1.1 * step.true_device_ns


@pytest.mark.parametrize("gate", ["spin_kernel", "stream_wait"])
def test_a_step_that_synchronises_inside_hangs_nothing_and_is_measured_by_tracing(gate):
    device = SimulatedDevice(has_gates=(gate,))
    step = SimulatedStep(device, 20, 30 * US, 10 * US, waits=True)
    times, facts = measured(device, step)
    assert facts["method"] == "cupti"
    assert facts["gate"] is None
    assert facts["synchronises"] is True
    assert statistics.median(times["device_ns"]) == pytest.approx(step.true_device_ns, rel=0.01)
    assert statistics.median(times["issue_ns"]) > 10 * 30 * US
    assert len(times["wall_sync_ns"]) >= 10
    assert device.now < 10_000 * MS


@pytest.mark.parametrize("gate", ["spin_kernel", "stream_wait"])
def test_a_step_that_launches_more_than_the_queue_takes_is_measured_by_tracing(gate):
    device = SimulatedDevice(depth=100, has_gates=(gate,))
    step = SimulatedStep(device, 300, 6 * US, 5 * US)
    times, facts = measured(device, step)
    assert (facts["method"], facts["synchronises"], facts["launches"]) == ("cupti", False, 300)
    assert statistics.median(times["device_ns"]) == pytest.approx(step.true_device_ns, rel=0.01)


def test_a_gate_that_does_not_hold_costs_four_tries_and_is_not_tried_again():
    device = SimulatedDevice()
    step = SimulatedStep(device, 20, 30 * US, 10 * US, waits=True)
    timer = GpuTimer(device, GateChoice(device))
    calls = itertools.count()

    def counted():
        next(calls)
        step()

    timer.prepare(counted, 5, 0)
    assert next(calls) == 3 + TRIES
    assert timer.block(counted, 5).times["device_ns"] == []


def test_without_gate_and_tracing_every_sample_is_labelled_ungated():
    device = SimulatedDevice(has_gates=(), has_tracing=False)
    step = SimulatedStep(device, 40, 5 * US, 20 * US)
    times, facts = measured(device, step)
    assert (facts["method"], facts["gate"], facts["launches"]) == ("ungated", None, None)
    # They are the host's: the device waited for each launch.
    assert statistics.median(times["device_ns"]) > 2 * step.true_device_ns


def test_a_step_whose_gate_fails_later_keeps_only_what_was_verified():
    """From the middle on the step synchronises, as where a loss is read every so often."""
    device = SimulatedDevice()
    step = SimulatedStep(device, 20, 30 * US, 10 * US)
    timer = GpuTimer(device, GateChoice(device))
    timer.prepare(step, 5, 0)
    times = {}
    for number in range(20):
        step.waits = number >= 10
        for name, values in timer.block(step, 5).times.items():
            times.setdefault(name, []).extend(values)
    ((times, facts),) = kept(device, [Side(step, timer, times=times)])
    assert facts["method"] == "gated"
    assert facts["gate"]["verified"] == len(times["device_ns"]) == len(times["issue_ns"])
    assert facts["gate"]["samples"] > facts["gate"]["verified"]
    assert max(times["device_ns"]) < 1.05 * step.true_device_ns


@pytest.mark.parametrize(
    ("gates", "chosen"),
    [
        (("spin_kernel", "stream_wait"), "spin_kernel"),
        (("broken", "stream_wait"), "stream_wait"),
        (("idle", "stream_wait"), "stream_wait"),
        (("idle", "broken"), None),
    ],
)
def test_the_gate_is_the_first_that_holds_the_queue(gates, chosen):
    gate = GateChoice(SimulatedDevice(has_gates=gates)).gate()
    assert (gate.kind if gate else None) == chosen


def test_a_throttled_device_shows_in_device_time_and_its_blocks_do_not_count():
    slow = range(20 * MS, 60 * MS)
    device = SimulatedDevice(slowdown=lambda now: 1.5 if now in slow else 1.0)
    step = SimulatedStep(device, 20, 30 * US, 10 * US)
    side = Side(step, GpuTimer(device, GateChoice(device)), warmup_ns=[700 * US] * 10)
    sampler = Sampler(
        SamplingPlan(),
        cpu_bound=False,
        watch=FakeWatch(itertools.repeat(CALM)),
        canary=lambda: 1,
        between_blocks=lambda _side: device.now in slow,
    )
    evidence = sampler.take([side])
    assert evidence.rejected > 0
    assert max(side.times["device_ns"]) < 1.1 * step.true_device_ns


def test_a_process_whose_first_session_is_empty_sees_no_kernel_and_ours_is_not():
    device = SimulatedDevice(depth=100)
    assert device.trace(lambda: None).kernels == 0
    assert device.trace(SimulatedStep(device, 20, 5 * US, 5 * US)).kernels == 0
    device = SimulatedDevice(depth=100)
    times, facts = measured(device, SimulatedStep(device, 300, 6 * US, 5 * US))
    assert (facts["method"], facts["tracing"]["problem"]) == ("cupti", None)
    assert facts["tracing"]["whole"] == facts["tracing"]["sessions"] == len(times["device_ns"])


def test_a_session_that_lost_kernels_is_no_time():
    """CUPTI drops some at a session's start now and then."""
    device = SimulatedDevice(depth=100, loses=lambda session: 120 if session % 2 else 0)
    step = SimulatedStep(device, 300, 6 * US, 5 * US)
    times, facts = measured(device, step)
    assert facts["method"] == "cupti"
    assert facts["tracing"] == {"sessions": 10, "whole": 5, "problem": None}
    assert statistics.median(times["device_ns"]) == pytest.approx(step.true_device_ns, rel=0.01)
    assert min(times["device_ns"]) > 0.97 * step.true_device_ns


@pytest.mark.parametrize(
    ("loses", "whole", "problem"),
    [
        (lambda session: 0 if session in (4, 7) else session, 2, "2 of 10 traced steps lost no kernel"),
        (lambda _session: 300, 0, "the device's own tracing shows no kernel"),
    ],
    ids=["most lose some", "none has any"],
)
def test_below_three_whole_sessions_tracing_gives_no_time_and_the_record_says_why(loses, whole, problem):
    device = SimulatedDevice(depth=100, loses=loses)
    times, facts = measured(device, SimulatedStep(device, 300, 6 * US, 5 * US))
    assert (facts["method"], len(times["device_ns"])) == ("ungated", 3)
    assert facts["tracing"]["whole"] == whole
    assert facts["tracing"]["problem"] == problem


def test_where_no_gate_holds_eager_both_sides_have_times_of_tracing_and_a_speedup():
    """A thousand launches do not fit the queue, and the graph that they became does."""
    device = SimulatedDevice(depth=100)
    eager, compiled = SimulatedStep(device, 300, 6 * US, 5 * US), SimulatedStep(device, 1, 900 * US, 20 * US)
    (control, control_facts), (side, facts) = measured(device, eager, compiled)
    assert control_facts["method"] == facts["method"] == "cupti"
    speedup = statistics.median(control["device_ns"]) / statistics.median(side["device_ns"])
    assert speedup == pytest.approx(2, rel=0.01)
    assert statistics.median(facts["gated_ns"]) == pytest.approx(900 * US, rel=0.01)
    assert facts["gate"]["verified"] >= len(facts["gated_ns"]) >= 10
    assert control_facts["gated_ns"] == []
    assert (facts["synchronises"], control_facts["synchronises"]) == (False, False)


def test_where_tracing_fails_too_the_gated_side_stays_gated():
    device = SimulatedDevice(depth=100, loses=lambda _session: 300)
    eager, compiled = SimulatedStep(device, 300, 6 * US, 5 * US), SimulatedStep(device, 1, 900 * US, 20 * US)
    (_, control_facts), (side, facts) = measured(device, eager, compiled)
    assert (control_facts["method"], facts["method"]) == ("ungated", "gated")
    assert statistics.median(side["device_ns"]) == pytest.approx(900 * US, rel=0.01)
    assert "gated_ns" not in facts


def test_tracing_has_an_end_and_what_was_timed_is_there_before():
    device = SimulatedDevice(depth=100, session_ns=4_000 * MS)
    step = SimulatedStep(device, 300, 6 * US, 5 * US)
    side = Side(step, GpuTimer(device, GateChoice(device)), warmup_ns=[2 * MS] * 10)
    Sampler(SamplingPlan(), cpu_bound=False, watch=FakeWatch(itertools.repeat(CALM)), canary=lambda: 1).take(
        [side]
    )
    before = device.now
    times, facts = side.timer.results(side.times)
    assert device.now - before < 1 * MS
    assert len(times["wall_sync_ns"]) >= 10
    assert facts["method"] == "ungated"
    ((_, facts),) = kept(device, [side])
    assert facts["tracing"]["problem"] == "1 of 10 steps could be traced in 10 s"
    # The one that is thrown away, those within the limit, and the empty one.
    assert device.now - before < LONGEST_NS + 3 * device.session_ns


def test_tracing_that_raises_costs_the_trial_nothing():
    class Raising(SimulatedDevice):
        def trace(self, step):
            raise RuntimeError("CUPTI_ERROR_NOT_INITIALIZED")

    device = Raising()
    times, facts = measured(device, SimulatedStep(device, 40, 5 * US, 20 * US))
    assert facts["method"] == "gated"
    assert len(times["device_ns"]) >= 10
    assert facts["launches"] is None
    assert facts["tracing"]["problem"] == "RuntimeError: CUPTI_ERROR_NOT_INITIALIZED"


@pytest.mark.parametrize(("depth", "method"), [(1000, "gated"), (100, "cupti")])
def test_times_are_flushed_by_either_method_and_one_without_a_flush_is_beside_them(depth, method):
    """A step whose input fits into the cache looks slower on the device than in a loop without flushes."""
    device = SimulatedDevice(depth=depth, flush_ns=60 * US)
    step = SimulatedStep(device, 200, 4 * US, 2 * US, cold_ns=400 * US)
    times, facts = measured(device, step)
    assert facts["method"] == method
    assert statistics.median(times["device_ns"]) == pytest.approx(1_200 * US, rel=0.01)
    assert facts["unflushed_ns"] == pytest.approx(800 * US, rel=0.01)
    assert statistics.median(times["wall_pipelined_ns"]) < 1.1 * facts["unflushed_ns"]
    unflushed = SimulatedDevice(depth=depth)
    assert measured(unflushed, SimulatedStep(unflushed, 200, 4 * US, 2 * US))[1]["unflushed_ns"] is None


def test_a_gate_is_calibrated_before_it_is_tried():
    """Calibration takes longer than a trial may; inside of one it would look like a gate that sticks."""
    device = SimulatedDevice(has_gates=("spin_kernel",))
    assert GateChoice(device).gate().kind == "spin_kernel"


def test_a_spinning_gate_is_calibrated_until_two_calibrations_agree(monkeypatch):
    """A clock that comes up from idle: 0.4 cycles a nanosecond at first, 1.98 in the end."""
    gate = SpinGate(torch.device("cpu"))
    monkeypatch.setattr(gate, "_sleep", lambda _cycles: None)
    rates = iter((0.4, 0.9, 1.5, 1.9, 1.98, 1.96, 3.0))
    monkeypatch.setattr(gate, "_rate", lambda: next(rates))
    gate.prepare()
    slept = []
    monkeypatch.setattr(gate, "_sleep", slept.append)
    gate.close(1_000)
    assert (slept, next(rates)) == ([1_980], 3.0)
    swinging = itertools.cycle((1.0, 1.1))
    monkeypatch.setattr(gate, "_sleep", lambda _cycles: None)
    monkeypatch.setattr(gate, "_rate", lambda: next(swinging))
    with pytest.raises(RuntimeError, match=r"ran at 1 to 1\.1 cycles per ns"):
        gate.prepare()


@pytest.mark.parametrize(
    ("launches", "kernel_ns", "launch_ns", "waits", "before_ms"),
    [
        (1, 5 * US, 40 * US, False, 240),
        (90, 10 * US, 20 * US, False, 1_287),
        (300, 330 * US, 30 * US, False, 21_799),
        (300, 330 * US, 100 * US, True, 21_836),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in (
                (5, 45 * US, 30 * US, False, 365),
                (300, 30 * US, 60 * US, False, 4_646),
                (300, 330 * US, 300 * US, False, 21_857),
                (900, 700 * US, 200 * US, False, 52_940),
                (1500, 60 * US, 50 * US, False, 19_822),
            )
        ),
    ],
)
def test_all_four_times_make_a_trial_at_most_a_quarter_longer(
    launches, kernel_ns, launch_ns, waits, before_ms
):
    """Warm-up, preparation and tracing counted; imports and compilation, which only dilute it, left out.

    `before_ms` is what a trial took on this device before there was a gate: of each side untimed steps,
    events around each step of a block with one synchronisation, then as many steps each with its own.
    """
    device = SimulatedDevice(flush_ns=60 * US)
    steps = [SimulatedStep(device, launches, kernel_ns, launch_ns, waits) for _ in range(2)]
    measured(device, *steps, max_samples=50)
    assert device.now <= 1.25 * before_ms * MS


class Word:
    """Memory for a flag, as pinned memory would be."""

    def __init__(self):
        self.memory = ctypes.create_string_buffer(Flag.BYTES + 64)
        address = ctypes.addressof(self.memory)
        self.flag = Flag(address + -address % 64, owner=self.memory)


def is_raised(flag):
    return ctypes.c_uint32.from_address(flag.address).value > 0


def test_a_flag_is_raised_by_the_system_while_python_is_stuck():
    """Inductor's launcher waits for a place in the queue without giving up the interpreter's lock."""
    flag = Word().flag
    stuck = ctypes.PyDLL(None).usleep
    flag.lower(20 * MS)
    assert not is_raised(flag)
    began = time.monotonic_ns()
    stuck(200_000)
    took = time.monotonic_ns() - began
    assert is_raised(flag)
    assert took >= 150 * MS


def test_a_flag_that_is_raised_in_time_stays_down_the_next_time():
    flag = Word().flag
    flag.lower(30 * MS)
    flag.raise_now()
    assert is_raised(flag)
    flag.lower(10_000 * MS)
    time.sleep(0.1)
    assert not is_raised(flag)
    flag.raise_now()
