"""A run of so many minutes: its order, what it leaves out, and how long trials take by what is stored."""

from __future__ import annotations

import socket
from datetime import timedelta
from pathlib import Path

import pytest

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import ConfigError
from compilewatch.db.queries.trials import trial_records
from compilewatch.db.records.trial import Trial
from compilewatch.db.store.trials import save_trials
from compilewatch.runner.cli.measure import run
from compilewatch.runner.config.settings import BuildSettings, Settings
from compilewatch.runner.config.sources import load_settings
from compilewatch.runner.plan.durations import (
    Durations,
    TimeBudget,
    by_value,
    require_fit,
    stored_durations_s,
)
from compilewatch.runner.plan.plan import Plan, plan_run
from compilewatch.runner.plan.trial_spec import Job
from compilewatch.runner.process import execution
from compilewatch.runner.process.execution import RunOutcome, execute, jobs_of
from compilewatch.runner.process.spool import Spool
from tests.builders import START, make_machine, make_trial, make_workload
from tests.runner.quick_measurement import configuration, interpreter

# Seconds of a trial on an H100: small models 4 eager and 12 compiled, then as measured there.
H100_S = {"bert-base": 30, "gpt2": 30, "vit-b16": 30, "sd-unet": 120, "bert-base-train": 70, "resnet50": 20}


class Monotonic:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def h100_s(workload: str, strategy: str) -> float:
    return H100_S.get(workload, 12) * (0.3 if strategy == "eager" else 1.0)


def taken(workload: str, strategy: str, seconds: float, *, host: str | None = None, **more: object) -> Trial:
    return make_trial(
        workload=make_workload(workload),
        strategy=strategy,
        machine=make_machine(host or socket.gethostname()),
        started_at=START,
        ended_at=START + timedelta(seconds=seconds),
        **more,
    )


def standard(tmp_path: Path) -> Plan:
    build = BuildSettings(name="b", python=tmp_path)
    return plan_run(Settings(), suite="standard", device="cuda:0", trials=2, builds=(build,))


def cases(plan: Plan) -> list[tuple[str, str]]:
    return [(spec.workload.name, spec.strategy.name) for spec in plan.trials]


def worked_off(plan: Plan, budget: TimeBudget, monotonic: Monotonic, durations: Durations) -> list[Job]:
    """As an executor would: each admitted trial takes what it takes on an H100, the control series 5 s."""
    done = []
    for job in jobs_of(plan):
        if budget.admits(job):
            done.append(job)
            spec = job.specs[0]
            seconds = 5.0 if job.is_canaries else h100_s(spec.workload.name, spec.strategy.name)
            monotonic.now += seconds
            if not job.is_canaries:
                durations.note((spec.workload.name, spec.strategy.name), seconds)
    return done


@pytest.mark.parametrize("is_known", [True, False], ids=["a stored history", "nothing stored"])
def test_half_an_hour_of_the_standard_suite(
    is_known: bool, sqlite_database: Database, tmp_path: Path
) -> None:
    plan = standard(tmp_path)
    if is_known:
        save_trials(sqlite_database, [taken(*case, h100_s(*case)) for case in set(cases(plan))])
    durations = Durations(stored_durations_s(sqlite_database, plan))
    plan = by_value(plan, durations)
    first = cases(plan)[:10]
    assert {strategy for _, strategy in first} == {"default"}
    assert len(set(first)) == 10
    if is_known:
        assert [h100_s(*case) for case in first] == sorted(h100_s(*case) for case in first)
    monotonic = Monotonic()
    began = monotonic()
    budget = TimeBudget(1_800, durations, canaries=True, monotonic=monotonic)
    done = worked_off(plan, budget, monotonic, durations)
    assert [job.is_canaries for job in (done[0], done[-1])] == [True, True]
    measured = [job.specs[0] for job in done[1:-1]]
    assert cases(plan)[:30] == [(spec.workload.name, spec.strategy.name) for spec in measured[:30]]
    assert 1_700 < monotonic() - began <= 1_800
    assert len(measured) + len(budget.unmeasured) == len(plan.trials)
    assert (budget.unmeasured_text() or "").startswith(f"{len(budget.unmeasured)} trials of ")


def test_the_rest_of_the_order(tmp_path: Path) -> None:
    durations = Durations({("gpt2", "default"): 9.0, ("mlp-4096", "default"): 2.0})
    plan = by_value(standard(tmp_path), durations)
    assert [spec.round for spec in plan.trials] == [0] * 50 + [1] * 50
    strategies = ["default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs", "eager"]
    expected = [strategy for strategy in strategies for _ in range(10)] * 2
    assert [strategy for _, strategy in cases(plan)] == expected
    assert cases(plan)[0] == ("mlp-4096", "default")


def test_builds_stay_side_by_side(tmp_path: Path) -> None:
    builds = [BuildSettings(name=name, python=tmp_path) for name in ("a", "b")]
    names = {"workloads": ("elementwise", "cnn"), "strategies": ("eager", "default")}
    plan = plan_run(Settings(), device="cpu", trials=2, builds=builds, **names)  # type: ignore[arg-type]
    order = by_value(plan, Durations({})).trials
    pairs = list(zip(order[::2], order[1::2], strict=True))
    assert all({a.build, b.build} == {"a", "b"} and a.case == b.case for a, b in pairs)


def test_this_machine_says_how_long_a_trial_takes(sqlite_database: Database, tmp_path: Path) -> None:
    save_trials(
        sqlite_database,
        [
            taken("gpt2", "default", 30.0),
            taken("gpt2", "default", 34.0),
            taken("gpt2", "default", 1.0, failure="cancelled"),
            taken("gpt2", "default", 300.0, host="slow-box"),
            taken("sd-unet", "default", 200.0, host="slow-box"),
        ],
    )
    stored = stored_durations_s(sqlite_database, standard(tmp_path))
    assert stored == {("gpt2", "default"): 32.0, ("sd-unet", "default"): 200.0}


def test_what_is_unknown_costs_what_its_workload_does() -> None:
    durations = Durations({("sd-unet", "default"): 120.0, ("mlp", "max-autotune"): 8.0})
    assert durations.expected_s(("sd-unet", "max-autotune")) == 120.0
    assert durations.expected_s(("cnn", "max-autotune")) == 8.0
    durations.note(("sd-unet", "max-autotune"), 150.0)
    assert durations.expected_s(("sd-unet", "max-autotune")) == 150.0


def test_what_fits_not_even_once_is_refused(tmp_path: Path) -> None:
    plan = standard(tmp_path)
    durations = Durations(dict.fromkeys(cases(plan), 90.0))
    require_fit(plan, durations, 90.0)
    with pytest.raises(ConfigError, match=r"No trial fits into 1.00 min: the shortest takes about 1.50 min"):
        require_fit(plan, durations, 60.0)


class Unheard:
    def trial_started(self, number: int, workload: str, strategy: str, build: str | None) -> None: ...

    def phase(self, name: str) -> None: ...

    def trial_finished(self, trial: Trial) -> None: ...


def test_what_does_not_fit_is_not_measured(
    sqlite_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load_settings(configuration(tmp_path, interpreter(tmp_path / "fake")))
    plan = plan_run(settings, device="cpu", trials=4, builds=settings.builds)
    monotonic, measure = Monotonic(), execution.measure_job

    def timed(*args: object, **options: object) -> list[Trial]:
        monotonic.now += 25.0
        return measure(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(execution, "measure_job", timed)
    budget = TimeBudget(60, Durations({("elementwise", "eager"): 25.0}), canaries=False, monotonic=monotonic)
    outcome = execute(
        plan,
        sqlite_database,
        Spool(tmp_path / "spool"),
        progress=Unheard(),
        is_cancelled=lambda: False,
        admits=budget.admits,
    )
    assert (outcome.measured, outcome.failed, outcome.interrupted) == (2, 0, False)
    assert [trial.trial_id for trial in trial_records(sqlite_database)] == [
        spec.trial_id for spec in plan.trials[:2]
    ]
    assert budget.unmeasured == list(plan.trials[2:])
    assert budget.unmeasured_text() == "2 trials of 1 case did not fit, about 50.0 s: elementwise / eager."


def test_a_run_that_measured_nothing_says_so_by_its_exit_code() -> None:
    def outcome(measured: int, interrupted: bool) -> RunOutcome:
        return RunOutcome(measured, failed=0, waiting=0, interrupted=interrupted)

    codes = [run._exit_code(outcome(*each), None) for each in ((0, False), (0, True), (1, False))]
    assert codes == [2, 130, 0]
