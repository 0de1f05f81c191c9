"""The rule at the steps that a reader plans: its label stands within the chart, wherever the rule does."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dashboard.charts import break_even
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
