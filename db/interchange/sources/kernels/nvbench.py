"""nvbench `--json`: a result per benchmark and state, times in seconds.

Shape: NVIDIA/nvbench nvbench/json_printer.cu; python/scripts/nvbench_json reads it. The latency is the median
GPU time of isolated ("cold") runs, where a release has none their mean. A state's whole numbers are sizes,
other axes follow the name: `copy[T=F32]`.

Skipped states are left out with a sentence. Not taken: samples in files beside, clocks, criteria. To name:
torch, dtype, moment and strategy.
"""

from __future__ import annotations

from collections.abc import Iterator

from compilewatch.db.interchange.files.fields import NS_PER_S, Fields, json_document
from compilewatch.db.interchange.files.foreign_trials import ForeignResult
from compilewatch.db.interchange.files.opening import InputFile
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.records.fields import INT64_MAX
from compilewatch.db.records.trial import Summary, Task
from compilewatch.db.units import plural

_TIMES = ("nv/cold/time/gpu/median", "nv/cold/time/gpu/mean")
_SAMPLES = "nv/cold/sample_size"
# Beside the latency: what the host and a batch take, and what follows from the sizes that are told.
_KEPT = ("nv/cold/time/cpu/mean", "nv/batch/time/gpu/mean", "nv/cold/bw/global/bytes_per_second")


def read(file: InputFile, options: ImportOptions) -> Iterator[ForeignResult]:
    """One trial per state that was not skipped. Raises RecordError naming file and field."""
    document = json_document(file)
    names = {device.count("id"): device.text("name") for device in document.objects("devices")}
    skipped = 0
    for benchmark in document.objects("benchmarks"):
        for state in benchmark.objects("states"):
            if state.flag("is_skipped"):
                skipped += 1
                continue
            yield _result(benchmark, state, names.get(state.count("device")))
    if skipped:
        options.note(f"{file.shown}: {plural(skipped, 'skipped state')} left out.")


def _result(benchmark: Fields, state: Fields, device_name: str | None) -> ForeignResult:
    figures = dict(_values(state))
    tag = next((tag for tag in _TIMES if tag in figures), None)
    if tag is None:
        state.fail("summaries", f"have no {_TIMES[-1]}")
    latency_ns = figures[tag].duration_ns("value", NS_PER_S)
    samples = figures[_SAMPLES].count("value") if _SAMPLES in figures else None
    sizes: dict[str, int] = {}
    words: list[str] = []
    for axis in state.objects("axis_values") if state.data.get("axis_values") else ():
        name = axis.required_text("name")
        value = axis.number("value") if axis.text("type") == "int64" else None
        if value is not None and value.is_integer() and abs(value) <= INT64_MAX:
            sizes[name] = int(value)
        else:
            words.append(f"{name}={axis.data.get('value')}")
    described = f"[{', '.join(words)}]" if words else ""
    return ForeignResult(
        place=state.place,
        workload=state.storable("axis_values", f"{benchmark.required_text('name')}{described}"),
        strategy=None,
        raw={tag: value.data for tag, value in figures.items()} | {"axes": [*words, sizes]},
        stated={"device": "cuda", "device_name": device_name},
        assumed={"task": Task.FUNCTION},
        shape=sizes,
        parts={
            "summary": Summary(
                latency_ns=latency_ns,
                n=samples,
                metrics={
                    tag: figure
                    for tag in _KEPT
                    if tag in figures and (figure := figures[tag].number("value")) is not None
                },
            )
        },
    )


def _values(state: Fields) -> Iterator[tuple[str, Fields]]:
    """Of each summary by its tag the entry with its value."""
    for summary in state.objects("summaries"):
        for entry in summary.objects("data"):
            if entry.text("name") == "value":
                yield summary.required_text("tag"), entry
