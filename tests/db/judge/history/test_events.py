"""Events of a history by hand: their fields, their ids, and what speaks against a known one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from compilewatch.db.judge.change_points import Boundary, examine_boundary
from compilewatch.db.judge.history.events import Stretch, change_events, evidence_against, withdrawal
from compilewatch.db.judge.policy import HistoryPolicy
from compilewatch.db.judge.results import ChangeEvent
from compilewatch.db.records.ids import identity
from compilewatch.db.records.vocabulary import Metric, Verdict
from tests.db.judge.series import START, points

RULES = HistoryPolicy()
Y = np.log(np.repeat([10.0, 12.0, 9.0], [20, 15, 10])) + 0.001 * np.sin(np.arange(45))


def boundary(start: int, difference: float = 0.1, *, error: float = 0.01) -> Boundary:
    return Boundary(start=start, difference=difference, p_value=0.003, p_here=0.0001, error=error, size=5.0)


def stretch(y: np.ndarray = Y, offset: int = 0) -> Stretch:
    return Stretch(y, [offset + i for i in range(len(y))])


def table(n: int = 45, **columns: object):
    return points(np.ones(n), torch=["2.12"] * 20 + ["2.13"] * (n - 20), driver="580", **columns)


def events(*starts: int, metric: Metric = Metric.LATENCY, **columns: object) -> list[ChangeEvent]:
    found = [boundary(start, 0.2 if start == 20 else -0.3) for start in starts]
    return change_events(table(**columns), metric, stretch(), found, RULES)


def test_each_boundary_is_an_event_between_the_levels_beside_it():
    first, second = events(20, 35)
    assert (first.before, first.after) == (pytest.approx(10, rel=0.001), pytest.approx(12, rel=0.001))
    assert (second.before, second.after) == (pytest.approx(12, rel=0.001), pytest.approx(9, rel=0.001))
    assert (first.verdict, second.verdict) == (Verdict.REGRESSED, Verdict.IMPROVED)
    assert (first.index, second.index) == (20, 35)
    assert first.announced_at == second.announced_at == 44
    assert first.change == pytest.approx(math.expm1(0.2))
    assert first.interval is not None
    assert np.log1p(first.interval) == pytest.approx([0.2 - 0.0196, 0.2 + 0.0196])
    assert first.p_value == 0.003
    assert first.reason == "Latency rose by 22.1 % with the change of torch."
    assert second.reason == "Latency fell by 25.9 %; no part of the build changed with it."
    assert (first.changed_components, first.confounded) == (("torch",), False)
    assert (second.changed_components, second.revises) == ((), None)


def test_an_event_is_labelled_by_the_first_point_of_its_new_level():
    (event,) = events(20)
    assert (event.series_id, event.machine_id, event.workload) == ("series-1", "m1", "bert")
    assert (event.strategy, event.strategy_kind) == ("default", "compile")
    assert (event.build_id, event.run_id) == ("build-20", "run-20")
    assert event.at == START.replace(day=21)


def test_what_the_points_do_not_say_is_missing():
    bare = table().drop(columns=["series_id", "build_id", "run_id", "last_started_at", "torch", "driver"])
    (event,) = change_events(bare.assign(workload=None), Metric.LATENCY, stretch(), [boundary(20)], RULES)
    assert (event.series_id, event.build_id, event.run_id, event.at) == (None, None, None, None)
    assert (event.workload, event.changed_components) == (None, ())


def test_positions_are_those_of_the_whole_series():
    whole = table(60)
    (event,) = change_events(whole, Metric.LATENCY, stretch(offset=15), [boundary(20)], RULES)
    assert (event.index, event.announced_at, event.run_id) == (35, 59, "run-35")


def test_an_id_follows_from_series_metric_and_run_alone():
    (event,) = events(20)
    assert events(20, 35)[0].event_id == event.event_id
    moved = change_events(
        table().iloc[5:].reset_index(drop=True), Metric.LATENCY, stretch(Y[5:]), [boundary(15)], RULES
    )
    assert moved[0].event_id == event.event_id
    others = [
        events(35)[0],
        events(20, metric=Metric.COMPILE_COST)[0],
        events(20, series_id="series-2")[0],
        events(20, run_id=[f"r-{i}" for i in range(45)])[0],
    ]
    assert len({event.event_id, *(other.event_id for other in others)}) == 5
    unnamed = [
        change_events(table().drop(columns="run_id"), Metric.LATENCY, stretch(), [boundary(at)], RULES)[0]
        for at in (20, 35)
    ]
    assert unnamed[0].event_id != unnamed[1].event_id


def test_an_id_is_made_of_these_fields_for_ever():
    """Whoever kept an id finds the event by it again, with a later version too."""
    (event,) = events(20)
    fields = {"series": "series-1", "metric": "latency", "at": "run-20", "revises": None}
    assert event.event_id == identity(fields)


CALM = np.log(10.0) + 0.001 * np.sin(np.arange(60))


def against(
    at: int, y: np.ndarray = CALM, *, found: tuple[int, ...] = (), offset: int = 0
) -> Boundary | None:
    (event,) = events(20)
    known = event.model_copy(update={"index": at})
    return evidence_against(known, stretch(y, offset), [boundary(start) for start in found], RULES)


def test_a_step_of_which_nothing_is_left_is_spoken_against():
    assert against(30) == examine_boundary(CALM, 0, 30, 60, RULES)
    assert against(30, found=(5, 50)) == examine_boundary(CALM, 5, 30, 50, RULES)
    assert against(40, offset=10) == examine_boundary(CALM, 0, 30, 60, RULES)


@pytest.mark.parametrize("at", [4, 56])
def test_too_close_to_an_end_nothing_can_be_said(at: int):
    assert against(at) is None
    assert against(5) is not None
    assert against(55) is not None


def test_outside_the_window_nothing_can_be_said():
    assert against(60) is None
    assert against(5, offset=10) is None


@pytest.mark.parametrize(("near", "stands"), [(30, True), (42, True), (18, True), (43, False), (17, False)])
def test_a_boundary_within_the_quiet_points_keeps_the_event(near: int, stands: bool):
    assert (against(30, found=(near,)) is None) is stands


def test_a_step_that_is_still_there_is_not_spoken_against():
    assert against(30, CALM + 0.05 * (np.arange(60) >= 30)) is None
    faint = CALM + 0.5 * math.log1p(RULES.minimum_effect) * (np.arange(60) >= 30)
    assert against(30, faint + 0.001 * (np.arange(60) >= 30)) is None
    assert against(30, faint - 0.001 * (np.arange(60) >= 30)) is not None


def test_a_step_lost_in_noise_is_spoken_against_though_it_is_large():
    generator = np.random.default_rng(5)
    noisy = 0.2 * generator.standard_normal(60)
    noisy += (0.03 + np.median(noisy[:30]) - np.median(noisy[30:])) * (np.arange(60) >= 30)
    found = against(30, noisy)
    assert found.difference == pytest.approx(0.03)


def test_a_withdrawal_is_a_new_event_that_names_the_old_one():
    (event,) = events(20)
    old = event.model_copy(update={"announced_at": 30})
    today = Boundary(start=20, difference=0.001, p_value=0.8, p_here=0.02, error=0.002, size=0.1)
    found = withdrawal(table(), Metric.LATENCY, old, today)
    assert found.interval is not None
    assert np.log1p(found.interval) == pytest.approx([0.001 - 0.00392, 0.001 + 0.00392])
    assert found.reason == "With 14 more points the step in latency is +0.100 % and no longer stands."
    changed = {
        "event_id": found.event_id,
        "announced_at": 44,
        "change": math.expm1(0.001),
        "interval": found.interval,
        "p_value": 0.8,
        "verdict": Verdict.INCONCLUSIVE,
        "revises": event.event_id,
        "reason": found.reason,
    }
    assert found == old.model_copy(update=changed)
    assert found.event_id != event.event_id
    assert withdrawal(table(), Metric.LATENCY, old, today).event_id == found.event_id


def test_a_boundary_right_at_the_place_of_an_event_is_no_edge_of_its_own_sides():
    """The event's own points are gone since: the first that is left lies beyond the quiet points."""
    (event,) = events(20)
    known = event.model_copy(update={"index": 30})
    gap = RULES.quiet_points + 1
    window = Stretch(CALM, [i if i < 30 else i + gap for i in range(60)])
    assert evidence_against(known, window, [boundary(30)], RULES) == examine_boundary(CALM, 0, 30, 60, RULES)
