"""Builds that took turns are read by release, and judged from each to the next."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np

from compilewatch.db.judge.history.machine import release_events, release_steps
from compilewatch.db.judge.history.series import judge_series
from compilewatch.db.judge.results import ChangeEvent
from compilewatch.db.judge.sequence import build_pairs, builds_interleaved, in_reading_order, release_order
from compilewatch.db.metrics.trend import series_points
from compilewatch.db.records.vocabulary import Metric, Verdict
from tests.db.judge.frames import MS, comparing, machine_history_of, trial
from tests.db.metrics.frames import START, trials_frame

BUILDS = ("2.9.1", "2.11.0", "2.12.1")


def turns(rounds: int = 4, *, factors: dict[str, float], night: int = 0) -> list[dict[str, Any]]:
    """All builds measured in one sitting, forwards and backwards by turns."""
    generator = np.random.default_rng(night)
    rows, minute = [], 0
    for number in range(rounds):
        for build in BUILDS if number % 2 == 0 else BUILDS[::-1]:
            for workload in ("a", "b", "c"):
                at = START + timedelta(days=night, minutes=minute)
                factor = factors.get(build, 1.0) if workload == "a" else 1.0
                rows.append(
                    trial(
                        workload,
                        build=build,
                        run_id=f"{build} night {night}",
                        series_id=workload,
                        started_at=at,
                        ended_at=at + timedelta(seconds=30),
                        latency_ns=10 * MS * factor * float(np.exp(0.003 * generator.standard_normal())),
                    )
                )
                minute += 1
    return rows


def test_releases_are_ordered_as_versions_and_not_as_words_or_moments():
    trials = trials_frame(turns(factors={}))
    assert builds_interleaved(trials)
    assert release_order(trials.iloc[::-1]) == ["2.9.1", "2.11.0", "2.12.1"]


def test_points_of_builds_that_took_turns_are_read_release_by_release():
    trials = trials_frame(turns(factors={}) + turns(factors={}, night=1))
    series = trials[trials["workload"] == "a"]
    points = in_reading_order(series_points(series), series)
    assert points["run_id"].tolist() == [f"{build} night {night}" for build in BUILDS for night in (0, 1)]


def test_points_of_builds_that_followed_each_other_stay_in_time():
    rows = [row | {"ended_at": None} for row in turns(factors={})]
    trials = trials_frame(rows)
    points = series_points(trials)
    assert in_reading_order(points, trials) is points


def test_each_release_is_judged_against_the_one_before_it():
    trials = trials_frame(turns(factors={"2.11.0": 1.06, "2.12.1": 1.06}))
    steps = release_steps(trials, comparing(trials), "w-a", "s-default", Metric.LATENCY)
    assert [(step.base_torch, step.head_torch, step.row.verdict) for step in steps] == [
        ("2.9.1", "2.11.0", Verdict.REGRESSED),
        ("2.11.0", "2.12.1", Verdict.UNCHANGED),
    ]
    apart = trials_frame([row | {"ended_at": None} for row in turns(factors={})])
    assert release_steps(apart, comparing(apart), "w-a", "s-default", Metric.LATENCY) == ()


def test_everything_that_changed_with_a_release_is_one_event_in_the_order_of_releases():
    trials = trials_frame(turns(factors={"2.11.0": 1.06}))
    groups = machine_history_of(trials)
    assert [(group.build_id, group.verdict, group.at) for group in groups] == [
        ("2.11.0", Verdict.REGRESSED, None),
        ("2.12.1", Verdict.IMPROVED, None),
    ]
    (latency,) = [event for event in groups[0].events if event.metric is Metric.LATENCY]
    assert (latency.workload, latency.changed_components) == ("a", ("torch",))
    assert latency.change is not None
    assert abs(latency.change - 0.06) < 0.01


def test_counts_join_the_times_of_their_release():
    rows = turns(factors={"2.11.0": 1.06, "2.12.1": 1.06})
    rows = [row | {"graph_breaks": 3} if row["build_id"] != "2.9.1" else row for row in rows]
    (group,) = machine_history_of(trials_frame(rows))
    assert group.build_id == "2.11.0"
    assert {event.metric for event in group.events} == {Metric.LATENCY, Metric.SPEEDUP, Metric.GRAPH_BREAKS}


def latency_events(rows: list[dict[str, Any]]) -> list[ChangeEvent]:
    trials = trials_frame(rows)
    return [event for event in release_events(trials, comparing(trials)) if event.metric is Metric.LATENCY]


def test_an_event_of_a_release_names_its_series_and_is_confounded_by_a_second_change():
    rows = turns(factors={"2.11.0": 1.06, "2.12.1": 1.06})
    alone = latency_events(rows)
    rows = [row | {"driver": "590.1"} if row["build_id"] != "2.9.1" else row for row in rows]
    both = latency_events(rows)
    assert [event.series_id for event in (*alone, *both)] == ["a", "a"]
    assert [(event.changed_components, event.confounded) for event in (*alone, *both)] == [
        (("torch",), False),
        (("torch", "driver"), True),
    ]


def test_a_case_that_a_release_left_out_keeps_its_moment_though_builds_took_turns():
    rows = [row | {"suite": "releases"} for row in turns(factors={})]
    rows = [row for row in rows if (row["workload"], row["build_id"]) != ("b", "2.12.1")]
    (group,) = machine_history_of(trials_frame(rows))
    (event,) = group.events
    assert (event.workload, event.build_id, event.verdict) == ("b", "2.12.1", Verdict.MISSING)
    assert group.at == event.at == max(row["started_at"] for row in rows if row["build_id"] == "2.12.1")


def nights(count: int, *, first: int, factor: float = 1.0) -> list[dict[str, Any]]:
    """Separate runs of the newest release, one a night, whose case "a" takes `factor` times as long."""
    generator = np.random.default_rng(abs(first))
    rows = []
    for night in range(first, first + count):
        at = START + timedelta(days=night)
        for workload in ("a", "b", "c"):
            level = 10 * MS * (factor if workload == "a" else 1.0)
            latency = level * float(np.exp(0.003 * generator.standard_normal()))
            fields = {"series_id": workload, "started_at": at, "ended_at": at + timedelta(seconds=30)}
            rows.append(
                trial(workload, build="2.12.1", run_id=f"night {night}", latency_ns=latency, **fields)
            )
    return rows


def test_builds_that_took_turns_beside_other_runs_are_judged_as_a_comparison_judges_them():
    before = [row | {"build_id": "2.9.0", "torch": "2.9.0"} for row in nights(1, first=-3)]
    rows = turns(factors={"2.12.1": 1.3}) + before + nights(12, first=2) + nights(12, first=14, factor=1.2)
    trials = trials_frame(rows)
    groups = machine_history_of(trials)
    found = [
        (event.build_id, event.workload, round(event.change or 0, 1), event.at is None)
        for group in groups
        for event in group.events
        if event.metric is Metric.LATENCY
    ]
    assert ("2.12.1", "a", 0.3, True) in found  # from release to release
    assert ("2.12.1", "a", 0.2, False) in found  # from night to night
    assert len(found) == 2
    series = trials[trials["workload"] == "a"]
    points = in_reading_order(series_points(series), series)
    assert points["by_turns"].sum() == 3
    assert [round(e.change or 0, 1) for e in judge_series(points, Metric.LATENCY).events] == [0.2]


def test_only_builds_that_took_turns_are_a_pair():
    between = [row | {"build_id": "2.10.0", "torch": "2.10.0"} for row in nights(2, first=3)]
    assert [*build_pairs(trials_frame(turns(factors={}) + between))] == [
        ("2.9.1", "2.11.0"),
        ("2.11.0", "2.12.1"),
    ]


def test_a_case_that_a_build_lacks_is_set_against_the_build_before():
    trials = trials_frame(turns(factors={}))
    lacking = trials[~((trials["workload"] == "a") & (trials["build_id"] == "2.11.0"))]
    pairs = build_pairs(lacking)
    assert pairs["2.9.1", "2.12.1"] == {("w-a", "s-default")}
    assert ("w-a", "s-default") not in pairs["2.11.0", "2.12.1"]
    (step,) = release_steps(lacking, comparing(lacking), "w-a", "s-default", Metric.LATENCY)
    assert (step.base_build, step.head_build) == ("2.9.1", "2.12.1")
