"""The break-even columns of many cases: what is unknown and why, and the interval in whole steps."""

from __future__ import annotations

import math

import numpy as np
import pytest

from compilewatch.db.metrics.break_even import repayment_columns
from compilewatch.db.metrics.groups import Quotients

NAN, INF = math.nan, math.inf


def columns(
    cost: float = 9.0,
    compiled: float = 1.0,
    control: float = 2.0,
    *,
    eager: bool = False,
    ends: tuple[float, float] = (NAN, NAN),
) -> tuple[object, ...]:
    found = repayment_columns(
        np.array([cost]),
        np.array([compiled]),
        np.array([control]),
        np.array([control]) / np.array([compiled]),
        eager=np.array([eager]),
        ends=Quotients(np.array([ends[0]]), np.array([ends[1]])),
    )
    assert list(found) == [
        "break_even",
        "break_even_reason",
        "break_even_steps",
        "break_even_interval",
        "break_even_low",
        "break_even_high",
        "break_even_time_ns",
    ]
    return tuple(value for (value,) in found.values())


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"eager": True, "cost": NAN}, "eager is the reference"),
        ({"compiled": NAN, "control": NAN, "cost": NAN}, "no trial with a latency"),
        ({"control": NAN, "cost": NAN}, "no eager latency to compare with"),
        ({"cost": NAN}, "no compile cost was measured"),
    ],
)
def test_what_is_unknown_says_why(given: dict[str, float], reason: str) -> None:
    assert columns(**given) == ("unknown", reason, None, "none", None, None, None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ends", "kind", "low", "high"),
    [
        ((NAN, NAN), "none", None, None),
        ((7.2, NAN), "none", None, None),
        ((NAN, 12.0), "none", None, None),
        ((7.2, 12.0), "bounded", 8, 12),
        ((-3.0, 12.1), "bounded", 1, 13),
        ((9.5, 12.1), "bounded", 9, 13),  # widened to hold the 9 steps
        ((1.0, 2.0), "bounded", 1, 9),
        ((7.2, INF), "open", 8, None),
        ((INF, INF), "open", 9, None),
        ((7.2, 2.0**63), "open", 8, None),
        ((7.2, 2.0**62), "bounded", 8, 2**62),
    ],
)
def test_an_interval_in_whole_steps_holds_the_estimate(
    ends: tuple[float, float], kind: str, low: int | None, high: int | None
) -> None:
    assert columns(ends=ends) == ("steps", None, 9, kind, low, high, 18.0)


def test_never_has_its_reason_and_no_time() -> None:
    never = ("never", "it is not faster than eager (0.667x)", None)
    assert columns(compiled=3.0, ends=(INF, INF)) == (*never, "never", None, None, None)
    assert columns(compiled=3.0, ends=(4.0, INF)) == (*never, "open", 4, None, None)
    assert columns(compiled=3.0, ends=(4.0, 6.0)) == (*never, "open", 4, None, None)


def test_a_saving_too_small_to_repay_is_not_called_slower() -> None:
    _, reason, *_ = columns(cost=1e30)
    assert reason == "the saving per step is too small to repay the compile cost in 2^63 steps"


def test_each_case_has_its_own_entry() -> None:
    found = repayment_columns(
        np.array([9.0, NAN]),
        np.array([1.0, 1.0]),
        np.array([2.0, 2.0]),
        np.array([2.0, 2.0]),
        eager=np.array([False, True]),
        ends=Quotients(np.array([NAN, NAN]), np.array([NAN, NAN])),
    )
    assert found["break_even"] == ["steps", "unknown"]
    assert found["break_even_time_ns"] == [18.0, None]
