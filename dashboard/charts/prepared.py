"""A chart as it is made once for all who look."""

from __future__ import annotations

from dataclasses import dataclass, field

import pandas as pd

from dashboard.charts.style import Spec


@dataclass(frozen=True)
class PreparedChart:
    """What a chart shows, its specification and frames, and what is said below it.

    `spec` is None where there is nothing to draw.
    """

    finding: str
    spec: Spec | None = None
    frames: dict[str, pd.DataFrame] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
