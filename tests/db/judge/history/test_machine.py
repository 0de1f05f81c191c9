"""What changed on one machine: which series are searched for steps in time, and in what order it is told."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np

from compilewatch.db.judge.policy import Policy
from compilewatch.db.records.vocabulary import CauseClass, Metric, Verdict
from tests.db.judge.frames import MS, machine_history_of, trial
from tests.db.judge.series import steps
from tests.db.metrics.frames import START, trials_frame

NIGHTS = 30


def nightly(strategy: str, factor: float, *, workload: str = "bert", at: int = 15) -> list[dict[str, Any]]:
    """One trial a night whose times change by `factor` at night `at`; eager stands still beside it."""
    rows = []
    for night in range(NIGHTS):
        wave = 1 + 0.001 * np.sin(night)
        times = {"latency_ns": 10 * MS * wave * (factor if night >= at else 1.0)}
        if strategy == "eager":
            times |= {"time_to_first_result_ns": 10**9, "peak_bytes": 1000 * (3 if night >= at else 1)}
        rows.append(
            trial(
                workload,
                strategy,
                "old" if night < 15 else "new",
                run_id=f"R{night}",
                series_id=f"{workload}-{strategy}",
                started_at=START + timedelta(days=night),
                ended_at=START + timedelta(days=night, minutes=1),
                **times,
            )
        )
    return rows


def test_a_compiled_series_is_searched_in_every_measured_metric_but_break_even():
    (group,) = machine_history_of(trials_frame(nightly("default", 1.2)))
    assert {event.metric for event in group.events} == {Metric.LATENCY, Metric.SPEEDUP}
    assert (group.verdict, group.build_id, group.cause) == (Verdict.REGRESSED, "new", CauseClass.COMPILER)
    assert group.at == START + timedelta(days=15)


def test_an_eager_series_has_a_latency_only():
    (group,) = machine_history_of(trials_frame(nightly("eager", 1.2)))
    assert [event.metric for event in group.events] == [Metric.LATENCY]
    assert group.cause is CauseClass.EAGER


def test_events_are_told_oldest_first():
    rows = nightly("default", 1.2, workload="late", at=20) + nightly("default", 1.2, workload="early", at=10)
    groups = machine_history_of(trials_frame(rows))
    assert [group.at for group in groups] == [START + timedelta(days=day) for day in (10, 20)]
    assert [{event.workload for event in group.events} for group in groups] == [{"early"}, {"late"}]


def test_a_series_that_flips_between_two_modes_has_no_event_for_the_flips():
    levels = steps([(30, 10e6), (30, 10.6e6), (30, 10e6), (30, 10.6e6), (30, 10e6)], cv=0.005)
    rows = [
        trial(
            run_id=f"R{night}",
            series_id="bert",
            started_at=START + timedelta(days=night),
            latency_ns=float(latency),
            control_latency_ns=None,
            trial_compile_cost_ns=None,
        )
        for night, latency in enumerate(levels)
    ]
    groups = machine_history_of(trials_frame(rows))
    # the first change and the first way back; later ones are flips
    assert [group.verdict for group in groups] == [Verdict.REGRESSED, Verdict.IMPROVED]


def test_the_policy_asked_for_decides_what_is_an_event():
    rows = nightly("default", 1.04)
    assert machine_history_of(trials_frame(rows))
    coarse = Policy.model_validate({"history": {"minimum_effect": 0.05}})
    assert machine_history_of(trials_frame(rows), coarse) == ()
