"""Whose latency moved, and what class of cause follows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from compilewatch.db.judge.decide import cause_of, machine_explains
from compilewatch.db.judge.who_moved import Moves
from compilewatch.db.records.vocabulary import CauseClass, Metric, WhoMoved

COMPILER, EAGER, MACHINE = CauseClass.COMPILER, CauseClass.EAGER, CauseClass.MACHINE
CODE = CauseClass.CODE
TIMED = (Metric.LATENCY, Metric.SPEEDUP, Metric.COMPILE_COST, Metric.BREAK_EVEN)


def cause(
    metric: Metric,
    who: WhoMoved | None = WhoMoved.COMPILED,
    *,
    eager_case: bool = False,
    machine: bool = False,
    same_build: bool = False,
    same_code: bool | None = None,
) -> CauseClass | None:
    return cause_of(
        metric, who, eager_case=eager_case, machine=machine, same_build=same_build, same_code=same_code
    )


@pytest.mark.parametrize("metric", TIMED)
def test_of_times_the_machine_is_the_cause_where_its_canary_explains_them(metric: Metric):
    assert cause(metric, machine=True) is MACHINE
    assert cause(metric, machine=True, eager_case=True) is MACHINE
    assert cause(metric, machine=False) is not MACHINE


@pytest.mark.parametrize("metric", TIMED)
def test_the_same_build_again_is_neither_the_machine_nor_the_compiler(metric: Metric):
    assert cause(metric, same_build=True) is None
    assert cause(metric, same_build=True, eager_case=True) is EAGER


@pytest.mark.parametrize("metric", TIMED)
def test_of_the_same_build_it_is_ones_own_code_where_that_changed_and_else_the_machine(metric: Metric):
    assert cause(metric, same_build=True, same_code=False) is CODE
    assert cause(metric, same_build=True, same_code=False, eager_case=True) is CODE
    assert cause(metric, same_build=True, same_code=False, machine=True) is MACHINE
    assert cause(metric, same_build=True, same_code=True) is MACHINE
    assert cause(metric, same_code=True) is cause(metric)
    assert cause(Metric.PEAK_MEMORY, same_build=True, same_code=False) is CODE


def test_peak_memory_is_never_the_machines():
    assert cause(Metric.PEAK_MEMORY, machine=True) is COMPILER


@pytest.mark.parametrize(
    ("metric", "who", "expected"),
    [
        (Metric.LATENCY, WhoMoved.COMPILED, COMPILER),
        (Metric.LATENCY, WhoMoved.BOTH, EAGER),
        (Metric.LATENCY, WhoMoved.UNCLEAR, COMPILER),
        (Metric.SPEEDUP, WhoMoved.COMPILED, COMPILER),
        (Metric.SPEEDUP, WhoMoved.BOTH, COMPILER),
        (Metric.SPEEDUP, WhoMoved.EAGER, EAGER),
        (Metric.SPEEDUP, WhoMoved.UNCLEAR, None),
        (Metric.BREAK_EVEN, WhoMoved.EAGER, EAGER),
        (Metric.BREAK_EVEN, None, None),
        (Metric.COMPILE_COST, WhoMoved.EAGER, COMPILER),
        (Metric.COMPILE_COST, None, COMPILER),
    ],
)
def test_the_cause_follows_from_who_moved(metric: Metric, who: WhoMoved | None, expected: CauseClass | None):
    assert cause(metric, who) is expected
    assert cause(metric, who, eager_case=True) is EAGER


def test_a_canary_explains_a_change_as_far_as_it_moved_itself():
    canaries = (0.06, 0.065, 0.1, 0.2, -0.2, 0.0)
    explains = [machine_explains(0.1, canary, 0.02) for canary in canaries]
    assert explains == [False, True, True, True, False, False]
    assert machine_explains(-0.1, -0.09, 0.02)
    assert not machine_explains(0.0, 0.05, 0.02)
    assert not machine_explains(0.1, 0.03, 0.5), "however little is known of the change"
    assert not machine_explains(math.log(2.51), math.log(1.22), math.log(1.05)), "+22 % explains no +151 %"


def test_who_moved_is_told_case_by_case():
    parts = Moves(
        eager=np.array([0.1, 0.1, 0.1, 0.1, math.nan, 0.1]),
        compiled=np.array([0.1, 0.1, 0.1, 0.1, 0.1, math.nan]),
        eager_moved=np.array([True, True, False, False, True, True]),
        compiled_moved=np.array([True, False, True, False, True, True]),
    )
    who = parts.who
    assert who == [WhoMoved.BOTH, WhoMoved.EAGER, WhoMoved.COMPILED, WhoMoved.UNCLEAR, None, None]
