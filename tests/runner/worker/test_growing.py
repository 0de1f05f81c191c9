"""State that grows: found, put back, timed at one length on both sides, or refused."""

from __future__ import annotations

import itertools
import statistics

import pytest
import torch

from compilewatch.db.cause.notes import trial_notes
from compilewatch.db.records.trial import FailureKind, NumericsStatus, Status
from compilewatch.runner.worker.step import growth, memory
from compilewatch.runner.worker.step.loading import build_workload, import_builder
from compilewatch.runner.worker.step.messages import Workload
from compilewatch.runner.worker.step.state import State
from compilewatch.runner.worker.step.steps import make_variant
from compilewatch.runner.worker.timing import evidence as evidence_module
from compilewatch.runner.worker.timing.sampling import GrowsError, Sampler, SamplingPlan, Side, warm_up
from compilewatch.runner.worker.timing.timer import BlockTimes
from tests.runner.measuring import FIXTURES, compiled, measure

LATENCIES_MS = (0.05, 0.2, 1.0, 5.0, 20.0, 60.0)
TRUTHS = (0.7, 0.8, 0.9, 1.1, 1.25, 1.5, 2.0)
SLOPES = (0.002, 0.01, 0.03, 0.1)


class Clock:
    """Time passes in steps alone."""

    def __init__(self):
        self.now = 0


class Timer:
    def __init__(self, clock):
        self.clock = clock

    def once(self, step):
        began = self.clock.now
        step()
        return self.clock.now - began

    def prepare(self, step, size, settling_calls):
        pass

    def block(self, step, size):
        samples = [self.once(step) for _ in range(size)]
        return BlockTimes({"samples_ns": samples}, sum(samples))


class Watch:
    def begin(self):
        pass

    def end(self):
        return evidence_module.Block(
            wall_ns=1, stall_fraction=0.0, thread_over_wall=1.0, process_over_wall=1.0
        )


def growing(clock, base_ns, slope, name, *, puts_back=True):
    """A side whose step takes longer by `slope` of `base_ns` with each call since it was put back."""
    calls = [7]

    def step():
        clock.now += int(base_ns * (1 + slope * calls[0]))
        calls[0] += 1

    made = Side(step, Timer(clock), name)
    if puts_back:
        made.put_back = lambda: calls.__setitem__(0, 7)
        made.most_calls = 1_000
    return made


def sampled(clock, monkeypatch, *sides, canary=lambda: 500_000):
    plan = SamplingPlan()
    module = "compilewatch.runner.worker.timing.sampling.time.perf_counter_ns"
    monkeypatch.setattr(module, lambda: clock.now)
    for each in sides:
        warm_up(each, plan)
    return Sampler(plan, cpu_bound=True, canary=canary, watch=Watch()).take(list(sides))


@pytest.mark.parametrize("latency_ms", LATENCIES_MS)
def test_a_speedup_is_that_at_one_length_however_steep_it_grows(latency_ms, monkeypatch):
    """28 of 168 cases each: none off by more than a tenth, so none has the wrong sign either."""
    for truth, slope in itertools.product(TRUTHS, SLOPES):
        clock = Clock()
        own = growing(clock, latency_ms / truth * 1e6, slope, "side")
        eager = growing(clock, latency_ms * 1e6, slope, "control")
        found = sampled(clock, monkeypatch, eager, own)
        speedup = statistics.median(eager.times["samples_ns"]) / statistics.median(own.times["samples_ns"])
        assert speedup == pytest.approx(truth, rel=0.1), (truth, slope)
        assert found.calls is not None
        assert len(eager.times["samples_ns"]) == len(own.times["samples_ns"])


def test_what_rises_with_its_calls_unseen_is_refused_on_a_calm_host(monkeypatch):
    clock = Clock()
    sides = [growing(clock, 1e6, 0.01, name, puts_back=False) for name in ("control", "side")]
    with pytest.raises(GrowsError, match="rises with every call"):
        sampled(clock, monkeypatch, *sides)
    # A host that slows down is no growth.
    clock = Clock()
    sides = [growing(clock, 1e6, 0.01, name, puts_back=False) for name in ("control", "side")]
    slower = itertools.count(500_000, 20_000)
    sampled(clock, monkeypatch, *sides, canary=lambda: next(slower))


def test_no_more_calls_are_made_than_are_known_to_work(monkeypatch):
    clock = Clock()
    most = 12
    sides = []
    for name in ("control", "side"):
        each = growing(clock, 1e5, 0.0, name)
        calls = [0]

        def step(calls=calls):
            assert calls[0] < most
            calls[0] += 1
            clock.now += 100_000

        each.step, each.most_calls = step, most
        each.put_back = lambda calls=calls: calls.__setitem__(0, 0)
        sides.append(each)
    found = sampled(clock, monkeypatch, *sides)
    assert found.calls is not None
    assert found.calls[1] <= most


def looked_at(name):
    """What eager calls of the model do to its state, the state after it was put back, and the workload."""
    workload = Workload(name=name, task="inference", dtype="float32", target=f"growing_models:{name}")
    built = build_workload(import_builder(workload.target, (str(FIXTURES),)), workload, torch.device("cpu"))
    step, state = make_variant(built).step, State(built)
    before = state.census()
    with torch.no_grad():
        step()
        written = state.keep_written()
        found = growth.look(state, before, step, 1_000)
        state.restore()
    return found, state, written


@pytest.mark.parametrize(
    ("name", "what", "unit"),
    [
        ("in_list", "attribute past", "entries"),
        ("in_deque", "attribute past", "entries"),
        ("in_user_list", "attribute past.data", "entries"),
        ("in_slots", "attribute past.entries", "entries"),
        ("in_global", "variable HISTORY", "entries"),
        ("in_global_of_module", "variable HISTORY", "entries"),
        ("in_closure", "variable past", "entries"),
        ("in_hook", "variable seen", "entries"),
        ("in_method", "attribute past", "entries"),
        ("in_object", "attribute past", "entries"),
        ("in_default", "default 0", "entries"),
        ("in_attributes", "attributes of NewAttributes", "entries"),
        ("in_buffer", "buffer cache", "elements"),
    ],
)
def test_what_grows_is_named_with_both_lengths_and_put_back(name, what, unit):
    found, state, _ = looked_at(name)
    assert (found.growth.name, found.growth.unit, found.growth.calls) == (what, unit, (3, 6))
    short, long = found.growth.lengths
    assert long - short == (3 * 64 if unit == "elements" else 3)
    # Each call keeps 4 x 16 float32.
    assert found.bytes_per_call == 256
    assert state.changed_names() == []


@pytest.mark.parametrize("name", ["codebook", "codebook_through_data"])
def test_weights_that_calls_write_are_part_of_the_state(name):
    found, state, written = looked_at(name)
    assert written == ["codes"]
    assert found.changes == ("weight codes",)
    assert state.changed_names() == []


@pytest.mark.parametrize("name", ["ring", "norm", "plain", "filled"])
def test_what_only_changes_does_not_grow(name):
    found, _, _ = looked_at(name)
    assert found.growth is None
    assert bool(found.changes) == (name in ("ring", "filled"))


PLAN = {"samples": 20, "max_samples": 20, "min_samples": 2, "warmup_calls": 5, "warmup_ns": 0}


def measured(name, **changes):
    return measure(name, compiled("eager"), target=f"growing_models:{name}", sampling=PLAN, **changes)


def test_a_cache_that_runs_full_is_timed_before_it_does():
    trial = measured("filled")
    assert trial.status is Status.OK, trial.failure
    state = trial.sampling.state
    assert (state.fails_at, state.last_call <= 24, state.first_length) == (25, True, None)
    assert len(trial.samples_ns) == len(trial.control_samples_ns)
    assert trial.numerics.status is NumericsStatus.PASS


@pytest.mark.slow
def test_a_growing_list_is_timed_at_one_length_and_its_memory_is_exact():
    trial = measured("in_list")
    assert trial.status is Status.OK, trial.failure
    state = trial.sampling.state
    assert (state.name, state.unit) == ("attribute past", "entries")
    assert (state.first_length, state.last_length) == (state.first_call, state.last_call)
    assert trial.memory.growth_bytes_per_call == 4 * 16 * 4
    # The past, weight and bias, the input: held by both sides when their peak is read.
    assert trial.memory.peak_bytes >= state.first_call * 256 + 16 * 17 * 4 + 256
    assert "its state grows" in " ".join(trial_notes(trial))


@pytest.mark.slow
def test_what_cannot_be_put_back_is_refused_in_seconds_and_reset_puts_it_back():
    trial = measured("cannot_be_put_back")
    assert trial.failure.kind is FailureKind.NOT_STEADY
    assert trial.failure.phase == "eager_first"
    assert (
        "Its state grows: attribute seen has 3 entries after 3 calls and 6 after 6" in trial.failure.message
    )
    trial = measured("puts_itself_back")
    assert trial.status is Status.OK, trial.failure
    assert trial.sampling.state.name == "attribute seen"


def test_a_process_that_grows_is_ended_before_the_host_suffers(monkeypatch):
    """Of 8 GiB that were free it may take 2, evenly: 64 KiB a call are ended after 32,768 calls."""
    held, at = [1 << 30], itertools.count(0, 1_000_000_000)
    monkeypatch.setattr(memory, "free_bytes", lambda _device: 8 << 30)
    monkeypatch.setattr(memory, "rss_bytes", lambda: held[0])
    monkeypatch.setattr("compilewatch.runner.worker.step.memory.time.monotonic_ns", lambda: next(at))
    watch = memory.Watch(torch.device("cpu"))

    def grow():
        for _ in range(1_000):
            watch.add(100)
            held[0] += 100 << 16

    with pytest.raises(GrowsError, match=r"by about 64.0 KiB: it was ended at 2,050 MiB more after 33,000"):
        grow()
    # What a first training step takes comes at once, and stays.
    held[0] = 1 << 30
    watch = memory.Watch(torch.device("cpu"))
    for _ in range(1_000):
        watch.add(100)
        held[0] = 5 << 30
