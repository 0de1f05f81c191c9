"""A stored trial -> its specification for another measurement, or a script that needs torch alone."""

from __future__ import annotations

import shlex
import statistics
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import get_args

from packaging.version import InvalidVersion, Version
from ulid import ULID

from compilewatch.db.errors import ConfigError, one_line
from compilewatch.db.metrics.trial_times import summarize_samples
from compilewatch.db.records.trial import SourceKind, Strategy, Trial
from compilewatch.db.units import count, duration, moment, words
from compilewatch.runner.catalog.definition import WorkloadDefinition
from compilewatch.runner.catalog.targets import split_target
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.plan.builds import created_builds
from compilewatch.runner.plan.bundle import bundle_of, literal
from compilewatch.runner.plan.interpreter import (
    check_interpreter,
    passed_on,
    pinned_settings,
    recorded_environment,
)
from compilewatch.runner.plan.plan import Plan, PlannedRun, case_spec, workload_spec
from compilewatch.runner.plan.selection import select_by_data
from compilewatch.runner.plan.trial_spec import Diagnostics, MatmulPrecision, TorchSettings, TrialSpec
from compilewatch.runner.worker.step.host import split_version, torch_variant

MOST_THREADS = 1024
"""More than that a record cannot ask for; a script may be for a larger host than this one."""


def plan_again(trial: Trial, settings: Settings, interpreter: Path | None = None) -> Plan:
    """The case of `trial` as this host defines it, with the threads of `trial`, in a run of its own.

    `interpreter` defaults to the first one here that has the torch of `trial`. Raises ConfigError when none
    has, when workload, strategy or environment are others here, or when `trial` was not measured by
    compilewatch.
    """
    case = case_here(trial, settings)
    chosen = interpreter or interpreter_for(trial, settings)
    run_id = str(ULID())
    spec = TrialSpec(
        trial_id=str(ULID()),
        run_id=run_id,
        suite=None,
        label=trial.build.label,
        workload=workload_spec(case.definition),
        strategy=case.strategy,
        device=device_of(trial),
        threads=case.threads,
        settings=TorchSettings(matmul_precision=case.matmul_precision),
        sampling=settings.run.sampling_plan(),
        timeout_s=settings.run.timeout_s,
        seed=settings.run.seed,
        worker_env=case.worker_env,
        diagnostics=Diagnostics(bisect_s=settings.run.bisect_s),
        round=0,
        interpreter=chosen,
    )
    run = PlannedRun(
        run_id=run_id, suite=None, label=spec.label, build=None, interpreter=chosen, planned_trials=1
    )
    return Plan(runs=(run,), trials=(spec,), not_applicable=())


def interpreter_for(trial: Trial, settings: Settings, *, any_variant: bool = False) -> Path:
    """This Python, a created or a configured build: the first with the release and variant of `trial`, with
    its release alone where `any_variant` will do.
    """
    wanted = (trial.build.torch, trial.build.torch_variant)
    builds = created_builds(settings)
    created = [build.python for build in builds if split_version(build.facts.torch)[0] == wanted[0]]
    for python in (Path(sys.executable), *created, *(entry.python for entry in settings.builds)):
        facts = check_interpreter(str(python))
        release, local = split_version(facts.torch)
        variant = wanted[1] if any_variant else torch_variant(local, facts.cuda, facts.hip)
        if (release, variant) == wanted:
            return python
    raise ConfigError(
        f"The trial measured torch {one_line(wanted[0])} ({one_line(str(wanted[1]))}), which is not here.",
        _next_step(wanted[0]),
    )


def _next_step(release: str) -> str:
    """With the command that makes a build of a release; never a command that a record wrote."""
    try:
        return (
            f"Make one with `compilewatch builds create torch=={Version(release)}`, or name a --python or "
            "--build."
        )
    except InvalidVersion:
        return "Name a --python or --build."


def script_of(trial: Trial, settings: Settings) -> str:
    """One Python file that builds the workload of `trial`, measures it and prints both latencies.

    It imports torch and what the workload itself imports from installed packages, nothing of compilewatch.
    Raises ConfigError as `plan_again` does, BundleError when the workload's own modules cannot be carried.
    """
    case = case_here(trial, settings)
    definition = case.definition
    bundle = bundle_of(definition.target, definition.path)
    bundle.add("compilewatch.runner.worker.compiler.scripts", "reproduce")
    environment = pinned_settings(case.threads) | case.worker_env
    spec = case_spec(definition, case.strategy, device_of(trial), settings)
    spec |= {"threads": case.threads, "matmul_precision": case.matmul_precision}
    spec |= {"samples": settings.run.samples, "stored": _ranges(trial)}
    return _SCRIPT.format(
        docstring=_docstring(trial),
        environment=literal(environment),
        key=repr(trial.trial_id),
        imports=bundle.imports(),
        spec=literal(spec),
        body=bundle.body(),
        function=split_target(definition.target)[1],
    )


_SCRIPT = """{docstring}

from __future__ import annotations

import os
import shutil
import sys
import tempfile

# The allocator, OpenMP and the compiler's caches read these once, when a process starts.
ENVIRONMENT = {environment}
if os.environ.get("COMPILEWATCH_SCRIPT") != {key}:
    caches = tempfile.mkdtemp(prefix="compilewatch-")
    places = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUDA_CACHE_PATH", "TMPDIR")
    changed = {{**os.environ, **ENVIRONMENT, **dict.fromkeys(places, caches), "COMPILEWATCH_SCRIPT": {key}}}
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], changed)

# OpenMP binds this thread as torch is loaded, which is for the timed steps: what compiles uses them all.
CPUS = os.sched_getaffinity(0)

{imports}

SPEC = {spec}


{body}


if __name__ == "__main__":
    try:
        reproduce({{**SPEC, "cpus": CPUS}}, {function})
    finally:
        shutil.rmtree(os.environ["TORCHINDUCTOR_CACHE_DIR"], ignore_errors=True)
"""


def _docstring(trial: Trial) -> str:
    build = trial.build
    what = f"{trial.workload.name} version {trial.workload.version}, {trial.strategy.name}"
    medians = {name: statistics.median(samples) for name, samples in _sides(trial).items() if samples}
    figures = ", ".join(f"{name} {duration(value)}" for name, value in medians.items())
    where = f"torch {build.torch} ({build.torch_variant or 'unknown variant'}), {trial.machine.device_name}"
    facts = one_line(what), one_line(where)
    text = f"Trial {trial.trial_id} again: {facts[0]}.\n\nMeasured {moment(trial.started_at)}: {facts[1]}."
    text += f"\nIt had {figures}." if figures else ""
    text += "\nCaches start empty, whatever the trial's were."
    safe = text.replace("\\", "/").replace('"""', "'''")
    return f'"""{safe}\n"""'


def _sides(trial: Trial) -> dict[str, list[int]]:
    """The samples of eager, and those of a compiled strategy."""
    if trial.strategy.kind == "eager":
        return {"eager": trial.latency_samples_ns}
    return {"eager": trial.control_latency_samples_ns, "compiled": trial.latency_samples_ns}


def _ranges(trial: Trial) -> dict[str, list[float]]:
    """Median, 5th and 95th percentile of each side's samples, and of their ratio at its farthest."""
    ranges = {}
    for name, samples in _sides(trial).items():
        summary = summarize_samples(samples)
        if summary is not None:
            ranges[name] = [summary.latency_ns, summary.p05_ns, summary.p95_ns]
    if len(ranges) == 2:
        (eager_ns, eager_low, eager_high), (own_ns, own_low, own_high) = ranges["eager"], ranges["compiled"]
        ranges["speedup"] = [eager_ns / own_ns, eager_low / own_high, eager_high / own_low]
    return ranges


@dataclass(frozen=True)
class CaseHere:
    """What a trial measured, by this host's own words for it."""

    definition: WorkloadDefinition
    strategy: Strategy
    worker_env: dict[str, str]
    threads: int
    matmul_precision: MatmulPrecision


def case_here(trial: Trial, settings: Settings) -> CaseHere:
    """Code, options and environment of this host, which are those that `trial` claims.

    Whoever may import may claim anything, so nothing of it is executed. Threads and precision come from the
    record: a number within bounds and one of three words. Raises ConfigError naming what is not the same.
    """
    if trial.source.kind is not SourceKind.MEASURED:
        raise ConfigError(
            f"Trial {trial.trial_id} came from {one_line(trial.source.name)}, which says too little to "
            "repeat it.",
            "Measure the workload here with `compilewatch run`.",
        )
    chosen = select_by_data(settings, trial.suite, trial.workload.name, trial.strategy.name)
    ((definition,), (strategy,)) = chosen.workloads, chosen.strategies
    again = f"`compilewatch run -w {shlex.quote(definition.name)} -s {shlex.quote(strategy.name)}`"
    _refuse_another_workload(trial, definition, again)
    environment = dict(chosen.worker_env[definition.name])
    differences = _strategy_differences(trial.strategy, strategy)
    differences += _environment_differences(trial, passed_on() | recorded_environment(environment))
    if differences:
        raise ConfigError(
            f"Trial {trial.trial_id} is not what this host would measure: {'; '.join(differences)}.",
            f"A record is never executed; {again} measures what this host defines.",
        )
    precision = trial.build.settings.get("matmul_precision", settings.run.matmul_precision)
    threads = trial.machine.threads or settings.threads
    if precision not in get_args(MatmulPrecision) or threads > MOST_THREADS:
        what = f"{count(threads)} threads" if threads > MOST_THREADS else one_line(repr(precision))
        raise ConfigError(
            f"Trial {trial.trial_id} claims {what}, which nothing is measured with.", f"Measure with {again}."
        )
    return CaseHere(definition, strategy, environment, threads, precision)


def _refuse_another_workload(trial: Trial, definition: WorkloadDefinition, again: str) -> None:
    now = definition.record()
    if definition.task_is_open:
        now = now.model_copy(update={"task": trial.workload.task})
    if now.version != trial.workload.version:
        raise ConfigError(
            f"Workload {now.name} is now version {now.version}; the trial measured "
            f"{one_line(trial.workload.version)}.",
            f"Use the source that measured it ({one_line(trial.source.name)}), or measure the new one with "
            f"{again}.",
        )
    if now != trial.workload:
        raise ConfigError(
            f"Workload {now.name} has another size, dtype or task now than in the trial.",
            "Give the configuration the trial's values; `compilewatch show` prints them.",
        )


def _strategy_differences(claimed: Strategy, here: Strategy) -> list[str]:
    pairs = ((name, getattr(claimed, name), getattr(here, name)) for name in Strategy.model_fields)
    return [
        f"{words(name)} {_claim(theirs)} in the record, {_claim(ours)} here"
        for name, theirs, ours in pairs
        if theirs != ours
    ]


def _environment_differences(trial: Trial, here: Mapping[str, str]) -> list[str]:
    """Of the variables that the record names; none where it names no environment at all."""
    claimed = trial.build.settings.get("environment", here)
    if not isinstance(claimed, dict):
        return ["environment is no table in the record"]
    return [
        f"{one_line(name, 60)} {_claim(claimed.get(name))} in the record, {_claim(here.get(name))} here"
        # Where a host's libraries lie is its own matter.
        for name in sorted({*claimed, *here} - {"LD_LIBRARY_PATH"})
        if claimed.get(name) != here.get(name)
    ]


def _claim(value: object) -> str:
    shown = value.value if isinstance(value, Enum) else value
    return "unset" if shown is None else one_line(repr(shown), 80)


def device_of(trial: Trial) -> str:
    return "cpu" if trial.machine.device == "cpu" else "cuda:0"
