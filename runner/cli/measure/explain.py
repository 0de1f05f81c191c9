"""`compilewatch explain`: what the compiler takes of a workload, in seconds and without a trial."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from compilewatch.db.errors import ConfigError
from compilewatch.db.units import duration
from compilewatch.runner.catalog.definition import WorkloadDefinition
from compilewatch.runner.cli.measure.explain_memory import BUDGETS, explain_memory
from compilewatch.runner.cli.options import (
    ConfigOption,
    DeviceOption,
    JsonOption,
    WorkloadArgument,
    settings_of,
)
from compilewatch.runner.config.settings import BuildSettings, Settings
from compilewatch.runner.output.documents import print_document
from compilewatch.runner.output.explanation_text import break_lines, frame_table, headline, operation_lines
from compilewatch.runner.output.progress import UnderWay
from compilewatch.runner.output.tables import console, print_lines
from compilewatch.runner.plan.interpreter import check_interpreter
from compilewatch.runner.plan.plan import plan_run, require_one_rank
from compilewatch.runner.plan.selection import resolve_device, select
from compilewatch.runner.process.supervise import run_explained


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
        budgets = budget or BUDGETS
        return explain_memory(plan.trials[0], Path(facts.path), facts.torch, budgets, as_json=json_)
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
        print_lines(break_lines(explained))
        if explained.frames:
            console().print(frame_table(explained))
        print_lines(operation_lines(explained))
    return 0 if explained.compiler.graphs else 1


def _one_of(settings: Settings, workload: str) -> WorkloadDefinition:
    definitions = select(settings, workloads=(workload,)).workloads
    if len(definitions) > 1:
        raise ConfigError(
            f"{workload} stands for several workloads.", f"Name one, such as {definitions[0].name}."
        )
    return definitions[0]
