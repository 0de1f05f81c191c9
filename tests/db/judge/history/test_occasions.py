"""Runs that took turns are one occasion; runs one after the other, or on two devices at once, are not."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from compilewatch.db.judge.compare.upgrade import compare_builds
from compilewatch.db.judge.sequence import occasions
from compilewatch.db.records.vocabulary import Design, Metric
from tests.db.judge.frames import MS, trial
from tests.db.metrics.frames import START, trials_frame


def timed(run: str, starts: list[int], *, seconds: float = 10, **fields: Any) -> list[dict[str, Any]]:
    """Trials of one run that begin at these seconds and last `seconds`."""
    return [
        trial(
            run_id=run,
            build=run,
            started_at=START + timedelta(seconds=start),
            ended_at=START + timedelta(seconds=start + seconds),
            **fields,
        )
        for start in starts
    ]


def together(rows: list[dict[str, Any]]) -> bool:
    return len(set(occasions(trials_frame(rows)).tolist())) == 1


def test_builds_that_alternate_are_one_occasion():
    assert together(timed("a", [0, 30, 40]) + timed("b", [10, 20, 50]))


def test_three_builds_that_alternate_are_one_occasion_even_where_some_never_meet():
    rows = timed("a", [0, 50, 60]) + timed("b", [10, 40, 70]) + timed("c", [20, 30, 80])
    assert together(rows)


@pytest.mark.parametrize(
    "rows",
    [
        timed("a", [0, 10, 20]) + timed("b", [30, 40, 50]),
        timed("a", [0, 10, 20, 40]) + timed("b", [30, 50, 60, 70]),
        timed("a", [0, 30, 40]) + timed("b", [10, 20, 50], machine_id="m2"),
        timed("a", [0, 20, 40]) + timed("b", [5, 25, 45]),
    ],
    ids=["one after the other", "a moment of overlap", "two machines", "at once, on two devices"],
)
def test_these_did_not_take_turns(rows: list[dict[str, Any]]):
    assert not together(rows)


def test_results_without_an_end_tell_nothing_of_their_order():
    rows = timed("a", [0, 30, 40]) + timed("b", [10, 20, 50])
    assert not together([row | {"ended_at": None} for row in rows])
    assert not together([*rows[:-1], rows[-1] | {"ended_at": None}])


def test_occasions_are_numbered_run_by_run():
    rows = timed("a", [0, 30]) + timed("b", [10, 20]) + timed("c", [100, 110])
    numbers = occasions(trials_frame(rows)).tolist()
    assert numbers[:4] == [numbers[0]] * 4
    assert numbers[4:] == [numbers[4]] * 2
    assert numbers[0] != numbers[4]
    assert occasions(trials_frame(rows[:1])).tolist() == [0]


def test_a_machine_that_drifts_while_builds_take_turns_is_cancelled_by_pairs():
    """Both sides drift by 20 %; apart they are noise, in turns the 5 % between them are plain."""
    generator = np.random.default_rng(0)
    rows = []
    for workload in ("a", "b", "c", "d"):
        for number in range(5):
            level = 10 * MS * (1 + 0.04 * number)
            for turn, (run, factor) in enumerate((("old", 1.0), ("new", 1.05 if workload == "a" else 1.0))):
                latency = level * factor * np.exp(0.002 * generator.standard_normal())
                rows += timed(
                    run,
                    [100 * number + 20 * turn],
                    workload_id=workload,
                    workload=workload,
                    latency_ns=latency,
                )
    found = [r for r in compare_builds(trials_frame(rows), "old", "new").rows if r.metric is Metric.LATENCY]
    assert {row.design for row in found} == {Design.INTERLEAVED}
    assert [row.verdict.value for row in found] == ["regressed", "unchanged", "unchanged", "unchanged"]
    apart = [row | {"ended_at": None} for row in rows]
    found = [r for r in compare_builds(trials_frame(apart), "old", "new").rows if r.metric is Metric.LATENCY]
    assert {row.design for row in found} == {Design.SEPARATE_RUNS}
    assert {row.verdict.value for row in found} == {"inconclusive"}


def test_a_restless_history_does_not_blur_what_pairs_show():
    """Earlier runs scatter by 10 % from trial to trial; pairs of neighbours differ by 0.3 %."""
    generator = np.random.default_rng(1)
    rows, past = [], []
    for workload in ("a", "b", "c", "d"):
        named = {"workload_id": workload, "workload": workload}
        for number in range(5):
            level = 10 * MS * float(np.exp(0.1 * generator.standard_normal()))
            for turn, (run, factor) in enumerate((("old", 1.0), ("new", 1.04 if workload == "a" else 1.0))):
                latency = level * factor * float(np.exp(0.002 * generator.standard_normal()))
                rows += timed(run, [100 * number + 20 * turn], latency_ns=latency, **named)
        for night in range(6):
            for number in range(3):
                latency = 10 * MS * float(np.exp(0.1 * generator.standard_normal()))
                past += timed(
                    f"night {night}", [-1000 * (night + 1) + 20 * number], latency_ns=latency, **named
                )
    comparison = compare_builds(trials_frame(rows), "old", "new", history=trials_frame(past + rows))
    found = [row for row in comparison.rows if row.metric is Metric.LATENCY]
    assert [row.verdict.value for row in found] == ["regressed", "unchanged", "unchanged", "unchanged"]
