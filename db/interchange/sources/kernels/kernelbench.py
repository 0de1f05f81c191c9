"""KernelBench's `results/timing/*/baseline_time_*.json`: the times of every problem of a level, in ms.

Shape: ScalingIntelligence/KernelBench scripts/generate_baseline_time.py, src/eval.py (`get_timing_stats`).
The file's name tells the strategy: `baseline_time_torch` is eager, what follows `_torch_compile_` a backend
and a mode. The latency is the mean, which is all there is beside the ends.

A problem whose timing failed is null there and a failed trial. Not taken: number of the device. To name:
torch, moment, dtype; strategy where the file has another name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from compilewatch.db.interchange.files.fields import NS_PER_MS, Fields, json_document
from compilewatch.db.interchange.files.foreign_trials import ForeignResult, compiled, failed, strategy_called
from compilewatch.db.interchange.files.opening import InputFile
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import Strategy, Summary, Task

_NAME = re.compile(
    r"baseline_time_torch(?:_compile_(?P<backend>[a-z_]+?)(?:_(?P<mode>default|reduce-overhead|max-autotune.*))?)?\.json"
)
_KEPT = ("std", "min", "max")


def read(file: InputFile, _: ImportOptions) -> Iterator[ForeignResult]:
    """One trial per problem. Raises RecordError naming file and field."""
    strategy = _strategy(file.name)
    problems = [
        (level_times.storable(problem, f"{level}/{problem.removesuffix('.py')}"), level_times.part(problem))
        for level, level_times in json_document(file).parts()
        for problem in level_times.data
    ]
    # One machine timed them all; a problem without times does not say which.
    machine = next((_machine(times) for _, times in problems if times.data), {})
    yield from (_result(times, name, strategy, machine) for name, times in problems)


def _strategy(name: str) -> Strategy | None:
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    if match["backend"] is None:
        return EAGER
    mode = match["mode"]
    if mode is None or match["backend"] == "inductor":
        return strategy_called(mode or match["backend"])
    return compiled(f"{match['backend']} {mode}", backend=match["backend"], mode=mode)


def _machine(times: Fields) -> dict[str, str | None]:
    device = times.data.get("device")
    on_gpu = isinstance(device, str) and device.startswith("cuda")
    return {"device": "cuda" if on_gpu else None, "device_name": times.text("hardware")}


def _result(
    times: Fields, name: str, strategy: Strategy | None, machine: dict[str, str | None]
) -> ForeignResult:
    latency_ns = times.duration_ns("mean", NS_PER_MS)
    if times.data and latency_ns is None:
        times.fail("mean", "is missing")
    summary = Summary(latency_ns=latency_ns, n=times.count("num_trials"), metrics=times.figures(_KEPT))
    return ForeignResult(
        place=times.place,
        workload=name,
        strategy=strategy,
        raw=dict(times.data),
        stated=_machine(times) if times.data else machine,
        assumed={"task": Task.FUNCTION},
        failure=None if times.data else failed("The file has no times of this problem."),
        parts={"summary": summary} if times.data else {},
    )
