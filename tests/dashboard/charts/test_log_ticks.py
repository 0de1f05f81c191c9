"""A logarithmic axis is labelled at round numbers, near enough to each other to read between them."""

from __future__ import annotations

import pandas as pd
import pytest

from compilewatch.dashboard.charts import target_lines, trend_rows, trends
from compilewatch.dashboard.charts.style import log_ticks


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (9, 3_300, [10, 20, 50, 100, 200, 500, 1_000, 2_000]),
        (0.02, 7, [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5]),
        (9, 1e6, [10, 100, 1_000, 10_000, 100_000, 1_000_000]),
        (1, 1e12, [1, 100, 10_000, 1e6, 1e8, 1e10, 1e12]),
        (3, 29, [3, 5, 7, 10, 20]),
        (1.2, 1.9, [1.2, 1.4, 1.6, 1.8]),
        (95, 112, [95, 100, 105, 110]),
    ],
)
def test_round_numbers_within_the_axis(low: float, high: float, ticks: list[float]) -> None:
    assert log_ticks(low, high) == ticks


def _drawn(values: list[float], targets: list[float]) -> tuple[list[float], list[float]]:
    """The ends of the value axis and its labels over points of these values."""
    at = pd.to_datetime(["2026-11-01"] * len(values)) + pd.to_timedelta(range(len(values)), unit="D")
    window = trend_rows.window(pd.DataFrame({"at": at, "low": values, "high": values}))
    lines = pd.DataFrame({"value": targets, "label": ""})
    _, window, _ = target_lines.beside(lines, window)
    spec = trends.spec(
        "break_even", axis="time", scale="log", strategies=("default",), builds=(), shown=window
    )
    y = next(layer["encoding"]["y"] for layer in spec["layer"] if layer["mark"]["type"] == "line")
    return y["scale"]["domain"], y["axis"]["values"]


@pytest.mark.parametrize(
    ("values", "targets", "ticks"),
    [
        ([10, 90, 3_000], [], [10, 20, 50, 100, 200, 500, 1_000, 2_000]),
        ([0, 10, 3_000], [], [10, 20, 50, 100, 200, 500, 1_000, 2_000]),
        ([40, 3_000], [12], [20, 50, 100, 200, 500, 1_000, 2_000]),
    ],
)
def test_a_log_axis_holds_what_is_drawn_and_hundred_and_thousand(
    values: list[float], targets: list[float], ticks: list[float]
) -> None:
    (low, high), labels = _drawn(values, targets)
    assert 0 < low <= min(value for value in [*values, *targets] if value)
    assert high >= max(values)
    assert labels == ticks
