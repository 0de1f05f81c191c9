"""Names on the command line and in the configuration -> workloads, strategies and the suite."""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TypeVar

from compilewatch.db.errors import CompilewatchError, ConfigError, NotFoundError, did_you_mean, one_line
from compilewatch.db.records.ids import workload_identity
from compilewatch.db.records.strategies import BUILTIN, TORCH_BACKENDS, parse_strategy
from compilewatch.db.records.trial import Strategy, Task
from compilewatch.runner.catalog.builtin import WORKLOADS
from compilewatch.runner.catalog.definition import WorkloadDefinition
from compilewatch.runner.catalog.libraries import extra_of, is_library_name, library_workload
from compilewatch.runner.catalog.targets import check_builder, check_target, is_target
from compilewatch.runner.catalog.user import sweep_names, user_target, user_workloads
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.plan.interpreter import InterpreterFacts
from compilewatch.runner.worker.step.host import COMPILE_THREADS

# Suites: named lists of workloads and strategies, how often each case runs, and in what environment.


@dataclass(frozen=True)
class Suite:
    """`workloads` and `strategies` by name. `trials` is per case. `worker_env` is added to the environment
    of each measured process and stored in the trial's `build.settings`, since it can change a cold start.
    """

    name: str
    workloads: tuple[str, ...]
    strategies: tuple[str, ...]
    summary: str = ""
    trials: int = 3
    worker_env: Mapping[str, str] = field(default_factory=dict)


SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        Suite(
            name="smoke",
            summary="four small workloads in plain torch: minutes on two CPU cores",
            workloads=("cnn", "encoder", "elementwise", "mlp-train"),
            strategies=("eager", "default", "reduce-overhead"),
        ),
        Suite(
            name="smoke-all",
            summary="the workloads of smoke under every strategy and cache state: up to half an hour",
            workloads=("cnn", "encoder", "elementwise", "mlp-train"),
            strategies=(
                "eager",
                "default",
                "default+static",
                "default+dynamic",
                "default+fullgraph",
                "default+regional",
                "default+warm",
                "default+portable",
                "backend:aot_eager",
                "export",
                "packaged",
                "reduce-overhead",
                "max-autotune",
                "max-autotune-no-cudagraphs",
            ),
            trials=1,
        ),
        Suite(
            name="streams",
            summary="requests of different lengths, a first epoch and decoding: recompilations and padding",
            workloads=("varlen", "varlen-max", "varlen-buckets", "varlen-dynamic", "first-epoch", "decode"),
            strategies=("eager", "default", "default+dynamic"),
        ),
        Suite(
            name="standard",
            summary="ten workloads at datacenter size: for a GPU, needs the extra `models`",
            workloads=(
                "resnet50",
                "bert-base",
                "bert-base-train",
                "vit-b16",
                "gpt2",
                "sd-unet",
                "encoder-512",
                "lstm-cell",
                "mlp-4096",
                "elementwise-4096",
            ),
            strategies=("eager", "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"),
        ),
    )
}


T = TypeVar("T")

AD_HOC_STRATEGIES = ("eager", "default")
AD_HOC_TRIALS = 3


@dataclass(frozen=True)
class ResolvedSuite:
    """What is to be measured, every name resolved. `suite` is None when only workloads were named."""

    suite: str | None
    workloads: tuple[WorkloadDefinition, ...]
    strategies: tuple[Strategy, ...]
    trials: int
    worker_env: Mapping[str, Mapping[str, str]]
    """By workload name: those of the suite, else of the suite that the workload is at home in."""

    @property
    def workload_ids(self) -> tuple[str, ...]:
        """Of the workloads as their files are now; an edited one has another."""
        return tuple(sorted(workload_identity(each.record()) for each in self.workloads))


def known_workloads(settings: Settings) -> dict[str, WorkloadDefinition]:
    """Built-in workloads, then those of the configuration. Raises ConfigError for one that cannot be."""
    own = user_workloads(settings)
    _refuse_duplicate("workload", own, WORKLOADS)
    return {**WORKLOADS, **own}


def known_strategies(settings: Settings) -> dict[str, Strategy]:
    """Built-in strategies, then those of the configuration."""
    own = {each.name: each for entry in settings.strategy for each in entry.strategies()}
    sweeps = strategy_sweeps(settings)
    _refuse_duplicate("strategy", {**own, **sweeps}, BUILTIN)
    for members in sweeps.values():
        settings.limits.require("sweeps", len(members))
    return {**BUILTIN, **own}


def strategy_sweeps(settings: Settings) -> dict[str, tuple[str, ...]]:
    """What each [[strategy]] entry that lists values makes: its name -> those of its strategies."""
    return {
        entry.name: tuple(each.name for each in entry.strategies())
        for entry in settings.strategy
        if entry.sweep
    }


def _strategy_names(names: Iterable[str], settings: Settings) -> Iterator[str]:
    """`names`; the name of a sweep, with modifiers or without, stands for all that it makes."""
    sweeps = strategy_sweeps(settings)
    for name in names:
        base, plus, modifiers = name.partition("+")
        yield from (each + plus + modifiers for each in sweeps.get(base, (base,)))


def known_suites(settings: Settings) -> dict[str, Suite]:
    """Built-in suites, then those of the configuration."""
    summary = "from the configuration"
    own = {entry.name: Suite(**entry.model_dump(), summary=summary) for entry in settings.suite}
    _refuse_duplicate("suite", own, SUITES)
    return {**SUITES, **own}


def select(
    settings: Settings,
    *,
    suite: str | None = None,
    workloads: Sequence[str] = (),
    strategies: Sequence[str] = (),
) -> ResolvedSuite:
    """Resolve every name; without `suite` and `workloads`, the configured suite.

    Raises NotFoundError for an unknown name, ConfigError for a workload that cannot be built.
    """
    chosen = None
    if suite or not workloads:
        chosen = lookup("suite", suite or settings.run.suite, known_suites(settings))
    known = known_workloads(settings)
    names = _workload_names(chosen, workloads, known, settings)
    wanted = strategies or settings.run.strategies or (chosen.strategies if chosen else AD_HOC_STRATEGIES)
    named = known_strategies(settings)
    own = chosen is not None and chosen.name not in SUITES
    with in_table("suite", chosen.name) if own and chosen else nullcontext():
        definitions = tuple(_workload(name, known, settings) for name in names)
        parsed = [parse_strategy(name, named) for name in _strategy_names(wanted, settings)]
    return ResolvedSuite(
        suite=chosen.name if chosen else None,
        workloads=definitions,
        strategies=tuple({strategy.name: strategy for strategy in parsed}.values()),
        trials=chosen.trials if chosen else AD_HOC_TRIALS,
        worker_env={
            name: {**_compile_threads(settings), **(chosen or _home(name, settings)).worker_env}
            for name in names
        },
    )


def _compile_threads(settings: Settings) -> dict[str, str]:
    """The variable by which torch is told with how many threads it compiles, where the configuration says."""
    threads = settings.run.compile_threads
    return {} if threads is None else {COMPILE_THREADS: str(threads)}


def select_by_data(settings: Settings, suite: str | None, workload: str, strategy: str) -> ResolvedSuite:
    """One case that a record or a message names, as this host defines it, in the environment of `suite`.

    A suite that is not known here, or is without the workload, is passed over. Raises as `select` and
    `refuse_code` do.
    """
    refuse_code(settings, [workload], [strategy])
    known = known_suites(settings).get(suite) if suite else None
    holding = known.name if known and workload in known.workloads else None
    return select(settings, suite=holding, workloads=(workload,), strategies=(strategy,))


def refuse_code(settings: Settings, workloads: Iterable[str], strategies: Iterable[str]) -> None:
    """Names in data stand for what the configuration has. Raises ConfigError for one that is code itself and
    in none of its entries and suites: "module:function", a model of a library, or a backend that is looked
    for among all installed packages.
    """
    known = {*known_workloads(settings), *(name for suite in settings.suite for name in suite.workloads)}
    for name in workloads:
        if name not in known and (is_target(name) or is_library_name(name)):
            raise ConfigError(
                f"Data cannot name the code at {one_line(name)!r}.",
                "Name it in a [[workload]] or a [[suite]] of the configuration.",
            )
    named = known_strategies(settings)
    configured = {
        *named,
        *settings.run.strategies,
        *(name for suite in settings.suite for name in suite.strategies),
    }
    for name in _strategy_names(strategies, settings):
        backend = parse_strategy(name, named).backend
        if not {name, name.partition("+")[0]} & configured and backend not in TORCH_BACKENDS:
            raise ConfigError(
                f"Data cannot name the backend {one_line(str(backend))!r}.",
                "Give it a [[strategy]] entry in the configuration and use its name.",
            )


def check_packages(definitions: Sequence[WorkloadDefinition]) -> None:
    """Raises ConfigError when this interpreter lacks a package that a workload is built with."""
    missing: dict[str, list[str]] = {}
    for definition in definitions:
        for package in definition.packages:
            if importlib.util.find_spec(package) is None:
                missing.setdefault(package, []).append(definition.name)
    if missing:
        package, users = next(iter(missing.items()))
        verb = "need" if len(users) > 1 else "needs"
        raise ConfigError(
            f"{', '.join(users)} {verb} {package}, which is not installed.",
            f"Install it with: pip install 'compilewatch[{extra_of(package)}]'",
        )


def _workload_names(
    suite: Suite | None, workloads: Sequence[str], known: Mapping[str, WorkloadDefinition], settings: Settings
) -> tuple[str, ...]:
    """Names of workloads, each once; the name of a sweep stands for all that it makes."""
    sweeps = sweep_names(settings)

    def resolved(names: Sequence[str]) -> tuple[str, ...]:
        each = (sweeps.get(name, (name,)) if name not in known else (name,) for name in names)
        return tuple(dict.fromkeys(itertools.chain.from_iterable(each)))

    if suite is None:
        return resolved(workloads)
    of_suite, requested = resolved(suite.workloads), resolved(workloads)
    for name in requested:
        if name not in of_suite:
            raise NotFoundError(
                f"Suite {suite.name} has no workload {name!r}; it has {', '.join(of_suite)}.",
                "Leave --suite out to measure it on its own.",
            )
    return requested or of_suite


def _workload(name: str, known: Mapping[str, WorkloadDefinition], settings: Settings) -> WorkloadDefinition:
    if name not in known and is_library_name(name):
        return library_workload(name, settings.project_root)
    is_bare = name not in known and is_target(name)
    definition = user_target(name, settings) if is_bare else lookup("workload", name, known)
    file = check_target(definition.target, definition.path)
    if name not in WORKLOADS:
        sizes = {**definition.shape, **definition.kwargs}
        given = sizes if definition.batch_size is None else {**sizes, "batch_size": definition.batch_size}
        with nullcontext() if is_bare else in_table("workload", definition.name):
            check_builder(definition.target, file, given, is_training=definition.task is Task.TRAINING)
    return definition


def _home(workload: str, settings: Settings) -> Suite:
    """The first suite that lists `workload`, so that a case run on its own continues the suite's series."""
    swept = [name for name, members in sweep_names(settings).items() if workload in members]
    for suite in known_suites(settings).values():
        if {workload, *swept} & set(suite.workloads):
            return suite
    return Suite(name="", workloads=(), strategies=())


@contextmanager
def in_table(kind: str, name: str) -> Iterator[None]:
    """Says of an error in which entry of the configuration it is, the innermost one."""
    try:
        yield
    except CompilewatchError as error:
        if " in [[" in error.message:
            raise
        place = f" in [[{kind}]] {name}."
        raise type(error)(error.message.removesuffix(".") + place, error.next_step) from error


def lookup(kind: str, name: str, known: Mapping[str, T]) -> T:
    """Raises NotFoundError, with the nearest names."""
    if name in known:
        return known[name]
    raise _unknown(kind, name, list(known))


def _unknown(kind: str, name: str, known: list[str]) -> CompilewatchError:
    hint = did_you_mean(name, known, most=3)
    return NotFoundError(
        f"There is no {kind} {name!r}.", f"{hint} `compilewatch list {kind}s` shows all.".lstrip()
    )


def _refuse_duplicate(kind: str, own: Mapping[str, object], builtin: Mapping[str, object]) -> None:
    for name in own:
        if name in builtin:
            raise ConfigError(
                f"[[{kind}]] {name!r} has the name of a built-in {kind}.", "Give it a name of its own."
            )


# Which device a run measures on.


def resolve_device(settings: Settings, facts: Sequence[InterpreterFacts], named: str = "auto") -> str:
    """The device that a command `named`, else that of `[run]`, as torch names it; "auto" is the first GPU
    that every interpreter can use, else the CPU.

    Raises ConfigError for a device that is not there.
    """
    device = settings.run.device if named == "auto" else named
    count_of_all = min(fact.device_count for fact in facts)
    if device == "auto":
        return "cuda:0" if count_of_all else "cpu"
    kind, _, index = device.partition(":")
    if kind not in ("cpu", "cuda") or (index and not index.isdecimal()):
        raise ConfigError(f"There is no device {device!r}.", "Name auto, cpu, or a GPU such as cuda:0.")
    if kind == "cuda" and int(index or 0) >= count_of_all:
        raise ConfigError(
            f"There is no {device}: torch sees {count_of_all} GPUs.", "Use --device cpu, or check the driver."
        )
    return f"cuda:{index or 0}" if kind == "cuda" else "cpu"
