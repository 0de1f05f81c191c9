"""One palette and one look: Streamlit's theme options, and the colour, dash and shape of every strategy.

The colours are those of Okabe and Ito, "Color Universal Design" (2008), which people with any kind of colour
blindness can tell apart. No colour stands alone: every strategy has its own dash and shape as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from compilewatch.db.records.strategies import sort_key

BLUE = "#0072B2"
VERMILLION = "#D55E00"
GREEN = "#009E73"
PURPLE = "#CC79A7"
ORANGE = "#E69F00"
SKY = "#56B4E9"
GREY = "#8A8F98"


@dataclass(frozen=True)
class StrategyLook:
    """How a strategy is drawn: `colour` as hex, `dash` as a Vega stroke dash, `shape` as a Vega symbol."""

    colour: str
    dash: list[int]
    shape: str


_BASES = {
    "eager": StrategyLook(GREY, [2, 2], "cross"),
    "default": StrategyLook(BLUE, [1, 0], "circle"),
    "reduce-overhead": StrategyLook(VERMILLION, [8, 3], "square"),
    "max-autotune": StrategyLook(GREEN, [10, 3, 2, 3], "triangle-up"),
    "max-autotune-no-cudagraphs": StrategyLook(PURPLE, [4, 2], "diamond"),
}
_FURTHER_COLOURS = (ORANGE, SKY)
_FURTHER_SHAPES = ("triangle-down", "triangle-right", "triangle-left")
_VARIANT_DASHES: list[list[int]] = [[5, 2, 1, 2], [3, 4], [12, 4], [1, 3]]
# A variant is told by its first modifier, whatever the base: by its mark, and by its base's colour mixed with
# that share of another.
_VARIANTS = {
    "dynamic": ("#FFFFFF", 0.42, "triangle-up"),
    "static": ("#8A8A3C", 0.6, "triangle-down"),
    "fullgraph": ("#E0C400", 0.6, "square"),
    "regional": ("#9B59D0", 0.55, "triangle-right"),
    "warm": ("#FF5C7A", 0.6, "diamond"),
    "portable": ("#40E0FF", 0.5, "triangle-left"),
}
_OTHER_VARIANT = ("#A0714F", 0.6, "stroke")


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
    number = sum(base.encode())
    colour, shape = (each[number % len(each)] for each in (_FURTHER_COLOURS, _FURTHER_SHAPES))
    look = _BASES.get(base, StrategyLook(colour, [6, 2], shape))
    if not variant:
        return look
    tint, share, shape = _VARIANTS.get(variant.partition("+")[0], _OTHER_VARIANT)
    dash = _VARIANT_DASHES[sum(variant.encode()) % len(_VARIANT_DASHES)]
    return StrategyLook(_mixed(look.colour, tint, share), dash, shape)


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
    "theme.paddingTop": "1rem",
    "theme.paddingBottom": "3rem",
    "theme.chartDivergingColors": DIVERGING,
}
_SERIES = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY)
# Each for a light and for a dark look.
_LOOKS: dict[str, tuple[Any, Any]] = {
    # Marks that name no colour take the first one: text and rules in charts are drawn in ink.
    "chartCategoricalColors": (["#3A4654", *_SERIES], ["#B9C3CF", *_SERIES]),
    # Fills no button: Streamlit writes white on it, which on the dark one has a contrast of 3.5.
    "primaryColor": ("#0067A5", "#2F8FD0"),
    "linkColor": ("#0067A5", "#6FBDF0"),
    "backgroundColor": ("#FFFFFF", "#10151C"),
    "secondaryBackgroundColor": ("#F3F5F8", "#1A212B"),
    # Captions are drawn in 60 % of it: this dark, they still have the contrast of 4.5 that WCAG AA asks for.
    "textColor": ("#0F161F", "#E8EDF3"),
    "borderColor": ("#D9DEE5", "#303A47"),
    "codeTextColor": ("#22303F", "#D3DCE6"),
    "codeBackgroundColor": ("#F3F5F8", "#1A212B"),
    "dataframeHeaderBackgroundColor": ("#F3F5F8", "#1A212B"),
    "dataframeBorderColor": ("#E3E7EC", "#2A3340"),
    "redColor": ("#B93A00", "#F0814A"),
    "greenColor": ("#00795A", "#2FBF95"),
}


def options() -> dict[str, Any]:
    """Streamlit's theme options, flat: a light and a dark look that the reader's system chooses from."""
    return {
        **_SHARED,
        **{f"theme.light.{key}": light for key, (light, _) in _LOOKS.items()},
        **{f"theme.dark.{key}": dark for key, (_, dark) in _LOOKS.items()},
    }
