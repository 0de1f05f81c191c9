"""What tools that load a server measure, and the files of genai-perf, aiperf and trtllm-bench.

Under a fixed rate of requests, or that of a trace, output throughput is the load that was offered, whatever
the server does: the latency is then the median time per output token (TPOT), without tokens one by one that
of a whole request, and where the rate is unlimited the time per token of all requests.

Shapes: triton-inference-server/perf_analyzer genai-perf `profile_export_genai_perf.json`; ai-dynamo/aiperf
docs/reference/json-export-schema.md; NVIDIA/TensorRT-LLM tensorrt_llm/bench/dataclasses/reporting.py
(`--report_json`). Their inter-token latency is TPOT. A run of aiperf that was cancelled is a cancelled trial,
without figures. Not taken: telemetry, distributions, warm-ups, settings of the engine. To name: torch,
strategy; of genai-perf and aiperf also GPU and dtype; of all but aiperf the moment.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import PurePath
from typing import Any

from compilewatch.db.columns.source_metrics import NS_OF_UNITS
from compilewatch.db.errors import one_line
from compilewatch.db.interchange.files.fields import NS_PER_MS, NS_PER_S, Fields, json_document, moment
from compilewatch.db.interchange.files.foreign_trials import UNKNOWN, ForeignResult, engine, failed
from compilewatch.db.interchange.files.opening import InputFile
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.records.trial import FailureKind, Summary, Task
from compilewatch.db.units import plural

UNLIMITED = "inf"
"""A rate of requests without a limit, as vLLM writes it."""
TRACE = "trace"
"""The rate of requests that were recorded and are sent as they came, as sglang writes it."""

_RATES_IN_WORDS = {UNLIMITED: "unlimited rate", TRACE: "rate of a trace"}
_SHORTEST_MEAN = 8
UNTOLD: dict[str, Any] = {"device_name": UNKNOWN, "dtype": UNKNOWN, "task": Task.INFERENCE}
"""What holds of a server unless its file or the user says otherwise."""
_PER_TOKEN = ("median_tpot_ms", "mean_tpot_ms")
_FIGURE = re.compile(r"_ms$|_tok_s$|throughput|goodput")
_TIME = re.compile(r"(?:mean|median|std|p\d+)_(?P<of>ttft|tpot|itl|e2el|e2e_latency)_ms")
_PER_REQUEST = ("median_e2el_ms", "median_e2e_latency_ms", "mean_e2el_ms", "mean_e2e_latency_ms")


def served(
    fields: Fields, figures: Mapping[str, float], options: ImportOptions, *, fixed_rate: bool
) -> Summary:
    """The summary of a server by its figures, named as vLLM does. A time that cannot be is left out, and
    said; where it would be the latency there is none.
    """
    if lost := figures.get("failed") or figures.get("error_request_count"):
        count = plural(round(lost), "request")
        options.note(f"{fields.place}: its times leave out what failed or was cancelled: {count}.")
    impossible = _impossible(figures)
    if impossible:
        options.note(f"{fields.place}: {one_line(', '.join(sorted(impossible)), 200)} cannot be; left out.")
    rate = figures.get("output_throughput") or figures.get("tokens_per_second")
    of_request = next((name for name in (*_PER_TOKEN, *_PER_REQUEST) if figures.get(name)), None)
    latency_ns = None
    if of_request is not None and (fixed_rate or not rate):
        if of_request not in impossible:
            latency_ns = fields.whole(of_request, figures[of_request] * NS_PER_MS)
    elif rate is not None and rate > 0 and not fixed_rate:
        latency_ns = fields.whole("output_throughput", NS_PER_S / rate)
    possible = {name: figure for name, figure in figures.items() if name not in impossible}
    return Summary(latency_ns=latency_ns or None, throughput_per_s=rate, metrics=possible)


def _impossible(figures: Mapping[str, float]) -> set[str]:
    """Times below 0, and those per token that are longer than any request, or than the whole load."""
    times = {name: match["of"] for name in figures if (match := _TIME.fullmatch(name))}
    requests = max((figures[name] for name, of in times.items() if of.startswith("e2e")), default=0)
    longest = requests or figures.get("duration", 0) * 1_000 or math.inf
    return {
        name
        for name, of in times.items()
        if not 0 <= figures[name] <= (longest if of == "tpot" else math.inf)
    }


def rate_of(fields: Fields) -> float | str | None:
    """Requests a second; UNLIMITED, TRACE, or None where nobody says it. Raises RecordError for any other."""
    rate = fields.data.get("request_rate")
    word = rate.strip().lower() if isinstance(rate, str) else ""
    known = {TRACE: TRACE, UNLIMITED: UNLIMITED, "infinity": UNLIMITED}
    return known[word] if word in known else fields.number("request_rate")


def load_words(rate: float | str | None, at_once: float | None) -> str:
    """By which load a server's results differ: its rate, and how many requests at once."""
    words = (
        f"rate {rate:g}/s" if isinstance(rate, float) else _RATES_IN_WORDS.get(rate or "", ""),
        f"{at_once:g} at once" if at_once and at_once > 0 else "",
    )
    return ", ".join(filter(None, words))


def _at_once(mean: float) -> float:
    """How many requests were asked for at once, by their mean, which is less where the last ones end: the
    nearest of 1 and 1.5 times a power of 2.
    """
    steps = (part * 2.0**power for power in range(20) for part in (1, 1.5) if power or part == 1)
    return min(steps, key=lambda step: abs(math.log(mean / step)))


def length_of(mean: float) -> int:
    """Tokens of the prompts, or answers, of a case by their mean.

    A whole number is a length that was asked for. Others are of texts of many lengths, and differ by a few
    tokens from night to night: theirs is the nearest of 1, 1.25, 1.5 and 1.75 times a power of 2.
    """
    if mean < _SHORTEST_MEAN or float(mean).is_integer():
        return round(mean)
    step = 2.0 ** (math.floor(math.log2(mean)) - 2)
    return round(round(mean / step) * step)


def lengths(fields: Fields, means: Mapping[str, float | None]) -> dict[str, int]:
    """Of each size the length of a case; `means` are tokens."""
    return {size: length_of(fields.whole(size, mean * 1e3) / 1e3) for size, mean in means.items() if mean}


def stated(fields: Fields, but: Collection[str] = ()) -> dict[str, float]:
    """The figures that stand in an object, as numbers or as text, but for some keys."""
    return fields.figures(
        fields.storable(key, key)
        for key, value in fields.data.items()
        if key not in but
        and not isinstance(value, bool)
        and (isinstance(value, int | float) or (isinstance(value, str) and _FIGURE.search(key)))
    )


def named(model: str | None, file: InputFile, options: ImportOptions) -> str:
    """What a result is called: by its model, else as the user says, else as its file."""
    if model and options.workload not in (None, model):
        options.not_used(file.shown, model, f"--workload {options.workload}")
    if not (model or options.workload):
        options.note(f"{file.shown}: names no model and is called as the file; --workload names it.")
    return model or options.workload or PurePath(file.name).stem


# genai-perf and aiperf: of each metric its statistics with a unit, and the arguments of the command.

_TIMES = {"time_to_first_token": "ttft", "inter_token_latency": "tpot", "request_latency": "e2el"}
_STATISTICS = {"avg": "mean", "p50": "median", "p90": "p90", "p95": "p95", "p99": "p99"}
_RATES = {"output_token_throughput": "output_throughput", "goodput": "request_goodput"}
_LENGTHS = {
    "input_len": (
        ("synthetic_input_tokens_mean", "synthetic_tokens", "input_tokens", "isl"),
        "input_sequence_length",
    ),
    "output_len": (("output_tokens_mean", "output_tokens", "osl"), "output_sequence_length"),
}


def read_genai_perf(file: InputFile, options: ImportOptions) -> Iterator[ForeignResult]:
    """The one result of a file, of a cancelled run no figure. Raises RecordError naming file and field."""
    document = json_document(file)
    arguments: _Arguments = dict(reversed(list(_arguments(document.part("input_config").data))))
    rate = _number(document, arguments, "request_rate", "rate")
    at_once = _number(document, arguments, "concurrency", "session_concurrency")
    # The first releases of aiperf had them in a part of their own.
    metrics = document.part("records") if isinstance(document.data.get("records"), dict) else document
    figures = dict(_statistics(metrics))
    if rate:
        figures["request_rate"] = rate
    model = next((arguments[key] for key in ("model", "model_names", "models") if key in arguments), None)
    means = {
        size: _number(document, arguments, *keys) or metrics.part(metric).number("avg")
        for size, (keys, metric) in _LENGTHS.items()
    }
    result = _result(
        document,
        file,
        options,
        figures,
        model=document.storable("model", model) if isinstance(model, str) else None,
        load=load_words(rate or UNLIMITED, at_once),
        sizes=lengths(metrics, means),
        stated={"measured_at": moment(document, "start_time")},
    )
    if document.flag("was_cancelled"):
        result.failure = failed("The run was cancelled before its end.", FailureKind.CANCELLED)
        result.parts = {}
        options.note(f"{file.shown}: was cancelled before its end; none of its figures is taken.")
    yield result


def _statistics(document: Fields) -> Iterator[tuple[str, float]]:
    """Every figure by the name that vLLM gives it, others by their own."""
    for name, value in document.data.items():
        if not (isinstance(value, dict) and isinstance(value.get("unit"), str)):
            continue
        metric = document.part(name)
        of = _TIMES.get(name)
        scale = NS_OF_UNITS.get(value["unit"].lower(), 0.0) / NS_PER_MS if of else None
        for statistic, called in _STATISTICS.items() if scale else [("avg", "")]:
            if (figure := metric.number(statistic)) is not None:
                own = document.storable(name, _RATES.get(name, name))
                yield f"{called}_{of}_ms" if scale else own, figure * (scale or 1.0)


_Arguments = dict[str, int | float | str]


def _arguments(value: object, name: str = "") -> Iterator[tuple[str, int | float | str]]:
    """What the command was told, by name and the nearest first, without phases of warm-up. Entries of a list,
    what has a name and what is a mean have the name of what holds them.
    """
    if isinstance(value, list):
        for each in value:
            yield from _arguments(each, name)
    elif isinstance(value, dict) and not _is_warm_up(name, value):
        for key, part in sorted(value.items(), key=lambda each: isinstance(each[1], dict | list)):
            yield from _arguments(part, name if key in ("name", "items", "mean") else key)
    elif isinstance(value, int | float | str) and value != "":
        yield name, value


def _is_warm_up(key: str, phase: Mapping[str, Any]) -> bool:
    """Whether a part of the arguments is of a phase before the one that is measured."""
    names = (key, phase.get("name"), phase.get("phase"))
    return bool(phase.get("exclude_from_results")) or any("warmup" in str(name).lower() for name in names)


def _number(document: Fields, arguments: _Arguments, *keys: str) -> float | None:
    """The first number above 0 under one of `keys`; None without any. Raises RecordError for a text."""
    fields = Fields(document.place, arguments, "input_config")
    return next((number for key in keys if (number := fields.number(key)) and number > 0), None)


# trtllm-bench: a report of one load.

_REPORTED = {
    "system_output_throughput_tok_s": "output_throughput",
    "request_throughput_req_s": "request_throughput",
}
_WORDS = ("quantization", "kv_cache_dtype")
_ENGINE_SIZES = ("tp_size", "pp_size", "ep_size", "max_batch_size", "max_num_tokens")
_PERCENTILES = (
    ("performance", "request_latency_percentiles_ms", "e2el"),
    ("streaming_metrics", "ttft_percentiles", "ttft"),
    ("streaming_metrics", "tpot_percentiles", "tpot"),
)


def read_trtllm(file: InputFile, options: ImportOptions) -> Iterator[ForeignResult]:
    """The one result of a report. Raises RecordError naming file and field."""
    document = json_document(file)
    own, world, requests = (document.part(key) for key in ("engine", "world_info", "request_info"))
    figures: dict[str, float] = {}
    for part in map(document.part, ("performance", "streaming_metrics")):
        figures |= {_REPORTED.get(key, key): figure for key, figure in stated(part).items()}
    for section, key, of in _PERCENTILES:
        each = document.part(section).part(key).figures(_STATISTICS)
        figures |= {f"{_STATISTICS[name]}_{of}_ms": figure for name, figure in each.items()}
    known = [key for key in _ENGINE_SIZES if (world.number(key) or 0) > 0]  # -1: the engine chose
    means = {f"{of}_len": requests.number(f"avg_{of}_length") for of in ("input", "output")}
    sizes = world.sizes(known) | requests.sizes(("num_requests",)) | lengths(requests, means)
    version, backend = own.text("version"), own.text("backend")
    words = [f"{key} {word}" for key in _WORDS if (word := own.text(key, 60))]
    if mode := document.part("decoding_stats").text("mode", 60):
        words.append(f"decoding {mode}")
    mean = requests.number("avg_num_concurrent_requests") or 0.0
    facts = {
        "dtype": own.text("dtype"),
        "device": "cuda",
        "device_name": document.part("machine").text("name"),
        "packages": {"tensorrt_llm": version} if version else None,
    }
    yield _result(
        document,
        file,
        options,
        figures,
        model=own.text("model"),
        load=", ".join((load_words(UNLIMITED, _at_once(mean) if mean > 0 else None), *words)),
        sizes=sizes,
        strategy=engine("tensorrt") if (backend or "").upper() == "TRT" else None,
        stated=facts,
    )


def _result(
    document: Fields,
    file: InputFile,
    options: ImportOptions,
    figures: dict[str, float],
    *,
    model: str | None,
    load: str,
    sizes: dict[str, int],
    stated: Mapping[str, Any],
    **more: Any,
) -> ForeignResult:
    name = f"{named(model, file, options)} serve, {load}"
    return ForeignResult(
        place=document.place,
        workload=document.storable("model", name),
        raw={"values": figures},
        stated=stated,
        assumed=UNTOLD,
        shape=sizes,
        item="token",
        items_per_iteration=1.0,
        parts={"summary": served(document, figures, options, fixed_rate="request_rate" in figures)},
        **{"strategy": None} | more,
    )
