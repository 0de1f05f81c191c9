"""What `vllm bench latency`, `throughput` and `serve` write with `--output-json` or `--save-result`, and the
same figures in the v3 records that vLLM writes beside them.

Shapes: vllm, vllm/benchmarks/{latency,throughput,serve}.py and lib/utils.py. Latencies are seconds a request,
rates are a second, times of `serve` ms. The JSON of latency and throughput names neither model nor settings;
the v3 records hold every argument of the engine, of which few tell one case from another.

Of rates, the latency is the time per token; `enforce_eager` of the v3 records is eager. Not taken: settings
that no file has, words such as the quantization. To name: torch, device, moment and strategy; `--workload`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePath
from statistics import median
from typing import Any

from compilewatch.db.interchange.files.fields import NS_PER_S, Fields, json_document, moment
from compilewatch.db.interchange.files.foreign_trials import UNKNOWN, ForeignResult, compiled
from compilewatch.db.interchange.files.opening import InputFile
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import Strategy, Summary, Task

V3_BENCHMARK = "vLLM benchmark"

# Arguments that tell cases apart; a release may add any other without a new series.
_SIZES = (
    *("input_len", "output_len", "random_input_len", "random_output_len", "num_prompts", "n"),
    *("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "max_concurrency"),
)
_WORDS = ("quantization", "kv_cache_dtype", "dataset_name", "request_rate")
_UNSET = (None, "", "auto", False)
_KINDS = {"latency": "latency", "tokens_per_second": "throughput", "median_ttft_ms": "serve"}


def read(file: InputFile, options: ImportOptions) -> Iterator[ForeignResult]:
    """The one result of a file. Raises RecordError naming file and field."""
    document = json_document(file)
    seconds = document.numbers("latencies")
    figures = {key: document.number(key) for key, value in document.data.items() if _is_figure(value)}
    values = {key: [value] for key, value in figures.items() if value is not None}
    if seconds:
        values = {"latency": seconds}
    sizes, words = settings(document)
    model = document.text("model_id")
    if model and options.workload not in (None, model):
        options.not_used(file.shown, model, f"--workload {options.workload}")
    name = model or options.workload or PurePath(file.name).stem
    yield ForeignResult(
        place=document.place,
        workload=document.storable("model_id", f"{name} {kind_of(values)}"),
        strategy=None,
        raw={"values": values},
        stated={"measured_at": _moment(document)},
        assumed={"device_name": UNKNOWN, "dtype": UNKNOWN, "task": Task.INFERENCE},
        shape=sizes,
        item="token" if "latency" not in values else None,
        items_per_iteration=1.0 if "latency" not in values else None,
        parts=parts(document, values) | {"samples_ns": _samples(document, values)},
    )
    if words:
        described = ", ".join(f"{key} {word}" for key, word in sorted(words.items()))
        options.note(f"{file.shown}: {described} stand in no field and are left out.")


def kind_of(values: Mapping[str, object]) -> str:
    """Which benchmark wrote figures of these names."""
    return next((kind for name, kind in _KINDS.items() if name in values), "benchmark")


def settings(arguments: Fields) -> tuple[dict[str, int], dict[str, str]]:
    """Sizes, and words, by which an execution of the benchmark differs from another."""
    data = arguments.data
    sizes = {key: arguments.count(key) for key in _SIZES if data.get(key) not in _UNSET}
    words = {
        key: arguments.storable(key, str(data[key]), 60)
        for key in _WORDS
        if isinstance(data.get(key), str | int | float) and data[key] not in (*_UNSET, "inf")
    }
    return {key: size for key, size in sizes.items() if size is not None}, words


def parts(fields: Fields, values: Mapping[str, list[float]]) -> dict[str, Any]:
    """The summary: of latency the median, of throughput and serve the time per (output) token."""
    if "latency" in values:
        latency_ns = fields.whole("latency", median(values["latency"]) * NS_PER_S) or None
        return {"summary": Summary(latency_ns=latency_ns, n=len(values["latency"]))}
    means = {fields.storable(name, name): sum(each) / len(each) for name, each in values.items() if each}
    rate = means.get("output_throughput") or means.get("tokens_per_second")
    latency_ns = fields.whole("tokens_per_second", NS_PER_S / rate) or None if rate and rate > 0 else None
    return {"summary": Summary(latency_ns=latency_ns, throughput_per_s=rate, metrics=means)}


def strategy_of(arguments: Fields) -> Strategy | None:
    """By `enforce_eager`; None where the arguments do not say it."""
    enforced = arguments.data.get("enforce_eager")
    if not isinstance(enforced, bool):
        return None
    config = arguments.data.get("compilation_config")
    level = config.get("mode", config.get("level")) if isinstance(config, dict) else None
    if enforced or level in (0, "NONE"):
        return EAGER
    return compiled("compiled")


def _samples(fields: Fields, values: Mapping[str, list[float]]) -> list[int]:
    samples = [fields.whole("latencies", seconds * NS_PER_S) for seconds in values.get("latency", [])]
    return samples if all(samples) else []


def _is_figure(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _moment(document: Fields) -> Any:
    """`serve` writes 20250913-103012, of the host's clock, which is taken as UTC."""
    text = document.text("date")
    if text is None:
        return None
    day, _, time = text.partition("-")
    return moment(Fields(document.place, {"date": f"{day}T{time}" if time.isdigit() else text}), "date")
