"""From a run request to a plan, with the names of this host's configuration."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable

from db.errors import ConfigError
from db.requests import RequestSpec
from runner.builds import builds_named
from runner.config import BuildSettings, Settings
from runner.device_choice import resolve_device
from runner.interpreter import InterpreterFacts, check_interpreter
from runner.plan import Plan, plan_run
from runner.trial_spec import TrialSpec


def plan_request(settings: Settings, spec: RequestSpec) -> Plan:
    """The trials that `spec` asks for.

    Raises CompilewatchError for a name that this host does not know, an interpreter without torch, or a
    request that comes to nothing.
    """
    builds = builds_named(spec.builds, settings) if spec.builds else list(settings.builds)
    plan = plan_run(
        settings,
        suite=spec.suite,
        workloads=spec.workloads or _names(workload for workload, _ in spec.cases),
        strategies=spec.strategies or _names(strategy for _, strategy in spec.cases),
        trials=spec.trials,
        device=resolve_device(settings.run.device, build_facts(builds)),
        label=spec.label,
        builds=builds,
    )
    if spec.cases:
        plan = _with_trials(plan, [trial for trial in plan.trials if _case(trial) in spec.cases])
        if not plan.trials:
            raise ConfigError("None of the cases can be measured here.", "Name others.")
    if spec.budget_trials is not None and len(plan.trials) > spec.budget_trials:
        # Trials are ordered by rounds, so what is left out are last repeats.
        plan = _with_trials(plan, plan.trials[: spec.budget_trials])
    return plan


def build_facts(builds: Iterable[BuildSettings]) -> list[InterpreterFacts]:
    """What each build can measure; of this interpreter where there are none. Raises InterpreterError."""
    return [check_interpreter(str(build.python)) for build in builds] or [check_interpreter(sys.executable)]


def _with_trials(plan: Plan, trials: Iterable[TrialSpec]) -> Plan:
    kept = tuple(trials)
    planned = Counter(trial.run_id for trial in kept)
    runs = tuple(
        run.model_copy(update={"planned_trials": planned[run.run_id]})
        for run in plan.runs
        if planned[run.run_id]
    )
    return plan.model_copy(update={"trials": kept, "runs": runs})


def _case(trial: TrialSpec) -> tuple[str, str]:
    return trial.workload.name, trial.strategy.name


def _names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
