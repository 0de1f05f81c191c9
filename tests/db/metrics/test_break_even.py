"""Break-even against hand-computed numbers and against counting step by step."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compilewatch.db.errors import UnitError
from compilewatch.db.metrics.break_even import (
    BEYOND_COUNTING,
    NOT_FASTER,
    Never,
    price,
    steps_to_break_even,
)
from compilewatch.db.metrics.eligibility import nanoseconds
from compilewatch.db.metrics.trial_times import compile_cost_ns
from compilewatch.db.units import steps as steps_text


@pytest.mark.parametrize(
    ("cost", "compiled", "eager", "steps"),
    [
        (9, 1, 2, 9),  # 9 + 9 x 1 = 18 = 9 x 2
        (10, 3, 6, 4),  # 10 + 3 x 3 = 19 > 18; 10 + 4 x 3 = 22 <= 24
        (38_095_619_814.5, 8_126_728.5, 11_826_728.5, 10_297),  # / 3,700,000 = 10,296.1
        (0, 1, 2, 1),
        (-5, 1, 2, 1),
        (0, 2, 2, 1),
        (-5, 2, 2, 1),
        (1, 2, 2, NOT_FASTER),
        (1, 3, 2, NOT_FASTER),
        (0, 3, 2, NOT_FASTER),
        (-5, 3, 2, NOT_FASTER),  # cheaper for five steps only
        (2**62 + 1, 1, 2, 2**62 + 1),  # as a float it would lose the 1
        (2**63 - 1, 1, 1.5, BEYOND_COUNTING),
    ],
)
def test_break_even_by_hand(cost: float, compiled: float, eager: float, steps: object) -> None:
    assert steps_to_break_even(cost, compiled, eager) == steps


def test_two_compiled_calls_count_as_cost_beyond_two_steady_ones() -> None:
    # calls of 10 and 1 until steady, steady 1, eager 2: cost 9, repaid after 9 steps (adding the steady calls
    # instead of taking them off would say 13)
    calls = pd.DataFrame({"until": [11, 11], "calls": [2, None], "steady": [1.0, 1.0]}).convert_dtypes()
    cost, unknown = compile_cost_ns(calls["until"], calls["calls"], calls["steady"])
    assert cost == 9
    assert unknown is pd.NA
    assert steps_to_break_even(cost, 1, 2) == 9


@given(st.integers(-300, 300), st.integers(1, 40), st.integers(1, 40))
@example(0, 5, 5)
def test_it_is_the_first_step_from_which_the_compiled_total_is_not_above_eagers(
    cost: int, compiled: int, eager: int
) -> None:
    horizon = 700
    not_above = [cost + n * compiled <= n * eager for n in range(1, horizon + 1)]
    steps = steps_to_break_even(cost, compiled, eager)
    if isinstance(steps, Never):
        assert not not_above[-1]
    else:
        assert steps == not_above.index(True) + 1
        assert all(not_above[steps - 1 :])


@given(
    st.floats(1e-3, 1e18),
    st.floats(1e-3, 1e12),
    st.floats(1e-3, 1e12),
)
def test_it_is_exact_for_any_floats(cost: float, compiled: float, eager: float) -> None:
    steps = steps_to_break_even(cost, compiled, eager)
    saved = Fraction(eager) - Fraction(compiled)
    if isinstance(steps, Never):
        assert saved <= 0 or Fraction(cost) / saved > 2**63 - 1
    else:
        assert Fraction(cost) <= steps * saved
        assert steps == 1 or Fraction(cost) > (steps - 1) * saved


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 0, -1])
def test_a_latency_must_be_positive_and_finite(bad: float) -> None:
    for latencies in ((bad, 2), (2, bad)):
        with pytest.raises(UnitError):
            steps_to_break_even(1, *latencies)


def test_an_unknown_cost_is_refused() -> None:
    with pytest.raises(UnitError):
        steps_to_break_even(float("nan"), 1, 2)


def test_never_is_no_number_and_says_why() -> None:
    assert steps_text(NOT_FASTER) == "never"
    assert NOT_FASTER.reason == "its latency is not below eager's"
    with pytest.raises(TypeError):
        NOT_FASTER + 1  # type: ignore[operator]
    with pytest.raises(TypeError):
        float(NOT_FASTER)  # type: ignore[arg-type]


def test_a_time_has_a_price() -> None:
    # at 36 an hour, 1 cent a second
    assert price(nanoseconds(200 * 10**9), Decimal(36)) == Decimal("2.00")


def test_what_is_no_price_is_refused() -> None:
    for amount in (Decimal(-1), Decimal("NaN")):
        with pytest.raises(UnitError):
            price(nanoseconds(5), amount)


def test_a_part_of_a_nanosecond_has_its_part_of_the_price() -> None:
    assert price(nanoseconds(0.5), Decimal(7_200_000_000_000)) == 1
