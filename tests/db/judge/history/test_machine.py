"""What changed on one machine: which series are searched for steps in time, and in what order it is told."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from compilewatch.db.judge import sequence
from compilewatch.db.judge.history import counts, machine
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


@pytest.mark.parametrize("cases", [2, 20])
def test_of_many_series_points_are_made_at_once_and_few_are_walked_through(
    monkeypatch: pytest.MonkeyPatch, cases: int
) -> None:
    """Work that is done by series is what made 2,589 of them take two minutes."""
    rows = [row for n in range(cases) for row in nightly("default", 1.0, workload=f"case-{n}")]
    rows[-1]["graph_breaks"] = 3
    calls: list[str] = []
    for module, name in ((machine, "series_points"), (counts, "_of_series"), (sequence, "by_turns")):
        real = getattr(module, name)

        def counted(*args: Any, name: str = name, real: Any = real, **named: Any) -> Any:
            calls.append(name)
            return real(*args, **named)

        monkeypatch.setattr(module, name, counted)
    (group,) = machine_history_of(trials_frame(rows))
    assert [event.metric for event in group.events] == [Metric.GRAPH_BREAKS]
    # Points and turns once of the machine, runs once of the series whose count varies.
    assert calls.count("series_points") == calls.count("_of_series") == calls.count("by_turns") == 1


def test_turns_are_told_of_each_series_by_itself() -> None:
    rng, rows = np.random.default_rng(3), []
    for n in range(300):
        began = START + timedelta(minutes=int(rng.integers(200)))
        rows.append(
            trial(
                "bert",
                "default",
                f"b{rng.integers(3)}",
                run_id=f"R{rng.integers(12)}",
                series_id=f"s{rng.integers(9)}",
                started_at=began,
                ended_at=None if n % 40 == 0 else began + timedelta(minutes=int(rng.integers(1, 4))),
            )
        )
    trials = trials_frame(rows)
    expected = np.zeros(len(trials), dtype=bool)
    for places in trials.groupby("series_id").indices.values():
        expected[places] = sequence.by_turns(trials.iloc[places])
    assert 0 < expected.sum() < len(expected)
    assert sequence.turns_of_each(trials).tolist() == expected.tolist()


def test_a_case_whose_eager_ran_beside_it_in_other_processes_has_its_speedup_judged() -> None:
    compiled = [row | {"control_latency_ns": None} for row in nightly("default", 1.2)]
    (group,) = machine_history_of(trials_frame(nightly("eager", 1.0) + compiled))
    assert {event.metric for event in group.events} == {Metric.LATENCY, Metric.SPEEDUP}
