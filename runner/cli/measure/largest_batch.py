"""`compilewatch largest-batch`: how much of a model fits, eager and compiled, and what each side gains."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

import typer

from compilewatch.db.errors import ConfigError
from compilewatch.db.metrics.throughput import per_second
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.units import MISSING, count, duration, rate, ratio, size
from compilewatch.runner.cli.options import (
    ConfigOption,
    DeviceOption,
    JsonOption,
    WorkloadArgument,
    settings_of,
)
from compilewatch.runner.output.documents import print_document
from compilewatch.runner.output.progress import UnderWay
from compilewatch.runner.output.tables import console, plain_table, print_lines
from compilewatch.runner.plan.interpreter import check_interpreter
from compilewatch.runner.plan.plan import plan_run, require_one_rank
from compilewatch.runner.plan.selection import resolve_device, select
from compilewatch.runner.plan.trial_spec import TrialSpec
from compilewatch.runner.process.explanation import Fit, NoFitError
from compilewatch.runner.process.supervise import run_fit
from compilewatch.runner.worker.step.host import available_memory_bytes

_HEADINGS = ("strategy", "largest batch", "peak memory", "latency", "throughput")


def largest_batch(
    workload: WorkloadArgument,
    strategy: Annotated[str, typer.Option("--strategy", "-s", metavar="S", help="By name.")] = "default",
    minutes: Annotated[float, typer.Option(min=0.1, max=1440, help="Of all searching, at most.")] = 10,
    device: DeviceOption = "auto",
    json_: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    """Find the largest batch that fits, eager and compiled, and compare each side at its own.

    Example: compilewatch largest-batch encoder -s default --minutes 10

    Every batch is a fresh process of one side alone; nothing is stored. On a CPU a batch that would need more
    than what is free is not tried.
    """
    settings = settings_of(config, None)
    with UnderWay("asking the interpreter for its torch"):
        facts = check_interpreter(sys.executable)
    resolved = resolve_device(settings, [facts], device)
    chosen = select(settings, workloads=(workload,), strategies=(strategy,))
    first = chosen.workloads[0].batch_size
    if len(chosen.workloads) > 1 or first is None:
        raise ConfigError(
            f"{workload} is no single workload with a batch size.", "Give its [[workload]] a `batch_size`."
        )
    require_one_rank(chosen.workloads[0], "The search")
    names = (EAGER.name, strategy)
    plan = plan_run(settings, workloads=(workload,), strategies=names, device=resolved)
    specs = {spec.strategy.name: spec for spec in plan.trials}
    if strategy not in specs or len(specs) < 2:
        raise ConfigError(f"{strategy} is not compiled here.", "Name a strategy: -s default.")
    spec, until = specs[strategy], time.monotonic() + minutes * 60
    eager = _searched(specs[EAGER.name], resolved, first, until - minutes * 30)
    # What eager can hold comes first: both are compared at it.
    compiled = _searched(spec, resolved, eager.largest or first, until)
    sides = {EAGER.name: eager, strategy: compiled}
    _print(spec, sides, strategy, as_json=json_)
    return 0 if all(side.fits for side in sides.values()) else 1


def _searched(spec: TrialSpec, device: str, first: int, until_s: float) -> Side:
    free = available_memory_bytes() if device == "cpu" else None
    return search(partial(_attempt, spec), first, until_s=until_s, available_bytes=free)


def _attempt(spec: TrialSpec, batch: int) -> Fit:
    workload = spec.workload.model_copy(update={"batch_size": batch, "items_per_iteration": None})
    with UnderWay(f"{spec.strategy.name}, batch {batch}"):
        return run_fit(spec.model_copy(update={"workload": workload}), spec.interpreter or sys.executable)


def _per_sample(spec: TrialSpec) -> float:
    items, batch = spec.workload.items_per_iteration, spec.workload.batch_size or 1
    return 1.0 if items is None else items / batch


def _print(spec: TrialSpec, sides: dict[str, Side], strategy: str, *, as_json: bool) -> None:
    eager, compiled, per_sample = sides[EAGER.name], sides[strategy], _per_sample(spec)
    own = {
        name: side.items_per_second(side.largest, per_sample) for name, side in sides.items() if side.largest
    }
    ratios: dict[str, float | None] = {"batch": None, "throughput_at_own": None, "throughput_at_eagers": None}
    if eager.largest and compiled.largest:
        ratios["batch"] = compiled.largest / eager.largest
        ratios["throughput_at_own"] = own[strategy] / own[EAGER.name]
        if eager.largest in compiled.fits:
            same = compiled.items_per_second(eager.largest, per_sample)
            ratios["throughput_at_eagers"] = same / own[EAGER.name]
    if as_json:
        print_document({"workload": spec.workload.name, "sides": _documents(sides, own), "ratios": ratios})
        return
    rows = [_row(name, side, own.get(name), spec.workload.item) for name, side in sides.items()]
    console().print(plain_table(_HEADINGS, rows, right=_HEADINGS[1:]))
    print_lines(_sentences(sides, strategy, ratios))


def _documents(sides: dict[str, Side], own: dict[str, float]) -> dict[str, Any]:
    return {
        name: {
            "largest_batch": side.largest,
            "throughput_per_s": own.get(name),
            "fits": {str(batch): fit.model_dump(mode="json") for batch, fit in sorted(side.fits.items())},
            "fails": {str(batch): why for batch, why in sorted(side.fails.items())},
            "stopped": side.stopped,
        }
        for name, side in sides.items()
    }


def _row(name: str, side: Side, per_second: float | None, item: str | None) -> tuple[str, ...]:
    if side.largest is None:
        return name, *[MISSING] * 4
    fit = side.fits[side.largest]
    return name, count(side.largest), size(fit.peak_bytes), duration(fit.latency_ns), rate(per_second, item)


def _sentences(sides: dict[str, Side], strategy: str, ratios: dict[str, float | None]) -> list[str]:
    sentences = []
    if ratios["batch"] is not None:
        cut = any(side.stopped for side in sides.values())
        largest = f"At each one's largest{' that was tried' if cut else ''}"
        sentences.append(
            f"{largest} {strategy} has {ratio(ratios['batch'])} the batch and "
            f"{ratio(ratios['throughput_at_own'])} the throughput of eager; at eager's largest "
            f"{ratio(ratios['throughput_at_eagers'])}."
        )
    for name, side in sides.items():
        if side.fails:
            batch = min(side.fails)
            sentences.append(f"{name} with {count(batch)}: {side.fails[batch]}")
        if side.stopped:
            sentences.append(f"{name}: the time was up; more may fit. Give it more with --minutes.")
    return sentences


MOST = 2**24
"""No batch is larger."""
_CLOSE = 1 / 16
"""The search ends where what fits and what does not lie so close together."""


@dataclass
class Side:
    """What was tried of one strategy: by batch what a step took, or why it did not fit."""

    fits: dict[int, Fit] = field(default_factory=dict)
    fails: dict[int, str] = field(default_factory=dict)
    stopped: str | None = None
    """Why the search ended before its end."""

    @property
    def largest(self) -> int | None:
        return max(self.fits, default=None)

    def items_per_second(self, batch: int, items_per_sample: float) -> float:
        """Throughput at a batch that fits."""
        return per_second(batch * items_per_sample, self.fits[batch].latency_ns)

    def predicted_bytes(self, batch: int) -> int | None:
        """The peak that the two largest batches lead to expect; None of fewer."""
        known = sorted(
            (each, fit.peak_bytes) for each, fit in self.fits.items() if fit.peak_bytes is not None
        )
        if len(known) < 2:
            return None
        (first, low), (second, high) = known[-2:]
        return round(high + (batch - second) * max(0, high - low) / (second - first))


def search(
    attempt: Callable[[int], Fit],
    first: int,
    *,
    until_s: float,
    available_bytes: int | None,
    clock: Callable[[], float] = time.monotonic,
) -> Side:
    """Try batches from `first` on, until the largest that fits is known within a sixteenth, or `until_s` of
    `clock`. A batch whose predicted peak is above `available_bytes` counts as too large without being tried:
    a process that takes all memory of a host takes others with it.

    `attempt` raises NoFitError where memory does not suffice; whatever else it raises ends the search.
    """
    side, batch = Side(), first
    while batch <= MOST:
        if side.fits and clock() >= until_s:
            side.stopped = "time"
            break
        _try(side, batch, attempt, available_bytes)
        smallest = min(side.fails, default=None)
        largest = side.largest
        if largest is None:
            if batch == 1:
                break
            batch = max(1, batch // 2)
        elif smallest is None:
            batch *= 2
        elif smallest - largest <= max(1, largest * _CLOSE):
            break
        else:
            batch = (largest + smallest) // 2
    return side


def _try(side: Side, batch: int, attempt: Callable[[int], Fit], available_bytes: int | None) -> None:
    predicted = side.predicted_bytes(batch)
    if predicted is not None and available_bytes is not None and predicted > available_bytes:
        side.fails[batch] = f"would need {size(predicted)} of {size(available_bytes)}"
        return
    try:
        side.fits[batch] = attempt(batch)
    except NoFitError as error:
        side.fails[batch] = error.message
