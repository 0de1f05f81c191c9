"""What `vllm bench latency`, `throughput` and `serve` write with `--output-json` or `--save-result`, and the
same figures in the v3 records that vLLM writes beside them.

Shapes: vllm, vllm/benchmarks/{latency,throughput,serve}.py and lib/utils.py. Latencies are seconds a request,
rates are a second, times of `serve` ms. The JSON of latency and throughput names neither model nor settings;
the v3 records hold every argument of the engine, of which few tell one case from another.

Of `throughput` the latency is the time per token. Of `serve` under a fixed rate it is the median time
per output token (TPOT): output throughput is then the load that was offered, whatever the server does.
Rate and concurrency are part of the workload's name, lengths and numbers of prompts its sizes: input and
output length of `serve` are totals over prompts. A file that `--append-result` wrote holds a result a line.
`enforce_eager` of the v3 records is eager. Not taken: settings that no file has, words such as the
quantization. To name: torch, device, moment and strategy; `--workload`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, islice
from pathlib import PurePath
from statistics import median
from typing import Any

from compilewatch.db.interchange.files.fields import (
    NS_PER_MS,
    NS_PER_S,
    Fields,
    Place,
    as_fields,
    json_document,
    load_json,
    moment,
)
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
    """The result of a file, or of each of its lines. Raises RecordError naming file and field."""
    return (_result(document, file, options) for document in _documents(file))


def _documents(file: InputFile) -> Iterator[Fields]:
    lines = ((Place(file.shown, number), line) for number, line in file.lines() if line.strip())
    first = list(islice(lines, 2))
    if len(first) == 1 or not (first[0][1].endswith(b"}") and first[1][1].startswith(b"{")):
        yield json_document(file)
        return
    for place, line in chain(first, lines):
        yield as_fields(place, load_json(line, place))


def _result(document: Fields, file: InputFile, options: ImportOptions) -> ForeignResult:
    seconds = document.numbers("latencies")
    figures = {key: document.number(key) for key, value in document.data.items() if _is_figure(value)}
    values = {key: [value] for key, value in figures.items() if value is not None}
    if seconds:
        values = {"latency": seconds}
    sizes, words = settings(document)
    sizes |= _lengths(document)
    words.pop("request_rate", None)  # `_load` says it
    model = document.text("model_id")
    if model and options.workload not in (None, model):
        options.not_used(file.shown, model, f"--workload {options.workload}")
    name = model or options.workload or PurePath(file.name).stem
    result = ForeignResult(
        place=document.place,
        workload=document.storable("model_id", f"{name} {kind_of(values)}{_load(document)}"),
        strategy=None,
        raw={"values": values},
        stated={"measured_at": _moment(document)},
        assumed={"device_name": UNKNOWN, "dtype": UNKNOWN, "task": Task.INFERENCE},
        shape=sizes,
        item="token" if "latency" not in values else None,
        items_per_iteration=1.0 if "latency" not in values else None,
        parts=parts(document, values, document) | {"samples_ns": _samples(document, values)},
    )
    if words:
        described = ", ".join(f"{key} {word}" for key, word in sorted(words.items()))
        options.note(f"{file.shown}: {described} stand in no field and are left out.")
    return result


def _load(document: Fields) -> str:
    """By which load a server's results differ: its rate, and how many requests at once."""
    rate, at_once = document.data.get("request_rate"), document.data.get("max_concurrency")
    if rate is None and at_once is None:
        return ""
    said = f", rate {rate:g}/s" if _is_figure(rate) and rate is not None else ""
    unlimited = ", unlimited rate" if rate is not None and not said else ""
    return f"{said}{unlimited}" + (f", {document.count('max_concurrency')} at once" if at_once else "")


def _lengths(document: Fields) -> dict[str, int]:
    """Tokens of a prompt and of its answer, from the totals, each rounded."""
    prompts = document.count("completed") or document.count("num_prompts")
    totals = {"input_len": "total_input_tokens", "output_len": "total_output_tokens"}
    counts = {name: document.count(total) for name, total in totals.items()}
    return {name: round(count / prompts) for name, count in counts.items() if count and prompts}


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


def parts(fields: Fields, values: Mapping[str, list[float]], arguments: Fields) -> dict[str, Any]:
    """The summary: of latency the median, of throughput the time per token, and so of serve where the rate
    of requests is unlimited; under a fixed one the median time per output token.
    """
    if "latency" in values:
        latency_ns = fields.whole("latency", median(values["latency"]) * NS_PER_S) or None
        return {"summary": Summary(latency_ns=latency_ns, n=len(values["latency"]))}
    means = {fields.storable(name, name): sum(each) / len(each) for name, each in values.items() if each}
    rate = means.get("output_throughput") or means.get("tokens_per_second")
    per_token_ms = means.get("median_tpot_ms")
    latency_ns = fields.whole("tokens_per_second", NS_PER_S / rate) or None if rate and rate > 0 else None
    if per_token_ms is not None and _is_figure(arguments.data.get("request_rate")):
        latency_ns = fields.whole("median_tpot_ms", per_token_ms * NS_PER_MS) or None
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
