"""Mode choice against hand-computed crossings and against trying every strategy at every number of steps."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilewatch.db.errors import UnitError
from compilewatch.db.metrics.break_even import Never, steps_to_break_even
from compilewatch.db.metrics.eligibility import nanoseconds
from compilewatch.db.metrics.mode_choice import (
    ModeOption,
    StepRange,
    best_option,
    lower_envelope,
    shown_envelope,
)


def option(name: str, cost: int, latency: int) -> ModeOption:
    return ModeOption(name, nanoseconds(cost), nanoseconds(latency))


MODES = [option("eager", 0, 10), option("default", 60, 6), option("max-autotune", 200, 4)]


def test_the_envelope_by_hand() -> None:
    # default: 60 / (10 - 6) = 15 steps; max-autotune against default: 140 / (6 - 4) = 70 steps
    assert lower_envelope(MODES) == (
        StepRange("eager", 1, 14, nanoseconds(10)),
        StepRange("default", 15, 69, nanoseconds(150)),
        StepRange("max-autotune", 70, None, nanoseconds(480)),
    )


def test_strategies_that_are_not_told_apart_have_no_crossing() -> None:
    def near(mode: ModeOption, low: int, high: int) -> ModeOption:
        ends = (nanoseconds(low), nanoseconds(high))
        return replace(mode, latency_interval_ns=ends, eager_latency_ns=nanoseconds(10))

    eager, default, tuned = MODES
    apart = [eager, near(default, 5, 7), near(tuned, 3, 4)]
    assert shown_envelope(apart) == lower_envelope(apart)
    alike = [eager, near(default, 5, 7), near(tuned, 3, 5)]
    assert [(each.strategy, each.last_steps) for each in shown_envelope(alike)] == [
        ("eager", 14),
        ("default", None),
    ]
    # max-autotune is set against eager then: 200 / (10 - 4) = 33.3 steps
    unsure = [eager, replace(alike[1], repays=False), alike[2]]
    assert [(each.strategy, each.first_steps) for each in shown_envelope(unsure)] == [
        ("eager", 1),
        ("max-autotune", 34),
    ]


def test_half_a_nanosecond_a_step_is_a_saving() -> None:
    eager = ModeOption("eager", nanoseconds(0), nanoseconds(10.5))
    assert [s.first_steps for s in lower_envelope([eager, option("default", 100, 10)])] == [1, 200]


def test_a_strategy_that_is_never_best_is_on_no_segment() -> None:
    slow = option("reduce-overhead", 100, 7)
    assert {segment.strategy for segment in lower_envelope([*MODES, slow])} == {
        "eager",
        "default",
        "max-autotune",
    }


def test_restarts_pay_the_cost_again() -> None:
    assert [s.first_steps for s in lower_envelope(MODES, restarts=9)] == [1, 15, 70]
    assert MODES[1].total_ns(4, 9) == nanoseconds(600 + 240)


_options = st.lists(
    st.builds(
        option,
        st.text("abc", min_size=1, max_size=2),
        st.integers(-50, 400),
        st.integers(1, 15),
    ),
    min_size=1,
    max_size=6,
)


@given(_options, st.integers(0, 5))
def test_the_envelope_is_the_cheapest_at_every_number_of_steps(
    options: list[ModeOption], restarts: int
) -> None:
    segments = lower_envelope(options, restarts)
    assert segments[0].first_steps == 1
    assert segments[-1].last_steps is None
    for earlier, later in itertools.pairwise(segments):
        assert earlier.last_steps == later.first_steps - 1
    # totals are straight lines: cheapest at both ends of a segment is cheapest all along it
    edges = {segment.first_steps + offset for segment in segments for offset in (-1, 0, 1)}
    for steps in {1, 2, 3, 10, 1000, *edges} - {0}:
        totals = [option.total_ns(steps, restarts) for option in options]
        lowest = min(total for total in totals)
        segment = next(s for s in segments if s.last_steps is None or steps <= s.last_steps)
        named = [
            total
            for option, total in zip(options, totals, strict=True)
            if option.strategy == segment.strategy
        ]
        assert lowest in named
        assert best_option(options, steps, restarts).total_ns(steps, restarts) == lowest
        if steps == segment.first_steps:
            assert segment.total_at_first_ns == lowest


@given(_options)
def test_order_changes_no_crossing(options: list[ModeOption]) -> None:
    there, back = lower_envelope(options), lower_envelope(options[::-1])
    assert [(s.first_steps, s.total_at_first_ns) for s in there] == [
        (s.first_steps, s.total_at_first_ns) for s in back
    ]


@given(st.integers(-100, 500), st.integers(1, 20), st.integers(1, 20))
def test_the_takeover_from_eager_is_at_break_even(cost: int, compiled: int, eager: int) -> None:
    segments = lower_envelope([option("eager", 0, eager), option("default", cost, compiled)])
    steps = steps_to_break_even(cost, compiled, eager)
    if isinstance(steps, Never):
        assert segments[-1].strategy == "eager"
    elif compiled < eager:
        takeover = next(segment for segment in segments if segment.strategy == "default")
        assert takeover.first_steps == steps


def test_what_cannot_be_chosen_is_refused() -> None:
    for options, steps, restarts in (
        ([], 1, 0),
        (MODES, 0, 0),
        (MODES, 1, -1),
        ([option("a", 1, 0)], 1, 0),
    ):
        with pytest.raises(UnitError):
            best_option(options, steps, restarts)
