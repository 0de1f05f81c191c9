"""Changes of level in a history and beside a verdict: those of the judge, drawn with a label, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from compilewatch.dashboard.charts import change_points, trend_rows, trends
from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.read.shaping import with_labels
from compilewatch.db import units
from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.judge.history.series import judge_series
from compilewatch.db.judge.policy import Policy
from compilewatch.db.metrics.trend import series_points
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.trial import Trial
from compilewatch.db.records.vocabulary import Metric
from compilewatch.db.store.trials import save_trials
from tests.builders import make_build, make_device_state, make_history
from tests.dashboard.conftest import DATABASE, Store, opened, texts

NIGHTS, STEP_AT = 32, 14
DRIVERS = ("570.86.15", "580.65.06")


def _nightly(slower: Mapping[str, float], step_at: int = STEP_AT, **fields: Any) -> list[Trial]:
    """From night `step_at` on these strategies of mlp take so many times as long, with another driver."""

    def latency_ns(_workload: str, strategy: str, run: int) -> float:
        share = {"eager": 1.0, "default": 0.7, "max-autotune": 0.68}[strategy]
        return 10e6 * share * (slower.get(strategy, 1.0) if run >= step_at else 1.0)

    nights = [make_build("2.13.0", driver=DRIVERS[night >= step_at]) for night in range(NIGHTS)]
    return make_history(
        **{
            "workloads": ("mlp",),
            "strategies": ("eager", "default", "max-autotune"),
            "builds": nights,
            "latency_ns": latency_ns,
            **fields,
        }
    )


def test_a_run_whose_trials_were_all_throttled_is_hollow(sqlite_database: Database) -> None:
    trials = _nightly({}, trials_per_case=2)
    throttled = {trial.run_id for trial in trials[-6:]}
    slowed = make_device_state(throttle_reasons=["hw_thermal_slowdown"], suspect=True)
    points = _points(
        sqlite_database,
        [
            trial.model_copy(update={"device_state": slowed}) if trial.run_id in throttled else trial
            for trial in trials
        ],
    )
    rows = trend_rows.frame(points, "latency", dict.fromkeys(points["build_id"], "torch 2.13.0"))
    hollow = rows.index[rows["state"] == "suspect"]
    assert set(points.loc[hollow, "run_id"]) == throttled
    assert set(points.loc[rows.index[rows["state"] == "trusted"], "run_id"]).isdisjoint(throttled)
    spec = trends.spec(
        "latency",
        axis="time",
        scale="linear",
        strategies=("default",),
        builds=("torch 2.13.0",),
        shown=trend_rows.window(rows),
    )
    filled = {
        layer["transform"][0]["filter"]: layer["mark"]["filled"]
        for layer in spec["layer"]
        if layer["mark"]["type"] == "point"
    }
    assert filled == {"datum.state == 'trusted'": True, "datum.state != 'trusted'": False}


def _points(database: Database, trials: list[Trial]) -> pd.DataFrame:
    if trials:
        save_trials(database, trials)
    points = with_labels(series_points(trials_frame(database)))
    return trend_rows.in_order(points, "time", sorted(set(points["build_id"])))


def _changes(
    points: pd.DataFrame, metric: str = "speedup", turns: frozenset[tuple[str, str]] = frozenset()
) -> change_points.Changes:
    rows = trend_rows.frame(points, metric, dict.fromkeys(points["build_id"], "torch 2.13.0"))
    return change_points.over(points, rows, metric, Policy(), turns)


@pytest.fixture(scope="module")
def stepped_url(store_once: Store) -> str:
    """Default takes 1.18 times as long from a night on."""
    return store_once(_nightly({"default": 1.18}))


@pytest.fixture(scope="module")
def stepped(stepped_url: str) -> pd.DataFrame:
    with open_database(stepped_url, read_only=True) as database:
        return _points(database, [])


def test_a_ring_stands_where_the_judge_finds_a_step(stepped: pd.DataFrame) -> None:
    points = stepped
    mine = points[points["strategy"] == "default"]
    (event,) = judge_series(mine, Metric.SPEEDUP).events
    found = _changes(points)
    (mark,) = found.frame.to_dict("records")
    judged = mine.iloc[event.index]
    assert (mark["run_id"], mark["value"]) == (judged["run_id"], judged["speedup"])
    assert mark["label"].startswith(f"▼ {units.MINUS}15.")
    assert mark["label"].endswith("%, worse")
    assert mark["place"] == "above right"
    assert found.notes == [
        f"{mark['moment']}, torch 2.13.0: default {mark['label'][2:]}: Speedup fell by "
        f"{mark['label'][3:7]} % with the change of driver."
    ]
    assert found.last == f"last change: default {mark['label'][2:]} on {mark['moment'][:10]}"


def test_more_latency_is_worse_and_less_is_better(sqlite_database: Database) -> None:
    points = _points(sqlite_database, _nightly({"default": 1.3, "max-autotune": 0.6}))
    labels = sorted(label.split()[0::3] for label in _changes(points, "latency").frame["label"])
    assert labels == [["▲", "worse"], ["▼", "better"]]


def test_builds_that_took_turns_have_no_before_and_after(stepped: pd.DataFrame) -> None:
    every = frozenset(stepped[["run_id", "build_id"]].itertuples(index=False, name=None))
    found = _changes(stepped, turns=every)
    assert (len(found.frame), found.notes, found.last) == (0, [], "")


def test_a_step_between_other_runs_stands_though_some_builds_took_turns(stepped: pd.DataFrame) -> None:
    (mark,) = _changes(stepped).frame.to_dict("records")
    first = frozenset(stepped[["run_id", "build_id"]].head(2).itertuples(index=False, name=None))
    (again,) = _changes(stepped, turns=first).frame.to_dict("records")
    assert again["run_id"] == mark["run_id"]


@pytest.mark.parametrize(
    "link",
    [
        Link(page=Page.WORKLOAD, focus="mlp", metric="speedup"),
        Link(page=Page.UPGRADE, focus="mlp", focus_strategy="default", metric="speedup"),
    ],
    ids=["history", "Upgrade"],
)
def test_pages_mark_the_change_and_tell_it(
    stepped_url: str, monkeypatch: pytest.MonkeyPatch, link: Link
) -> None:
    monkeypatch.setenv(DATABASE, stepped_url)
    page = opened(link)
    (marks,) = [
        pa.ipc.open_stream(dataset.data.data).read_all().to_pylist()
        for chart in page.get("vega_lite_chart")
        for dataset in chart.proto.datasets
        if dataset.name == "changes"
    ]
    assert [mark["label"].split()[0] for mark in marks] == ["▼"]
    said = texts(page)
    assert "Ring: the level changed." in said
    assert "Speedup fell by 15." in said
    assert (f"last change: default {units.MINUS}15." in said) == (link.page is Page.WORKLOAD)
