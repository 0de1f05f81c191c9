"""History of one series: change points, each announced once."""

from __future__ import annotations

import pandas as pd
from pydantic import BaseModel, ConfigDict

from db.verdicts.policy import Policy
from db.verdicts.results import ChangeEvent
from db.verdicts.vocabulary import Metric


class SeriesHistory(BaseModel):
    """A judged series: events in order of announcement, segments between them, and what else was seen."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    series_id: str | None
    metric: Metric
    points: int
    events: tuple[ChangeEvent, ...]
    noise: float | None
    two_mode: bool
    drift: float | None


def judge_series(points: pd.DataFrame, metric: Metric, policy: Policy | None = None) -> SeriesHistory:
    """Judge a series as it stands. `points`: one row per run in time order with columns `value` and, where
    known, `point_id`, `series_id`, `build_id`, `machine_id`, `settings` and the build's components.
    """


def judge_new_point(
    points: pd.DataFrame, metric: Metric, known: tuple[ChangeEvent, ...], policy: Policy | None = None
) -> tuple[ChangeEvent, ...]:
    """Events that the last row of `points` brings to light, given those already announced."""
