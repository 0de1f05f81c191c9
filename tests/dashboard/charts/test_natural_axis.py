"""Builds that took turns stand side by side, builds measured one after the other stand over time."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from streamlit.testing.v1 import AppTest

from compilewatch.dashboard.charts.trend_rows import window
from compilewatch.dashboard.links.links import Link, Page, href
from compilewatch.dashboard.pages.workload import history as trends
from compilewatch.dashboard.parts.parts import Chart
from compilewatch.dashboard.read.data import filters_of, read_choices, read_comparison
from compilewatch.dashboard.reports.freeze import freeze_link
from compilewatch.db import units
from compilewatch.db.engine.session import open_database
from compilewatch.db.judge.history.machine import release_steps
from compilewatch.db.judge.sequence import builds_interleaved
from compilewatch.db.metrics.trend import series_points
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.trial import Trial
from compilewatch.db.records.vocabulary import Metric, Verdict
from compilewatch.db.verdicts.gateway import compare
from tests.builders import MS, START, make_history
from tests.dashboard.conftest import DATABASE, Store, opened, selector, texts

BUILDS = ("2.11.0", "2.12.0", "2.13.0")


def in_turns(start: timedelta = timedelta(0), builds: tuple[str, ...] = BUILDS, seed: int = 0) -> list[Trial]:
    """One run of each build, trial by trial in turns: each takes a second, and the next begins after it."""
    trials = make_history(
        workloads=("mlp",), builds=builds, every=timedelta(seconds=2), start=START + start, seed=seed
    )
    return [
        trial.model_copy(update={"ended_at": trial.started_at + timedelta(seconds=1)}) for trial in trials
    ]


def one_by_one(count: int) -> list[Trial]:
    return make_history(workloads=("mlp",), builds=(BUILDS * count)[:count], every=timedelta(hours=8))


def weekly_in_turns() -> list[Trial]:
    return [
        trial for week in range(6) for trial in in_turns(timedelta(weeks=week), builds=BUILDS[:2], seed=week)
    ]


@pytest.fixture(scope="module")
def turns_url(store_once: Store) -> str:
    return store_once(in_turns())


@pytest.fixture
def turns(turns_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages read three builds that took turns."""
    monkeypatch.setenv(DATABASE, turns_url)


@pytest.mark.parametrize(
    ("trials", "axis"),
    [
        (in_turns, "torch"),
        (lambda: one_by_one(3), "time"),
        (lambda: one_by_one(1), "time"),
        (weekly_in_turns, "torch"),
    ],
    ids=["in turns", "one by one", "a single run", "weekly in turns"],
)
def test_the_axis_is_that_on_which_the_judge_reads_the_runs(
    trials: Callable[[], list[Trial]], axis: str, store: Store
) -> None:
    url = store(trials())
    link = Link(page=Page.WORKLOAD, machine=read_choices().newest_machine)
    assert trends.axis(link) == axis
    with open_database(url, read_only=True) as database:
        assert builds_interleaved(trials_frame(database)) == (axis == "torch")


def test_over_builds_the_heading_says_what_the_judge_says_of_a_change_within_the_margin(turns: None) -> None:
    link = Link(page=Page.WORKLOAD, metric="latency", machine=read_choices().newest_machine)
    (chart,) = (part for part in trends.page(link).parts if isinstance(part, Chart))
    newest, before = (
        next(key for key, name in read_choices().builds.items() if name == f"torch {torch}")
        for torch in ("2.13.0", "2.12.0")
    )
    judged = read_comparison(filters_of(link), before, newest)
    (row,) = (each for each in judged.rows if each.metric is Metric.LATENCY and each.strategy == "default")
    assert f", {units.percent(row.change, signed=True)} (" in chart.chart.finding
    assert chart.chart.finding.endswith(" since torch 2.12.0")


def test_over_builds_the_newest_one_is_marked_where_the_judge_finds_it_changed(store: Store) -> None:
    def latency_ns(_workload: str, strategy: str, run: int) -> float:
        return 10e6 if strategy == "eager" else (9e6 if run == 2 else 6e6)

    trials = make_history(
        workloads=("mlp",),
        builds=BUILDS,
        every=timedelta(seconds=2),
        trials_per_case=7,
        latency_ns=latency_ns,
    )
    store(trial.model_copy(update={"ended_at": trial.started_at + timedelta(seconds=1)}) for trial in trials)
    link = Link(page=Page.WORKLOAD, metric="latency", machine=read_choices().newest_machine)
    (chart,) = (part for part in trends.page(link).parts if isinstance(part, Chart))
    (mark,) = chart.chart.frames["changes"].to_dict("records")
    assert mark["build"] == "torch 2.13.0"
    assert re.fullmatch(r"▲ \+\d\d\.\d %, worse", mark["label"])
    change = mark["label"].removeprefix("▲ ")
    assert chart.chart.finding.endswith(f", {change} since torch 2.12.0"), "one figure, that of the judge"


def _x(test: AppTest, alt: str = "") -> str:
    """The field on the horizontal axis of the page's first chart whose description has `alt`."""
    spec = next(
        json.loads(chart.proto.spec) for chart in test.get("vega_lite_chart") if alt in chart.proto.alt
    )
    fields = {layer["encoding"]["x"]["field"] for layer in spec["layer"] if "x" in layer["encoding"]}
    return "at" if "at" in fields else "build"


@pytest.mark.parametrize(("asked", "drawn"), [("auto", "build"), ("time", "at"), ("torch", "build")])
def test_a_link_that_names_its_axis_keeps_it(turns: None, asked: str, drawn: str) -> None:
    test = opened(Link(page=Page.WORKLOAD, focus="mlp", axis=asked))
    assert _x(test) == drawn
    shown = {"at": "time", "build": "torch"}[drawn]
    assert selector(test, "axis").value == shown
    assert f"axis={shown}" in texts(test), "the permalink says which axis was seen"
    content = freeze_link(
        href(Link(page=Page.WORKLOAD, focus="mlp", axis=asked)), title=None, by="ann", at=START
    )
    assert f"axis={shown}" in content.link


@pytest.mark.parametrize("lacking", [None, "2.12.0"])
def test_every_step_that_history_judges_has_its_mark(store: Store, lacking: str | None) -> None:
    """Not only the newest one, with its size, at its build; so many as `compilewatch history` lists. A build
    that lacks the case stands between two that have it.
    """
    level = {0: 8.0, 1: 12.0, 2: 12.0, 3: 7.0}
    builds = ("2.10.0", *BUILDS)
    trials = make_history(
        workloads=("mlp",),
        builds=builds,
        trials_per_case=8,
        every=timedelta(seconds=2),
        latency_ns=lambda _, strategy, run: (15 if strategy == "eager" else level[run]) * MS,
    )
    url = store(
        [
            each.model_copy(update={"ended_at": each.started_at + timedelta(seconds=1)})
            for each in trials
            if each.strategy.name != "default" or each.build.torch != lacking
        ]
    )
    page = trends.page(replace(_machine_of(url), metric="latency"))
    (chart,) = (part for part in page.parts if isinstance(part, Chart))
    marks = chart.chart.frames["changes"]
    with open_database(url, read_only=True) as database:
        frame = trials_frame(database)
        case = frame[frame["strategy"] == "default"].iloc[0]
        steps = release_steps(
            frame, partial(compare, database), case["workload_id"], case["strategy_id"], Metric.LATENCY
        )
    moved = [step for step in steps if step.row.verdict in (Verdict.REGRESSED, Verdict.IMPROVED)]
    assert [step.head_torch for step in moved] == ["2.11.0", "2.13.0"]
    assert marks["build"].tolist() == [f"torch {step.head_torch}" for step in moved]
    sizes = [units.percent(step.row.change, signed=True) for step in moved]
    assert all(size in label for size, label in zip(sizes, marks["label"], strict=True))


def _machine_of(url: str) -> Link:
    with open_database(url, read_only=True) as database:
        return Link(
            page=Page.WORKLOAD, machine=str(trials_frame(database)["machine_id"].iloc[0]), axis="torch"
        )


OF_A_CASE = Link(page=Page.UPGRADE, focus="mlp", focus_strategy="default", metric="latency")


def test_the_series_of_a_case_stands_over_its_builds_where_they_took_turns(turns: None) -> None:
    assert _x(opened(OF_A_CASE), "Latency of mlp with default, build by build") == "build"


def test_the_series_of_a_case_stands_over_time_where_they_came_one_by_one(store: Store) -> None:
    store(one_by_one(3))
    assert _x(opened(OF_A_CASE), "Latency of mlp with default, run by run") == "at"


def test_the_time_axis_shows_minutes_apart(store: Store) -> None:
    """Three runs within half an hour fill the axis instead of one place of a whole day."""
    trials = make_history(workloads=("mlp",), builds=BUILDS, every=timedelta(minutes=15))
    with open_database(store(trials), read_only=True) as database:
        points = series_points(trials_frame(database))
    at = points["last_started_at"].dt.tz_localize(None)
    shown = window(points.assign(at=at, low=1.0, high=2.0))
    assert (at.max() - at.min()) / (shown.last - shown.first) > 0.4
