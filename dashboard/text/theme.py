"""One palette and one look: Streamlit's theme options, and the colour, dash and shape of every strategy.

The colours are those of Okabe and Ito, "Color Universal Design" (2008), which people with any kind of colour
blindness can tell apart. No colour stands alone: every strategy has its own dash and shape as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from db.records.strategies import sort_key

BLUE = "#0072B2"
VERMILLION = "#D55E00"
GREEN = "#009E73"
PURPLE = "#CC79A7"
ORANGE = "#E69F00"
SKY = "#56B4E9"
GREY = "#8A8F98"

_BASE_COLOURS = {
    "eager": GREY,
    "default": BLUE,
    "reduce-overhead": VERMILLION,
    "max-autotune": GREEN,
    "max-autotune-no-cudagraphs": PURPLE,
}
_FURTHER_COLOURS = (ORANGE, SKY)
_BASE_SHAPES = {
    "eager": "cross",
    "default": "circle",
    "reduce-overhead": "square",
    "max-autotune": "triangle-up",
    "max-autotune-no-cudagraphs": "diamond",
}
_FURTHER_SHAPES = ("triangle-down", "triangle-right", "triangle-left")
_BASE_DASHES: dict[str, list[int]] = {
    "eager": [2, 2],
    "default": [1, 0],
    "reduce-overhead": [8, 3],
    "max-autotune": [10, 3, 2, 3],
    "max-autotune-no-cudagraphs": [4, 2],
}
_VARIANT_DASHES: list[list[int]] = [[5, 2, 1, 2], [3, 4], [12, 4], [1, 3]]
# A variant is told by its first modifier, whatever the base: by its mark, and by its base's colour mixed with
# that share of another.
_VARIANT_TINTS = {
    "dynamic": ("#FFFFFF", 0.42),
    "static": ("#8A8A3C", 0.6),
    "fullgraph": ("#E0C400", 0.6),
    "regional": ("#9B59D0", 0.55),
    "warm": ("#FF5C7A", 0.6),
    "portable": ("#40E0FF", 0.5),
}
_OTHER_TINT = ("#A0714F", 0.6)
_VARIANT_SHAPES = {
    "dynamic": "triangle-up",
    "static": "triangle-down",
    "fullgraph": "square",
    "regional": "triangle-right",
    "warm": "diamond",
    "portable": "triangle-left",
}
_OTHER_VARIANT = "stroke"

PHASE_COLOURS = {
    "interpreter": "#C5D08A",
    "import torch": "#6BAF3A",
    "benchmark harness": "#C2447E",
    "import libraries": "#4CC9CC",
    "import compile stack": "#1E7B84",
    "build model": SKY,
    "eager first call": GREY,
    "dynamo": BLUE,
    "AOTAutograd": PURPLE,
    "inductor": VERMILLION,
    "kernel compile": ORANGE,
    "ISA probe": "#F0E442",
    "autotune": GREEN,
    "backward": "#7B4EA3",
    "CUDA-graph capture": "#3B4CC0",
    "first call": "#7F5539",
    "other": "#C9A58B",
    "unattributed": "#DAD7D2",
}


@dataclass(frozen=True)
class StrategyLook:
    """How a strategy is drawn: `colour` as hex, `dash` as a Vega stroke dash, `shape` as a Vega symbol."""

    colour: str
    dash: list[int]
    shape: str


def ordered(strategies: Iterable[str]) -> list[str]:
    """Strategy names in the order in which every page shows them."""
    return sorted(set(strategies), key=sort_key)


def looks(strategies: Iterable[str]) -> dict[str, StrategyLook]:
    """The look of each strategy. It depends on the name alone, so it is the same on every page.

    A variant (`default+dynamic`) has a tint of its base's colour, and a dash and shape of its own.
    """
    return {name: _look(name) for name in ordered(strategies)}


def _look(name: str) -> StrategyLook:
    base, _, variant = name.partition("+")
    further = sum(base.encode())
    colour = _BASE_COLOURS.get(base) or _FURTHER_COLOURS[further % len(_FURTHER_COLOURS)]
    shape = _BASE_SHAPES.get(base) or _FURTHER_SHAPES[further % len(_FURTHER_SHAPES)]
    dash = _BASE_DASHES.get(base, [6, 2])
    if variant:
        dash = _VARIANT_DASHES[sum(variant.encode()) % len(_VARIANT_DASHES)]
        modifier = variant.partition("+")[0]
        shape = _VARIANT_SHAPES.get(modifier, _OTHER_VARIANT)
        colour = _mixed(colour, *_VARIANT_TINTS.get(modifier, _OTHER_TINT))
    return StrategyLook(colour, dash, shape)


def _mixed(colour: str, tint: str, share: float) -> str:
    """`colour` with a share of `tint`, both as hex."""
    own, other = ([int(each[at : at + 2], 16) for at in (1, 3, 5)] for each in (colour, tint))
    mixed = (round(one * (1 - share) + two * share) for one, two in zip(own, other, strict=True))
    return "#" + "".join(f"{part:02X}" for part in mixed)


# Speedup of a cell, below 1 to above 1, through a neutral grey: blue is faster, vermillion slower.
DIVERGING = [
    "#8C3A00",
    "#B94F00",
    "#D98243",
    "#EDBB94",
    "#F3E6DC",
    "#DCE9F2",
    "#9CC7E3",
    "#4F9BCB",
    "#0072B2",
    "#004B78",
]

_SHARED: dict[str, Any] = {
    "theme.baseRadius": "8px",
    "theme.baseFontSize": 15,
    "theme.headingFontSizes": ["1.9rem", "1.4rem", "1rem", "1rem", "0.95rem", "0.9rem"],
    "theme.headingFontWeights": [700, 650, 600, 600, 600, 600],
    "theme.metricValueFontSize": "1.75rem",
    "theme.metricValueFontWeight": 650,
    "theme.linkUnderline": False,
    "theme.showWidgetBorder": True,
    "theme.showSidebarBorder": True,
    "theme.paddingTop": "1rem",
    "theme.paddingBottom": "3rem",
    "theme.chartDivergingColors": DIVERGING,
}
_LIGHT: dict[str, Any] = {
    # Marks that name no colour take the first one: text and rules in charts are drawn in ink.
    "chartCategoricalColors": ["#3A4654", BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY],
    "primaryColor": "#0067A5",
    "linkColor": "#0067A5",
    "backgroundColor": "#FFFFFF",
    "secondaryBackgroundColor": "#F3F5F8",
    # Captions are drawn in 60 % of it: this dark, they still have the contrast of 4.5 that WCAG AA asks for.
    "textColor": "#0F161F",
    "borderColor": "#D9DEE5",
    "codeTextColor": "#22303F",
    "codeBackgroundColor": "#F3F5F8",
    "dataframeHeaderBackgroundColor": "#F3F5F8",
    "dataframeBorderColor": "#E3E7EC",
    "redColor": "#B93A00",
    "greenColor": "#00795A",
    "sidebar.backgroundColor": "#F7F8FA",
    "sidebar.secondaryBackgroundColor": "#FFFFFF",
}
_DARK: dict[str, Any] = {
    "chartCategoricalColors": ["#B9C3CF", BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY],
    "primaryColor": "#2F8FD0",
    "linkColor": "#6FBDF0",
    "backgroundColor": "#10151C",
    "secondaryBackgroundColor": "#1A212B",
    "textColor": "#E8EDF3",
    "borderColor": "#303A47",
    "codeTextColor": "#D3DCE6",
    "codeBackgroundColor": "#1A212B",
    "dataframeHeaderBackgroundColor": "#1A212B",
    "dataframeBorderColor": "#2A3340",
    "redColor": "#F0814A",
    "greenColor": "#2FBF95",
    "sidebar.backgroundColor": "#0B0F15",
    "sidebar.secondaryBackgroundColor": "#1A212B",
}


def options() -> dict[str, Any]:
    """Streamlit's theme options, flat: a light and a dark look that the reader's system chooses from."""
    return {
        **_SHARED,
        **{f"theme.light.{key}": value for key, value in _LIGHT.items()},
        **{f"theme.dark.{key}": value for key, value in _DARK.items()},
    }
