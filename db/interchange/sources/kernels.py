"""Tools that time kernels, single functions and engines. To name: torch, dtype and moment.

**trtexec** `--exportTimes`: the times of every inference in ms (NVIDIA/TensorRT
samples/common/sampleReporting.cpp, `exportJSONTrace`). The latency is that of the tool: input, compute and
output. The median of the compute time alone is kept beside. To name: GPU; `--workload`.

**KernelBench** `results/timing/*/baseline_time_*.json`: the times of every problem of a level in ms
(ScalingIntelligence/KernelBench scripts/generate_baseline_time.py). The file's name tells the strategy:
`baseline_time_torch` is eager, what follows `_torch_compile_` a backend and a mode. The latency is the mean,
which is all there is beside the ends. A problem whose timing failed is null there and a failed trial.

**nvbench** `--json`: times in seconds (NVIDIA/nvbench nvbench/json_printer.cu). The latency is the median GPU
time of isolated ("cold") runs, where a release has none their mean. A state's whole numbers are sizes, other
axes follow the name: `copy[T=F32]`. Skipped states are left out with a sentence. Not taken: samples in files
beside, clocks, criteria. To name: strategy.

**torch-compare**, as `torch.utils.benchmark.Compare` prints it: a table per label, a column per description,
which is a word for a strategy; where it is not and `--strategy` names it, it follows the workload's name.
Cells are medians in the unit that the table ends with; rows are told apart by their threads, and by label and
sub-label the workload. A spread "(! 12%)" and colours are passed over. To name: device.

**Bencher** Metric Format (bencher.dev docs/reference/bencher-metric-format): of each benchmark its measures.
`latency` is in ns and `throughput` in operations a second, as Bencher's own measures are; any other is kept
under its name. The last part of a benchmark's name after "/" or "::", or what stands in brackets there, tells
the strategy where it is a mode or backend of torch.compile, eager or the like. Not taken: the ends
`lower_value` and `upper_value`. To name: device.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from compilewatch.db.columns.source_metrics import NS_OF_UNITS
from compilewatch.db.errors import RecordError
from compilewatch.db.interchange.files.fields import (
    NS_PER_MS,
    NS_PER_S,
    Fields,
    Place,
    json_document,
    json_documents,
)
from compilewatch.db.interchange.files.foreign_trials import (
    ForeignResult,
    compiled,
    engine,
    failed,
    named_strategy,
    stated_strategy,
    strategy_called,
)
from compilewatch.db.interchange.files.opening import InputFile
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.sources.serving import named
from compilewatch.db.records.fields import INT64_MAX
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import Strategy, Summary, Task
from compilewatch.db.units import plural

BENCHER = re.compile(
    rb'\{\s*"[^"]*"\s*:\s*\{\s*"[^"]*"\s*:\s*\{\s*"(?:value|lower_value|upper_value)"\s*:\s*-?[0-9]'
)
COMPARE = re.compile(rb"\[-+(?: .*)? -+\]")
"""What a file of these formats begins with."""


def _timed(
    fields: Fields, workload: str, strategy: Strategy | None, summary: Summary | None, raw: Any, **more: Any
) -> ForeignResult:
    """A result of a function. Raises RecordError for a name that no database stores."""
    return ForeignResult(
        place=fields.place,
        workload=fields.storable("name", workload),
        strategy=strategy,
        raw=raw,
        parts={"summary": summary} if summary else {},
        **{"assumed": {"task": Task.FUNCTION}} | more,
    )


def read_trtexec(file: InputFile, options: ImportOptions) -> Iterator[ForeignResult]:
    """One trial of all inferences, each a sample. Raises RecordError naming file and field."""
    times = list(json_documents(file))
    samples = [each.duration_ns("latencyMs", NS_PER_MS) for each in times]
    compute = [figure for each in times if (figure := each.number("computeMs")) is not None]
    known = [sample for sample in samples if sample is not None]
    if len(known) < len(samples):
        times[samples.index(None)].fail("latencyMs", "is missing")
    if not known:
        raise Place(file.shown).error("the document", "has no inference")
    figures = {"GPU compute time (ms)": median(compute)} if compute else {}
    result = _timed(
        Fields(Place(file.shown), {}),
        named(None, file, options),
        engine("tensorrt"),
        Summary(latency_ns=round(median(known)), n=len(known), metrics=figures),
        {"latencyMs": known},
        stated={"device": "cuda"},
        assumed={"task": Task.INFERENCE},
    )
    result.parts["samples_ns"] = known
    yield result


# KernelBench

_BASELINE = re.compile(
    r"baseline_time_torch(?:_compile_(?P<backend>[a-z_]+?)(?:_(?P<mode>default|reduce-overhead|max-autotune.*))?)?\.json"
)


def read_kernelbench(file: InputFile, _: ImportOptions) -> Iterator[ForeignResult]:
    """One trial per problem. Raises RecordError naming file and field."""
    strategy = _strategy_of_baseline(file.name)
    problems = [
        (f"{level}/{problem.removesuffix('.py')}", level_times.part(problem))
        for level, level_times in json_document(file).parts()
        for problem in level_times.data
    ]
    # One machine timed them all; a problem without times does not say which.
    facts = next((_facts_of_baseline(times) for _, times in problems if times.data), {})
    for name, times in problems:
        if not times.data:
            failure = failed("The file has no times of this problem.")
            yield _timed(times, name, strategy, None, {}, stated=facts, failure=failure)
            continue
        latency_ns = times.duration_ns("mean", NS_PER_MS)
        if latency_ns is None:
            times.fail("mean", "is missing")
        figures = times.figures(("std", "min", "max"))
        summary = Summary(latency_ns=latency_ns, n=times.count("num_trials"), metrics=figures)
        yield _timed(times, name, strategy, summary, dict(times.data), stated=_facts_of_baseline(times))


def _strategy_of_baseline(name: str) -> Strategy | None:
    match = _BASELINE.fullmatch(name)
    if match is None:
        return None
    backend, mode = match["backend"], match["mode"]
    if backend is None:
        return EAGER
    if mode is None or backend == "inductor":
        return strategy_called(mode or backend)
    return compiled(f"{backend} {mode}", backend=backend, mode=mode)


def _facts_of_baseline(times: Fields) -> dict[str, str | None]:
    on_gpu = str(times.data.get("device")).startswith("cuda")
    return {"device": "cuda" if on_gpu else None, "device_name": times.text("hardware")}


# nvbench

_TIMES = ("nv/cold/time/gpu/median", "nv/cold/time/gpu/mean")
# Beside the latency: what the host and a batch take, and what follows from the sizes that are told.
_TAGS = ("nv/cold/time/cpu/mean", "nv/batch/time/gpu/mean", "nv/cold/bw/global/bytes_per_second")


def read_nvbench(file: InputFile, options: ImportOptions) -> Iterator[ForeignResult]:
    """One trial per state that was not skipped. Raises RecordError naming file and field."""
    document = json_document(file)
    names = {device.count("id"): device.text("name") for device in document.objects("devices")}
    skipped = 0
    for benchmark in document.objects("benchmarks"):
        for state in benchmark.objects("states"):
            if state.flag("is_skipped"):
                skipped += 1
            else:
                yield _state(benchmark.required_text("name"), state, names.get(state.count("device")))
    if skipped:
        options.note(f"{file.shown}: {plural(skipped, 'skipped state')} left out.")


def _state(benchmark: str, state: Fields, device_name: str | None) -> ForeignResult:
    values = {
        summary.required_text("tag"): entry
        for summary in state.objects("summaries")
        for entry in summary.objects("data")
        if entry.text("name") == "value"
    }
    tag = next((tag for tag in _TIMES if tag in values), None)
    if tag is None:
        state.fail("summaries", f"have no {_TIMES[-1]}")
    sizes: dict[str, int] = {}
    words: list[str] = []
    for axis in state.objects("axis_values") if state.data.get("axis_values") else ():
        name = axis.required_text("name")
        value = axis.number("value") if axis.text("type") == "int64" else None
        if value is not None and value.is_integer() and abs(value) <= INT64_MAX:
            sizes[name] = int(value)
        else:
            words.append(f"{name}={axis.data.get('value')}")
    samples = values.get("nv/cold/sample_size")
    tagged = {tag: values[tag].number("value") for tag in _TAGS if tag in values}
    return _timed(
        state,
        f"{benchmark}[{', '.join(words)}]" if words else benchmark,
        None,
        Summary(
            latency_ns=values[tag].duration_ns("value", NS_PER_S),
            n=samples.count("value") if samples else None,
            metrics={tag: figure for tag, figure in tagged.items() if figure is not None},
        ),
        {tag: value.data for tag, value in values.items()} | {"axes": [*words, sizes]},
        stated={"device": "cuda", "device_name": device_name},
        shape=sizes,
    )


# torch.utils.benchmark.Compare

_MOST_ROWS = 100_000
_LABEL = re.compile(r"\[-+(?: (?P<label>.*))? -+\]")
_THREADS = re.compile(r"(\d+) threads: -*")
_UNIT = re.compile(r"Times are in \w+ \((\w+)\)\.")
_BETWEEN = re.compile(r"  \|(?:  |$)")
_SPREAD = re.compile(r"\(! ?[\d.]+%\)")
_COLOUR = re.compile(r"\033\[[0-9;]*m")


@dataclass
class _Table:
    label: str
    columns: list[str] = field(default_factory=list)
    rows: list[tuple[Place, int | None, list[str]]] = field(default_factory=list)


def read_compare(file: InputFile, options: ImportOptions) -> Iterator[ForeignResult]:
    """One trial per cell. Raises RecordError naming file and line."""
    table: _Table | None = None
    threads: int | None = None
    for number, raw in file.lines():
        place = Place(file.shown, number)
        line = _COLOUR.sub("", raw.decode("utf-8", errors="replace")).rstrip()
        if (label := _LABEL.fullmatch(line)) is not None:
            table, threads = _Table((label["label"] or "").strip()), None
        elif (unit := _UNIT.fullmatch(line)) is not None:
            if table is None or unit[1] not in NS_OF_UNITS:
                raise place.error("the unit", "belongs to no table, or is none of a time")
            yield from _cells(table, NS_OF_UNITS[unit[1]], options)
            table = None
        elif table is None:
            if line.strip() and not line.startswith("(!"):
                raise place.error("the line", "is no part of a table of torch.utils.benchmark")
        elif (separator := _THREADS.fullmatch(line)) is not None:
            threads = Fields(place, {"threads": separator[1]}).count("threads")
        elif line.strip():
            cells = [cell.strip() for cell in _BETWEEN.split(line)]
            if len(table.rows) >= _MOST_ROWS:
                raise place.error("the table", f"has more than {_MOST_ROWS:,} rows")
            if table.columns:
                table.rows.append((place, threads, cells))
            else:
                table.columns = cells[1:]
    if table is not None:
        raise RecordError(f"{file.shown}: ends inside a table.", "Copy it to its last line, with the unit.")


def _cells(table: _Table, scale: float, options: ImportOptions) -> Iterator[ForeignResult]:
    for place, threads, (name, *cells) in table.rows:
        for column, cell in zip(table.columns, cells, strict=False):
            text = _SPREAD.sub("", cell).strip()
            if not text:
                continue
            fields = Fields(place, {column: text})
            strategy, described = _strategy_of_column(column, place, options)
            yield _timed(
                fields,
                " ".join(filter(None, (table.label, name, described))) or "(no label)",
                strategy,
                Summary(latency_ns=fields.duration_ns(column, scale)),
                {"table": table.label, "row": name, "column": column, "threads": threads, "cell": text},
                stated={"threads": threads},
            )


def _strategy_of_column(column: str, place: Place, options: ImportOptions) -> tuple[Strategy | None, str]:
    """The strategy that a column's description names, else the description itself."""
    if not column:
        return None, ""
    try:
        return stated_strategy(column, place, options), ""
    except RecordError:
        if options.strategy is None:
            raise
        return None, column


# Bencher

# Of a benchmark's name they may tell anything.
_YES_OR_NO = frozenset(["true", "false", "yes", "no", "on", "off", "enabled", "disabled", "none", "0", "1"])
_MOST_SPANS = 100


def read_bencher(file: InputFile, options: ImportOptions) -> Iterator[ForeignResult]:
    """One trial per benchmark. Raises RecordError naming file and field."""
    for name, measures in json_document(file).parts():
        figures = {measure: value.number("value") for measure, value in measures.parts()}
        known = {measure: figure for measure, figure in figures.items() if figure is not None}
        latency, rate = known.get("latency", 0.0), known.get("throughput")
        latency_ns = None
        if latency > 0:
            latency_ns = measures.whole("latency", latency) or 1
        elif rate is not None and rate > 0:
            latency_ns = measures.whole("throughput", NS_PER_S / rate) or 1
        others = {measure: figure for measure, figure in known.items() if measure != "latency"}
        summary = Summary(latency_ns=latency_ns, throughput_per_s=rate, metrics=others)
        yield _timed(
            measures, *_benchmark(name, measures, options), summary, {"name": name, "measures": known}
        )


def _benchmark(name: str, measures: Fields, options: ImportOptions) -> tuple[str, Strategy | None]:
    """The workload, and the strategy that the last part of a benchmark's name tells."""
    last = re.split("/|::", name)[-1]
    test, _, params = last.removesuffix("]").partition("[") if last.endswith("]") else ("", "", last)
    # Of parameters, as pytest writes them, those that are a word for a strategy in the longest way.
    words = params.split("-")
    spans = [(at, at + many) for many in range(len(words), 0, -1) for at in range(len(words) - many + 1)]
    for begin, end in spans[:_MOST_SPANS] if last != name or test else ():
        word = "-".join(words[begin:end])
        strategy = None if word.lower() in _YES_OR_NO else named_strategy(word, measures.place, options)
        if strategy is not None and (test or end - begin == len(words)):
            rest = "-".join((*words[:begin], *words[end:]))
            head = name[: -len(last)] + test
            return (f"{head}[{rest}]" if rest else head.rstrip("/:") or name), strategy
    return name, None
