"""Phases add up to the call, whatever nests, fails or is left out; with a clock the test moves."""

from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from compilewatch.runner.worker.cold_start import PHASES, PhaseClock, from_time_spent, with_remainder


class Clock:
    def __init__(self):
        self.now = 0

    def __call__(self):
        return self.now


def play(events):
    """("+name" | "-name", nanoseconds before it) in order -> time spent by phase."""
    clock = Clock()
    phases = PhaseClock(clock)
    for event, before in events:
        clock.now += before
        (phases.begin if event[0] == "+" else phases.end)(event[1:])
    return phases.spent_ns, clock.now


def test_each_instant_belongs_to_the_innermost_phase():
    spent, total = play(
        [
            ("+entire_frame_compile", 5),
            ("+backend_compile", 100),
            ("+inductor_compile", 20),
            ("+GraphLowering.run", 3),
            ("-GraphLowering.run", 40),
            ("+async_compile.wait", 7),
            ("-async_compile.wait", 1000),
            ("-inductor_compile", 2),
            ("-backend_compile", 4),
            ("-entire_frame_compile", 6),
        ]
    )
    assert spent == {"dynamo": 106, "aot_autograd": 24, "inductor": 52, "kernel_compile": 1000}
    phases = with_remainder(spent, total + 13)
    assert phases["other"] == 5 + 13
    assert phases["autotune"] is None
    assert sum(value for value in phases.values() if value is not None) == total + 13


def test_a_backward_is_one_phase_whole():
    spent, _ = play(
        [
            ("+entire_backward_compile", 0),
            ("+inductor_compile", 10),
            ("+isa_probe", 5),
            ("-isa_probe", 50),
            ("-inductor_compile", 5),
            ("-entire_backward_compile", 10),
        ]
    )
    assert spent == {"backward": 80}


def test_an_exception_that_leaves_regions_open_loses_no_time():
    spent, total = play(
        [
            ("+entire_frame_compile", 0),
            ("+backend_compile", 10),
            ("+inductor_compile", 10),
            ("-entire_frame_compile", 10),
            ("+entire_frame_compile", 10),
            ("-entire_frame_compile", 10),
        ]
    )
    assert sum(spent.values()) == total - 10
    assert spent["dynamo"] == 20


def test_other_threads_do_not_count_unless_they_compile_a_backward():
    clock = Clock()
    phases = PhaseClock(clock)

    def elsewhere(event):
        def work():
            phases.begin(event)
            clock.now += 100
            phases.end(event)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    elsewhere("compile_file")
    assert phases.spent_ns == {}
    elsewhere("entire_backward_compile")
    assert phases.spent_ns == {"backward": 100}


NAMES = st.sampled_from(
    ["entire_frame_compile", "backend_compile", "inductor_compile", "isa_probe", "unknown", "cudagraphify"]
)


@given(st.lists(st.tuples(st.sampled_from("+-"), NAMES, st.integers(0, 10**9)), max_size=40))
def test_phases_always_add_up(events):
    spent, total = play([(sign + name, before) for sign, name, before in events])
    phases = with_remainder(spent, total)
    assert set(phases) == {*PHASES, "other"}
    assert sum(value for value in phases.values() if value is not None) == total
    assert all(value is None or value >= 0 for value in phases.values())


def test_cumulative_times_are_the_fallback():
    spent = {"entire_frame_compile": 100, "backend_compile": 70, "inductor_compile": 50}
    phases = from_time_spent(spent, wait_ns=20, first_call_ns=130)
    assert phases["dynamo"] == 30
    assert phases["aot_autograd"] == 20
    assert phases["inductor"] == 30
    assert phases["kernel_compile"] == 20
    assert phases["other"] == 30


def test_cumulative_times_with_a_backward_never_go_negative():
    """`inductor_compile` includes the backward's and `backend_compile` does not: the difference is -3.3 s."""
    spent = {
        "entire_frame_compile": 4000,
        "backend_compile": 3500,
        "inductor_compile": 6800,
        "entire_backward_compile": 5500,
    }
    phases = from_time_spent(spent, wait_ns=None, first_call_ns=10_000)
    assert phases["dynamo"] == 500
    assert phases["backward"] == 5500
    assert phases["aot_autograd"] is None
    assert phases["inductor"] is None
    assert phases["other"] == 4000
