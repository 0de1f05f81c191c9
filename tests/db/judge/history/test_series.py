"""A series judged as a whole and night by night."""

from __future__ import annotations

import numpy as np
import pytest
from pandas import DataFrame

from compilewatch.db.columns.metrics import HISTORY_METRICS, METRICS
from compilewatch.db.judge.history.series import judge_new_point, judge_series, withdrawals
from compilewatch.db.judge.policy import Policy
from compilewatch.db.judge.results import ChangeEvent
from compilewatch.db.records.vocabulary import Metric, Verdict
from tests.db.judge.series import points, steps

STEP = steps([(60, 10e6), (40, 10.5e6)])


def night_by_night(
    table: DataFrame, metric: Metric = Metric.LATENCY, policy: Policy | None = None
) -> list[tuple[int, ChangeEvent]]:
    """Every event with the number of points that were there when it was announced."""
    announced: list[tuple[int, ChangeEvent]] = []
    for n in range(5, len(table) + 1):
        known = tuple(event for _, event in announced)
        announced += [(n, event) for event in judge_new_point(table.iloc[:n], metric, known, policy)]
    return announced


def test_an_event_carries_its_levels_its_build_and_what_changed_there():
    table = points(STEP, torch=["2.13"] * 60 + ["2.14"] * 40, driver="580")
    (event,) = judge_series(table, Metric.LATENCY).events
    assert abs(event.index - 60) <= 1
    assert event.verdict is Verdict.REGRESSED
    assert (event.before, event.after) == (pytest.approx(10e6, rel=0.01), pytest.approx(10.5e6, rel=0.01))
    assert event.interval[0] < 0.05 < event.interval[1]
    assert event.build_id == f"build-{event.index}"
    assert (event.series_id, event.machine_id, event.workload) == ("series-1", "m1", "bert")


@pytest.mark.parametrize(
    ("driver", "timm", "components", "confounded", "said"),
    [
        ("580", "1.0", ("torch",), False, "with the change of torch"),
        ("590", "1.0", ("torch", "driver"), True, "torch and driver changed at once"),
        ("580", "1.1", ("torch", "timm"), True, "torch and timm changed at once"),
    ],
)
def test_two_parts_that_change_at_once_are_confounded(
    driver: str, timm: str, components: tuple[str, ...], confounded: bool, said: str
):
    packages = [{"timm": "1.0"}] * 60 + [{"timm": timm}] * 40
    clean = np.concatenate([np.full(60, 10e6), np.full(40, 12e6)]) * (1 + 1e-4 * (np.arange(100) % 7))
    drivers = ["580"] * 60 + [driver] * 40
    table = points(clean, torch=["2.13"] * 60 + ["2.14"] * 40, driver=drivers, packages=packages)
    (event,) = judge_series(table, Metric.LATENCY).events
    assert (event.changed_components, event.confounded) == (components, confounded)
    assert said in event.reason


@pytest.mark.parametrize("metric", HISTORY_METRICS)
def test_every_metric_with_a_history_can_be_judged(metric: str):
    counted = Metric(metric) not in Policy().thresholds
    quiet = points(np.full(40, 3.0) if counted else steps([(40, 10e6)]), METRICS[metric].column)
    assert judge_series(quiet, Metric(metric)).events == ()


def test_a_speedup_that_rises_is_an_improvement():
    (event,) = judge_series(points(STEP / 1e6, "speedup"), Metric.SPEEDUP).events
    assert event.verdict is Verdict.IMPROVED


def test_a_change_is_announced_once_soon_and_never_silently_changed():
    announced = night_by_night(points(STEP))
    assert len(announced) == 1
    (n, event) = announced[0]
    assert 60 < n <= 75
    assert event.announced_at == n - 1
    assert judge_new_point(points(STEP), Metric.LATENCY, (event,)) == ()


def test_the_same_change_has_the_same_id_in_both_ways_of_judging():
    (whole,) = judge_series(points(STEP), Metric.LATENCY).events
    ids = {event.index: event.event_id for _, event in night_by_night(points(STEP))}
    assert ids.get(whole.index, whole.event_id) == whole.event_id


def test_a_verdict_that_no_longer_stands_is_a_new_event_that_names_the_old():
    values = steps([(60, 10e6), (12, 10.6e6), (60, 10e6)], seed=3)
    flat = steps([(132, 10e6)], seed=4)
    (event,) = [e for n, e in night_by_night(points(values[:80])) if e.revises is None and e.index < 66][:1]
    calm = points(np.concatenate([values[:60], flat[60:]]))
    (withdrawal,) = judge_new_point(calm, Metric.LATENCY, (event,))
    assert withdrawal.revises == event.event_id
    assert withdrawal.event_id != event.event_id
    assert withdrawal.verdict is Verdict.INCONCLUSIVE
    assert "no longer stands" in withdrawal.reason
    assert judge_new_point(calm, Metric.LATENCY, (event, withdrawal)) == ()


def test_nothing_is_announced_close_to_an_announced_change():
    table = points(STEP)
    (event,) = judge_series(table, Metric.LATENCY).events
    beside = event.model_copy(update={"index": event.index - Policy().history.quiet_points})
    found = judge_new_point(table, Metric.LATENCY, (beside,))
    assert [e for e in found if e.revises is None] == []


def test_a_change_of_settings_or_machine_cuts_the_series_instead_of_being_found():
    table = points(
        STEP, settings=[{"matmul_precision": "high"}] * 60 + [{"matmul_precision": "highest"}] * 40
    )
    history = judge_series(table, Metric.LATENCY)
    assert history.events == ()
    assert [(cut.index, cut.fields) for cut in history.cuts] == [(60, ("settings",))]
    assert [(s.start, s.end) for s in history.segments] == [(0, 60), (60, 100)]
    assert night_by_night(table) == []


def test_missing_and_suspect_points_are_passed_over_and_positions_stay():
    values = STEP.copy()
    values[[3, 20, 61]] = np.nan
    suspect = np.zeros(100, dtype=bool)
    suspect[[10, 62]] = True
    values[suspect] *= 50
    history = judge_series(points(values, point_suspect=suspect), Metric.LATENCY)
    assert history.points == 95
    (event,) = history.events
    assert abs(event.index - 60) <= 3


def test_noise_is_measured_around_the_levels():
    history = judge_series(points(steps([(100, 10e6), (100, 20e6)], cv=0.02)), Metric.LATENCY)
    assert history.noise == pytest.approx(0.02, rel=0.25)


def test_an_empty_series_has_no_history():
    history = judge_series(points([]), Metric.LATENCY)
    assert (history.points, history.events, history.noise, history.drift) == (0, (), None, None)
    assert judge_new_point(points([]), Metric.LATENCY) == ()


def modes(n: int, share: float, gap: float, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    high = generator.random(n) < share
    return 10e6 * np.exp(gap * high + 0.004 * generator.standard_normal(n))


def test_a_machine_with_two_modes_is_told_from_one_with_one():
    assert judge_series(points(modes(150, 0.3, 0.03)), Metric.LATENCY).two_mode
    assert not judge_series(points(steps([(150, 10e6)])), Metric.LATENCY).two_mode
    assert not judge_series(points(steps([(75, 10e6), (75, 10.6e6)])), Metric.LATENCY).two_mode


def test_flipping_back_and_forth_between_two_levels_is_no_second_regression():
    flips = steps([(30, 10e6), (30, 10.6e6), (30, 10e6), (30, 10.6e6), (30, 10e6)], cv=0.005)
    verdicts = [event.verdict for event in judge_series(points(flips), Metric.LATENCY).events]
    assert verdicts == [Verdict.REGRESSED, Verdict.IMPROVED, Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE]


def test_slow_drift_is_measured_against_the_pinned_build():
    slow = steps([(120, 10e6)], cv=0.004) * np.linspace(1.0, 1.06, 120)
    builds = ["pinned"] * 10 + [f"build-{i}" for i in range(110)]
    drift = judge_series(points(slow, build_id=builds), Metric.LATENCY, reference_build="pinned").drift
    assert drift.total == pytest.approx(0.055, abs=0.01)


def test_announced_steps_are_no_drift():
    drift = judge_series(points(steps([(60, 10e6), (60, 11e6)], cv=0.004)), Metric.LATENCY).drift
    assert drift.total == pytest.approx(0.10, abs=0.01)
    assert drift.verdict is Verdict.UNCHANGED


def test_drift_too_slow_for_any_step_is_still_named():
    policy = Policy.model_validate({"history": {"minimum_effect": 0.03}})
    slow = steps([(150, 10e6)], cv=0.003) * np.linspace(1.0, 1.045, 150)
    history = judge_series(points(slow), Metric.LATENCY, policy)
    if not history.events:
        assert history.drift.verdict is Verdict.REGRESSED
    explained = sum(np.log(event.after / event.before) for event in history.events)
    assert np.log1p(history.drift.total) == pytest.approx(np.log1p(history.drift.unexplained) + explained)


def test_one_point_has_a_level_and_no_noise():
    history = judge_series(points([10e6]), Metric.LATENCY)
    assert (history.points, history.noise, history.two_mode, history.drift) == (1, None, False, None)
    (segment,) = history.segments
    assert (segment.start, segment.end, segment.level) == (0, 1, pytest.approx(10e6))
    assert judge_series(points([10e6, 10e6]), Metric.LATENCY).noise == 0.0


def test_levels_are_the_medians_between_changes_in_the_metrics_own_unit():
    wave = 1 + 0.001 * np.sin(np.arange(75))
    values = np.repeat([10e6, 12e6, 9e6], 25) * wave
    values[:3] = np.nan
    history = judge_series(points(values), Metric.LATENCY)
    assert [(s.start, s.end) for s in history.segments] == [(3, 25), (25, 50), (50, 75)]
    levels = [np.exp(np.median(np.log(part))) for part in (values[3:25], values[25:50], values[50:])]
    assert [s.level for s in history.segments] == pytest.approx(levels)
    assert (history.series_id, history.metric, history.points) == ("series-1", Metric.LATENCY, 72)
    residual = np.log(np.concatenate([values[3:25], values[25:50], values[50:]]))
    residual -= np.repeat(np.log(levels), [22, 25, 25])
    deviation = 1.4826 * np.median(np.abs(residual - np.median(residual)))
    assert history.noise == pytest.approx(deviation)
    assert judge_series(points(values).drop(columns="series_id"), Metric.LATENCY).series_id is None


def test_only_the_stretch_after_the_last_cut_is_the_present():
    """Noise and drift are those of the last stretch; the step before the cut explains none of it."""
    early, late = np.repeat([10e6, 12e6], 30), np.full(40, 30e6) * (1 + 0.004 * (-1) ** np.arange(40))
    table = points(np.concatenate([early, late]), threads=[1] * 60 + [2] * 40)
    history = judge_series(table, Metric.LATENCY)
    assert [event.index for event in history.events] == [30]
    assert history.noise == pytest.approx(1.4826 * 0.004, rel=0.01)
    assert history.drift.total == pytest.approx(0.0, abs=1e-9)
    assert history.drift.unexplained == history.drift.total


def test_night_by_night_only_the_last_nights_are_looked_at():
    table = points(np.concatenate([STEP, np.full(200, 10.5e6) * (1 + 1e-4 * np.sin(np.arange(200)))]))
    assert judge_new_point(table, Metric.LATENCY) == ()
    assert [event.index for event in judge_new_point(table.iloc[:250], Metric.LATENCY)] == [60]


def test_what_was_taken_back_is_found_by_replaying_the_nights():
    """Noise that wanders looked like a step at night 14 for a while."""
    generator = np.random.default_rng(9)
    y = np.zeros(45)
    for i in range(1, 45):
        y[i] = 0.8 * y[i - 1] + 0.02 * generator.standard_normal()
    table = points(10e6 * np.exp(y))
    lenient = Policy.model_validate({"history": {"nightly_p_value": 0.01}})
    (found,) = withdrawals(table, Metric.LATENCY, lenient)
    assert (found.index, found.announced_at, found.verdict) == (14, 34, Verdict.INCONCLUSIVE)
    (before,) = [event for _, event in night_by_night(table.iloc[:34], policy=lenient)]
    assert found.revises == before.event_id
    assert withdrawals(table.iloc[:34], Metric.LATENCY, lenient) == ()
    assert withdrawals(table, Metric.LATENCY) == ()
    strict = Policy.model_validate({"history": {"minimum_effect": 0.5}})
    assert withdrawals(table, Metric.LATENCY, strict) == ()


def test_a_flip_that_turns_out_to_be_a_change_is_announced_in_its_place():
    table = points(STEP)
    ((_, change),) = night_by_night(table)
    flip = change.model_copy(update={"verdict": Verdict.INCONCLUSIVE, "event_id": "flip"})
    (found,) = judge_new_point(table, Metric.LATENCY, (flip,))
    assert (found.verdict, found.index, found.revises) == (change.verdict, change.index, "flip")
    assert found.event_id not in (change.event_id, "flip")
    assert judge_new_point(table, Metric.LATENCY, (flip, found)) == ()
