"""One build of torch measured in every way that its release can differ in, and what it gave.

    python -m tests.runner.torch_releases BUILDS

prints docs/measured/torch-releases.md's table for the virtual environments below the directory BUILDS.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from compilewatch.db.records.trial import CacheState, Strategy, StrategyKind, Task, Trial
from compilewatch.runner.plan.trial_spec import Diagnostics
from compilewatch.runner.process.supervise import run_trial
from tests.runner.measuring import FAST_COMPILE, compiled, make_spec

HERE = Path(__file__).parent
Trials = Mapping[str, Trial]


def _cached(cache: CacheState, kind: StrategyKind = StrategyKind.COMPILE) -> Strategy:
    return Strategy(name=f"default+{cache}", kind=kind, backend="inductor", mode="default", cache=cache)


# Name of the trial -> module and function of its workload, strategy, what differs from the usual.
CASES: dict[str, tuple[str, Strategy, dict[str, Any]]] = {
    "cold": ("workload_fixtures:three_blocks", _cached(CacheState.COLD), {"worker_env": {}}),
    "warm": ("workload_fixtures:three_blocks", _cached(CacheState.WARM), {}),
    "portable": ("workload_fixtures:three_blocks", _cached(CacheState.PORTABLE), {}),
    "packaged": (
        "workload_fixtures:three_blocks",
        _cached(CacheState.PACKAGED, StrategyKind.AOT_PACKAGE),
        {},
    ),
    "training": ("workload_fixtures:training", _cached(CacheState.COLD), {"task": Task.TRAINING}),
    "break": ("workload_fixtures:breaks_graph", compiled("eager"), {"task": Task.FUNCTION}),
    "branch": ("workload_fixtures:branches_on_data", compiled("eager"), {"task": Task.FUNCTION}),
    "loop": ("workload_fixtures:breaks_inside_a_loop", compiled("eager"), {"task": Task.FUNCTION}),
    "lengths": (
        "release_workloads:function_of_many_lengths",
        compiled("eager", dynamic=False),
        {"task": Task.FUNCTION},
    ),
    "recurrent": ("workload_fixtures:recurrent", compiled("eager"), {}),
    "wrong": ("workload_fixtures:wrong_relu", compiled("inductor"), {"task": Task.FUNCTION}),
}
PROFILED = ("cold", "training")


def builds_in(directory: Path) -> list[Path]:
    """The Python of every virtual environment right below `directory`, by release."""
    found = [path for path in directory.glob("*/bin/python") if path.exists()]
    return sorted(found, key=lambda path: [int(part) for part in _release(path).split(".")])


def _release(python: Path) -> str:
    return python.parents[1].name.rpartition("-")[2]


def measure_release(python: Path, names: Sequence[str] = tuple(CASES)) -> dict[str, Trial]:
    """The trials of `CASES` under one interpreter."""
    return {name: _measure(name, python) for name in names}


def _measure(name: str, python: Path) -> Trial:
    target, strategy, changes = CASES[name]
    changes = {"worker_env": FAST_COMPILE, "target": target, "path": HERE} | changes
    diagnostics = Diagnostics(profile=name in PROFILED)
    spec = make_spec(target, strategy, timeout_s=300.0, diagnostics=diagnostics, **changes)
    return run_trial(spec, interpreter=python)


def _phases(trial: Trial) -> dict[str, int | None]:
    return trial.cold_start.phases_ns.model_dump()


def _told_phases(trial: Trial) -> str:
    return ", ".join(name for name, value in _phases(trial).items() if value is not None and name != "other")


def _rest(trial: Trial) -> str:
    return f"{100 * (_phases(trial)['other'] or 0) / (trial.cold_start.first_call_ns or 1):.1f} %"


def _hits(trial: Trial) -> str:
    if trial.failure is not None:
        return trial.failure.kind.value
    cache = trial.compiler.cache if trial.compiler else None
    if cache is None:
        return "null"
    pairs = (
        (cache.fx_graph_hits, cache.fx_graph_misses),
        (cache.aot_autograd_hits, cache.aot_autograd_misses),
    )
    return ", ".join("null" if hits is None else f"{hits}/{misses}" for hits, misses in pairs)


def _events(trial: Trial, kind: str) -> str:
    events = getattr(trial.compiler, kind) or []
    located = sum(event.location is not None for event in events)
    return f"{sum(event.count for event in events)}, {located} of {len(events)} located"


def _known(value: object) -> str:
    return "null" if value is None else "yes"


FACTS: dict[str, Callable[[Trials], str]] = {
    "phases, cold inference": lambda t: _told_phases(t["cold"]),
    "phases, training": lambda t: _told_phases(t["training"]),
    "phases read from": lambda t: str(t["cold"].cold_start and t["cold"].cold_start.phase_source),
    "`other`, cold inference": lambda t: _rest(t["cold"]),
    "`other`, training": lambda t: _rest(t["training"]),
    "FX and AOTAutograd hits/misses, cold": lambda t: _hits(t["cold"]),
    "the same, warm": lambda t: _hits(t["warm"]),
    "the same, portable": lambda t: _hits(t["portable"]),
    "ahead-of-time package": lambda t: t["packaged"].status.value,
    "break at `print`": lambda t: _events(t["break"], "graph_breaks"),
    "break at a branch on data": lambda t: _events(t["branch"], "graph_breaks"),
    "break in a loop: graphs, skipped frames": lambda t: (
        f"{t['loop'].compiler.graphs}, {len(t['loop'].compiler.skipped_frames or [])}"
        if t["loop"].compiler
        else "null"
    ),
    "recompilations of 13 lengths": lambda t: _events(t["lengths"], "recompiles"),
    "recompile limit": lambda t: str(t["lengths"].compiler and t["lengths"].compiler.recompile_limit_hit),
    "LSTM: graphs": lambda t: str(t["recurrent"].compiler and t["recurrent"].compiler.graphs),
    "injected wrong ReLU": lambda t: t["wrong"].failure.kind.value if t["wrong"].failure else "not found",
    "numerics": lambda t: t["cold"].numerics.status.value if t["cold"].numerics else "null",
    "peak memory of a step": lambda t: _known(t["cold"].memory and t["cold"].memory.peak_bytes),
    "profile: operators": lambda t: _known(t["cold"].profile and t["cold"].profile.own.operators),
    "profile: Python time": lambda t: _known(t["cold"].profile and t["cold"].profile.own.python_ns),
    "profile: operations and bytes": lambda t: ", ".join(
        _known(t["training"].profile and value)
        for value in (
            t["training"].profile and t["training"].profile.flops,
            t["training"].profile and t["training"].profile.bytes,
        )
    ),
}


def table(measured: Mapping[str, Trials]) -> str:
    """Markdown: a row per fact, a column per release."""
    lines = ["| fact | " + " | ".join(measured) + " |", "|---" * (len(measured) + 1) + "|"]
    for name, fact in FACTS.items():
        lines.append(f"| {name} | " + " | ".join(fact(trials) for trials in measured.values()) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    found = {}
    for python in builds_in(Path(sys.argv[1])):
        print(f"measuring {_release(python)}", file=sys.stderr)
        trials = measure_release(python)
        found[trials["cold"].build.torch] = trials
    print(table(found))
