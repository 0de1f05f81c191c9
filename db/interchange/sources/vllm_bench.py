"""What `vllm bench latency`, `throughput` and `serve` write with `--output-json` or `--save-result`, the same
figures in the v3 records that vLLM writes beside them, and what sglang's `bench_serving` writes.

Shapes: vllm, vllm/benchmarks/{latency,throughput,serve}.py and lib/utils.py; sglang,
python/sglang/bench_serving.py, whose unlimited rate is Infinity. Latencies are seconds a request,
rates are a second, times of a server ms. The JSON of latency and throughput names neither model nor settings;
the v3 records hold every argument of the engine, of which few tell one case from another.

A file that `--append-result` or sglang wrote holds a result a line; a server that completed no request
failed. Of `vllm bench sweep` the `summary.json` says what each `run=N.json` beside it says, `warmup.json` is
left out, and a `run=N.failure.json` is a failed trial of the case of its folder. `enforce_eager` is eager.
Not taken: settings that no file has. To name: torch, device and strategy, of sglang the moment;
`--workload`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any

from compilewatch.db.errors import RecordError, one_line
from compilewatch.db.interchange.files.fields import NS_PER_S, Fields, json_documents, moment
from compilewatch.db.interchange.files.foreign_trials import ForeignResult, compiled, failed
from compilewatch.db.interchange.files.opening import InputFile
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.sources.serving import (
    UNLIMITED,
    UNTOLD,
    lengths,
    load_words,
    named,
    rate_of,
    served,
    stated,
)
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import Failure, Strategy, Summary
from compilewatch.db.units import plural

V3_BENCHMARK = "vLLM benchmark"

# Arguments that tell cases apart; a release may add any other without a new series.
_SIZES = (
    *("input_len", "output_len", "random_input_len", "random_output_len", "num_prompts", "n"),
    *("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "max_concurrency"),
)
_RAMP = ("ramp_up_strategy", "ramp_up_start_rps", "ramp_up_end_rps")
_WORDS = ("backend", "quantization", "kv_cache_dtype", "dataset_name", "request_rate", "burstiness", *_RAMP)
_SGLANG = "median_e2e_latency_ms"
_UNSET = (None, "", "auto", False)
_USUAL = {"burstiness": (1.0,), "request_rate": (UNLIMITED,), "backend": ("vllm", "openai", "openai-comp")}
# What a sweep overrides and another fact tells, or what tells no case apart.
_NO_OPTIONS = {
    *("enforce_eager", "dtype", "model", "served_model_name", "_benchmark_name", "label", "seed"),
    *("host", "port", "base_url", *_SIZES, *_WORDS),
}
_HOW = "compilation_config"
_KINDS = {
    "latency": "latency",
    **dict.fromkeys(("tokens_per_second", "last_gen_throughput"), "throughput"),
    **dict.fromkeys(("median_ttft_ms", "median_e2el_ms"), "serve"),
}
_MOST_RUNS = 100


def read(file: InputFile, options: ImportOptions) -> Iterator[ForeignResult]:
    """The result of a file, or of each of its lines. Raises RecordError naming file and field."""
    if file.name == "summary.json" and file.sibling("run=0.json") is not None:
        options.note(f"{file.shown}: is a sweep's summary, which says what each run=N.json beside it says.")
    for document in json_documents(file, unlimited=UNLIMITED):
        if (document.number("run_number") or 0) < 0:
            raise RecordError(f"{file.shown}: is a warm-up of a sweep.", "Import the run=N.json beside it.")
        # Metadata of a server's result may have any name.
        known: Mapping[str, Any] = {} if "request_throughput" in document.data else document.data
        if "error_type" in known:
            yield _failed_run(document, file, options)
        elif "run_name" in known:
            yield _one_batch(document, file, options)
        else:
            yield _result(document, file, options)


def _failed_run(document: Fields, file: InputFile, options: ImportOptions) -> ForeignResult:
    """A run of a sweep that failed, of the case of another run in its folder, whose moment it takes."""
    runs = (file.sibling(f"run={number}.json") for number in range(_MOST_RUNS))
    beside = next(filter(None, runs), None)
    if beside is None:
        raise RecordError(
            f"{file.shown}: says that a sweep failed, and no run=N.json beside it says of which case.",
            "Import the runs that succeeded.",
        )
    result = _result(next(json_documents(beside, unlimited=UNLIMITED)), beside, options)
    error = f"{document.data['error_type']}: {document.data.get('error')}"
    result.place, result.raw, result.parts = document.place, dict(document.data), {}
    result.failure = failed(document.storable("error", one_line(" ".join(error.split()), 500), 1_000))
    return result


def _one_batch(document: Fields, file: InputFile, options: ImportOptions) -> ForeignResult:
    """Of sglang's `bench_one_batch` or `bench_one_batch_server`: how long one batch took, in seconds."""
    label, sizes = document.text("run_name"), ("input_len", "output_len")
    seconds = "total_latency" if "total_latency" in document.data else "latency"
    figures = stated(document, (*sizes, "batch_size"))
    return ForeignResult(
        place=document.place,
        workload=document.storable("run_name", f"{named(None, file, options)} one batch"),
        strategy=None,
        raw={"values": figures},
        stated={"batch_size": document.count("batch_size") or None},
        assumed=UNTOLD,
        shape=document.sizes(sizes),
        parts={"summary": Summary(latency_ns=document.duration_ns(seconds, NS_PER_S), metrics=figures)},
        label=None if label == "default" else label,
        is_run=True,
    )


def _result(document: Fields, file: InputFile, options: ImportOptions) -> ForeignResult:
    swept = _swept(document)
    arguments = Fields(document.place, {**document.data, **swept}, document.path)
    # A server's result has the times of all its requests too.
    seconds = [] if "request_throughput" in document.data else _seconds(document)
    swept_keys = [key for key in document.data if key not in _WORDS and key.replace("-", "_") in swept]
    # Some releases wrote "request_goodput:".
    figures = stated(document, ("run_number", *swept_keys))
    values = {key.rstrip(":"): [value] for key, value in figures.items()}
    if seconds:
        values = {"latency": seconds}
    sizes, words = settings(arguments)
    sizes |= {} if "random_input_len" in sizes else _lengths(document)
    for key, value in swept.items():
        if key in _NO_OPTIONS or key.partition(".")[0] == _HOW or value is None:
            continue
        size = arguments.count(key) if type(value) is int else None
        if size is None:
            words[key] = _as_text(value)
        else:
            sizes[key] = size
    words.pop("request_rate", None)  # `load_words` says it
    backend = document.text("backend") if _SGLANG in document.data else None
    if backend:
        words.pop("backend", None)
    load = load_words(rate_of(document), document.number("max_concurrency"))
    described = [load, *(f"{key.removesuffix('_name')} {word}" for key, word in sorted(words.items()))]
    kind = ", ".join(filter(None, (f"{backend or ''} {kind_of(values)}".strip(), *described)))
    model = document.text("model_id") or document.part("server_info").text("model_path")
    failure = _unanswered(document, values)
    return ForeignResult(
        place=document.place,
        workload=document.storable("model_id", f"{named(model, file, options)} {kind}"),
        strategy=strategy_of(arguments),
        raw={"values": values} | ({"swept": swept, "run": document.data["run_number"]} if swept else {}),
        stated={"measured_at": moment(document, "date"), "dtype": dtype_of(arguments) if swept else None},
        assumed=UNTOLD,
        shape=sizes,
        item="token" if "latency" not in values else None,
        items_per_iteration=1.0 if "latency" not in values else None,
        failure=failure,
        label=document.text("label") or document.text("tag"),
        is_run=True,
        parts={}
        if failure
        else parts(document, values, arguments, options) | {"samples_ns": _samples(document, values)},
    )


def _seconds(document: Fields) -> list[float]:
    """Of `vllm bench latency` what each call took; without the list its median, else its mean."""
    typical = document.part("percentiles").number("50") or document.number("avg_latency")
    return document.numbers("latencies") or ([typical] if typical else [])


def _swept(document: Fields) -> dict[str, Any]:
    """What a sweep overrides in the combination of this result: it writes that behind the run's number."""
    keys = [*document.data]
    own = keys[keys.index("run_number") + 1 :] if "run_number" in keys else []
    return {document.storable(key, key.replace("-", "_")): document.data[key] for key in own}


def dtype_of(arguments: Fields) -> str | None:
    """The dtype of the arguments; None where the engine chose it."""
    return None if arguments.data.get("dtype") == "auto" else arguments.text("dtype")


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _unanswered(document: Fields, values: Mapping[str, object]) -> Failure | None:
    """The failure of a server that completed no request; every figure of it is 0."""
    if kind_of(values) != "serve" or document.count("completed") != 0:
        return None
    prompts = document.count("num_prompts")
    none = f"None of {plural(prompts, 'request')}" if prompts else "No request"
    return failed(f"{none} was completed.")


def _lengths(document: Fields) -> dict[str, int]:
    """Tokens of a prompt and of its answer, from the totals."""
    answered = map(document.count, ("completed", "successful_requests", "num_prompts"))
    prompts = next(filter(None, answered), None)
    totals = {f"{of}_len": document.count(f"total_{of}_tokens") for of in ("input", "output")}
    return lengths(document, {size: total / prompts for size, total in totals.items() if total and prompts})


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
        if isinstance(data.get(key), str | int | float) and data[key] not in (*_UNSET, *_USUAL.get(key, ()))
    }
    return {key: size for key, size in sizes.items() if size is not None}, words


def parts(
    fields: Fields, values: Mapping[str, list[float]], arguments: Fields, options: ImportOptions
) -> dict[str, Any]:
    """The summary: of latency the median, of throughput the time per token, of a server what it owes."""
    if "latency" in values:
        latency_ns = fields.whole("latency", median(values["latency"]) * NS_PER_S) or None
        return {"summary": Summary(latency_ns=latency_ns, n=len(values["latency"]))}
    means = {fields.storable(name, name): sum(each) / len(each) for name, each in values.items() if each}
    is_fixed = rate_of(arguments) not in (None, UNLIMITED) or bool(arguments.data.get(_RAMP[0]))
    return {"summary": served(fields, means, options, fixed_rate=is_fixed)}


def strategy_of(arguments: Fields) -> Strategy | None:
    """By `enforce_eager`, else a `compilation_config` of a sweep; None where the arguments say neither."""
    enforced, config = arguments.data.get("enforce_eager"), arguments.data.get(_HOW)
    swept = {key: value for key, value in _swept(arguments).items() if key.partition(".")[0] == _HOW}
    if not (isinstance(enforced, bool) or swept):
        return None
    each = config if isinstance(config, dict) else {}
    level = swept.get(f"{_HOW}.mode", swept.get(f"{_HOW}.level", each.get("mode", each.get("level"))))
    if enforced is True or level in (0, "0", "NONE"):
        return EAGER
    described = ", ".join(f"{key}={_as_text(value)}" for key, value in sorted(swept.items()))
    return compiled(arguments.storable(_HOW, f"compiled+{described}") if described else "compiled")


def _samples(fields: Fields, values: Mapping[str, list[float]]) -> list[int]:
    samples = [fields.whole("latencies", seconds * NS_PER_S) for seconds in values.get("latency", [])]
    return samples if all(samples) else []
