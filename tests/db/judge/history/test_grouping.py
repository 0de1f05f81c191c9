"""Series that move together are one event."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from compilewatch.db.judge.history.machine import group_events
from compilewatch.db.judge.policy import HistoryPolicy, Policy
from compilewatch.db.judge.results import ChangeEvent
from compilewatch.db.records.vocabulary import CauseClass, Metric, Verdict
from tests.db.judge.series import START


def event(name: str, day: int | None = 0, **fields: Any) -> ChangeEvent:
    return ChangeEvent(
        **{
            "event_id": name,
            "series_id": name,
            "metric": Metric.LATENCY,
            "machine_id": "m1",
            "workload": name,
            "strategy": "default",
            "strategy_kind": "compile",
            "build_id": f"build-{day}",
            "at": None if day is None else START + timedelta(days=day),
            "index": day or 0,
            "announced_at": (day or 0) + 8,
            "before": 1.0,
            "after": 1.1,
            "change": 0.1,
            "interval": (0.08, 0.12),
            "p_value": 1e-6,
            "verdict": Verdict.REGRESSED,
            "reason": "",
        }
        | fields
    )


def names(*events: ChangeEvent) -> list[set[str]]:
    return [{e.event_id for e in group.events} for group in group_events(events)]


def test_changes_at_one_build_are_one_event_though_their_dates_differ_by_a_night():
    (group,) = group_events([event("a", 10), event("b", 10), event("c", 11)])
    assert group.build_id == "build-10"
    assert group.at == START + timedelta(days=10)
    assert group.title == "3 series regressed in latency, cause class compiler"


def test_other_machines_directions_and_times_are_other_events():
    groups = names(
        event("a", 10),
        event("b", 10, machine_id="m2"),
        event("c", 10, verdict=Verdict.IMPROVED),
        event("d", 20),
    )
    assert sorted(map(sorted, groups)) == [["a"], ["b"], ["c"], ["d"]]


def test_a_chain_of_neighbours_does_not_swallow_the_weeks():
    assert names(*(event(str(day), day) for day in range(0, 9))) == [set("0123"), set("4567"), {"8"}]


@pytest.mark.parametrize(
    ("other", "cause"),
    [
        ({"workload": "canary-gemm", "strategy_kind": "eager"}, CauseClass.MACHINE),
        ({"strategy_kind": "eager"}, CauseClass.EAGER),
        ({"strategy_kind": "compile"}, CauseClass.COMPILER),
    ],
)
def test_the_shared_cause_follows_from_who_is_among_them(other: dict[str, Any], cause: CauseClass):
    (group,) = group_events([event("a"), event("b", **other)])
    assert group.cause is cause


def test_a_canary_explains_the_steps_that_are_no_larger_than_its_own():
    canary = event("canary", workload="canary-gemm", strategy_kind="eager")
    large = {"after": 2.5, "change": 1.5, "interval": (1.4, 1.6)}
    memory = {"metric": Metric.PEAK_MEMORY}
    groups = group_events([canary, event("alike"), event("large", **large), event("memory", **memory)])
    found = {frozenset(e.event_id for e in group.events): group.cause for group in groups}
    assert found == {
        frozenset({"canary", "alike"}): CauseClass.MACHINE,
        frozenset({"large", "memory"}): CauseClass.COMPILER,
    }


def test_memory_alone_blames_nobody():
    (group,) = group_events([event("a", metric=Metric.PEAK_MEMORY)])
    assert group.cause is None
    assert group.title == "a default regressed in peak memory"


def test_components_of_the_shared_build_are_gathered_and_confound():
    (group,) = group_events([event("a", changed_components=("torch", "driver")), event("b")])
    assert (group.changed_components, group.confounded) == (("torch", "driver"), True)


def test_withdrawals_are_not_grouped_and_ids_do_not_depend_on_order():
    a, b, gone = event("a"), event("b"), event("c", revises="a")
    assert [g.group_id for g in group_events([a, b, gone])] == [g.group_id for g in group_events([b, a])]


def test_events_without_a_date_join_by_build():
    assert names(event("a", None, build_id="x"), event("b", None, build_id="x")) == [{"a", "b"}]


def test_groups_are_told_in_time_and_those_without_one_last():
    events = [event("none", None), event("late", 20), event("early", 10, machine_id="m2")]
    groups = group_events(events)
    assert [group.at and group.at.day for group in groups] == [11, 21, None]
    assert [group.machine_id for group in groups] == ["m2", "m1", "m1"]
    same = [group_events(order) for order in ([event("a"), event("b", machine_id="m2")],) * 2]
    assert same[0] == same[1]


def test_without_a_date_and_a_build_each_event_stands_alone():
    groups = names(event("a", None, build_id=None), event("b", None, build_id=None))
    assert sorted(map(sorted, groups)) == [["a"], ["b"]]


def test_events_within_three_days_are_one_and_those_beyond_are_not():
    assert names(event("a", 0), event("b", 3)) == [{"a", "b"}]
    assert names(event("a", 0), event("b", 4)) == [{"a"}, {"b"}]
    wide = Policy(history=HistoryPolicy(group_days=4.0))
    assert len(group_events([event("a", 0), event("b", 4)], wide)) == 1


def test_a_group_is_named_after_the_build_of_most_and_dated_by_its_first():
    first = event("a", 9, build_id="x", changed_components=("driver",))
    (group,) = group_events([first, event("b", 11, build_id="y"), event("c", 10, build_id="y")])
    assert (group.build_id, group.at) == ("y", START + timedelta(days=10))
    assert (group.changed_components, group.confounded) == ((), False)
    (tied,) = group_events([event("a", 9, build_id="y"), event("b", 9, build_id="x")])
    assert tied.build_id == "x"
    (unknown,) = group_events([event("a", 9, build_id=None, changed_components=("torch",))])
    assert (unknown.build_id, unknown.at) == (None, START + timedelta(days=9))
    assert (unknown.changed_components, unknown.confounded) == (("torch",), False)


def test_a_missing_case_joins_what_got_worse_and_is_named_apart():
    gone = event("gone", verdict=Verdict.MISSING, metric=Metric.NUMERICS, p_value=None)
    (alone,) = group_events([gone])
    assert (alone.verdict, alone.cause, alone.title) == (Verdict.REGRESSED, None, "gone default missing")
    (group,) = group_events([gone, event("a"), event("b")])
    assert group.title == "2 series regressed in latency; gone default missing, cause class compiler"
    (better,) = group_events([event("a", verdict=Verdict.IMPROVED, strategy=None)])
    assert better.title == "a improved in latency, cause class compiler"
    (nameless,) = group_events([event("a", workload=None, strategy=None, metric=Metric.PEAK_MEMORY)])
    assert nameless.title == "one series regressed in peak memory"


def test_series_are_counted_once_however_many_metrics_moved():
    (group,) = group_events([event("a"), event("a", metric=Metric.PEAK_MEMORY)])
    assert group.title == "a default regressed in latency, peak memory, cause class compiler"


def test_what_is_counted_differently_is_the_compilers_where_no_latency_moved():
    (group,) = group_events([event("a", metric=Metric.GRAPH_BREAKS, p_value=None)])
    assert group.cause is CauseClass.COMPILER
    (timed,) = group_events([event("a", metric=Metric.COMPILE_COST)])
    assert timed.cause is None
