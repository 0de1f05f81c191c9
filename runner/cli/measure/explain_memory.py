"""`compilewatch explain --memory`: what a training step's memory is held for, and what less of it costs."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from compilewatch.db.cause.memory_change import held_texts, memory_sentences, saved_text
from compilewatch.db.errors import ConfigError
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.units import MISSING, duration, plural, size
from compilewatch.runner.output.documents import print_document
from compilewatch.runner.output.progress import UnderWay
from compilewatch.runner.output.tables import console, plain_table, print_lines
from compilewatch.runner.plan.trial_spec import TrialSpec
from compilewatch.runner.process.explanation import Held
from compilewatch.runner.process.supervise import run_held

BUDGETS = (1.0, 0.5, 0.25, 0.05)
_OPTION = "functorch.activation_memory_budget"
_HEADINGS = ("side", "step", "peak", "saved for backward")


def explain_memory(
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
    console().print(plain_table(_HEADINGS, rows, right=_HEADINGS[1:]))
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
