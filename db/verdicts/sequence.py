"""In which order the runs of a series are read: by time, or by release where builds took turns."""

from __future__ import annotations

from typing import Any

import pandas as pd
from pandas import DataFrame

from db.verdicts.occasions import occasions
from db.versions import version_key

STACK = ("torch", "torch_variant", "cuda", "driver", "triton", "cudnn", "python", "os")
"""Parts of a build in the order in which they decide which of two is the newer one."""


def builds_took_turns(trials: DataFrame) -> bool:
    """Whether any two builds of a trials frame were measured side by side."""
    if trials.empty:
        return False
    builds = trials["build_id"].astype("str").groupby(occasions(trials)).nunique()
    return bool((builds > 1).any())


def release_order(frame: DataFrame) -> list[str]:
    """The build ids of a frame with the columns of a build, the oldest release first."""
    builds = frame.drop_duplicates("build_id", keep="last")
    named = [{str(name): value for name, value in row.items()} for row in builds.to_dict("records")]
    return [str(build["build_id"]) for build in sorted(named, key=_key)]


def _key(build: dict[str, Any]) -> tuple[object, ...]:
    parts = [build.get(name) for name in STACK]
    return (*(version_key(None if pd.isna(part) else str(part)) for part in parts), str(build["build_id"]))


def in_reading_order(points: DataFrame, trials: DataFrame) -> DataFrame:
    """`points` (rows of `db.metrics.trend.series_points`, oldest first) as a history is read.

    Builds that took turns have no before and after in time: their points are ordered by release, those of one
    build by time. `trials` are the trials behind the points.
    """
    if not builds_took_turns(trials):
        return points
    rank = {build: number for number, build in enumerate(release_order(points))}
    order = points["build_id"].astype("str").map(rank).sort_values(kind="stable").index
    return points.loc[order].reset_index(drop=True)
