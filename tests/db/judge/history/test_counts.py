"""Steps of counts in a history: exact, at once, and together with the timed ones of the same build."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from compilewatch.db.judge.history.counts import exact_events
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.results import ChangeEvent
from compilewatch.db.records.trial import StrategyKind
from compilewatch.db.records.vocabulary import CauseClass, Metric, Verdict
from tests.db.judge.frames import MS, machine_history_of, trial
from tests.db.metrics.frames import START, trials_frame

FAILED: dict[str, Any] = {"status": "failed", "failure_kind": "compile_error", "latency_ns": None}


def night(
    number: int, workload: str = "bert", strategy: str = "default", *, trials: int = 2, **fields: Any
) -> list[dict[str, Any]]:
    """One run of the nightly suite: some trials of one case."""
    at = START + timedelta(days=number)
    build = "old" if number < 3 else "new"
    return [
        trial(
            workload,
            strategy,
            build,
            **{
                "suite": "nightly",
                "run_id": f"R{number}",
                "series_id": f"{workload}-{strategy}",
                "started_at": at + timedelta(minutes=minute),
                "ended_at": at + timedelta(minutes=minute, seconds=30),
            }
            | fields,
        )
        for minute in range(trials)
    ]


def nights(values: list[Any], name: str, workload: str = "bert") -> list[dict[str, Any]]:
    return [row for i, value in enumerate(values) for row in night(i, workload, **{name: value})]


def told(events: tuple[ChangeEvent, ...]) -> list[tuple[str, float | str, float | str, str]]:
    return [(event.metric.value, event.before, event.after, event.verdict.value) for event in events]


@pytest.mark.parametrize(
    ("values", "steps"),
    [
        ([2, 2, 2, 2], []),
        ([2, 2, 2, 5], [(2.0, 5.0, "regressed")]),
        ([2, 5, 5, 2], [(2.0, 5.0, "regressed"), (5.0, 2.0, "improved")]),
        ([2, None, None, 3], [(2.0, 3.0, "regressed")]),
        ([None, None, 3, 3], []),
        ([0, 0, 0, 1], [(0.0, 1.0, "regressed")]),
    ],
)
@pytest.mark.parametrize("metric", [Metric.GRAPH_BREAKS, Metric.RECOMPILES])
def test_every_step_of_a_count_is_an_event(
    metric: Metric, values: list[int | None], steps: list[tuple[float, float, str]]
):
    events = exact_events(trials_frame(nights(values, metric.value)))
    assert told(events) == [(metric.value, *step) for step in steps]
    assert all(event.p_value is None and event.interval is None for event in events)


def test_an_event_names_the_run_the_build_and_what_changed_with_it():
    (event,) = exact_events(trials_frame(nights([2, 2, 2, 5], "graph_breaks")))
    assert (event.run_id, event.build_id, event.index, event.change) == ("R3", "new", 3, 1.5)
    assert event.changed_components == ("torch",)
    assert event.at == START + timedelta(days=3, minutes=1)


def test_a_count_that_varies_within_a_run_is_no_step_until_the_ranges_part():
    rows = night(0, graph_breaks=2, trials=1) + night(0, graph_breaks=4, trials=1)
    rows += night(1, graph_breaks=3) + night(2, graph_breaks=5)
    (event,) = exact_events(trials_frame(rows))
    assert (event.run_id, event.after) == ("R2", 5.0)


def test_a_case_that_fails_now_and_one_that_passes_again():
    rows = night(0) + night(1, **FAILED) + night(2, **FAILED) + night(3)
    assert told(exact_events(trials_frame(rows))) == [
        ("numerics", "pass", "compile_error", "regressed"),
        ("numerics", "compile_error", "pass", "improved"),
    ]


def test_failing_in_some_trials_only_is_neither():
    rows = night(0) + night(1, trials=1) + night(1, trials=1, **FAILED) + night(2)
    assert exact_events(trials_frame(rows)) == ()


def test_a_case_that_ran_before_and_has_no_trial_now_is_missing_once():
    rows = [row for i in range(5) for name in ("a", "b", "c") for row in night(i, name)]
    rows = [row for row in rows if not (row["workload"] == "b" and row["run_id"] in ("R2", "R3"))]
    (event,) = exact_events(trials_frame(rows))
    assert (event.workload, event.run_id, event.verdict) == ("b", "R2", Verdict.MISSING)
    assert event.reason == "b / default ran in the run before and has no trial in this one."


def test_a_new_version_of_a_workload_is_not_missing():
    rows = night(0, "a") + night(0, "b") + night(1, "a") + night(1, "b", series_id="b-2", workload_id="w2")
    assert exact_events(trials_frame(rows)) == ()


@pytest.mark.parametrize("part", ["another suite", "a part of it", "cut short"])
def test_a_run_that_left_cases_out_on_purpose_misses_none(part: str):
    rows = [row for name in ("a", "b", "c", "d") for row in night(0, name)]
    second = {
        "another suite": night(1, "a", suite=None),
        "a part of it": night(1, "a"),
        "cut short": night(1, "a") + night(1, "b") + night(1, "c", status="failed", failure_kind="cancelled"),
    }
    assert exact_events(trials_frame(rows + second[part])) == ()


def test_counts_and_times_that_moved_at_one_build_are_one_event():
    generator = np.random.default_rng(0)
    rows = []
    for number in range(24):
        late = number >= 12
        for workload in ("a", "b"):
            latency = 10 * MS * (1.1 if late else 1.0) * float(np.exp(0.004 * generator.standard_normal()))
            fields = {"build_id": "new" if late else "old", "torch": "new" if late else "old"}
            rows += night(
                number, workload, latency_ns=latency, graph_breaks=3 if late else 0, trials=1, **fields
            )
    groups = [group for group in machine_history_of(trials_frame(rows)) if group.verdict is Verdict.REGRESSED]
    (group,) = groups
    assert {event.metric for event in group.events} >= {Metric.LATENCY, Metric.GRAPH_BREAKS, Metric.SPEEDUP}
    assert (group.build_id, group.cause) == ("new", CauseClass.COMPILER)
    assert group.title.startswith("2 series regressed in graph breaks, latency, speedup")
    assert {event.strategy_kind for event in group.events} == {StrategyKind.COMPILE.value}


def test_a_missing_case_joins_what_got_worse_at_that_time():
    rows = [row for i in range(3) for name in ("a", "b", "c") for row in night(i, name)]
    rows = [row for row in rows if (row["workload"], row["run_id"]) != ("b", "R2")]
    rows = [row | {"graph_breaks": 4} if row["run_id"] == "R2" else row for row in rows]
    (group,) = machine_history_of(trials_frame(rows))
    assert group.title == "2 series regressed in graph breaks; b default missing, cause class compiler"


def test_a_run_of_other_strategies_under_the_same_suite_misses_none():
    rows = [row for name in ("a", "b") for row in night(0, name) + night(0, name, "eager")]
    rows += night(0, "canary-gemm", "eager") + night(1, "canary-gemm", "eager")
    rows += [row for name in ("a", "b") for row in night(1, name, "default+warm")]
    assert exact_events(trials_frame(rows)) == ()


def test_a_missing_case_is_told_with_its_own_name_and_the_build_that_left_it_out():
    rows = [row for i in (2, 3) for name in ("a", "b", "c") for row in night(i, name)]
    rows = [row for row in rows if (row["workload"], row["run_id"]) != ("b", "R3")]
    (event,) = exact_events(trials_frame(rows))
    assert (event.series_id, event.machine_id, event.strategy_kind) == ("b-default", "m1", "compile")
    assert (event.build_id, event.run_id, event.index) == ("new", "R3", 1)
    assert event.at == START + timedelta(days=3, minutes=1)
    assert (event.metric, event.before, event.after) == (Metric.NUMERICS, "ran", "missing")
    assert (event.changed_components, event.confounded) == (("torch",), False)
    assert (event.change, event.interval, event.p_value) == (None, None, None)
    assert event.announced_at == 1


def test_what_comes_back_and_goes_again_is_missing_twice():
    rows = [row for i in range(5) for name in ("a", "b", "c") for row in night(i, name)]
    rows = [row for row in rows if not (row["workload"] == "b" and row["run_id"] in ("R1", "R3"))]
    events = exact_events(trials_frame(rows))
    assert [(event.workload, event.run_id) for event in events] == [("b", "R1"), ("b", "R3")]
    assert len({event.event_id for event in events}) == 2


def test_half_of_the_cases_are_a_whole_run_and_fewer_are_not():
    first = [row for name in ("a", "b", "c", "d") for row in night(0, name)]
    half = first + night(1, "a") + night(1, "b")
    assert {event.workload for event in exact_events(trials_frame(half))} == {"c", "d"}
    strict = Policy.model_validate({"history": {"whole_run_share": 0.6}})
    assert exact_events(trials_frame(half), strict) == ()
    assert exact_events(trials_frame(first + night(1, "a"))) == ()


def test_machines_and_suites_are_expected_apart():
    rows = [row for name in ("a", "b") for row in night(0, name)]
    rows += night(1, "a", machine_id="m2") + night(2, "a", suite="weekly")
    assert exact_events(trials_frame(rows)) == ()


def test_two_parts_that_changed_with_a_count_are_confounded():
    rows = night(0, graph_breaks=1) + night(1, graph_breaks=2, torch="x", driver="y")
    (event,) = exact_events(trials_frame(rows))
    assert (event.changed_components, event.confounded) == (("torch", "driver"), True)
    assert event.reason == "1 to 2, compared exactly."
    assert (event.before, event.after, event.change) == (1.0, 2.0, 1.0)
    (first,) = exact_events(trials_frame(night(0, graph_breaks=0) + night(1, graph_breaks=2)))
    assert first.change is None


def test_runs_that_failed_or_were_cut_short_do_not_hide_a_step():
    rows = night(0, graph_breaks=1) + night(1, **FAILED | {"graph_breaks": 9})
    rows += night(2, status="failed", failure_kind="disk_full", graph_breaks=9)
    rows += night(3, graph_breaks=2)
    events = [event for event in exact_events(trials_frame(rows)) if event.metric is Metric.GRAPH_BREAKS]
    assert [(event.before, event.after, event.index) for event in events] == [(1.0, 2.0, 2)]


def test_runs_are_read_in_time_whatever_the_order_of_the_rows():
    rows = night(2, graph_breaks=3) + night(0, graph_breaks=1) + night(1, graph_breaks=1)
    (event,) = exact_events(trials_frame(rows))
    assert (event.run_id, event.index, event.announced_at) == ("R2", 2, 2)
