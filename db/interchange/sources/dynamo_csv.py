"""PyTorch `benchmarks/dynamo` CSV: performance and accuracy files, by header.

Shapes follow `speedup_experiment`, `_write_accuracy_row`, `write_csv_when_exception` and `output_csv` in
pytorch/pytorch benchmarks/dynamo/common.py. Columns come and go between versions, so they are looked up
by name. `speedup` 0 is how the tool writes a failure.

A performance file is joined with the accuracy file beside it by device, model and tag, as PyTorch's
dashboard does, and by batch size where a model has rows of several: a model that fails its accuracy run
failed. Either file of a pair stands for both. The strategy stands in the file's name alone; " (1)" before the
suffix is a browser's, for a copy.

Not taken: samples, places of graph breaks, recompiles, phases; a compile cost where rows of one model differ
twofold, unless a `tag` says cold or warm. To name: torch, GPU and moment; whether it was compiled under
another name. Two accuracies that differ about one row are refused.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from typing import Any

from compilewatch.db.errors import RecordError
from compilewatch.db.interchange.files.fields import (
    BYTES_PER_GB,
    NS_PER_MS,
    NS_PER_S,
    Fields,
    Place,
    csv_header,
    csv_rows,
)
from compilewatch.db.interchange.files.foreign_trials import (
    SPEEDUP_ZERO,
    ForeignResult,
    compile_cost,
    compiled,
    compiler_counts,
    failed,
)
from compilewatch.db.interchange.files.opening import InputFile
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.records.trial import (
    CacheState,
    ColdStart,
    Failure,
    FailureKind,
    Memory,
    Numerics,
    NumericsStatus,
    Strategy,
    Summary,
    Task,
)

# Which row of a `benchmarks/dynamo` accuracy file speaks of which row of the performance file beside it.

_Key = tuple[Hashable, ...]
# A failed row is written without a tag: in a file with tags its speedup stands in their column.
_SHIFTED_SPEEDUP = "0.000000"


class Verdicts:
    """The rows of an accuracy file by what tells them apart in both files.

    That is device, model and tag, as far as both files have the column, and the batch size of models of which
    a file has several: PyTorch checks accuracy with a batch of its own, so one of each belong together.
    """

    def __init__(self, performance: InputFile | None, accuracy: InputFile) -> None:
        """Raises RecordError for a row that cannot be read."""
        shared = {*csv_header(accuracy)} & {*csv_header(performance)} if performance else set()
        self._columns = [name for name in ("dev", "name") if name in shared]
        self._tagged = "tag" in shared
        self._rows = [*csv_rows(accuracy)]
        self._several: set[_Key] = set()
        if performance and "batch_size" in shared:
            known = {*map(self._model, self._rows)}
            theirs = (row for row in csv_rows(performance) if self._model(row) in known)
            self._several = self._of_several(self._rows) | self._of_several(theirs)
        self._first: dict[_Key, Fields] = {}
        self._contrary: dict[_Key, Fields] = {}
        for row in self._rows:
            first = self._first.setdefault(self._key(row), row)
            if row.text("accuracy") != first.text("accuracy"):
                self._contrary.setdefault(self._key(row), row)
        self._covered: set[_Key] = set()

    def of(self, row: Fields) -> Fields | None:
        """The row about this row of the performance file, and about every repeat of it.

        Raises RecordError where two do and differ.
        """
        key = self._key(row)
        first, contrary = self._first.get(key), self._contrary.get(key)
        if first is not None and contrary is not None:
            contrary.fail(
                "accuracy",
                f"is {contrary.text('accuracy')} here and {first.text('accuracy')} "
                f"on line {first.place.line}, of one row",
            )
        self._covered.add(key)
        return first

    def unmatched(self) -> Iterator[Fields]:
        """Rows that matched no row of the performance file, in the order of the file."""
        return (row for row in self._rows if self._key(row) not in self._covered)

    def _of_several(self, rows: Iterable[Fields]) -> set[_Key]:
        """Models with rows of more than one batch size."""
        sizes: dict[_Key, set[int]] = defaultdict(set)
        for row in rows:
            size = _batch_size(row)
            if size is not None:
                sizes[self._model(row)].add(size)
        return {model for model, of_model in sizes.items() if len(of_model) > 1}

    def _model(self, row: Fields) -> _Key:
        return (*map(row.text, self._columns), tag_of(row) if self._tagged else None)

    def _key(self, row: Fields) -> _Key:
        model = self._model(row)
        return (*model, _batch_size(row)) if model in self._several else model


def tag_of(row: Fields) -> str | None:
    """What the user called the run of this row, if the file says it."""
    tag = row.text("tag")
    return None if tag == _SHIFTED_SPEEDUP else tag


def _batch_size(row: Fields) -> int | None:
    """An empty batch size and the 0 of a failed row both mean that the file does not say it."""
    return row.count("batch_size") or None


# What the names of files are made of: <compiler>_<suite>_<dtype>_<mode>_<device>_<accuracy|performance>.csv
# of .ci/pytorch/test.sh, [cpu_]<compiler>_<suite>[_<mode>].csv of benchmarks/dynamo/ci_expected_accuracy, and
# the same with hyphens in torch-xpu-ops.
_SUITES = ("timm_models", "timm", "torchbench", "huggingface")
_DEVICES = frozenset({"cpu", "cuda", "xpu", "hip", "rocm", "mps", "hpu"})
_DTYPES = frozenset({"amp", "float32", "float16", "bfloat16", "float64", "bf16", "fp16"})
_COMPILERS = frozenset({"inductor", "eager", "export", "dynamo"})
_KINDS = frozenset({"accuracy", "performance"})
_COPY = re.compile(r" ?\(\d+\)(?=\.csv\Z)")


def read(file: InputFile, options: ImportOptions) -> Iterator[ForeignResult]:
    """Trials of a performance file, of an accuracy file, or of the pair when both lie side by side.

    Raises RecordError naming file, line and field.
    """
    if _original(file.name).endswith("_compilation_metrics.csv"):
        raise RecordError(
            f"{file.shown}: the names of its columns do not hold for every row.",
            "Import the performance and accuracy files beside it instead.",
        )
    header = csv_header(file)
    if "speedup" in header:
        yield from _read_pair(file, _partner(file, "_performance.csv", "_accuracy.csv"), options)
    elif "accuracy" in header:
        yield from _read_pair(_partner(file, "_accuracy.csv", "_performance.csv"), file, options)
    else:
        raise Place(file.shown, 1).error("the header", "has neither a speedup nor an accuracy column")


def _partner(file: InputFile, ending: str, other: str) -> InputFile | None:
    original = _original(file.name)
    if not original.endswith(ending):
        return None
    partner = original.removesuffix(ending) + other
    copy = _COPY.search(file.name)
    beside = file.sibling(f"{partner.removesuffix('.csv')}{copy[0]}.csv") if copy else None
    return beside or file.sibling(partner)


def _original(name: str) -> str:
    return _COPY.sub("", name)


def _read_pair(
    performance: InputFile | None, accuracy: InputFile | None, options: ImportOptions
) -> Iterator[ForeignResult]:
    verdicts = Verdicts(performance, accuracy) if accuracy else None
    if performance:
        mixed_costs = _mixed_costs(performance)
        for row in csv_rows(performance):
            verdict = verdicts.of(row) if verdicts else None
            result = _result(row, performance, verdict)
            if (mixed := mixed_costs.get(_start_of(row))) and result.parts.get("cold_start"):
                result.parts["cold_start"] = None
                options.note(
                    f"{performance.shown}: {row.required_text('name')} compiled for {mixed[0]:g} s and for "
                    f"{mixed[1]:g} s, with caches or without: no compile cost of it is taken. A tag such as "
                    "cold or warm tells them apart."
                )
            yield result
    if accuracy and verdicts:
        for row in verdicts.unmatched():
            yield _result(row, accuracy, row)


def _result(row: Fields, file: InputFile, verdict: Fields | None) -> ForeignResult:
    named, cache = file_name_facts(file.name), _cache_of(row)
    device = str(row.text("dev") or named.get("device"))
    accuracy = verdict.required_text("accuracy") if verdict else None
    parts, failure = outcome(row, accuracy, device)
    return ForeignResult(
        place=row.place,
        workload=row.required_text("name"),
        strategy=_strategy(named.pop("compiler", None), cache),
        raw=dict(row.data),
        stated={"device": row.text("dev"), "batch_size": _batch_size(row)},
        named=named,
        failure=failure,
        parts=parts,
        label=tag_of(row),
    )


def file_name_facts(name: str) -> dict[str, Any]:
    """What of compiler, suite, dtype, task and device the tool writes into its file's name, if it is one."""
    stem = _original(name).removesuffix(".csv").replace("-", "_").replace("timm_models", "timm.models")
    words = [word.replace("timm.models", "timm_models") for word in stem.split("_")]
    at = next((place for place, word in enumerate(words) if word in _SUITES), 0)
    before, after = words[:at], words[at + 1 :]
    if not before or (not _KINDS & set(after) and _COMPILERS.isdisjoint(before)):
        return {}
    facts = {
        "suite": words[at],
        "dtype": "_".join(word for word in (*before, *after) if word in _DTYPES) or None,
        "task": next((Task(word) for word in after if word in ("inference", "training")), None),
        "device": next((word for word in (*reversed(after), *before) if word in _DEVICES), None),
        "compiler": "_".join(
            [word for word in before if word not in _DEVICES | _DTYPES and not word.isdecimal()]
            + [word for word in after if word == "dynamic"]
        ),
    }
    return {key: value for key, value in facts.items() if value}


def strategy_of(compiler: str) -> Strategy:
    """The compiler label of the file name: which mode and caches it stands for, the name does not say."""
    words = compiler.split("_")
    return compiled(
        compiler[:200],
        backend="inductor" if words[0] == "inductor" else None,
        dynamic=True if "dynamic" in words else None,
    )


def _strategy(compiler: str | None, cache: CacheState | None) -> Strategy | None:
    """None where the file's name is not the tool's."""
    if compiler is None:
        return None
    strategy = strategy_of(compiler)
    if cache is None:
        return strategy
    return strategy.model_copy(update={"name": f"{strategy.name}+{cache.value}"[:200], "cache": cache})


_CACHE_WORDS = {
    **dict.fromkeys(("cold", "fresh"), CacheState.COLD),
    **dict.fromkeys(("warm", "cached", "cache"), CacheState.WARM),
}
_APART, _APART_S = 2.0, 1.0
"""Repeats of one start differ by less: beyond both one of them found the caches of the other."""


def _cache_of(row: Fields) -> CacheState | None:
    """What the tag of a run says of its caches."""
    words = re.findall("[a-z]+", (tag_of(row) or "").lower())
    return next((_CACHE_WORDS[word] for word in words if word in _CACHE_WORDS), None)


def _mixed_costs(performance: InputFile) -> dict[_Key, tuple[float, float]]:
    """The least and the most seconds that rows of one start compiled where they cannot be its repeats, since
    caches must have told them apart. Raises RecordError for a row that cannot be read.
    """
    seconds: dict[_Key, tuple[float, float]] = {}
    if "compilation_latency" in csv_header(performance):
        for row in csv_rows(performance):
            if (cost := row.number("compilation_latency") or 0.0) > 0:
                low, high = seconds.get(_start_of(row), (cost, cost))
                seconds[_start_of(row)] = min(low, cost), max(high, cost)
    return {
        key: (low, high) for key, (low, high) in seconds.items() if high > max(_APART * low, low + _APART_S)
    }


def _start_of(row: Fields) -> _Key:
    return (row.text("dev"), row.text("name"), tag_of(row), _batch_size(row))


# What the metrics mean in the CSV and in PyTorch's database: `speedup` is eager median over compiled median,
# `abs_latency` the compiled median in ms, `compilation_latency` the warm-up of the compiled model less that
# of eager in s, and the peaks are GB (10^9 bytes), taken over the warm-up with compilation.

_NUMERICS = {
    "pass": NumericsStatus.PASS,
    "pass_due_to_skip": NumericsStatus.NOT_CHECKED,
    "eager_variation": NumericsStatus.EAGER_TWO_RUNS_DIFFER,
    "eager_two_runs_differ": NumericsStatus.EAGER_TWO_RUNS_DIFFER,
    "fail_accuracy": NumericsStatus.FAIL,
}
_PASSING = {"pass", "pass_due_to_skip", "eager_variation"}
_FAILURES = {
    "fail_accuracy": FailureKind.WRONG_RESULT,
    "OOM": FailureKind.OUT_OF_MEMORY,
    "eager_1st_run_OOM": FailureKind.OUT_OF_MEMORY,
    "eager_2nd_run_OOM": FailureKind.OUT_OF_MEMORY,
    "timeout": FailureKind.TIMEOUT,
    "model_fail_to_load": FailureKind.IMPORT_ERROR,
}
# Columns with a field of their own in the record, or that name the result. All others are kept as metrics.
_CONSUMED = {
    "dev", "name", "batch_size", "tag", "accuracy", "speedup", "abs_latency", "compilation_latency",
    "eager_peak_mem", "dynamo_peak_mem", "calls_captured", "unique_graphs", "graph_breaks",
}  # fmt: skip


def outcome(row: Fields, accuracy: str | None, device: str) -> tuple[dict[str, Any], Failure | None]:
    """The trial's parts and its failure, from one result's metrics and its accuracy text (if any).

    Raises RecordError for a figure that is no number or out of range.
    """
    numerics = Numerics(status=_NUMERICS.get(accuracy, NumericsStatus.NOT_CHECKED)) if accuracy else None
    failure = None
    if accuracy and accuracy not in _PASSING:
        kind = _FAILURES.get(accuracy, FailureKind.CRASH)
        failure = failed(f"The accuracy run of the same model ended with {accuracy}.", kind)
    speedup = row.number("speedup")
    if speedup == 0:
        return {"numerics": numerics}, failure or failed(SPEEDUP_ZERO)
    latency_ms = row.number("abs_latency") or None
    parts = {
        "summary": Summary(
            latency_ns=None if latency_ms is None else row.whole("abs_latency", latency_ms * NS_PER_MS),
            control_latency_ns=None
            if latency_ms is None or speedup is None
            else row.whole("speedup", latency_ms * speedup * NS_PER_MS),
            metrics=row.figures(row.storable(key, key) for key in row.data if key not in _CONSUMED),
        ),
        "cold_start": _cold_start(row),
        "memory": _memory(row, device),
        "compiler": compiler_counts(*map(row.count, ("unique_graphs", "graph_breaks", "calls_captured"))),
        "numerics": numerics,
    }
    return parts, failure


def _cold_start(row: Fields) -> ColdStart | None:
    """Noise can make the cost negative for a model that compiles nothing; it is then unknown."""
    seconds = row.number("compilation_latency")
    if seconds is None or seconds < 0:
        return None
    return compile_cost(row.whole("compilation_latency", seconds * NS_PER_S))


def _memory(row: Fields, device: str) -> Memory | None:
    """Of the GPU's allocator; on the CPU of the whole process. 0 is how the tool writes "not measured"."""
    # On the CPU memory_percent x total / 10^9: a hundredth of a GB.
    unit = BYTES_PER_GB / 100 if device == "cpu" else BYTES_PER_GB
    peak, control = row.scaled("dynamo_peak_mem", unit), row.scaled("eager_peak_mem", unit)
    if not peak and not control:
        return None
    if device == "cpu":
        return Memory(peak_rss_bytes=peak, control_peak_bytes=control)
    return Memory(peak_with_compile_bytes=peak, control_peak_bytes=control)
