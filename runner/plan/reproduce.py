"""A stored trial -> its specification for another measurement, or a script that needs torch alone."""

from __future__ import annotations

import ast
import pprint
import shlex
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, get_args

from packaging.version import InvalidVersion, Version
from ulid import ULID

from db.errors import CompilewatchError, ConfigError, one_line
from db.metrics.summary import summarize_samples
from db.records.trial import SourceKind, Strategy, Trial
from db.wording.units import count, duration, moment, words
from runner.config.settings import Settings
from runner.plan.builds import created_builds
from runner.plan.interpreter import InterpreterFacts, check_interpreter
from runner.plan.plan import Plan, PlannedRun, workload_spec
from runner.plan.selection import select_by_data
from runner.plan.trial_spec import MatmulPrecision, TorchSettings, TrialSpec
from runner.process.measured_process import pinned_settings, recorded_environment
from runner.worker.host import split_version, torch_variant
from runner.workloads.definition import WorkloadDefinition
from runner.workloads.targets import split_target

# Source of several modules as one file: what a function needs, in the order in which it must be defined.
#
# Works on syntax trees, so nothing is imported or run, and what is carried keeps its comments.

Locate = Callable[[str], Path | None]
_Import = ast.Import | ast.ImportFrom


class BundleError(CompilewatchError):
    """The source cannot be put into one file."""


@dataclass
class _Module:
    """One carried module: what its top level defines, and what it takes from elsewhere."""

    name: str
    source: str
    definitions: dict[str, ast.stmt] = field(default_factory=dict)
    others: list[ast.stmt] = field(default_factory=list)
    """Statements that define nothing and are run for what they do."""
    carried: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Name -> (module, name there)."""
    imports: dict[str, str] = field(default_factory=dict)
    """Name -> the statement that imports it from an installed package."""


class Bundle:
    """Collects definitions. `locate` gives the file of a module to carry, None for an installed one."""

    def __init__(self, locate: Locate) -> None:
        self._locate = locate
        self._modules: dict[str, _Module] = {}
        self._imports: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._visited: set[tuple[str, str]] = set()
        self._in_order: list[str] = []

    def add(self, module: str, name: str) -> None:
        """Carry `module.name` and all it refers to. Raises BundleError where that is not possible."""
        self._need(self._read(module), name)

    def add_whole(self, module: str) -> None:
        """Carry everything of `module`, the statements that define nothing included."""
        read = self._read(module)
        for name in (*read.definitions, *read.imports):
            self._need(read, name)
        for statement in read.others:
            self._follow(read, statement)
            self._in_order.append(_text(read.source, statement))

    def imports(self) -> str:
        """The import statements of installed packages, one per line."""
        plain = sorted({text for text in self._imports.values() if text.startswith("import")})
        return "\n".join([*plain, *sorted(set(self._imports.values()) - set(plain))])

    def body(self) -> str:
        """Every carried definition, what is referred to before what refers to it."""
        return "\n\n\n".join(self._in_order)

    def _read(self, name: str) -> _Module:
        if name not in self._modules:
            path = self._locate(name)
            assert path is not None
            source = path.read_text(encoding="utf-8")
            module = _Module(name, source)
            for statement in ast.parse(source).body:
                self._sort_in(module, statement)
            self._modules[name] = module
        return self._modules[name]

    def _sort_in(self, module: _Module, statement: ast.stmt) -> None:
        match statement:
            case ast.ImportFrom(module="__future__"):
                return
            case ast.Import() | ast.ImportFrom():
                self._note_import(module, statement)
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                for inner in statement.body:
                    self._sort_in(module, inner)
            case ast.Expr(value=ast.Constant(value=str())):
                return
            case _:
                names = list(_bound(statement))
                module.definitions |= dict.fromkeys(names, statement)
                if not names:
                    module.others.append(statement)

    def _note_import(self, module: _Module, statement: _Import) -> None:
        source = statement.module if isinstance(statement, ast.ImportFrom) else None
        for alias in statement.names:
            bound = alias.asname or alias.name.partition(".")[0]
            whole = f"{source}.{alias.name}" if source else alias.name
            level = statement.level if isinstance(statement, ast.ImportFrom) else 0
            renamed = f" as {alias.asname}" if alias.asname else ""
            if level or self._locate(whole) is not None:
                raise BundleError(
                    f"{module.name} imports {whole} as a module, which one file cannot hold.",
                    "Import the names it needs: from module import name.",
                )
            if source and self._locate(source) is not None:
                if alias.name == "*" or alias.asname:
                    raise BundleError(
                        f"{module.name} imports from {source} under another name, or everything.",
                        "Import each name as it is called there.",
                    )
                module.carried[bound] = (source, alias.name)
            elif source:
                module.imports[bound] = f"from {source} import {alias.name}{renamed}"
            else:
                module.imports[bound] = f"import {alias.name}{renamed}"

    def _need(self, module: _Module, name: str) -> None:
        if (module.name, name) in self._visited:
            return
        self._visited.add((module.name, name))
        if name in module.carried:
            other, there = module.carried[name]
            self._need(self._read(other), there)
        elif name in module.imports:
            self._claim(self._imports, name, module.imports[name], module)
        elif name in module.definitions:
            statement = module.definitions[name]
            self._follow(module, statement)
            text = _text(module.source, statement)
            if self._texts.get(name) != text:
                self._claim(self._texts, name, text, module)
                if text not in self._in_order:
                    self._in_order.append(text)

    def _follow(self, module: _Module, statement: ast.stmt) -> None:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name):
                self._need(module, node.id)
            elif isinstance(node, ast.ImportFrom) and node.module and self._locate(node.module):
                raise BundleError(
                    f"{module.name} imports {node.module} inside a function, which one file cannot hold.",
                    "Import it at the top of the module.",
                )

    def _claim(self, names: dict[str, str], name: str, text: str, module: _Module) -> None:
        other = self._imports if names is self._texts else self._texts
        if name in other or names.get(name, text) != text:
            raise BundleError(
                f"{module.name} defines {name!r}, which another part of the script defines as well.",
                "Rename it there.",
            )
        names[name] = text


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Names that a top-level statement defines."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign() | ast.If() | ast.Try() | ast.With() | ast.For():
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node.id


def _text(source: str, statement: ast.stmt) -> str:
    """The lines of a statement with its decorators and the comment above it."""
    lines = source.splitlines()
    first = min([statement.lineno, *(node.lineno for node in getattr(statement, "decorator_list", ()))]) - 1
    while first and lines[first - 1].startswith("#"):
        first -= 1
    return "\n".join(lines[first : statement.end_lineno])


_RUNNER = Path(__file__).parents[1]
_OWN = "runner."
MOST_THREADS = 1024
"""More than that a record cannot ask for; a script may be for a larger host than this one."""


def plan_again(trial: Trial, settings: Settings, interpreter: Path | None = None) -> Plan:
    """The case of `trial` as this host defines it, with the threads of `trial`, in a run of its own.

    `interpreter` defaults to the first one here that has the torch of `trial`. Raises ConfigError when none
    has, when workload, strategy or environment are others here, or when `trial` was not measured by
    compilewatch.
    """
    case = _case_here(trial, settings)
    chosen = interpreter or interpreter_for(trial, settings)
    run_id = str(ULID())
    spec = TrialSpec(
        trial_id=str(ULID()),
        run_id=run_id,
        suite=None,
        label=trial.build.label,
        workload=workload_spec(case.definition),
        strategy=case.strategy,
        device=_device(trial),
        threads=case.threads,
        settings=TorchSettings(matmul_precision=case.matmul_precision),
        sampling=settings.run.sampling_plan(),
        timeout_s=settings.run.timeout_s,
        seed=settings.run.seed,
        worker_env=case.worker_env,
        round=0,
        interpreter=chosen,
    )
    run = PlannedRun(
        run_id=run_id, suite=None, label=spec.label, build=None, interpreter=chosen, planned_trials=1
    )
    return Plan(runs=(run,), trials=(spec,), not_applicable=())


def interpreter_for(trial: Trial, settings: Settings) -> Path:
    """This Python, a created or a configured build: the first with the release and variant of `trial`."""
    wanted = (trial.build.torch, trial.build.torch_variant)
    created = [build.python for build in created_builds(settings) if _release(build.facts.torch) == wanted[0]]
    for python in (Path(sys.executable), *created, *(entry.python for entry in settings.builds)):
        if _torch_of(check_interpreter(str(python))) == wanted:
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
    case = _case_here(trial, settings)
    definition = case.definition
    module, function = split_target(definition.target)
    bundle = Bundle(_carried(definition.path))
    if module.startswith(_OWN):
        bundle.add(module, function)
    else:
        bundle.add_whole(module)
    bundle.add("runner.worker.reproduction", "reproduce")
    environment = pinned_settings(case.threads) | case.worker_env
    return _SCRIPT.format(
        docstring=_docstring(trial),
        environment=_literal(environment),
        key=repr(trial.trial_id),
        imports=bundle.imports(),
        spec=_literal(_script_spec(trial, case, settings)),
        body=bundle.body(),
        function=function,
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

{imports}

SPEC = {spec}


{body}


if __name__ == "__main__":
    try:
        reproduce(SPEC, {function})
    finally:
        shutil.rmtree(os.environ["TORCHINDUCTOR_CACHE_DIR"], ignore_errors=True)
"""


def _docstring(trial: Trial) -> str:
    build, latency = trial.build, _medians(trial)
    what = f"{trial.workload.name} version {trial.workload.version}, {trial.strategy.name}"
    figures = ", ".join(f"{name} {duration(value)}" for name, value in latency.items() if value is not None)
    where = f"torch {build.torch} ({build.torch_variant or 'unknown variant'}), {trial.machine.device_name}"
    facts = one_line(what), one_line(where)
    text = f"Trial {trial.trial_id} again: {facts[0]}.\n\nMeasured {moment(trial.started_at)}: {facts[1]}."
    text += f"\nIt had {figures}." if figures else ""
    text += "\nCaches start empty, whatever the trial's were."
    safe = text.replace("\\", "/").replace('"""', "'''")
    return f'"""{safe}\n"""'


def _script_spec(trial: Trial, case: _Case, settings: Settings) -> dict[str, Any]:
    workload = workload_spec(case.definition).model_dump(mode="json")
    names = ("name", "task", "batch_size", "shape", "dtype", "kwargs", "regions")
    return {
        "workload": {name: workload[name] for name in names},
        "strategy": case.strategy.model_dump(mode="json"),
        "device": _device(trial),
        "threads": case.threads,
        "matmul_precision": case.matmul_precision,
        "seed": settings.run.seed,
        "samples": settings.run.samples,
        "stored": _ranges(trial),
    }


def _medians(trial: Trial) -> dict[str, float | None]:
    own = statistics.median(trial.latency_samples_ns) if trial.latency_samples_ns else None
    if trial.strategy.kind == "eager":
        return {"eager": own}
    control = (
        statistics.median(trial.control_latency_samples_ns) if trial.control_latency_samples_ns else None
    )
    return {"eager": control, "compiled": own}


def _ranges(trial: Trial) -> dict[str, list[float]]:
    """Median, 5th and 95th percentile of each side's samples, and of their ratio at its farthest."""
    eager = trial.strategy.kind == "eager"
    sides = {"eager": trial.latency_samples_ns if eager else trial.control_latency_samples_ns}
    sides |= {} if eager else {"compiled": trial.latency_samples_ns}
    ranges = {}
    for name, samples in sides.items():
        summary = summarize_samples(samples)
        if summary is not None:
            ranges[name] = [summary.latency_ns, summary.p05_ns, summary.p95_ns]
    if len(ranges) == 2:
        (eager_ns, eager_low, eager_high), (own_ns, own_low, own_high) = ranges["eager"], ranges["compiled"]
        ranges["speedup"] = [eager_ns / own_ns, eager_low / own_high, eager_high / own_low]
    return ranges


def _literal(value: dict[str, Any]) -> str:
    return pprint.pformat(value, width=100, sort_dicts=False)


@dataclass(frozen=True)
class _Case:
    """What a trial measured, by this host's own words for it."""

    definition: WorkloadDefinition
    strategy: Strategy
    worker_env: dict[str, str]
    threads: int
    matmul_precision: MatmulPrecision


def _case_here(trial: Trial, settings: Settings) -> _Case:
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
    differences += _environment_differences(trial, recorded_environment(environment))
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
    return _Case(definition, strategy, environment, threads, precision)


def _refuse_another_workload(trial: Trial, definition: WorkloadDefinition, again: str) -> None:
    now = definition.record()
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
        for name in sorted({*claimed, *here})
        if claimed.get(name) != here.get(name)
    ]


def _claim(value: object) -> str:
    shown = value.value if isinstance(value, Enum) else value
    return "unset" if shown is None else one_line(repr(shown), 80)


def _carried(path: tuple[str, ...]) -> Callable[[str], Path | None]:
    """Which modules a script carries: ours, and those beside the configuration. Others must be installed."""

    def locate(module: str) -> Path | None:
        if module.startswith(_OWN):
            file = _RUNNER.joinpath(*module.split(".")[1:]).with_suffix(".py")
            return file if file.is_file() else None
        search: list[str] = list(path)
        spec = None
        for depth in range(1, module.count(".") + 2):
            spec = PathFinder.find_spec(".".join(module.split(".")[:depth]), search) if search else None
            search = list(spec.submodule_search_locations or []) if spec else []
        return Path(spec.origin) if spec and spec.origin and spec.origin.endswith(".py") else None

    return locate


def _device(trial: Trial) -> str:
    return "cpu" if trial.machine.device == "cpu" else "cuda:0"


def _release(version: str) -> str:
    return split_version(version)[0]


def _torch_of(facts: InterpreterFacts) -> tuple[str, str]:
    release, local = split_version(facts.torch)
    return release, torch_variant(local, facts.cuda, facts.hip)
