"""The noise floor of each machine, read from what its validation stored."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from compilewatch.db.engine.session import Database
from compilewatch.db.judge.compare.sides import Selection
from compilewatch.db.judge.statistics.noise_floor import VALIDATION_SUITE, NoiseFloor
from compilewatch.db.records.trial import Trial
from compilewatch.db.records.vocabulary import Bound
from compilewatch.db.store.trials import save_trials
from compilewatch.db.verdicts.gateway import compare
from compilewatch.db.verdicts.noise_floors import read_noise_floors
from tests.builders import MS, START, make_imported, make_machine, make_timed, make_trial

STEPS = (-0.1, 0.0, 0.1)
"""Logarithms with the standard deviation 0.1."""


def validated(make: Callable[..., Trial] = make_timed, **fields: Any) -> list[Trial]:
    """Three processes; every argument that is a function is asked with the logarithm of each."""
    return [
        make(
            suite=VALIDATION_SUITE,
            started_at=START + timedelta(minutes=number),
            spread=0.0,
            **{name: value(step) if callable(value) else value for name, value in fields.items()},
        )
        for number, step in enumerate(STEPS)
    ]


def scattered(ns: float, factor: float = 1.0) -> Callable[[float], float]:
    return lambda step: ns * math.exp(factor * step)


def floors_of(database: Database, trials: list[Trial]) -> dict[tuple[str, Bound | None], NoiseFloor]:
    save_trials(database, trials)
    (floors,) = read_noise_floors(database).values()
    return {(floor.metric, floor.bound): floor for floor in floors}


def test_device_and_issue_time_have_floors_by_class(sqlite_database: Database):
    # The strategy is device-bound (5 and 1 ms), eager beside it host-bound (2 and 20 ms).
    trials = validated(
        device_ns=scattered(5 * MS, 0.1),
        issue_ns=scattered(1 * MS),
        control_device_ns=scattered(2 * MS, 0.05),
        control_issue_ns=scattered(20 * MS, 2.0),
    )
    found = floors_of(sqlite_database, trials)
    assert {
        key: round(floor.cv, 4) for key, floor in found.items() if key[0] in ("device_time", "issue_time")
    } == {
        ("device_time", Bound.DEVICE): 0.01,
        ("device_time", Bound.HOST): 0.005,
        ("issue_time", Bound.DEVICE): 0.1,
        ("issue_time", Bound.HOST): 0.2,
    }
    # Pipelined wall time is the longer of the two.
    assert found["wall_pipelined", Bound.DEVICE].cv == pytest.approx(0.01, rel=1e-3)
    assert found["wall_pipelined", Bound.HOST].cv == pytest.approx(0.2, rel=1e-3)
    assert {floor.processes for floor in found.values()} == {3}
    assert ("speedup", Bound.DEVICE) in found


def test_a_cpu_has_latency_and_speedup_and_no_class(sqlite_database: Database):
    cpu = make_machine("laptop", device="cpu")
    trials = validated(
        make_trial, machine=cpu, latency_ns=scattered(10 * MS), control_latency_ns=scattered(20 * MS)
    )
    found = floors_of(sqlite_database, trials)
    assert set(found) == {("latency", None), ("speedup", None)}
    assert found["latency", None].cv == pytest.approx(0.1, rel=1e-3)
    # Eager drifted with it, sample by sample in the same process.
    assert found["speedup", None].cv == pytest.approx(0.0, abs=1e-6)


def test_events_without_a_gate_are_no_device_time(sqlite_database: Database):
    found = floors_of(sqlite_database, validated(method="ungated", issue_ns=scattered(1 * MS)))
    assert {metric for metric, _ in found} == {"issue_time", "latency", "wall_pipelined", "speedup"}
    assert {bound for _, bound in found} == {None}


def test_failed_and_suspect_processes_do_not_count(sqlite_database: Database):
    good = validated(latency_ns=scattered(10 * MS), make=make_trial)
    bad = make_trial(suite=VALIDATION_SUITE, latency_ns=99 * MS, spread=0.0, failure="timeout")
    slowed = make_trial(suite=VALIDATION_SUITE, latency_ns=99 * MS, spread=0.0)
    state = slowed.device_state.model_copy(update={"suspect": True, "suspect_reasons": ["throttled"]})
    found = floors_of(sqlite_database, [*good, bad, slowed.model_copy(update={"device_state": state})])
    assert found["latency", None].processes == 3
    # With eager's, which does not move: sqrt((0.1^2 + 0) / 2)
    assert found["latency", None].cv == pytest.approx(0.1 / math.sqrt(2), rel=1e-3)


def test_the_newest_run_that_has_a_figure_counts_on_each_machine(sqlite_database: Database):
    older = [
        trial.model_copy(update={"run_id": "older", "started_at": trial.started_at - timedelta(days=1)})
        for trial in validated(
            make_trial, latency_ns=scattered(10 * MS), control_latency_ns=scattered(20 * MS)
        )
    ]
    newer = validated(
        make_trial,
        run_id="newer",
        latency_ns=scattered(10 * MS, 0.3),
        control_latency_ns=scattered(20 * MS, 0.3),
    )
    other = make_machine("laptop", device="cpu")
    broken_off = make_trial(suite=VALIDATION_SUITE, run_id="broken", started_at=START + timedelta(days=1))
    elsewhere = validated(make_trial, run_id="other", machine=other, latency_ns=scattered(10 * MS, 0.0))
    other_suite = make_trial(suite="smoke", run_id="smoke", started_at=START + timedelta(days=2))
    save_trials(sqlite_database, [*older, *newer, broken_off, *elsewhere, other_suite])
    found = read_noise_floors(sqlite_database)
    latencies = sorted(floor.cv for floors in found.values() for floor in floors if floor.metric == "latency")
    assert latencies == [pytest.approx(0.0, abs=1e-6), pytest.approx(0.03, rel=1e-3)]


def test_without_a_validation_the_newest_repeats_of_a_run_tell_it(sqlite_database: Database):
    """As of an H100 with five trials a case and no validation."""
    repeats = [
        trial.model_copy(update={"suite": "smoke"})
        for trial in validated(
            make_trial, latency_ns=scattered(10 * MS), control_latency_ns=scattered(20 * MS, 0.0)
        )
    ]
    later = make_trial(run_id="later", started_at=START + timedelta(days=1))
    found = floors_of(sqlite_database, [*repeats, later])
    # With eager's, which does not move: sqrt((0.1^2 + 0) / 2)
    assert found["latency", None].cv == pytest.approx(0.1 / math.sqrt(2), rel=1e-3)
    assert found["speedup", None].cv == pytest.approx(0.1, rel=1e-3)
    assert found["latency", None].processes == 3


def test_repeats_of_other_runs_other_builds_and_other_tools_tell_nothing(sqlite_database: Database):
    of_runs = [
        make_trial(run_id=f"run-{number}", started_at=START + timedelta(hours=number)) for number in range(3)
    ]
    of_builds = [make_trial(run_id="builds", build=torch) for torch in ("2.11.0", "2.12.0", "2.13.0")]
    save_trials(
        sqlite_database, [*of_runs, *of_builds, *(make_imported(run_id="imported") for _ in range(3))]
    )
    assert read_noise_floors(sqlite_database) == {}


def test_a_machine_with_too_few_trials_has_none(sqlite_database: Database):
    save_trials(sqlite_database, [make_trial(run_id="alone"), *validated(make_trial)[:2]])
    assert read_noise_floors(sqlite_database) == {}


def test_advice_plans_by_it_where_a_case_has_no_noise_of_its_own(sqlite_database: Database):
    """One trial a side tells nothing of noise; the machine's validation does."""
    pair = [
        make_trial(build=torch, run_id=torch, started_at=START + timedelta(days=day), control_latency_ns=None)
        for day, torch in enumerate(("2.12.0", "2.13.0"))
    ]
    save_trials(sqlite_database, pair)
    base, head = (Selection(name=name, run_ids=(name,)) for name in ("2.12.0", "2.13.0"))
    before = compare(sqlite_database, base, head).advice
    assert before.smallest is None
    save_trials(sqlite_database, validated(make_trial, latency_ns=scattered(10 * MS), run_id="validation"))
    advice = compare(sqlite_database, base, head).advice
    assert advice.smallest.more_trials == 2
