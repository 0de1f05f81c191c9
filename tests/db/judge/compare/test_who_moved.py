"""Whose latency moved, and what class of cause follows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from db.judge.compare.who_moved import Parts, cause_of, machine_explains
from db.judge.policy import Policy
from db.judge.vocabulary import CauseClass, Metric, WhoMoved

POLICY = Policy()
COMPILER, EAGER, MACHINE = CauseClass.COMPILER, CauseClass.EAGER, CauseClass.MACHINE
TIMED = (Metric.LATENCY, Metric.SPEEDUP, Metric.COMPILE_COST, Metric.BREAK_EVEN)


def cause(
    metric: Metric,
    who: WhoMoved | None = WhoMoved.COMPILED,
    *,
    slowdown: float = 0.1,
    eager_case: bool = False,
    canary: float | None = None,
    interleaved: bool = False,
    same_build: bool = False,
) -> CauseClass | None:
    return cause_of(
        metric,
        slowdown,
        who,
        eager_case=eager_case,
        canary=canary,
        interleaved=interleaved,
        same_build=same_build,
        policy=POLICY,
    )


@pytest.mark.parametrize("metric", TIMED)
def test_of_times_the_machine_is_the_cause_where_its_canary_moved_or_only_it_is_left(metric: Metric):
    assert cause(metric, canary=0.06) is MACHINE
    assert cause(metric, canary=0.06, eager_case=True) is MACHINE
    assert cause(metric, canary=0.06, interleaved=True) is not MACHINE
    assert cause(metric, canary=0.04) is not MACHINE
    assert cause(metric, same_build=True) is MACHINE
    assert cause(metric, same_build=True, interleaved=True) is MACHINE


def test_peak_memory_is_never_the_machines():
    assert cause(Metric.PEAK_MEMORY, canary=0.06, same_build=True) is COMPILER


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


def test_a_canary_explains_half_or_more_of_a_change_in_its_own_direction():
    explains = [machine_explains(0.1, canary, POLICY) for canary in (0.04, 0.05, 0.2, -0.2, 0.0, None)]
    assert explains == [False, True, True, False, False, False]
    assert machine_explains(-0.1, -0.05, POLICY)
    assert not machine_explains(0.0, 0.05, POLICY)


def test_who_moved_is_told_case_by_case():
    parts = Parts(
        eager=np.array([0.1, 0.1, 0.1, 0.1, math.nan, 0.1]),
        compiled=np.array([0.1, 0.1, 0.1, 0.1, 0.1, math.nan]),
        eager_moved=np.array([True, True, False, False, True, True]),
        compiled_moved=np.array([True, False, True, False, True, True]),
    )
    who = parts.who
    assert who == [WhoMoved.BOTH, WhoMoved.EAGER, WhoMoved.COMPILED, WhoMoved.UNCLEAR, None, None]
