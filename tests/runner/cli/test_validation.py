"""How many processes a validation takes in the time it has, and what becomes of the others."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compilewatch.db.engine.session import Database
from compilewatch.db.judge.statistics.noise_floor import VALIDATION_SUITE
from compilewatch.db.queries import facets
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trial_records
from compilewatch.db.records.trial import Trial
from compilewatch.runner.cli.measure.validation import (
    WORKLOADS,
    Probed,
    Validator,
    affordable,
    plan_validation,
)
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.device.lock import DeviceBusyError
from compilewatch.runner.plan.trial_spec import TrialSpec
from compilewatch.runner.process.spool import Spool
from compilewatch.runner.process.supervise import run_trial
from tests.builders import make_machine, make_trial
from tests.runner.quick_measurement import interpreter

CPU, GPU = WORKLOADS["cpu"], WORKLOADS["cuda"]


class Silent:
    """Progress that nobody watches; counts what began."""

    def __init__(self) -> None:
        self.started: list[str] = []

    def trial_started(self, number: int, workload: str, strategy: str, build: str | None) -> None:
        assert number == len(self.started) + 1
        assert strategy == "default"
        self.started.append(workload)

    def phase(self, name: str) -> None:
        pass

    def trial_finished(self, trial: Trial) -> None:
        pass


class Machine:
    """Trials on a clock of its own; `takes_s` of each workload, in the order of its processes."""

    def __init__(
        self, takes_s: Callable[[str, int], float], *, failing: str = "", stops_at: int = 999
    ) -> None:
        self.now = 0.0
        self.specs: list[TrialSpec] = []
        self._takes_s, self._failing, self._stops_at = takes_s, failing, stops_at

    def clock(self) -> float:
        return self.now

    def is_stopped(self) -> bool:
        return len(self.specs) >= self._stops_at

    def measure(
        self, spec: TrialSpec, *, on_phase: Callable[[str], None], is_cancelled: Callable[[], bool]
    ) -> Trial:
        on_phase("sampling")
        before = sum(each.workload.name == spec.workload.name for each in self.specs)
        self.specs.append(spec)
        self.now += min(self._takes_s(spec.workload.name, before), spec.timeout_s)
        failure = "timeout" if spec.workload.name == self._failing else None
        return make_trial(
            trial_id=spec.trial_id,
            run_id=spec.run_id,
            suite=spec.suite,
            workload=spec.workload.name,
            machine=make_machine("box", device="cpu"),
            failure="cancelled" if is_cancelled() else failure,
        )

    def counts(self) -> list[int]:
        names = dict.fromkeys(spec.workload.name for spec in self.specs)
        return [sum(spec.workload.name == name for spec in self.specs) for name in names]


@pytest.fixture
def database(sqlite_database: Database) -> Database:
    return sqlite_database


def validated(
    database: Database, tmp_path: Path, machine: Machine, *, budget_s: float = 480, **more: Any
) -> Any:
    device, processes = more.pop("device", "cpu"), more.pop("processes", 10)
    options: dict[str, Any] = {"clock": machine.clock, "measure": machine.measure, **more}
    validator = Validator(
        database,
        Spool(tmp_path / "spool"),
        budget_s=budget_s,
        is_stopped=machine.is_stopped,
        progress=Silent(),
        **options,
    )
    return validator.run(plan_validation(Settings(data_dir=tmp_path), device, processes))


def stored(database: Database) -> list[Trial]:
    return list(trial_records(database, Filters(suites=(VALIDATION_SUITE,))))


def status(database: Database) -> str:
    runs = facets.runs(database)
    (found,) = runs.loc[runs["suite"] == VALIDATION_SUITE, "status"]
    return str(found)


@pytest.mark.parametrize(
    ("left_s", "rounds", "expected"),
    [
        (40.0, 1, ["a", "b"]),
        (39.0, 1, ["a"]),
        (80.0, 2, ["a", "b"]),
        (79.0, 2, ["a"]),  # the dearer one goes
        (19.0, 2, []),
        (-1.0, 1, []),
    ],
)
def test_the_workloads_that_fit(left_s: float, rounds: int, expected: list[str]) -> None:
    assert affordable({"a": 10.0, "b": 30.0}, left_s, rounds) == expected
    assert affordable({}, left_s, rounds) == []


def test_ten_processes_of_each_are_a_stored_run_of_its_own_suite(database: Database, tmp_path: Path) -> None:
    machine = Machine(lambda _name, _number: 10.0)
    found = validated(database, tmp_path, machine)
    assert machine.counts() == [10, 10, 10, 10]
    assert (found.cut, found.interrupted, found.seconds, found.probed) == ([], False, 400.0, None)
    assert {trial.trial_id for trial in stored(database)} == {trial.trial_id for trial in found.trials}
    assert {trial.run_id for trial in stored(database)} == {found.run_id}
    assert {trial.workload.name for trial in stored(database)} == set(CPU)
    assert status(database) == "finished"
    # A round measures each once, so that a drift of the machine is a drift of all.
    rounds = [{spec.workload.name for spec in machine.specs[at : at + 4]} for at in range(0, 40, 4)]
    assert rounds == [set(CPU)] * 10


def test_what_does_not_fit_is_cut_and_said(database: Database, tmp_path: Path) -> None:
    machine = Machine(lambda _name, _number: 20.0)
    found = validated(database, tmp_path, machine)
    # 80 s a round; 400 s are left after the first, of which a twentieth is reserve.
    assert machine.counts() == [5, 5, 5, 5]
    assert found.cut == ["Each workload has 5 processes of 10 in 8.00 min."]
    assert machine.now <= 480


def test_the_dearest_workload_is_left_out_where_three_processes_of_all_do_not_fit(
    database: Database, tmp_path: Path
) -> None:
    machine = Machine(lambda name, _number: 150.0 if name == "cnn" else 20.0)
    found = validated(database, tmp_path, machine)
    assert sum(spec.workload.name == "cnn" for spec in machine.specs) == 1
    assert found.cut == [
        "cnn has no figure: 3 fresh processes of it do not fit into 8.00 min.",
        "Each other workload has 5 processes of 10 in 8.00 min.",
    ]
    assert machine.now <= 480


def test_it_ends_in_time_where_later_processes_take_longer(database: Database, tmp_path: Path) -> None:
    machine = Machine(lambda _name, number: 10.0 * (1 + number))
    found = validated(database, tmp_path, machine)
    # Rounds of 40, 80, 120 and 160 s; a fifth, of about 100 s by the median of these, does not fit.
    assert machine.counts() == [4, 4, 4, 4]
    assert machine.now <= 480
    assert found.cut == ["Each workload has 4 processes of 10 in 8.00 min."]


def test_a_machine_that_slows_down_still_has_a_figure(database: Database, tmp_path: Path) -> None:
    """Half of the workloads are let go in time for the others to get their three."""
    machine = Machine(lambda name, number: (20.0 + 5 * CPU.index(name)) * (1 + 0.8 * number))
    found = validated(database, tmp_path, machine, budget_s=250)
    assert sorted(machine.counts())[-1] >= 3
    assert machine.now <= 250
    assert any("has no figure" in sentence for sentence in found.cut)


def test_a_process_that_hangs_ends_with_the_time_and_leaves_no_failed_trial(
    database: Database, tmp_path: Path
) -> None:
    machine = Machine(lambda _name, _number: 9_999.0)
    found = validated(database, tmp_path, machine, budget_s=60)
    assert machine.now == 60
    assert (found.trials, stored(database), status(database)) == ([], [], "finished")
    assert len(found.cut) == 4


def test_a_workload_that_fails_is_not_tried_again(database: Database, tmp_path: Path) -> None:
    machine = Machine(lambda _name, _number: 10.0, failing="cnn")
    found = validated(database, tmp_path, machine)
    assert sorted(machine.counts()) == [1, 10, 10, 10]
    assert found.cut == ["1 trial of cnn failed: timeout."]


def test_ctrl_c_ends_it_and_keeps_what_was_measured(database: Database, tmp_path: Path) -> None:
    machine = Machine(lambda _name, _number: 10.0, stops_at=6)
    found = validated(database, tmp_path, machine)
    assert (found.interrupted, status(database), found.cut) == (True, "cancelled", [])
    # The sixth was cut short by it, which its record says.
    assert len(stored(database)) == 6
    assert sum(trial.failure is not None for trial in stored(database)) == 1


def test_a_gpu_is_probed_once_after_the_first_round(database: Database, tmp_path: Path) -> None:
    machine = Machine(lambda _name, _number: 5.0)
    asked: list[tuple[list[str], float, float]] = []

    def probes(spec: TrialSpec, workloads: list[Any], _is_over: Callable[[], bool]) -> Probed:
        asked.append(([workload.name for workload in workloads], spec.timeout_s, machine.now))
        machine.now += 60
        return Probed(problem="none here")

    found = validated(database, tmp_path, machine, device="cuda:0", probes=probes)
    ((names, limit_s, at_s),) = asked
    assert (sorted(names), limit_s, at_s) == (sorted(GPU), 120.0, 20.0)
    assert found.probed == Probed(problem="none here")
    assert machine.counts() == [10, 10, 10, 10]
    assert machine.now == 260


def test_a_device_that_others_hold_is_an_error_and_only_the_end_of_the_time_is_not(
    database: Database, tmp_path: Path
) -> None:
    machine = Machine(lambda _name, _number: 5.0)

    def busy(_spec: TrialSpec, **_options: Any) -> Trial:
        machine.now += waits_s
        raise DeviceBusyError("Somebody else measures.", "Wait.")

    waits_s = 10.0
    with pytest.raises(DeviceBusyError):
        validated(database, tmp_path, machine, measure=busy)
    waits_s = 500.0
    found = validated(database, tmp_path, machine, measure=busy)
    assert found.trials == []


def test_real_processes(database: Database, tmp_path: Path) -> None:
    """By the supervisor, without torch in them: fresh ones, spooled, stored."""
    python = interpreter(tmp_path / "python")
    machine = Machine(lambda _name, _number: 0.0)
    measure = functools.partial(run_trial, interpreter=python)
    found = validated(database, tmp_path, machine, measure=measure, clock=time.monotonic, processes=3)
    assert len(found.trials) == len(stored(database)) == 12
    assert found.cut == []
    assert Spool(tmp_path / "spool").waiting() == []
