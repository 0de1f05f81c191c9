"""What files are that are not read: better one true sentence than a guess at a format."""

from __future__ import annotations

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
)
_DTYPES = frozenset({"float32", "bfloat16", "float16", "amp_bf16", "amp_fp16"})


def looks_like(head: bytes) -> str | None:
    """The end of a sentence about a file that begins with `head`; None where nobody knows it."""
    if head[257:262] == b"ustar":
        return "is a tar archive, which is not opened; unpack it, or pack a zip"
    for name, marks in _KEYS:
        if all(mark in head for mark in marks):
            return f"looks like {name}, which is not read"
    return None


def table_like(columns: set[str]) -> str | None:
    """The same of a CSV with these columns."""
    if "name" in columns and len(columns & _DTYPES) > 1:
        return (
            "looks like the accuracy that torch-xpu-ops expects, by dtype and without times; it is not read"
        )
    return None
