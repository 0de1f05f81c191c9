"""Advice: the smallest number first, then a fixed target, in hours, or that this clock cannot see it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from compilewatch.db.judge.compare.upgrade import compare_builds
from compilewatch.db.judge.results import Advice, Comparison
from compilewatch.db.judge.statistics.noise_floor import NoiseFloor
from tests.db.judge.frames import sides
from tests.db.metrics.frames import trials_frame

CALM = [10.0, 10.02, 9.98, 10.01]


def compared(rows: list[dict[str, Any]], seconds: float | None = 90.0, **options: Any) -> Comparison:
    if seconds is not None:
        rows = [row | {"ended_at": row["started_at"] + timedelta(seconds=seconds)} for row in rows]
    return compare_builds(trials_frame(rows), "old", "new", **options)


def open_case(name: str, width: float, trials: int) -> list[dict[str, Any]]:
    spread = [1.0 + width, 1.0 - width, 1.0 + 0.6 * width, 1.0 - 0.4 * width]
    base, head = ([10.0 * each for each in spread[:trials]], [10.0 * each for each in spread[::-1][:trials]])
    return sides(base, head, workload=name, base_fields=CONTROL, head_fields=CONTROL)


CONTROL = {"control_latency_ns": None}


def test_nothing_is_advised_where_all_is_decided():
    assert compared(sides(CALM, CALM, base_fields=CONTROL, head_fields=CONTROL)).advice is None


def test_the_smallest_number_comes_first_and_says_how_long_it_takes():
    advice = compared(open_case("few", 0.3, 2)).advice
    assert advice.target is None
    assert (advice.smallest.cases, advice.smallest.more_trials, advice.smallest.trials) == (1, 1, 2)
    assert advice.smallest.hours == 2 * 90 / 3600
    assert advice.sentences == (
        "Measure 1 more trial a side of 1 case (about 3.00 min) first: fewer than 3 a side are never judged.",
    )


def test_then_a_change_of_five_percent_is_planned_for():
    advice = compared(open_case("noisy", 0.05, 4)).advice
    assert advice.smallest is None
    assert 1 <= advice.target.more_trials <= 26
    assert advice.target.trials == 2 * advice.target.more_trials
    assert advice.sentences[0].endswith("to see a change of 5 % with 80 % power.")
    assert advice.unseen == 0


def test_a_clock_that_cannot_see_it_is_told_so_and_gets_no_number():
    advice = compared(open_case("wild", 0.4, 4)).advice
    assert (advice.smallest, advice.target, advice.unseen) == (None, None, 1)
    assert advice.sentences == ("In 1 case this clock cannot show 5 %: it takes more than 30 trials a side.",)


def test_hours_are_unknown_where_no_trial_says_how_long_it_took():
    advice = compared(open_case("few", 0.3, 2), seconds=None).advice
    assert advice.smallest.hours is None


def test_one_degree_of_freedom_gives_no_interval():
    lone = compared(sides([10.0], [10.1, 10.3], base_fields=CONTROL, head_fields=CONTROL))
    (latency,) = [row for row in lone.rows if row.metric == "latency"]
    assert latency.change is not None
    assert latency.interval is None


def test_one_trial_a_side_is_planned_for_by_the_noise_of_the_machine():
    asked = []

    def noise_floors(machine_id: str) -> list[NoiseFloor]:
        asked.append(machine_id)
        return [NoiseFloor("latency", None, 0.02, 10)]

    assert compared(open_case("one", 0.1, 1)).advice == Advice(
        smallest=None, target=None, unseen=0, sentences=()
    )
    advice = compared(open_case("one", 0.1, 1), noise_floors=noise_floors).advice
    assert (advice.smallest.cases, advice.smallest.more_trials) == (1, 2)
    # Asked for once, however many metrics there are.
    assert asked == ["m1"]


def test_a_case_with_noise_of_its_own_asks_for_none():
    def noise_floors(_machine_id: str) -> list[NoiseFloor]:
        raise AssertionError

    assert compared(open_case("noisy", 0.05, 4), noise_floors=noise_floors).advice is not None
