"""What others have published about the cases of a view, as sentences beside the own numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from compilewatch.dashboard.read.shaping import number
from compilewatch.db import units
from compilewatch.db.interchange.published import PublishedFigure, published_for
from compilewatch.db.metrics.groups import row_dicts
from compilewatch.db.records.strategies import BUILTIN
from compilewatch.db.records.trial import SourceKind, Task

FIGURES_PER_CASE = 3
PUBLISHED_TITLE = "Published elsewhere"
PUBLISHED_COLUMNS = (
    *("workload", "workload_label", "strategy", "task", "dtype", "shape", "speedup", "source_kind"),
)
"""What `published_lines` reads of cases, or of points."""


def published_lines(cases: pd.DataFrame) -> list[str]:
    """A line per case that somebody else has published a speedup of, own speedup first; often none.

    Only cases of a built-in strategy are looked up: a variant is not what others measured under its mode. Nor
    are imported ones, which may be the published figure itself.
    """
    return [
        _line(case, figures)
        for case in row_dicts(cases.sort_values(["workload_label", "strategy"]))
        if (figures := _published(case))
    ]


def _published(case: Mapping[str, Any]) -> list[PublishedFigure]:
    strategy = BUILTIN.get(case["strategy"])
    if case["source_kind"] == SourceKind.IMPORTED:
        return []
    if strategy is None or strategy.mode is None or strategy.name != strategy.mode:
        return []
    if not isinstance(case["dtype"], str) or not isinstance(case["task"], str):
        return []
    shape = case["shape"] if isinstance(case["shape"], dict) else {}
    return published_for(
        case["workload"], task=Task(case["task"]), dtype=case["dtype"], shape=shape, mode=strategy.mode
    )


def _line(case: Mapping[str, Any], figures: list[PublishedFigure]) -> str:
    own = units.ratio(number(case["speedup"]))
    figure_text = "; ".join(figure.sentence() for figure in figures[:FIGURES_PER_CASE])
    more = len(figures) - FIGURES_PER_CASE
    rest = f"; and {units.plural(more, 'figure')} more" if more > 0 else ""
    return f"{case['workload_label']} with {case['strategy']}: {own} here; {figure_text}{rest}"
