"""Series that move together are one event."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from db.verdicts.grouping import group_events
from db.verdicts.results import ChangeEvent
from db.verdicts.vocabulary import CauseClass, Metric, Verdict
from tests.db.verdicts.series import START


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
