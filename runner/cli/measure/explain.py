"""`compilewatch explain`: what the compiler takes of a workload, in seconds and without a trial."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from compilewatch.db.cause.memory_change import held_texts, memory_sentences, saved_text
from compilewatch.db.errors import ConfigError
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.units import MISSING, count, duration, first_of, plural, size
from compilewatch.runner.catalog.definition import WorkloadDefinition
from compilewatch.runner.cli.options import (
    ConfigOption,
    DeviceOption,
    JsonOption,
    WorkloadArgument,
    settings_of,
)
from compilewatch.runner.config.settings import BuildSettings, Settings
from compilewatch.runner.output.documents import print_document
from compilewatch.runner.output.progress import UnderWay
from compilewatch.runner.output.tables import console, plain_table, print_lines
from compilewatch.runner.plan.interpreter import check_interpreter
from compilewatch.runner.plan.plan import plan_run, require_one_rank
from compilewatch.runner.plan.selection import resolve_device, select
from compilewatch.runner.plan.trial_spec import TrialSpec
from compilewatch.runner.process.explanation import Explanation, Held
from compilewatch.runner.process.supervise import run_explained, run_held


def explain(
    workload: WorkloadArgument,
    dynamic: Annotated[
        bool | None, typer.Option("--dynamic/--static", help="Sizes; unset: as torch decides.")
    ] = None,
    device: DeviceOption = "auto",
    python: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Under this interpreter, with any torch.")
    ] = None,
    memory: Annotated[
        bool, typer.Option("--memory", help="What a training step's memory is held for, and its budget.")
    ] = False,
    budget: Annotated[
        list[float] | None,
        typer.Option(metavar="SHARE", help="Of --memory: activation_memory_budget. Repeatable."),
    ] = None,
    json_: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    """Say what the compiler takes of a workload: graphs, breaks and what helps, guards, operations.

    Example: compilewatch explain my_models:build

    Takes seconds, generates no code and stores nothing. Exits 1 where nothing compiles. With --memory it
    compiles once for each budget and says what is saved for backward, at which peak and step time.
    """
    settings = settings_of(config, None)
    definition = _one_of(settings, workload)
    if memory:
        require_one_rank(definition, "--memory")
    builds = [] if python is None else [BuildSettings(name=python.name, python=python)]
    with UnderWay("asking the interpreter for its torch"):
        facts = check_interpreter(str(python or sys.executable))
    resolved = resolve_device(settings, [facts], device)
    strategy = {None: "default", True: "default+dynamic", False: "default+static"}[dynamic]
    plan = plan_run(
        settings, workloads=(definition.name,), strategies=(strategy,), device=resolved, builds=builds
    )
    if memory:
        budgets = budget or _BUDGETS
        return _explain_memory(plan.trials[0], Path(facts.path), facts.torch, budgets, as_json=json_)
    began = time.monotonic_ns()
    with UnderWay(f"capturing {definition.name} without generating code"):
        explained = run_explained(plan.trials[0], facts.path)
    if json_:
        print_document(
            {"workload": definition.name, "torch": facts.torch, **explained.model_dump(mode="json")}
        )
    else:
        took = duration(time.monotonic_ns() - began)
        print_lines(
            [f"{definition.name} on {resolved}, torch {facts.torch}: {headline(explained)} ({took})."]
        )
        print_lines(_break_lines(explained))
        if explained.frames:
            console().print(_frame_table(explained))
        print_lines(_operation_lines(explained))
    return 0 if explained.compiler.graphs else 1


def _one_of(settings: Settings, workload: str) -> WorkloadDefinition:
    definitions = select(settings, workloads=(workload,)).workloads
    if len(definitions) > 1:
        raise ConfigError(
            f"{workload} stands for several workloads.", f"Name one, such as {definitions[0].name}."
        )
    return definitions[0]


_BUDGETS = (1.0, 0.5, 0.25, 0.05)
_OPTION = "functorch.activation_memory_budget"
_MEMORY_HEADINGS = ("side", "step", "peak", "saved for backward")


def _explain_memory(
    spec: TrialSpec, interpreter: Path, torch: str, budgets: Sequence[float], *, as_json: bool
) -> int:
    """Measure and print eager and every budget, each alone in a process. `spec` is that of the compiled side.

    Raises ConfigError for a budget that is none and a workload without gradients, and as `run_held` does.
    """
    if wrong := [each for each in budgets if not 0 <= each <= 1]:
        raise ConfigError(f"A budget is from 0 to 1, not {wrong[0]:g}.", "Give shares, such as --budget 0.5.")
    shares = ", ".join(f"{each:g}" for each in budgets)
    print(
        f"Eager and {plural(len(budgets), 'budget')} ({shares}), a process each; every budget compiles anew.",
        file=sys.stderr,
    )
    with UnderWay("running the sides"):
        sides = dict(_measured(spec, interpreter, budgets))
    if as_json:
        print_document(
            {
                "schema": "compilewatch.memory/1",
                "workload": spec.workload.name,
                "torch": torch,
                "sides": {name: held.model_dump(mode="json") for name, held in sides.items()},
            }
        )
        return 0
    print_lines([f"{spec.workload.name} on {spec.device}, torch {torch}:"])
    rows = [(name, *_cells(each)) for name, each in sides.items()]
    console().print(plain_table(_MEMORY_HEADINGS, rows, right=_MEMORY_HEADINGS[1:]))
    eager, first, *others = sides
    for before, after in ((eager, first), *((first, other) for other in others[-1:])):
        changed = memory_sentences(sides[before].memory, sides[after].memory)
        print_lines(f"{before} to {after}: {sentence}" for sentence in changed)
    print_lines(f"{first}, {name.strip()}: {text}" for name, text in held_texts(sides[first].memory))
    return 0


def _cells(held: Held) -> tuple[str, str, str]:
    saved = saved_text(held.memory.saved) if held.memory.saved else MISSING
    return duration(held.latency_ns), size(held.memory.peak_bytes), saved


def _measured(spec: TrialSpec, interpreter: Path, budgets: Sequence[float]) -> Iterator[tuple[str, Held]]:
    eager = run_held(spec.model_copy(update={"strategy": EAGER}), interpreter)
    if eager.memory.saved is None:
        raise ConfigError(
            f"{spec.workload.name} saves nothing for a backward pass.", "Name a workload that trains."
        )
    yield EAGER.name, eager
    for number, budget in enumerate(budgets, start=1):
        began = time.monotonic_ns()
        strategy = spec.strategy.model_copy(update={"options": {**spec.strategy.options, _OPTION: budget}})
        held = run_held(spec.model_copy(update={"strategy": strategy}), interpreter)
        yield f"budget {budget:g}", held
        if left := len(budgets) - number:
            took = (time.monotonic_ns() - began) * left
            print(f"Budget {budget:g} is done; about {duration(took)} more.", file=sys.stderr)


_MOST = 12
_HEADINGS = ("function", "begins at", "operations", "guards")


def headline(explained: Explanation) -> str:
    """Graphs, breaks, operations and those that are left to ATen, in one line."""
    compiler = explained.compiler
    breaks = sum(event.count for event in compiler.graph_breaks or ())
    left = sum(explained.fallbacks.values())
    parts = [
        plural(compiler.graphs or 0, "graph"),
        plural(breaks, "graph break"),
        plural(compiler.ops_captured or 0, "operation"),
        f"{count(left)} left to ATen",
    ]
    if not compiler.graphs:
        return "Nothing compiles: the compiler takes no graph."
    return ", ".join(parts)


def _break_lines(explained: Explanation) -> Iterator[str]:
    """Each break with its place and reason, what torch proposes below it; then what is compiled again."""
    hints = explained.compiler.break_hints or []
    for event in explained.compiler.graph_breaks or ():
        where = event.location or MISSING
        yield f"break at {where}, {count(event.count)} x: {event.reason}"
        yield from (f"  {hint.removeprefix(where + ': ')}" for hint in hints if hint.startswith(f"{where}: "))
    for event in explained.compiler.recompiles or ():
        yield f"recompiles at {event.location or MISSING}, {count(event.count)} x: {event.reason}"
    for frame in explained.compiler.skipped_frames or ():
        yield f"left to Python: {frame}"


def _frame_table(explained: Explanation) -> Table:
    """The captured functions, the largest graphs first."""
    largest = sorted(explained.frames, key=lambda frame: -frame.operations)
    rows = [
        (frame.function, frame.location, count(frame.operations), count(frame.guards))
        for frame in largest[:_MOST]
    ]
    return plain_table(_HEADINGS, rows, right=_HEADINGS[2:])


def _operation_lines(explained: Explanation) -> Iterator[str]:
    """The most frequent operations as Inductor gets them, and those that it leaves to ATen."""
    for title, counted in (("Decomposed", explained.operations), ("Left to ATen", explained.fallbacks)):
        if counted:
            named = [f"{name} {count(number)}" for name, number in counted.items()]
            yield f"{title}: {first_of(named, _MOST)}"
