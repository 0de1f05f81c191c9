"""Suite x strategies x builds -> the ordered trials of a run. Imports no torch. And from a run
request to a plan, with the names of this host's configuration.

Order: every round measures each case once, so that a machine that drifts over minutes drifts over all
strategies alike. Within a round the workloads are shuffled, the strategies of one workload stand side by side
and take turns in going first, and several builds alternate A B, B A.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ulid import ULID

from compilewatch.db.errors import ConfigError
from compilewatch.db.records.fields import Closed, Identifier
from compilewatch.db.records.requests import RequestSpec
from compilewatch.db.records.sampling_facts import FEWEST_FOR_P99
from compilewatch.db.records.strategies import EAGER, ONNX_PACKAGES, not_applicable_reason
from compilewatch.db.records.trial import Strategy, StrategyKind, Task
from compilewatch.db.units import plural
from compilewatch.runner.catalog.definition import WorkloadDefinition
from compilewatch.runner.config.settings import RELEASE_IN_TRIAL, THIS_INTERPRETER, BuildSettings, Settings
from compilewatch.runner.plan.builds import builds_named, interpreter_facts
from compilewatch.runner.plan.cancellation import check_cancelled
from compilewatch.runner.plan.host_stacks import HostStacks
from compilewatch.runner.plan.selection import (
    ResolvedSuite,
    check_packages,
    refuse_code,
    resolve_device,
    select,
)
from compilewatch.runner.plan.trial_spec import (
    NO_DIAGNOSTICS,
    Diagnostics,
    TorchSettings,
    TrialSpec,
    WorkloadSpec,
)
from compilewatch.runner.worker.timing.sampling import SamplingPlan

QUANTISED = ("int8", "fp8")
"""Variants that torchao makes."""


class NotApplicable(Closed):
    """A case that means nothing here, and why. It is shown and not measured."""

    workload: str
    strategy: str
    reason: str


class PlannedRun(Closed):
    """One execution of a suite with one build. `build` and `interpreter` None stand for the planning one,
    `planned_trials` None for as many as it takes.
    """

    run_id: Identifier
    suite: str | None
    label: str | None
    build: str | None
    interpreter: Path | None
    planned_trials: int | None


class Plan(Closed):
    """Everything one command measures: a run per build, and the trials of all in the order to run them."""

    runs: tuple[PlannedRun, ...]
    trials: tuple[TrialSpec, ...]
    not_applicable: tuple[NotApplicable, ...]
    canaries: bool = False
    """Whether the machine's control series is measured before and after."""


def plan_run(
    settings: Settings,
    *,
    suite: str | None = None,
    workloads: Sequence[str] = (),
    strategies: Sequence[str] = (),
    trials: int | None = None,
    device: str,
    label: str | None = None,
    builds: Sequence[BuildSettings] = (),
    diagnostics: Diagnostics = NO_DIAGNOSTICS,
) -> Plan:
    """What `compilewatch run` would measure. `diagnostics` follow the first trial of every case.

    `suite` and `workloads`: neither stands for the configured suite, both for those workloads of the suite,
    `workloads` alone for no suite. `device` is resolved ("cpu", "cuda:0"), never "auto". No `builds` stands
    for this interpreter. Raises NotFoundError or ConfigError for a name that is not known, a workload that
    cannot be built, or a plan without a trial.
    """
    selection = select(settings, suite=suite, workloads=workloads, strategies=strategies)
    require_limits(settings, selection, builds=len(builds), trials=trials)
    if not builds:
        check_packages(selection.workloads)
    cases, not_applicable = _split(selection, device, is_here=not builds)
    if not cases:
        raise ConfigError(
            f"Nothing of this can be measured on {device}: {not_applicable[0].reason}.",
            "Name another strategy; `compilewatch list strategies` shows all.",
        )
    rounds = trials or settings.run.trials or selection.trials
    runs = tuple(
        PlannedRun(
            run_id=str(ULID()),
            suite=selection.suite,
            label=label or _called(build),
            build=build.name if build else None,
            interpreter=build.python if build else None,
            planned_trials=rounds * sum(len(chosen) for chosen in cases.values()),
        )
        for build in builds or (None,)
    )
    order = _ordered(cases, len(runs), rounds, settings.run.seed)
    diagnostics = replace(diagnostics, bisect_s=settings.run.bisect_s)
    specs = tuple(
        spec.model_copy(update={"diagnostics": diagnostics}) if spec.round == 0 else spec
        for spec in _specs(settings, selection, device, runs, order)
    )
    return Plan(runs=runs, trials=specs, not_applicable=not_applicable, canaries=settings.run.canaries)


_NOBODYS_NAME = re.compile(rf"torch-\d+\.\d+\.\d+\S*|python\d+|{RELEASE_IN_TRIAL}-\S*")


def _called(build: BuildSettings | None) -> str | None:
    """The label of a build that somebody named, so that its name works wherever a build is asked for; None
    where its name is that of its release, or its number among those of `--python`.
    """
    if build is None or build.name == THIS_INTERPRETER or _NOBODYS_NAME.fullmatch(build.name):
        return None
    return build.name


def require_limits(settings: Settings, selection: ResolvedSuite, *, builds: int, trials: int | None) -> None:
    """Raise ConfigError where a plan of this would go beyond `[limits]`; nothing is planned for it."""
    cases = len(selection.workloads) * len(selection.strategies)
    rounds = trials or settings.run.trials or selection.trials
    settings.limits.require("builds", builds)
    settings.limits.require("cases", cases)
    settings.limits.require("trials", rounds * cases * max(1, builds))


def _specs(
    settings: Settings,
    selection: ResolvedSuite,
    device: str,
    runs: Sequence[PlannedRun],
    order: Iterable[tuple[int, str, Strategy, int]],
) -> Iterator[TrialSpec]:
    workloads = {definition.name: workload_spec(definition) for definition in selection.workloads}
    for round_, name, strategy, index in order:
        check_cancelled()
        run = runs[index]
        yield TrialSpec(
            trial_id=str(ULID()),
            run_id=run.run_id,
            suite=run.suite,
            label=run.label,
            workload=workloads[name],
            strategy=strategy,
            device=device,
            threads=settings.threads,
            settings=TorchSettings(matmul_precision=settings.run.matmul_precision),
            sampling=_sampling(settings, name, strategy.name),
            timeout_s=settings.run.timeout_s,
            idle_wait_s=settings.run.idle_wait_s,
            seed=settings.run.seed,
            worker_env=dict(selection.worker_env[name]),
            round=round_,
            build=run.build,
            interpreter=run.interpreter,
        )


def _sampling(settings: Settings, workload: str, strategy: str) -> SamplingPlan:
    """That of `[run]`, with the steps that a p99 needs where a target limits it."""
    plan = settings.run.sampling_plan()
    limited = (each for each in settings.target if each.latency_p99_ns is not None)
    if any(each.fits(workload, strategy) for each in limited):
        return replace(plan, samples=max(plan.samples, FEWEST_FOR_P99))
    return plan


def _split(
    selection: ResolvedSuite, device: str, *, is_here: bool
) -> tuple[dict[str, list[Strategy]], tuple[NotApplicable, ...]]:
    """Strategies that mean something by workload, and the other cases with their reasons.

    Where another interpreter measures, what it has installed turns out there.
    """
    cases: dict[str, list[Strategy]] = {}
    others: list[NotApplicable] = []
    device_kind = device.split(":", maxsplit=1)[0]
    for definition in selection.workloads:
        for strategy in selection.strategies:
            reason = not_applicable_reason(strategy, device_kind) or _unfit(definition, strategy)
            reason = reason or _unfit_variant(definition, device_kind, is_here=is_here)
            if is_here and not reason and strategy.backend == "onnxruntime":
                missing = next((name for name in ONNX_PACKAGES if find_spec(name) is None), None)
                reason = missing and f"{missing} is not installed; the extra onnx brings it"
            if reason is None:
                cases.setdefault(definition.name, []).append(strategy)
            else:
                others.append(NotApplicable(workload=definition.name, strategy=strategy.name, reason=reason))
    return cases, tuple(others)


def _unfit_variant(definition: WorkloadDefinition, device: str, *, is_here: bool) -> str | None:
    """Why a quantised variant cannot be measured, as far as that is known before it is built."""
    if definition.variant not in QUANTISED:
        return None
    if definition.task is Task.TRAINING:
        return f"{definition.variant} is for inference"
    if definition.variant == "fp8" and device == "cpu":
        return "fp8 needs a GPU that multiplies 8-bit floats"
    if is_here and find_spec("torchao") is None:
        return "torchao is not installed; the extra quantised brings it"
    return None


def _unfit(definition: WorkloadDefinition, strategy: Strategy) -> str | None:
    """Why `strategy` can do nothing with this workload, as far as that is known before it is built."""
    if definition.task is Task.FUNCTION and strategy.scope != "full":
        return "a function has no submodules to compile one by one"
    if strategy.scope in ("regional", "nested") and not definition.has_regions:
        return "the model has no repeated blocks to compile one by one"
    if strategy.kind not in (StrategyKind.EXPORT, StrategyKind.AOT_PACKAGE):
        return None
    if definition.ranks is not None:
        return "an exported program is for one process, and this takes a process group"
    if definition.task is not Task.INFERENCE and not strategy.fullgraph:
        return "only a model in inference is exported"
    several = "an exported program is for one batch, and this goes through several"
    return several if definition.is_stream else None


def _ordered(
    cases: dict[str, list[Strategy]], builds: int, rounds: int, seed: int
) -> Iterator[tuple[int, str, Strategy, int]]:
    """(round, workload, strategy, index of the build) in the order to measure them."""
    for round_ in range(rounds):
        names = list(cases)
        random.Random(f"{seed}:{round_}").shuffle(names)  # noqa: S311
        for name in names:
            strategies = cases[name]
            for position in range(len(strategies)):
                strategy = strategies[(position + round_) % len(strategies)]
                order = range(builds) if (position + round_) % 2 == 0 else reversed(range(builds))
                for build in order:
                    yield round_, name, strategy, build


def case_spec(
    definition: WorkloadDefinition, strategy: Strategy, device: str, settings: Settings
) -> dict[str, Any]:
    """One case and its settings as the scripts have it that run it without compilewatch.

    Raises ConfigError for a workload of ranks.
    """
    require_one_rank(definition, "A script")
    workload = workload_spec(definition).model_dump(mode="json")
    names = ("name", "task", "batch_size", "shape", "dtype", "kwargs", "regions", "task_is_open", "variant")
    return {
        "workload": {name: workload[name] for name in names},
        "strategy": strategy.model_dump(mode="json"),
        "device": device,
        "threads": settings.threads,
        "matmul_precision": settings.run.matmul_precision,
        "seed": settings.run.seed,
    }


def require_one_rank(definition: WorkloadDefinition, what: str) -> None:
    """Raises ConfigError for a workload of ranks, whose process group `what` does not start."""
    if definition.ranks is not None:
        raise ConfigError(
            f"{what} runs in one process, and {definition.name} takes {plural(definition.ranks, 'rank')}.",
            f"Measure it: `compilewatch run --workload {definition.name}`.",
        )


def workload_spec(definition: WorkloadDefinition) -> WorkloadSpec:
    """`definition` as the measured process is told of it."""
    return WorkloadSpec(
        **definition.record().model_dump(),
        target=definition.target,
        kwargs=dict(definition.kwargs),
        regions=definition.regions,
        path=definition.path,
        task_is_open=definition.task_is_open,
    )


TIMEOUT_S = 120.0
TRIALS_PER_RUN = 6
"""Three workloads before and three after."""

_MIB = 2**20


def canary_workloads(device: str) -> tuple[WorkloadDefinition, ...]:
    """The three workloads at the size for `device`: milliseconds a step on a CPU, less on a GPU."""
    gpu = device != "cpu"
    size, copied = (4096, 256 * _MIB) if gpu else (512, 32 * _MIB)
    return (
        _canary("gemm", size, "bfloat16" if gpu else "float32", 2.0 * size**3, "operation"),
        _canary("copy", copied, "uint8", float(copied), "byte"),
        # Half of what a GPU's queue takes: more would wait for a place in it.
        _canary("launch", 500, "float32", 500.0, "launch"),
    )


def _canary(name: str, size: int, dtype: str, items: float, item: str) -> WorkloadDefinition:
    return WorkloadDefinition(
        name=f"canary-{name}",
        task=Task.FUNCTION,
        target=f"compilewatch.runner.worker.canary:{name}",
        shape={"size": size},
        dtype=dtype,
        items_per_iteration=items,
        item=item,
    )


def canary_specs(trial: TrialSpec) -> tuple[TrialSpec, ...]:
    """One eager trial of each canary under the conditions of `trial`: its run, build, device and threads."""
    return tuple(
        trial.model_copy(
            update={
                "trial_id": str(ULID()),
                "workload": workload_spec(definition),
                "strategy": EAGER,
                "timeout_s": TIMEOUT_S,
            }
        )
        for definition in canary_workloads(trial.device)
    )


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
