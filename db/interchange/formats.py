"""The formats that can be read, by the names that `import --format` takes.

Which format a file has, from its first bytes; names decide nothing.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum

from compilewatch.db.errors import RecordError
from compilewatch.db.interchange.files import trial_csv, trial_jsonl
from compilewatch.db.interchange.files.fields import separator_of
from compilewatch.db.interchange.files.foreign_trials import ForeignResult, to_trial
from compilewatch.db.interchange.files.opening import MAX_DOCUMENT_BYTES, InputFile
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.sources import (
    dynamo_csv,
    generic_csv,
    job_recording,
    job_trials,
    kernels,
    optimum,
    oss_v3,
    pytest_benchmark,
    serving,
    timm_csv,
    torch_trace,
    torchbench,
    transformers_ci,
    vllm_bench,
    vllm_startup,
)
from compilewatch.db.interchange.sources.timm_csv import column_prefixes
from compilewatch.db.records.trial import Trial


def made_trials(
    results: Iterable[Trial | ForeignResult], source: str, options: ImportOptions
) -> Iterator[Trial]:
    """Trials as they are, and those of foreign results. Raises RecordError as `to_trial` does."""
    return (each if isinstance(each, Trial) else to_trial(each, source, options) for each in results)


AUTO = "auto"
Reader = Callable[[InputFile, ImportOptions], Iterator[Trial] | Iterator[ForeignResult]]
"""What a file holds; of a result that is no trial yet the format is the source."""


class Format(StrEnum):
    """Every value but `trial` and those of jobs is also the `source.name` of what it brings in."""

    TRIAL = "trial"
    TRIAL_CSV = "trial-csv"
    DYNAMO_CSV = "dynamo-csv"
    OSS_V3 = "oss-v3"
    TORCHBENCH = "torchbench"
    PYTEST_BENCHMARK = "pytest-benchmark"
    OPTIMUM = "optimum"
    TIMM_CSV = "timm-csv"
    TRANSFORMERS_CI = "transformers-ci"
    TORCH_TRACE = "torch-trace"
    JOB_RECORDING = "job-recording"
    VLLM_STARTUP = "vllm-startup"
    VLLM_BENCH = "vllm-bench"
    SGLANG = "sglang"
    GENAI_PERF = "genai-perf"
    TRTLLM_BENCH = "trtllm-bench"
    TRTEXEC = "trtexec"
    BENCHER = "bencher"
    KERNELBENCH = "kernelbench"
    NVBENCH = "nvbench"
    TORCH_COMPARE = "torch-compare"
    CSV = "csv"


JOB_READERS: dict[Format, Callable[[InputFile, ImportOptions], job_trials.JobProcess]] = {
    Format.TORCH_TRACE: torch_trace.read_process,
    Format.JOB_RECORDING: job_recording.read_process,
}
"""The formats whose files are processes of a job: which belong together follows from all of them."""


READERS: dict[Format, Reader] = {
    Format.TRIAL: trial_jsonl.read,
    Format.TRIAL_CSV: trial_csv.read,
    Format.DYNAMO_CSV: dynamo_csv.read,
    Format.OSS_V3: oss_v3.read,
    Format.TORCHBENCH: torchbench.read,
    Format.PYTEST_BENCHMARK: pytest_benchmark.read,
    Format.OPTIMUM: optimum.read,
    Format.TIMM_CSV: timm_csv.read,
    Format.TRANSFORMERS_CI: transformers_ci.read,
    Format.VLLM_STARTUP: vllm_startup.read,
    Format.VLLM_BENCH: vllm_bench.read,
    Format.SGLANG: vllm_bench.read,
    Format.GENAI_PERF: serving.read_genai_perf,
    Format.TRTLLM_BENCH: serving.read_trtllm,
    Format.TRTEXEC: kernels.read_trtexec,
    Format.BENCHER: kernels.read_bencher,
    Format.KERNELBENCH: kernels.read_kernelbench,
    Format.NVBENCH: kernels.read_nvbench,
    Format.TORCH_COMPARE: kernels.read_compare,
    Format.CSV: generic_csv.read,
}


JSON_MARKS: tuple[tuple[Format, tuple[str, ...]], ...] = (
    (Format.TRIAL, ("schema", "trial_id")),
    (Format.JOB_RECORDING, ("schema", "job", "recording_began_ns")),
    (Format.VLLM_STARTUP, ("cold_startup_times", "warm_startup_times")),
    (Format.PYTEST_BENCHMARK, ("machine_info", "commit_info")),
    (Format.TORCHBENCH, ("environ", "metrics")),
    (Format.OPTIMUM, ("scenario", "launcher")),
    (Format.OPTIMUM, ("latency", "values", "unit")),
    (Format.OSS_V3, ("metric", "benchmark_values")),
    (Format.VLLM_BENCH, ("avg_latency", "latencies")),
    (Format.VLLM_BENCH, ("elapsed_time", "num_requests", "tokens_per_second")),
    (Format.SGLANG, ("request_throughput", "output_throughput", "median_e2e_latency_ms")),
    (Format.SGLANG, ("run_name", "batch_size", "input_len", "output_len")),
    (Format.VLLM_BENCH, ("request_throughput", "output_throughput")),
    (Format.GENAI_PERF, ("request_throughput", "request_latency", "avg")),
    (Format.VLLM_BENCH, ("request_throughput", "total_token_throughput")),
    (Format.VLLM_BENCH, ("error_type", "error", "serve_overrides")),
    (Format.TRTLLM_BENCH, ("world_info", "request_info", "performance")),
    (Format.TRTEXEC, ("computeMs", "latencyMs")),
    (Format.NVBENCH, ("devices", "sm_version", "ptx_version")),
    (Format.KERNELBENCH, ("mean", "num_trials", "hardware")),
)
"""Keys that all stand within the first 64 KiB of a JSON file of that format, in this order of trial."""


_CHUNK_BYTES = 2**20
_TRANSFORMERS_MARK = b".latency.mean"


class UnreadError(RecordError):
    """A file is none that can be read."""


# What tools write beside their results, by the end of the name: tables of another kind, and a warm-up.
_BESIDE_RESULTS = (
    *("_compilation_metrics.csv", "_graph_breaks.csv", "_graph_break_deduped.csv"),
    "warmup.json",
)


def recognised_files(
    files: Callable[[], list[InputFile]], format_: str, notes: list[str], of_several: bool = False
) -> list[tuple[InputFile, Format]]:
    """Every file with its format; of an archive, what is no result is passed over with a sentence.

    `of_several` says that the file lies among others that were not named.

    Raises RecordError for an unknown format, UnreadError where nothing can be read.
    """
    if format_ != AUTO and format_ not in list(Format):
        known = ", ".join((AUTO, *Format))
        raise RecordError(f"{format_}: is no format that can be imported.", f"Known are {known}.")
    if format_ != AUTO:
        return [(file, Format(format_)) for file in files()]
    opened = files()
    found: list[tuple[InputFile, Format]] = []
    unread: list[UnreadError] = []
    for file in opened:
        try:
            name = detect(file)
        except UnreadError as error:
            unread.append(error)
            continue
        if (of_several or len(opened) > 1) and _beside_results(file, name):
            unread.append(UnreadError(f"{file.shown}: holds no results of its own.", "Import it alone."))
        else:
            found.append((file, name))
    if unread and not found:
        raise unread[0]
    notes += [f"{error.message.removesuffix('.')}: passed over." for error in unread]
    return found


def _beside_results(file: InputFile, name: Format) -> bool:
    """Whether a member of an archive is what lies beside results: another table of the tool, or prose."""
    prose = name is Format.CSV and not file.name.endswith((".csv", ".tsv"))
    return prose or file.name.endswith(_BESIDE_RESULTS)


def detect(file: InputFile) -> Format:
    """The format of `file`. Raises UnreadError when it is none of ours, RecordError for an archive that
    expands too far.
    """
    head = file.head().lstrip()
    if not head:
        raise UnreadError(f"{file.shown}: is empty.", "Check that it is the file you meant.")
    if (known := _of_a_tool(head)) is not None:
        raise UnreadError(f"{file.shown}: is {known[0]}.", known[1])
    if torch_trace.FIRST_LINE.match(head):
        return Format.TORCH_TRACE
    if kernels.COMPARE.match(head):
        return Format.TORCH_COMPARE
    is_json = head[:1] in b"{[" or head.startswith(_DATA_JS)
    detected = _json_format(head) if is_json else _csv_format(file, head)
    if detected is None:
        _expand(file)
        problem, next_step = refused(head)
        raise UnreadError(f"{file.shown}: {problem}.", next_step)
    return detected


def _json_format(head: bytes) -> Format | None:
    for name, keys in JSON_MARKS:
        if all(re.search(rb'"%s"\s*:' % key.encode(), head) for key in keys):
            return name
    if kernels.BENCHER.match(head):
        return Format.BENCHER
    return Format.TRANSFORMERS_CI if _TRANSFORMERS_MARK in head else None


def _csv_format(file: InputFile, head: bytes) -> Format | None:
    first_line = head.splitlines()[0].decode("utf-8", errors="replace")
    try:
        header = next(csv.reader([first_line], delimiter=separator_of(first_line)), [])
    except csv.Error:
        return None
    header = [name.strip() for name in header]
    columns = {*header}
    if (known := _table_like(columns)) is not None:
        raise UnreadError(f"{file.shown}: {known}.", "Import the files with the times.")
    if columns >= trial_csv.MARKS:
        return Format.TRIAL_CSV
    if "name" in columns and ("accuracy" in columns or {"speedup", "abs_latency"} <= columns):
        return Format.DYNAMO_CSV
    if "model" in columns and column_prefixes(header):
        return Format.TIMM_CSV
    return Format.CSV if len(columns) > 1 and "\0" not in first_line else None


def _expand(file: InputFile) -> None:
    """Read on as far as a document may go: an archive that is a bomb says so."""
    with file.open() as stream:
        for _ in range(MAX_DOCUMENT_BYTES // _CHUNK_BYTES):
            if not stream.read(_CHUNK_BYTES):
                break


_DATA_JS = b"window.BENCHMARK_DATA"
"""With it begins the file that github-action-benchmark keeps."""

_KEYS: tuple[tuple[str, tuple[bytes, ...]], ...] = (
    ("results of pr_time_benchmarks in a shape before v3", (b'"benchmark": ["', b'"model": ["')),
    ("records of the OSS benchmark database v2", (b'"test_name"', b'"actual"', b'"target"')),
    ("a Chrome or Perfetto trace", (b'"traceEvents"',)),
    ("an nvidia-smi or DCGM log", (b"nvidia_smi_log",)),
    ("the summary of an MLPerf run", (b"MLPerf Results Summary",)),
    ("results of MLPerf", (b"mlperf",)),
    ("results of lm-evaluation-harness", (b'"n-shot"', b'"results"')),
    ("results of k6 or another load test", (b'"http_req_duration"',)),
    ("a Jupyter notebook", (b'"nbformat"',)),
    ("JSON of google-benchmark", (b'"context"', b'"benchmarks"', b'"time_unit"')),
    ("JSON of hyperfine", (b'"results"', b'"command"', b'"stddev"')),
    ("a result of asv", (b'"commit_hash"', b'"params"', b'"results"')),
    ("a result of transformers benchmark_v2", (b'"model_name"', b'"benchmark_scenarios"')),
    ("a result of transformers benchmark_v2", (b'"hardware_info"', b'"e2e_latency"')),
    ("the data of github-action-benchmark", (_DATA_JS,)),
)
_WHOLE = "Import profile_export_aiperf.json, which has the figures of the whole run."
_PARTS: tuple[tuple[str, tuple[bytes, ...], str], ...] = (
    ("a slice of time each of an aiperf run", (rb'"timeslices"\s*:', rb'"timeslice_index"\s*:'), _WHOLE),
    ("a sum over runs of aiperf", (rb'"num_profile_runs"\s*:', rb'"aggregation_type"\s*:'), _WHOLE),
    ("the requests of an aiperf run", (rb'"metadata"\s*:', rb'"request_start_ns"\s*:'), _WHOLE),
    ("a profile of trtexec by layers", (rb'"averageMs"\s*:', rb'"percentage"\s*:'), "Import --exportTimes."),
    ("a log of MLPerf", (rb"\A:::MLLOG ",), "Write its times into a CSV."),
    ("Parquet, which is not read", (rb"\APAR1",), "Write it as CSV."),
    (
        "a pickle, which could run code where it is opened",
        (rb"\A\x80[\x02-\x05]",),
        "Write its times into a CSV.",
    ),
)
"""What tools write that is no result of its own though it looks like one, and what to import instead."""


def _of_a_tool(head: bytes) -> tuple[str, str] | None:
    known = (each for each in _PARTS if all(re.search(mark, head) for mark in each[1]))
    return next(((name, next_step) for name, _, next_step in known), None)


_AS_CSV = "A table of results comes in as CSV, with --column to say what its columns mean."
_BY_ROWS = (
    "Write a row for each result into a CSV, and say what its columns mean: "
    "--column workload=NAME --column strategy=MODE --column latency_ms=TIME."
)
_NEXT_STEPS = {
    "JSON of google-benchmark": "Write CSV with --benchmark_format=csv, and import that with "
    "--column workload=name --column latency_ns=real_time --strategy MODE.",
    "JSON of hyperfine": "Write CSV with --export-csv, and import that with --workload NAME "
    "--column latency_s=median --column strategy=parameter_MODE.",
    "a result of asv": _BY_ROWS,
    "a result of transformers benchmark_v2": _BY_ROWS,
    "the data of github-action-benchmark": _BY_ROWS,
}

_DYNAMO_SUITES = frozenset({"torchbench", "huggingface", "timm_models"})
_DTYPES = frozenset({"float32", "bfloat16", "float16", "amp_bf16", "amp_fp16"})


def refused(head: bytes) -> tuple[str, str]:
    """The end of a sentence about a file that begins with `head` and is not read, and the next step."""
    if head[257:262] == b"ustar":
        return "is a tar archive, which is not opened", "Unpack it, or pack a zip."
    if b"\0" in head:
        return "holds bytes that are no text, or UTF-16 without its mark", "Save a table as UTF-8."
    for name, marks in _KEYS:
        if all(mark in head for mark in marks):
            return f"looks like {name}, which is not read", _NEXT_STEPS.get(name, _AS_CSV)
    return "is in no format that is read", _AS_CSV


def _table_like(columns: set[str]) -> str | None:
    """The end of a sentence about a CSV with these columns that is not read; None of any other."""
    if "name" in columns and len(columns & _DTYPES) > 1:
        return (
            "looks like the accuracy that torch-xpu-ops expects, by dtype and without times; it is not read"
        )
    if {"Metric", "avg", "min", "max", "p99"} <= columns or {"Timeslice", "Metric", "Stat"} <= columns:
        return "is the table of genai-perf or aiperf, which repeats the JSON beside it without the load"
    if {"Endpoint", "Metric"} <= columns and columns & {"Type", "GPU_Index"}:
        return "looks like metrics of a server, as aiperf collects them"
    if {"Compiler"} < columns <= {"Compiler", *_DYNAMO_SUITES}:
        return "looks like means over many models, of benchmarks/dynamo/runner.py"
    if {"run_number", "request_throughput", "output_throughput"} <= columns:
        return (
            "looks like the table of a sweep of vLLM, which repeats the run=N.json in the folders beside it"
        )
    return None
