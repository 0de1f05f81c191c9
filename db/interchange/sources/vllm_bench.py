"""What `vllm bench latency`, `throughput` and `serve` write with `--output-json` or `--save-result`, the same
figures in the v3 records that vLLM writes beside them, and what sglang's `bench_serving` writes.

Shapes: vllm, vllm/benchmarks/{latency,throughput,serve}.py and lib/utils.py; sglang,
python/sglang/bench_serving.py, whose unlimited rate is Infinity. Latencies are seconds a request,
rates are a second, times of a server ms. The JSON of latency and throughput names neither model nor settings;
the v3 records hold every argument of the engine, of which few tell one case from another.

Of `throughput` the latency is the time per token, of a server what `db.interchange.sources.serving` says.
Rate and concurrency are part of the workload's name, lengths and numbers of prompts its sizes: input and
output length of a server are totals over prompts, unless they were asked for. A file that `--append-result`
or sglang wrote holds a result a line; a server that completed no request failed. `enforce_eager` of the v3
records is eager. Not taken: settings that no file has. To name: torch, device and strategy, of sglang the
moment too; `--workload`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, islice
from statistics import median
from typing import Any

from compilewatch.db.interchange.files.fields import (
    NS_PER_S,
    Fields,
    Place,
    as_fields,
    load_json,
    moment,
)
from compilewatch.db.interchange.files.foreign_trials import UNKNOWN, ForeignResult, compiled, failed
from compilewatch.db.interchange.files.opening import InputFile
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.sources.serving import UNLIMITED, load_words, named, served
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import Failure, Strategy, Summary, Task
from compilewatch.db.units import plural

V3_BENCHMARK = "vLLM benchmark"

# Arguments that tell cases apart; a release may add any other without a new series.
_SIZES = (
    *("input_len", "output_len", "random_input_len", "random_output_len", "num_prompts", "n"),
    *("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "max_concurrency"),
)
_WORDS = ("quantization", "kv_cache_dtype", "dataset_name", "request_rate")
_SGLANG = "median_e2e_latency_ms"
_UNSET = (None, "", "auto", False)
_KINDS = {"latency": "latency", "tokens_per_second": "throughput", "median_ttft_ms": "serve"}


def read(file: InputFile, options: ImportOptions) -> Iterator[ForeignResult]:
    """The result of a file, or of each of its lines. Raises RecordError naming file and field."""
    return (_result(document, file, options) for document in _documents(file))


def _documents(file: InputFile) -> Iterator[Fields]:
    lines = ((Place(file.shown, number), line) for number, line in file.lines() if line.strip())
    first = list(islice(lines, 2))
    if len(first) == 1 or not (first[0][1].endswith(b"}") and first[1][1].startswith(b"{")):
        whole = load_json(file.document(), Place(file.shown), unlimited=UNLIMITED)
        yield as_fields(Place(file.shown), whole)
        return
    for place, line in chain(first, lines):
        yield as_fields(place, load_json(line, place, unlimited=UNLIMITED))


def _result(document: Fields, file: InputFile, options: ImportOptions) -> ForeignResult:
    seconds = document.numbers("latencies")
    # Some releases wrote "request_goodput:".
    figures = {
        key.rstrip(":"): document.number(key) for key, value in document.data.items() if _is_figure(value)
    }
    values = {key: [value] for key, value in figures.items() if value is not None}
    if seconds:
        values = {"latency": seconds}
    sizes, words = settings(document)
    sizes |= {} if "random_input_len" in sizes else _lengths(document)
    words.pop("request_rate", None)  # `load_words` says it
    backend = document.text("backend") if _SGLANG in document.data else None
    load = load_words(document.data.get("request_rate"), document.data.get("max_concurrency"))
    described = [load, *(f"{key.removesuffix('_name')} {word}" for key, word in sorted(words.items()))]
    kind = ", ".join(filter(None, (f"{backend or ''} {kind_of(values)}".strip(), *described)))
    model = document.text("model_id") or document.part("server_info").text("model_path")
    failure = _unanswered(document, values)
    return ForeignResult(
        place=document.place,
        workload=document.storable("model_id", f"{named(model, file, options)} {kind}"),
        strategy=None,
        raw={"values": values},
        stated={"measured_at": _moment(document)},
        assumed={"device_name": UNKNOWN, "dtype": UNKNOWN, "task": Task.INFERENCE},
        shape=sizes,
        item="token" if "latency" not in values else None,
        items_per_iteration=1.0 if "latency" not in values else None,
        failure=failure,
        parts={}
        if failure
        else parts(document, values, document) | {"samples_ns": _samples(document, values)},
    )


def _unanswered(document: Fields, values: Mapping[str, object]) -> Failure | None:
    """The failure of a server that completed no request; every figure of it is 0."""
    if kind_of(values) != "serve" or document.count("completed") != 0:
        return None
    return failed(f"None of {plural(document.count('num_prompts') or 0, 'request')} was completed.")


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
    """The summary: of latency the median, of throughput the time per token, of a server what it owes."""
    if "latency" in values:
        latency_ns = fields.whole("latency", median(values["latency"]) * NS_PER_S) or None
        return {"summary": Summary(latency_ns=latency_ns, n=len(values["latency"]))}
    means = {fields.storable(name, name): sum(each) / len(each) for name, each in values.items() if each}
    is_fixed = _is_figure(arguments.data.get("request_rate"))
    return {"summary": served(fields, means, fixed_rate=is_fixed)}


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
