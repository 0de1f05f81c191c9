"""Series of points for history tests, with the columns that `db.metrics.trend.series_points` gives."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame

START = datetime(2026, 1, 1, tzinfo=UTC)


def steps(levels: Sequence[tuple[int, float]], cv: float = 0.01, seed: int = 0) -> NDArray[np.float64]:
    """Points of consecutive (count, level) stretches, multiplied by lognormal noise."""
    generator = np.random.default_rng(seed)
    clean = np.concatenate([np.full(count, level) for count, level in levels])
    return clean * np.exp(cv * generator.standard_normal(len(clean)))


def points(
    values: Sequence[float] | NDArray[np.float64], column: str = "latency_ns", **columns: Any
) -> DataFrame:
    """One nightly point per value; `columns` are scalars or one value per point."""
    n = len(values)
    return DataFrame(
        {
            column: pd.array(list(values), dtype="Float64"),
            "series_id": "series-1",
            "machine_id": "m1",
            "workload": "bert",
            "strategy": "default",
            "strategy_kind": "compile",
            "build_id": [f"build-{i}" for i in range(n)],
            "run_id": [f"run-{i}" for i in range(n)],
            "last_started_at": [START + timedelta(days=i) for i in range(n)],
        }
        | columns
    )
