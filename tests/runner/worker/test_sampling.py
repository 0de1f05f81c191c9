"""Warm-up and sampling rules, against a timer and a host that the test controls."""

from __future__ import annotations

import itertools
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilewatch.runner.worker.timing.evidence import Block
from compilewatch.runner.worker.timing.sampling import (
    PAIRS,
    Deadline,
    NotSteadyError,
    Sampler,
    SamplingPlan,
    Side,
    median_rank,
    relative_half_width,
    until_steady,
    warm_up,
)
from compilewatch.runner.worker.timing.timer import BlockTimes

MS = 1_000_000
CALM = Block(wall_ns=50 * MS, stall_fraction=0.0, thread_over_wall=1.0, process_over_wall=1.0)
STALLED = Block(wall_ns=50 * MS, stall_fraction=0.4, thread_over_wall=1.0, process_over_wall=1.0)
OFF_CPU = Block(wall_ns=50 * MS, stall_fraction=0.0, thread_over_wall=0.5, process_over_wall=0.5)


class FakeTimer:
    """Takes the step's return value for its nanoseconds, and remembers the order of blocks."""

    def __init__(self):
        self.blocks = []

    def prepare(self, step, size, settling_calls):
        pass

    def block(self, step, size):
        samples = [step() for _ in range(size)]
        self.blocks.append((step, len(samples)))
        return BlockTimes({"samples_ns": samples}, sum(samples))

    def once(self, step):
        return step()


class FakeWatch:
    def __init__(self, blocks):
        self.blocks = iter(blocks)

    def begin(self):
        pass

    def end(self):
        return next(self.blocks)


def sampler(blocks=None, between=lambda _side: False, canary=lambda: 500_000, **plan):
    return Sampler(
        SamplingPlan(**plan),
        cpu_bound=True,
        between_blocks=between,
        watch=FakeWatch(itertools.repeat(CALM) if blocks is None else iter(blocks)),
        canary=canary,
    )


def side(latency_ns, timer=None):
    return Side(lambda: latency_ns, timer or FakeTimer(), warmup_ns=[latency_ns] * 10)


def test_both_sides_get_the_planned_samples():
    eager, compiled = side(2 * MS), side(MS)
    sampler().take([eager, compiled])
    assert eager.times["samples_ns"] == [2 * MS] * 50
    assert compiled.times["samples_ns"] == [MS] * 50


def test_each_block_begins_with_untimed_steps_of_its_own_side():
    called, timed = [], []

    class Recorder(FakeTimer):
        def once(self, step):
            called.append(step)
            return step()

        def block(self, step, size):
            timed.append((step, list(called)))
            called.clear()
            return super().block(step, size)

    timer = Recorder()
    fast, slow = side(3 * MS, timer), side(11 * MS, timer)
    sampler(settle_ns=10 * MS).take([fast, slow])
    assert {len(before) for step, before in timed if step is fast.step} == {3}
    assert all(other is step for step, before in timed for other in before)
    assert not any(before for step, before in timed if step is slow.step)
    assert len(fast.times["samples_ns"]) == 50


def test_sides_alternate_often_and_take_turns_in_going_first():
    timer = FakeTimer()
    eager, compiled = side(2 * MS, timer), side(MS, timer)
    sampler().take([eager, compiled])
    order = ["e" if step is eager.step else "c" for step, _ in timer.blocks]
    assert order == ["e", "c", "c", "e"] * (PAIRS // 2)
    assert sum(a != b for a, b in itertools.pairwise(order)) >= 10


@given(st.integers(1_000, 10_000 * MS), st.integers(1_000, 10_000 * MS))
def test_no_block_is_longer_than_its_bound(eager_ns, compiled_ns):
    timer, plan = FakeTimer(), {"block_ns": 100 * MS, "max_ns": 1_000 * MS}
    sides = [side(eager_ns, timer), side(compiled_ns, timer)]
    sampler(**plan).take(sides)
    for step, count in timer.blocks:
        assert count == 1 or count * step() <= 100 * MS
    assert all(len(found.times["samples_ns"]) >= 5 for found in sides)


def test_time_bounds_a_slow_step_but_not_below_the_minimum():
    eager, compiled = side(4_000 * MS), side(3_000 * MS)
    sampler(max_ns=10_000 * MS).take([eager, compiled])
    assert len(eager.times["samples_ns"]) == len(compiled.times["samples_ns"]) == 5


class SlowingHost:
    """A host that gets slower while it measures: every step takes 1 % longer than the one before."""

    def __init__(self):
        self.pace = 1.0

    def step(self, latency_ns):
        self.pace *= 1.01
        return round(latency_ns * self.pace)


def test_a_host_that_slows_down_favours_neither_side():
    """Measured one after the other, equal sides differ by the host; in alternating blocks they do not."""
    host = SlowingHost()
    eager = [host.step(MS) for _ in range(50)]
    compiled = [host.step(MS) for _ in range(50)]
    naive = statistics.median(eager) / statistics.median(compiled)
    assert naive < 0.65

    host = SlowingHost()
    sides = [Side(lambda: host.step(MS), FakeTimer(), warmup_ns=[MS] * 10) for _ in range(2)]
    slower = itertools.count(500_000, 50_000)
    sampler(canary=lambda: next(slower), max_samples=50).take(sides)
    assert len(sides[0].times["samples_ns"]) == 50
    ours = statistics.median(sides[0].times["samples_ns"]) / statistics.median(sides[1].times["samples_ns"])
    assert ours == pytest.approx(1.0, abs=0.03)


def test_a_disturbed_round_counts_for_neither_side_and_is_repeated():
    timer = FakeTimer()
    eager, compiled = side(MS, timer), side(MS, timer)
    blocks = [CALM, CALM, CALM, STALLED, OFF_CPU, CALM, *itertools.repeat(CALM, 100)]
    evidence = sampler(blocks).take([eager, compiled])
    assert (evidence.rejected, evidence.ended_by) == (4, "interval")
    assert len(timer.blocks) == 2 * (PAIRS + 2)
    assert len(eager.times["samples_ns"]) == len(compiled.times["samples_ns"]) == 50


def test_disturbed_samples_are_kept_out_when_enough_others_are_left():
    values = itertools.count(MS)
    disturbed = Side(lambda: next(values), FakeTimer(), warmup_ns=[MS] * 10)
    blocks = [CALM if number % 3 else STALLED for number in range(100)]
    evidence = sampler(blocks, max_samples=50).take([disturbed])
    assert evidence.rejected > 0
    rejected_samples = {MS + n for n in range(500) if (n // 5) % 3 == 0}
    assert not rejected_samples & set(disturbed.times["samples_ns"])
    assert len(disturbed.times["samples_ns"]) == 50


def test_on_a_host_that_is_never_calm_all_samples_count_and_the_record_says_so():
    eager, compiled = side(MS), side(MS)
    evidence = sampler(itertools.repeat(STALLED)).take([eager, compiled])
    assert len(eager.times["samples_ns"]) == len(compiled.times["samples_ns"]) == 50
    assert evidence.rejected == len(evidence.blocks) == 4 * PAIRS
    assert evidence.ended_by == "disturbed"


def uniform(low, high, seed=0):
    """A side whose latencies are spread evenly from `low` to `high`, in an order that repeats."""
    draw = random.Random(seed)
    return Side(lambda: round(draw.uniform(low, high)), FakeTimer(), warmup_ns=[low] * 10)


def test_a_spread_that_hides_the_median_gets_more_samples_until_it_is_known():
    eager, compiled = uniform(90 * MS, 110 * MS), side(100 * MS)
    evidence = sampler(max_ns=10**15, relative_interval=0.01, max_samples=5_000).take([eager, compiled])
    # For n uniform values on m +- 10 % the interval is m +- 1.96 * 10 % / sqrt(n): 1 % needs about 384.
    assert evidence.ended_by == "interval"
    assert 250 <= len(eager.times["samples_ns"]) == len(compiled.times["samples_ns"]) <= 550
    assert evidence.reached_interval <= 0.01


def test_no_spread_gets_more_than_the_bound_in_count_or_time():
    eager, compiled = uniform(50 * MS, 150 * MS), uniform(50 * MS, 150 * MS, seed=1)
    by_count = sampler(max_ns=10**15, max_samples=120).take([eager, compiled])
    assert (by_count.ended_by, len(eager.times["samples_ns"])) == ("samples", 120)
    assert by_count.reached_interval > 0.02
    slow = uniform(50 * MS, 150 * MS)
    by_time = sampler(max_ns=8_000 * MS, max_samples=10_000).take([slow])
    assert by_time.ended_by == "time"
    assert 75 <= len(slow.times["samples_ns"]) <= 90


def test_a_median_known_at_once_takes_the_planned_samples_and_no_more():
    eager = side(MS)
    evidence = sampler().take([eager])
    assert (
        len(eager.times["samples_ns"]),
        evidence.ended_by,
        evidence.reached_interval,
    ) == (
        50,
        "interval",
        0.0,
    )


def test_a_slowed_device_disturbs_the_blocks_before_and_after_the_reading():
    eager, compiled = side(MS), side(MS)
    # Readings: one before everything, then one after each block. The fourth is after block 3.
    readings = iter([False, False, False, True, *itertools.repeat(False, 200)])
    evidence = sampler(between=lambda _side: next(readings)).take([eager, compiled])
    assert evidence.rejected == 2
    assert len(eager.times["samples_ns"]) == 50


def test_all_times_of_a_block_are_kept_and_those_of_the_device_decide_when_it_is_enough():
    wall = random.Random(1)

    class Both(FakeTimer):
        def block(self, step, size):
            noisy = [round(MS * wall.uniform(1, 3)) for _ in range(size)]
            return BlockTimes({"device_ns": [MS] * size, "wall_sync_ns": noisy}, 3 * MS * size)

    eager = side(MS, Both())
    evidence = sampler().take([eager])
    assert (evidence.ended_by, evidence.reached_interval) == ("interval", 0.0)
    assert len(eager.times["device_ns"]) == len(eager.times["wall_sync_ns"]) == 50


def test_where_no_device_time_was_taken_the_wall_time_decides_when_it_is_enough():
    class NotHeld(FakeTimer):
        def block(self, step, size):
            return BlockTimes({"device_ns": [], "wall_sync_ns": [step() for _ in range(size)]}, MS * size)

    evidence = sampler().take([side(MS, NotHeld())])
    assert (evidence.ended_by, evidence.reached_interval) == ("interval", 0.0)


def test_the_interval_of_a_median_is_that_of_the_sign_test():
    # Conover, Practical Nonparametric Statistics, table A3: ranks of the 95 % interval.
    assert [median_rank(n) for n in (5, 6, 10, 20, 50, 100)] == [None, 1, 2, 6, 18, 40]
    assert relative_half_width([1, 2, 3, 4, 5]) is None
    # Ranks 2 and 9 of the ten numbers: (90 - 20) / 2 over their median, 55.
    assert relative_half_width([100, 30, 20, 10, 40, 50, 60, 70, 80, 90]) == 35 / 55


@given(st.lists(st.integers(1, 10**9), min_size=6, max_size=60))
def test_the_interval_holds_the_median_and_scales_with_it(samples):
    width = relative_half_width(samples)
    assert width >= 0
    assert relative_half_width([1000 * n for n in samples]) == pytest.approx(width)


def test_off_cpu_time_counts_only_against_cpu_bound_steps_and_long_blocks():
    assert not OFF_CPU.may_count(cpu_bound=True)
    assert OFF_CPU.may_count(cpu_bound=False)
    short = Block(wall_ns=MS, stall_fraction=None, thread_over_wall=0.3, process_over_wall=0.3)
    assert short.may_count(cpu_bound=True)


def run_warm_up(calls_ns, **plan):
    calls = iter(calls_ns)
    found = Side(lambda: next(calls), FakeTimer())
    ended_by = warm_up(found, SamplingPlan(**plan))
    return found.warmup_ns, ended_by


def test_warm_up_lasts_for_both_its_calls_and_its_time():
    calls, ended_by = run_warm_up(itertools.repeat(100 * MS))
    assert (len(calls), ended_by) == (10, "steady")
    assert len(run_warm_up(itertools.repeat(20 * MS))[0]) == 25


def test_warm_up_goes_on_while_calls_get_faster():
    falling = itertools.chain((100 * MS - n * 3 * MS for n in range(30)), itertools.repeat(10 * MS))
    assert len(run_warm_up(falling)[0]) > 30


def test_warm_up_ends_even_if_never_steady():
    falling = (int(1e9 * 0.8**n) + 1 for n in itertools.count())
    calls, ended_by = run_warm_up(falling, warmup_max_calls=40)
    assert (len(calls), ended_by) == (40, "calls")
    calls, ended_by = run_warm_up(itertools.repeat(6_000 * MS))
    assert (len(calls), ended_by) == (3, "time")


class Compiler:
    """Takes `latency_ns` for a call, and 5 s more for those by whose number, from 0, it compiles."""

    def __init__(self, compiles, latency_ns=20 * MS):
        self.compiles, self.latency_ns = compiles, latency_ns
        self.calls = self.count = 0

    def step(self):
        self.calls += 1
        if self.compiles(self.calls - 1):
            self.count += 1
            return 5_000 * MS + self.latency_ns
        return self.latency_ns

    def side(self):
        return Side(self.step, FakeTimer(), compilations=lambda: self.count)


def test_warm_up_goes_on_while_the_compiler_runs_whose_time_does_not_count():
    found = Compiler(lambda call: call < 8).side()
    assert warm_up(found, SamplingPlan()) == "steady"
    assert len(found.warmup_ns) == 8 + 25
    assert found.latency_ns() == 20 * MS
    assert until_steady(3_000 * MS, found) == (9, 3_000 * MS + 8 * 5_020 * MS)


def test_every_compiling_call_costs_wherever_it_comes():
    found = Compiler(lambda call: call in (5, 21, 40)).side()
    assert warm_up(found, SamplingPlan()) == "steady"
    # The first call, with it all up to the last slow one of the first ten, and two by themselves.
    assert until_steady(MS, found) == (1 + 6 + 2, MS + 5 * 20 * MS + 3 * 5_020 * MS)


class Countdown(Deadline):
    """Has `looks` looks left."""

    def __init__(self, looks):
        super().__init__()
        self.looks = looks

    def leaves(self, needed_ns):
        self.looks -= 1
        return self.looks > 0


@pytest.mark.parametrize("compiles", [lambda _: True, lambda call: call % 2 == 1, lambda call: call % 3 == 2])
def test_what_compiles_until_the_deadline_is_not_steady(compiles):
    found = Compiler(compiles).side()
    with pytest.raises(NotSteadyError, match="of 30 calls"):
        warm_up(found, SamplingPlan(), Countdown(30))


def test_a_slow_step_that_compiled_once_is_measured_though_the_deadline_is_near():
    assert warm_up(Compiler(lambda call: call == 0).side(), SamplingPlan(), Countdown(4)) == "deadline"
    quiet = Compiler(lambda _: False, 6_000 * MS).side()
    assert warm_up(quiet, SamplingPlan(), Countdown(1)) == "deadline"
    assert quiet.warmup_ns == [6_000 * MS]


def test_a_deadline_keeps_a_tenth_of_the_time_for_what_follows():
    now = iter([0, 80, 89, 89])
    deadline = Deadline(100, clock=lambda: next(now))
    assert deadline.leaves(5)
    assert not deadline.leaves(5)
    assert deadline.leaves(0.5)


def test_samples_during_which_the_compiler_ran_are_no_samples():
    compiler = Compiler(lambda call: call == 60)
    eager, compiled = side(2 * MS), compiler.side()
    warm_up(compiled, SamplingPlan())
    evidence = sampler().take([eager, compiled])
    assert evidence.ended_by == "compiler"
    assert (eager.times, compiled.times) == ({}, {})
    assert warm_up(compiled, SamplingPlan()) == "steady"
    assert sampler().take([eager, compiled]).ended_by == "interval"
    assert set(compiled.times["samples_ns"]) == {20 * MS}
    calls, _ = until_steady(MS, compiled)
    assert calls == 2


def test_sampling_ends_when_the_deadline_is_near():
    eager, compiled = side(2 * MS), side(MS)
    evidence = Sampler(
        SamplingPlan(),
        cpu_bound=True,
        watch=FakeWatch(itertools.repeat(CALM)),
        canary=lambda: 1,
        deadline=Countdown(2),
    ).take([eager, compiled])
    assert evidence.ended_by == "deadline"
    assert len(eager.times["samples_ns"]) == len(compiled.times["samples_ns"]) == 10


def of_calls(warmup_ns):
    return Side(lambda: 10, FakeTimer(), warmup_ns=warmup_ns)


def test_calls_until_steady_include_late_recording_and_no_late_spike():
    steady = [10] * 30
    assert until_steady(9_000, of_calls(steady)) == (1, 9_000)
    assert until_steady(9_000, of_calls([500, 400, *steady])) == (3, 9_900)
    # A recompilation at the fourth call, with fast ones before it.
    assert until_steady(9_000, of_calls([10, 10, 3_000, *steady])) == (4, 12_020)
    assert until_steady(9_000, of_calls([*steady, 5_000, *steady])) == (1, 9_000)


def test_calls_until_steady_of_an_eager_step_that_is_steady_at_once():
    assert until_steady(10, of_calls([10] * 10)) == (1, 10)
