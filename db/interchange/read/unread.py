"""What files are that are not read: better one true sentence than a guess at a format."""

from __future__ import annotations

DATA_JS = b"window.BENCHMARK_DATA"
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
    ("the data of github-action-benchmark", (DATA_JS,)),
)
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

_DTYPES = frozenset({"float32", "bfloat16", "float16", "amp_bf16", "amp_fp16"})


def refused(head: bytes) -> tuple[str, str]:
    """The end of a sentence about a file that begins with `head` and is not read, and the next step."""
    if head[257:262] == b"ustar":
        return "is a tar archive, which is not opened", "Unpack it, or pack a zip."
    for name, marks in _KEYS:
        if all(mark in head for mark in marks):
            return f"looks like {name}, which is not read", _NEXT_STEPS.get(name, _AS_CSV)
    return "is in no format that is read", _AS_CSV


def table_like(columns: set[str]) -> str | None:
    """The end of a sentence about a CSV with these columns that is not read; None of any other."""
    if "name" in columns and len(columns & _DTYPES) > 1:
        return (
            "looks like the accuracy that torch-xpu-ops expects, by dtype and without times; it is not read"
        )
    return None
