"""Builds that took turns stand side by side, builds measured one after the other stand over time."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.charts.trend_rows import natural_axis, window
from dashboard.links.links import Link, Page, href
from dashboard.reports.freeze import freeze_link
from db.engine.session import open_database
from db.metrics.trend import series_points
from db.queries.trials import trials_frame
from db.records.trial import Trial
from db.store.trials import save_trials
from tests.builders import START, make_history
from tests.dashboard.conftest import DATABASE, opened, texts

BUILDS = ("2.11.0", "2.12.0", "2.13.0")


def in_turns(start: timedelta = timedelta(0), builds: tuple[str, ...] = BUILDS, seed: int = 0) -> list[Trial]:
    """One run of each build, begun seconds apart, so that they go on at the same time."""
    return make_history(
        workloads=("mlp",), builds=builds, every=timedelta(seconds=2), start=START + start, seed=seed
    )


def one_by_one(count: int) -> list[Trial]:
    return make_history(workloads=("mlp",), builds=(BUILDS * count)[:count], every=timedelta(hours=8))


def stored(path: Path, trials: list[Trial]) -> str:
    url = f"sqlite:///{path / 'results.db'}"
    with open_database(url, migrate=True) as database:
        save_trials(database, trials)
    return url


@pytest.mark.parametrize(
    ("trials", "axis"),
    [
        (in_turns(), "torch"),
        (one_by_one(3), "time"),
        (one_by_one(1), "time"),
        # two builds set against each other every week: weeks tell more than builds
        (
            [
                trial
                for week in range(6)
                for trial in in_turns(timedelta(weeks=week), builds=BUILDS[:2], seed=week)
            ],
            "time",
        ),
        ([], "time"),
    ],
    ids=["in turns", "one by one", "a single run", "weekly in turns", "nothing"],
)
def test_the_axis_is_the_one_that_sets_builds_apart(trials: list[Trial], axis: str, tmp_path: Path) -> None:
    with open_database(stored(tmp_path, trials), read_only=True) as database:
        points = series_points(trials_frame(database))
    assert natural_axis(points) == axis


def _x(test: AppTest, alt: str = "") -> str:
    """The field on the horizontal axis of the page's first chart whose description has `alt`."""
    spec = next(
        json.loads(chart.proto.spec) for chart in test.get("vega_lite_chart") if alt in chart.proto.alt
    )
    fields = {layer["encoding"]["x"]["field"] for layer in spec["layer"] if "x" in layer["encoding"]}
    return "at" if "at" in fields else "build"


@pytest.mark.parametrize(("asked", "drawn"), [("auto", "build"), ("time", "at"), ("torch", "build")])
def test_a_link_that_names_its_axis_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str, drawn: str
) -> None:
    monkeypatch.setenv(DATABASE, stored(tmp_path, in_turns()))
    test = opened(Link(page=Page.TRENDS, axis=asked))
    assert not test.exception
    assert _x(test) == drawn
    shown = {"at": "time", "build": "torch"}[drawn]
    assert test.button_group(key="select-axis").value == shown
    said = texts(test)
    assert f"axis={shown}" in said, "the permalink says which axis was seen"
    content = freeze_link(href(Link(page=Page.TRENDS, axis=asked)), title=None, by="ann", at=START)
    assert f"axis={shown}" in content.link


@pytest.mark.parametrize(
    ("trials", "drawn", "said"),
    [(in_turns(), "build", "build by build"), (one_by_one(3), "at", "run by run")],
    ids=["in turns", "one by one"],
)
def test_the_series_of_a_case_stands_over_what_sets_its_builds_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trials: list[Trial], drawn: str, said: str
) -> None:
    monkeypatch.setenv(DATABASE, stored(tmp_path, trials))
    test = opened(Link(page=Page.UPGRADE, focus="mlp", focus_strategy="default", metric="latency"))
    assert not test.exception
    assert _x(test, f"Latency of mlp with default, {said}") == drawn
    assert f"Latency {said}." in texts(test)


def test_the_time_axis_shows_minutes_apart(tmp_path: Path) -> None:
    """Three runs within half an hour fill the axis instead of one place of a whole day."""
    trials = make_history(workloads=("mlp",), builds=BUILDS, every=timedelta(minutes=15))
    with open_database(stored(tmp_path, trials), read_only=True) as database:
        points = series_points(trials_frame(database))
    at = points["last_started_at"].dt.tz_localize(None)
    shown = window(points.assign(at=at, low=1.0, high=2.0))
    assert (at.max() - at.min()) / (shown.last - shown.first) > 0.4
