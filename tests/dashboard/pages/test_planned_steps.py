"""The rule at the steps that a reader plans: its label stands within the chart, wherever the rule does."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dashboard.charts import break_even
from dashboard.parts.break_even import right_of_the_edge
from db.metrics.mode_choice import ModeOption
from db.metrics.quantities import nanoseconds


def _option(strategy: str, compile_s: int, latency_ms: int) -> ModeOption:
    cost, latency = Fraction(compile_s * 10**9), Fraction(latency_ms * 10**6)
    return ModeOption(strategy, nanoseconds(cost), nanoseconds(latency))


@pytest.mark.parametrize(
    ("steps", "log", "label", "side"),
    [
        (100, False, "100 steps", "right"),
        (3000, False, "3,000 steps", "left"),
        (1, True, "1 step", "right"),
        (10, True, "10 steps", "right"),
        (3000, True, "3,000 steps", "left"),
    ],
)
def test_the_label_stands_on_the_side_with_more_room(steps: int, log: bool, label: str, side: str) -> None:
    """4 s are paid back after 2,000 steps of 2 ms: the axis ends at 3,600, a logarithmic one at 6,000."""
    options = [_option("eager", 0, 10), _option("default", 4, 8)]
    found = break_even.curves(options, steps=steps, restarts=0, log=log)
    assert found.frames["wanted"].to_dict("records") == [{"steps": steps, "label": label, "side": side}]


def test_steps_beyond_the_axis_have_no_rule() -> None:
    options = [_option("eager", 0, 10), _option("default", 4, 8)]
    found = break_even.curves(options, steps=10**6, restarts=0, log=False)
    assert found.frames["wanted"].empty


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_a_label_is_drawn_away_from_its_rule_on_either_side(scale: str) -> None:
    layers = break_even.spec(("eager", "default"), "s", scale, 3600, (1.0, 9.0))["layer"]
    labels = [
        layer for layer in layers if layer["data"] == {"name": "wanted"} and layer["mark"]["type"] == "text"
    ]
    placed = {
        next(step["filter"] for step in layer["transform"] if "filter" in step): (
            layer["mark"]["align"],
            layer["mark"]["dx"] > 0,
        )
        for layer in labels
    }
    assert placed == {"datum.side == 'right'": ("left", True), "datum.side == 'left'": ("right", False)}


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        # 4 s are paid back after 2,000 steps of 2 ms, 60 s after 60,000 steps of 1 ms
        (
            5_000,
            [
                "Crossing beyond the right edge: max-autotune. The log scale shows it.",
                "5,000 steps lie beyond the right edge; every crossing with eager that is drawn is passed by "
                "then, not yet that of max-autotune (60,000 steps).",
            ],
        ),
        (
            70_000,
            [
                "Crossing beyond the right edge: max-autotune. The log scale shows it.",
                "70,000 steps lie beyond the right edge; every crossing with eager is passed by then.",
            ],
        ),
        (100, ["Crossing beyond the right edge: max-autotune. The log scale shows it."]),
    ],
)
def test_crossings_right_of_the_edge_are_passed_only_by_longer_plans(steps: int, said: list[str]) -> None:
    options = [_option("eager", 0, 10), _option("default", 4, 8), _option("max-autotune", 60, 9)]
    found = break_even.curves(options, steps=steps, restarts=0, log=False)
    assert right_of_the_edge(found, steps) == said


def test_plans_within_the_axis_say_nothing_of_its_edge() -> None:
    options = [_option("eager", 0, 10), _option("default", 4, 8)]
    found = break_even.curves(options, steps=100, restarts=0, log=False)
    assert right_of_the_edge(found, 100) == []
