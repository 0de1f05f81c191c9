"""Where a chart over time says that the build changed, and how much of a long history it draws."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pandas as pd
import pytest

from compilewatch.dashboard.charts import build_events, trend_rows
from compilewatch.dashboard.charts.build_events import MOST_EVENTS, events
from compilewatch.db.engine.session import open_database
from compilewatch.db.metrics.trend import series_points
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.trial import Build
from compilewatch.db.store.trials import save_trials
from tests.builders import START, make_build, make_history

NAMES = {"time": "run", "torch": "build"}


def points_of(url: str, builds: Sequence[Build]) -> pd.DataFrame:
    """A run a day, each with the next of `builds`, in the order of time."""
    with open_database(url) as database:
        trials = make_history(
            workloads=("mlp",),
            strategies=("eager", "default"),
            builds=builds,
            trials_per_case=1,
            samples=5,
            start=START - timedelta(days=len(builds)),
        )
        save_trials(database, trials)
        points = series_points(trials_frame(database, Filters()), by="run")
    points = points.assign(workload_label=points["workload"])
    return trend_rows.in_order(points, "time", list(dict.fromkeys(points["build_id"])))


def rows_of(points: pd.DataFrame) -> pd.DataFrame:
    return trend_rows.frame(points, "speedup", {key: key for key in points["build_id"]})


def nightlies(release: str, days: int, **overrides: str) -> list[Build]:
    return [make_build(f"{release}.0.dev2026{100 + day:04d}", **overrides) for day in range(days)]


def test_every_change_of_a_short_history_is_drawn(sqlite_url: str) -> None:
    points = points_of(sqlite_url, nightlies("2.13", 5))
    assert len(events(points, rows_of(points))) == 4


def test_of_many_changes_those_between_nightly_builds_of_a_release_are_left_out(sqlite_url: str) -> None:
    builds = [*nightlies("2.13", 25), *nightlies("2.14", 10), *nightlies("2.15", 10, driver="999.1")]
    points = points_of(sqlite_url, builds)
    found = events(points, rows_of(points))
    assert [str(event["detail"]).split(" → ")[0] for event in found.to_dict("records")] == [
        "torch 2.13.0.dev20260124",
        "torch 2.14.0.dev20260109",
    ]
    assert list(found["cause"]) == ["one cause", "confounded"]


def test_of_too_many_releases_the_newest_changes_are_drawn(sqlite_url: str) -> None:
    points = points_of(sqlite_url, [make_build(f"2.{minor}.0") for minor in range(MOST_EVENTS + 10)])
    found = events(points, rows_of(points))
    assert len(found) == MOST_EVENTS
    assert found["at"].max().date() == rows_of(points)["at"].max().date()


def test_no_change_stands_before_the_first_point_that_is_drawn(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = points_of(sqlite_url, nightlies("2.13", 9))
    monkeypatch.setattr(trend_rows, "MOST_POINTS", 4)
    rows = rows_of(points)
    found = build_events.events(points, rows)
    assert len(found) == 3
    assert found["at"].min() >= rows["at"].min()


@pytest.mark.parametrize("axis", ["time", "torch"])
def test_what_is_not_drawn_is_said(sqlite_url: str, axis: str, monkeypatch: pytest.MonkeyPatch) -> None:
    points = points_of(sqlite_url, nightlies("2.13", 9))
    assert not trend_rows.older_points(points, rows_of(points), axis)
    monkeypatch.setattr(trend_rows, "MOST_POINTS", 4)
    assert (
        trend_rows.older_points(points, rows_of(points), axis)
        == f"The newest 4 of 9 {NAMES[axis]}s are drawn."
    )


def test_marks_are_small_where_points_lie_close(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_of(points_of(sqlite_url, nightlies("2.13", 9)))
    assert not trend_rows.window(rows).dense
    monkeypatch.setattr(trend_rows, "_DENSE_POINTS", 9)
    assert trend_rows.window(rows).dense
