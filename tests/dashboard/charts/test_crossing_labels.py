"""Labels of crossings as they are drawn: within the chart and off the rule, on a desk and on a phone."""

from __future__ import annotations

import re

import pytest
import vl_convert

from dashboard.charts import break_even
from db.metrics.mode_choice import ModeOption
from tests.dashboard.pages.test_planned_steps import _option

DESK_PX, PHONE_PX = 1000, 320
# Pays off after 500 steps, after 5,000 and after 8,000.
OPTIONS = [_option("eager", 0, 10), _option("warm", 1, 8), _option("cold", 10, 8), _option("dynamic", 16, 8)]


def sides(options: list[ModeOption], *, steps: int, width: int, log: bool = False) -> dict[str, str]:
    """Of each label the side of its mark that it is drawn on."""
    found = break_even.curves(options, steps=steps, restarts=0, log=log)
    names = tuple(option.strategy for option in options)
    spec = break_even.spec(names, found.unit, "log" if log else "linear", found.last_step, (1.0, 9.0))
    datasets = {name: frame.to_dict("records") for name, frame in found.frames.items()}
    svg = vl_convert.vegalite_to_svg({**spec, "width": width, "datasets": datasets})
    drawn = re.findall(r'<text text-anchor="(start|end)"[^>]*font-weight="600"[^>]*>([\d,]+)</text>', svg)
    return {label: {"start": "right", "end": "left"}[anchor] for anchor, label in drawn}


@pytest.mark.parametrize(
    ("steps", "width", "side"),
    [
        (9_000, DESK_PX, "left"),
        (9_000, PHONE_PX, "right"),  # its mark is 9 px from the axis
        (300, DESK_PX, "right"),  # the rule would go through it
        (700, DESK_PX, "left"),  # to the right it would
        (700, PHONE_PX, "right"),  # the rule is nearer to the mark than its label
    ],
)
def test_the_first_label_stands_where_there_is_room(steps: int, width: int, side: str) -> None:
    assert sides(OPTIONS, steps=steps, width=width) == {"500": side, "5,000": "right", "8,000": "left"}


def test_the_last_label_does_not_leave_the_chart() -> None:
    far = [OPTIONS[0], _option("slow", 400, 8)]
    assert sides(far, steps=10, width=DESK_PX, log=True) == {"200,000": "right"}
    assert sides(far, steps=10, width=PHONE_PX, log=True) == {"200,000": "left"}


def test_a_label_meets_the_rule_rather_than_that_of_its_neighbour() -> None:
    close = [*OPTIONS[:1], _option("cold", 16, 8), _option("warm", 18, 8)]
    for steps in (1, 7_000):
        assert sides(close, steps=steps, width=PHONE_PX) == {"8,000": "left", "9,000": "right"}


def test_two_labels_beside_the_edge_stay_on_opposite_sides() -> None:
    pairs = [OPTIONS[0], _option("warm", 15, 8), _option("cold", 105, 8), _option("dynamic", 127, 8)]
    drawn = sides(pairs, steps=10_000, width=PHONE_PX, log=True)
    assert (drawn["52,500"], drawn["63,500"]) == ("right", "left")
