"""Warm-up and sampling rules, against a timer and a host that the test controls."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.worker.evidence import Block
from runner.worker.sampling import PAIRS, Sampler, SamplingPlan, Side, until_steady, warm_up

MS = 1_000_000
CALM = Block(wall_ns=50 * MS, stall_fraction=0.0, thread_over_wall=1.0, process_over_wall=1.0)
STALLED = Block(wall_ns=50 * MS, stall_fraction=0.4, thread_over_wall=1.0, process_over_wall=1.0)
OFF_CPU = Block(wall_ns=50 * MS, stall_fraction=0.0, thread_over_wall=0.5, process_over_wall=0.5)


class FakeTimer:
    """Takes the step's return value for its nanoseconds, and remembers the order of blocks."""

    def __init__(self):
        self.blocks = []

    def time_steps(self, step, count):
        samples = [step() for _ in range(count)]
        self.blocks.append((step, len(samples)))
        return samples

    def once(self, step):
        return step()


class FakeWatch:
    def __init__(self, blocks):
        self.blocks = iter(blocks)

    def begin(self):
        pass

    def end(self):
        return next(self.blocks)


def sampler(timer, blocks=None, **plan):
    return Sampler(
        timer,
        SamplingPlan(**plan),
        cpu_bound=True,
        watch=FakeWatch(itertools.repeat(CALM) if blocks is None else iter(blocks)),
        canary=lambda: 500_000,
    )


def side(latency_ns):
    return Side(lambda: latency_ns, warmup_ns=[latency_ns] * 10)


def test_both_sides_get_the_planned_samples():
    eager, compiled = side(2 * MS), side(MS)
    sampler(FakeTimer()).take([eager, compiled])
    assert eager.samples_ns == [2 * MS] * 50
    assert compiled.samples_ns == [MS] * 50


def test_sides_alternate_often_and_take_turns_in_going_first():
    timer, eager, compiled = FakeTimer(), side(2 * MS), side(MS)
    sampler(timer).take([eager, compiled])
    order = ["e" if step is eager.step else "c" for step, _ in timer.blocks]
    assert order == ["e", "c", "c", "e"] * (PAIRS // 2)
    assert sum(a != b for a, b in itertools.pairwise(order)) >= 10


@given(st.integers(1_000, 10_000 * MS), st.integers(1_000, 10_000 * MS))
def test_no_block_is_longer_than_its_bound(eager_ns, compiled_ns):
    timer, plan = FakeTimer(), {"block_ns": 100 * MS, "max_ns": 1_000 * MS}
    sides = [side(eager_ns), side(compiled_ns)]
    sampler(timer, **plan).take(sides)
    for step, count in timer.blocks:
        assert count == 1 or count * step() <= 100 * MS
    assert all(len(found.samples_ns) >= 5 for found in sides)


def test_time_bounds_a_slow_step_but_not_below_the_minimum():
    eager, compiled = side(4_000 * MS), side(3_000 * MS)
    sampler(FakeTimer(), max_ns=10_000 * MS).take([eager, compiled])
    assert len(eager.samples_ns) == len(compiled.samples_ns) == 5


def test_a_disturbed_round_counts_for_neither_side_and_is_repeated():
    timer, eager, compiled = FakeTimer(), side(MS), side(MS)
    blocks = [CALM, CALM, CALM, STALLED, OFF_CPU, CALM, *itertools.repeat(CALM, 100)]
    evidence = sampler(timer, blocks).take([eager, compiled])
    assert evidence.rejected == 4
    assert len(timer.blocks) == 2 * (PAIRS + 2)
    assert len(eager.samples_ns) == len(compiled.samples_ns) == 50


def test_disturbed_samples_are_kept_out_when_enough_others_are_left():
    values = itertools.count()
    disturbed = Side(lambda: next(values), warmup_ns=[MS] * 10)
    blocks = [CALM if number % 3 else STALLED for number in range(100)]
    evidence = sampler(FakeTimer(), blocks).take([disturbed])
    assert evidence.rejected > 0
    rejected_samples = {n for n in range(500) if (n // 5) % 3 == 0}
    assert not rejected_samples & set(disturbed.samples_ns)
    assert len(disturbed.samples_ns) == 50


def test_on_a_host_that_is_never_calm_all_samples_count_and_the_record_says_so():
    eager, compiled = side(MS), side(MS)
    evidence = sampler(FakeTimer(), itertools.repeat(STALLED)).take([eager, compiled])
    assert len(eager.samples_ns) == len(compiled.samples_ns) == 50
    assert evidence.rejected == len(evidence.blocks) == 4 * PAIRS


def test_off_cpu_time_counts_only_against_cpu_bound_steps_and_long_blocks():
    assert not OFF_CPU.may_count(cpu_bound=True)
    assert OFF_CPU.may_count(cpu_bound=False)
    short = Block(wall_ns=MS, stall_fraction=None, thread_over_wall=0.3, process_over_wall=0.3)
    assert short.may_count(cpu_bound=True)


def run_warm_up(calls_ns, **plan):
    calls = iter(calls_ns)
    found = Side(lambda: next(calls))
    warm_up(found, FakeTimer(), SamplingPlan(**plan))
    return found.warmup_ns


def test_warm_up_lasts_for_both_its_calls_and_its_time():
    assert len(run_warm_up(itertools.repeat(100 * MS))) == 10
    assert len(run_warm_up(itertools.repeat(20 * MS))) == 25


def test_warm_up_goes_on_while_calls_get_faster():
    falling = itertools.chain((100 * MS - n * 3 * MS for n in range(30)), itertools.repeat(10 * MS))
    assert len(run_warm_up(falling)) > 30


def test_warm_up_ends_even_if_never_steady():
    falling = (int(1e9 * 0.8**n) + 1 for n in itertools.count())
    assert len(run_warm_up(falling, warmup_max_calls=40)) == 40
    assert len(run_warm_up(itertools.repeat(6_000 * MS))) == 3


def test_calls_until_steady_include_late_recording_and_no_late_spike():
    steady = [10] * 30
    assert until_steady(9_000, steady) == (1, 9_000)
    assert until_steady(9_000, [500, 400, *steady]) == (3, 9_900)
    # A recompilation at the fourth call, with fast ones before it.
    assert until_steady(9_000, [10, 10, 3_000, *steady]) == (4, 12_020)
    assert until_steady(9_000, [*steady, 5_000, *steady]) == (1, 9_000)


def test_calls_until_steady_of_an_eager_step_that_is_steady_at_once():
    assert until_steady(10, [10] * 10) == (1, 10)


@pytest.mark.parametrize("spec", [{"samples": 7}, {"samples": 7, "unknown": 1}])
def test_a_plan_takes_from_a_specification_what_it_knows(spec):
    assert SamplingPlan.from_spec(spec).samples == 7
