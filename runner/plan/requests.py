"""From a run request to a plan, with the names of this host's configuration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from compilewatch.db.errors import ConfigError
from compilewatch.db.records.requests import RequestSpec
from compilewatch.runner.config.settings import BuildSettings, Settings
from compilewatch.runner.plan.builds import builds_named, interpreter_facts
from compilewatch.runner.plan.host_stacks import HostStacks
from compilewatch.runner.plan.plan import Plan, plan_run
from compilewatch.runner.plan.selection import refuse_code, resolve_device
from compilewatch.runner.plan.trial_spec import Diagnostics, TrialSpec


def plan_request(settings: Settings, spec: RequestSpec) -> Plan:
    """The trials that `spec` asks for.

    Raises CompilewatchError for a name that this host does not know, a recorded build that is not here, an
    interpreter without torch, or a request that comes to nothing.
    """
    builds = builds_of(settings, spec)
    device = resolve_device(settings, interpreter_facts(builds))
    return plan_spec(settings, spec, builds, device=device)


def plan_spec(settings: Settings, spec: RequestSpec, builds: list[BuildSettings], *, device: str) -> Plan:
    """The trials that `spec` asks for with these builds on a device of this kind, here or elsewhere.

    A request is data: it names what is configured, and "module:function" is code. Raises CompilewatchError
    for a name that the configuration does not know, or a request that comes to nothing.
    """
    workloads = spec.workloads or tuple(dict.fromkeys(workload for workload, _ in spec.cases))
    strategies = spec.strategies or tuple(dict.fromkeys(strategy for _, strategy in spec.cases))
    refuse_code(settings, workloads, strategies)
    plan = plan_run(
        settings,
        suite=spec.suite,
        workloads=workloads,
        strategies=strategies,
        trials=spec.trials,
        device=device,
        label=spec.label,
        builds=builds,
        diagnostics=Diagnostics(spec.profile, settings.data_dir.absolute() if spec.trace else None),
    )
    if spec.cases:
        plan = only_cases(plan, spec.cases)
    if spec.budget_trials is not None and len(plan.trials) > spec.budget_trials:
        # Trials are ordered by rounds, so what is left out are last repeats.
        plan = _with_trials(plan, plan.trials[: spec.budget_trials])
    return plan


def builds_of(settings: Settings, spec: RequestSpec) -> list[BuildSettings]:
    """The builds that `spec` names, else those of the configuration."""
    if spec.stacks:
        host = HostStacks.read(settings)
        return [host.build_like(stack) for stack in spec.stacks]
    return builds_named(spec.builds, settings) if spec.builds else list(settings.builds)


def _with_trials(plan: Plan, trials: Iterable[TrialSpec]) -> Plan:
    chosen = tuple(trials)
    planned = Counter(trial.run_id for trial in chosen)
    runs = tuple(
        run.model_copy(update={"planned_trials": planned[run.run_id]})
        for run in plan.runs
        if planned[run.run_id]
    )
    return plan.model_copy(update={"trials": chosen, "runs": runs})


def only_cases(plan: Plan, cases: Collection[tuple[str, str]]) -> Plan:
    """`plan` with these cases alone, by workload and strategy. Raises ConfigError where none is left."""
    trials = [each for each in plan.trials if (each.workload.name, each.strategy.name) in cases]
    if not trials:
        raise ConfigError("None of the cases can be measured here.", "Name others.")
    return _with_trials(plan, trials)
