"""TorchBench userbenchmark metrics: `metrics-YYYYmmddHHMMSS.json`.

Shape: pytorch/benchmark userbenchmark/utils.py (`get_output_json`); key grammars: `config_to_str` in
userbenchmark/test_bench/run.py and `result_to_output_metrics` in userbenchmark/torch-nightly/run.py and
userbenchmark/cpu/run.py.
Latencies are medians in ms, memory GB. A metric that is text is an error message.

Not taken: samples, compile cost, mode; scores over many models. To name: dtype; torch in older files; the
CPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from compilewatch.db.interchange.files.fields import BYTES_PER_GB, NS_PER_MS, Fields, json_document
from compilewatch.db.interchange.files.foreign_trials import (
    ForeignResult,
    failed,
    strategy_called,
    torch_facts,
)
from compilewatch.db.interchange.files.opening import InputFile
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import Memory, Strategy, Summary, Task

_TEST_BENCH = re.compile(
    r"model=(?P<model>.+), test=(?P<test>[a-z]+), device=(?P<device>\w+), bs=(?P<batch>None|\d{1,9}),"
    r" extra_args=\[(?P<args>[^\]]*)\], metric=(?P<metric>\w+)"
)
_NIGHTLY = re.compile(
    r"test_(?P<test>[a-z]+)\[(?P<model>.+)-(?P<device>\w+)-eager\]_(?P<metric>latency|cmem|gmem)"
)
# Of userbenchmark/cpu, which executes eager alone.
_CPU = re.compile(r"(?P<model>.{1,200})-(?P<test>eval|train)_(?P<metric>latency|cmem|gmem)")
_LONGEST_KEY = 1_000
_METRICS = {"latencies": "latency", "cpu_peak_mem": "cmem", "gpu_peak_mem": "gmem"}
_TASKS = {"eval": Task.INFERENCE, "train": Task.TRAINING}
_BACKEND_ARGUMENTS = ("--torchdynamo", "--backend", "--dynamo")
_CASE = ("model", "test", "device", "batch", "args")
_UNSAID = {"device": "cpu", "batch": "None", "args": ""}
_Case = tuple[str, ...]


def read(file: InputFile, _: ImportOptions) -> Iterator[ForeignResult]:
    """One trial per model, test, device, batch and arguments; scores over many models are left out.

    Raises RecordError naming file and metric.
    """
    document = json_document(file)
    metrics = document.part("metrics")
    cases: dict[_Case, dict[str, Any]] = {}
    for key, value in metrics.data.items():
        match = _matched(key, on_cpu=document.text("name") == "cpu")
        if match:
            groups = _UNSAID | match.groupdict()
            name = _METRICS.get(groups["metric"], groups["metric"])
            cases.setdefault(tuple(groups[part] for part in _CASE), {})[name] = value
    if metrics.data and not cases:
        metrics.fail(
            metrics.storable("name", next(iter(metrics.data))[:200]), "is in no known TorchBench grammar"
        )
    for case, values in cases.items():
        yield _result(document, case, values)


def _matched(key: str, *, on_cpu: bool) -> re.Match[str] | None:
    if len(key) > _LONGEST_KEY:
        return None
    return _TEST_BENCH.fullmatch(key) or _NIGHTLY.fullmatch(key) or (_CPU.fullmatch(key) if on_cpu else None)


def _result(document: Fields, case: _Case, values: dict[str, Any]) -> ForeignResult:
    model, test, device, batch, arguments = case
    fields = Fields(document.place, values, f"metrics.{model}")
    result = ForeignResult(
        place=document.place,
        workload=fields.storable("model", model),
        strategy=_strategy(fields, arguments),
        raw={"case": list(case), "values": values},
        stated={
            **_facts(document, device),
            "task": _TASKS.get(test, Task.FUNCTION),
            "batch_size": None if batch == "None" else int(batch) or None,
        },
    )
    message = next((value for value in values.values() if isinstance(value, str)), None)
    if message is not None:
        result.failure = failed(f"TorchBench reports: {message[:1000]}")
        return result
    memory = Memory(
        peak_bytes=fields.scaled("gmem", BYTES_PER_GB), peak_rss_bytes=fields.scaled("cmem", BYTES_PER_GB)
    )
    result.parts = {"summary": Summary(latency_ns=fields.duration_ns("latency", NS_PER_MS)), "memory": memory}
    return result


def _strategy(fields: Fields, arguments: str) -> Strategy:
    """Eager without arguments; `--torchdynamo inductor` and its like name the backend."""
    words = [word.strip(" '\"") for word in arguments.replace("=", ",").split(",") if word.strip(" '\"")]
    if not words:
        return EAGER
    for argument, value in pairwise(words):
        if argument in _BACKEND_ARGUMENTS:
            return strategy_called(fields.storable("extra_args", value))
    strategy = strategy_called("inductor") if "--inductor" in words else EAGER
    described = fields.storable("extra_args", " ".join(words), 150)
    return strategy.model_copy(
        update={"name": f"{strategy.name}+{described}", "options": {"args": described}}
    )


def _facts(document: Fields, device: str) -> dict[str, Any]:
    environ = document.part("environ")
    version = environ.text("pytorch_version")
    return {
        **(torch_facts(version) if version else {}),
        "torch_git": environ.text("pytorch_git_version"),
        "device": device,
        "device_name": environ.text("device") if device == "cuda" else None,
        "suite": document.text("name"),
    }
