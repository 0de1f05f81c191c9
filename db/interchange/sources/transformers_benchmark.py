"""transformers `benchmark_v2`: a file per model, with a result per configuration; times in seconds.

Shapes: huggingface/transformers benchmark_v2/framework/benchmark_runner.py (`save_results`: metadata,
measures and config by the hash of the config), and that of its README (scenarios with sums of measurements).
`compile_mode` tells the strategy; without one generation is eager.

Every end-to-end latency is taken, times of single tokens and traces of the GPU are not. To name: torch in
older files.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

from compilewatch.db.interchange.files.fields import NS_PER_S, Fields, json_document, moment
from compilewatch.db.interchange.files.foreign_trials import (
    ForeignResult,
    known_strategy,
    names_strategy,
    strategy_called,
    torch_facts,
)
from compilewatch.db.interchange.files.opening import InputFile
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import Strategy, Summary, Task

_SIZES = ("sequence_length", "num_tokens_to_generate")
_WORDS = ("attn_implementation", "sdpa_backend", "kernelize", "continuous_batching", "tp_plan")
_BYTES_PER_GB = 2**30


def read(file: InputFile, _: ImportOptions) -> Iterator[ForeignResult]:
    """One trial per configuration. Raises RecordError naming file and field."""
    document = json_document(file)
    model = document.text("model_name")
    if model is not None:
        for fields in document.objects("benchmark_scenarios"):
            yield _of_scenario(fields, model)
        return
    for _key, fields in document.parts():
        named = fields.part("metadata").text("model_id") or file.name.partition("_benchmark_")[0]
        yield _of_config(fields, named)


def _of_scenario(fields: Fields, model: str) -> ForeignResult:
    measured, metadata = fields.part("measurements"), fields.part("metadata")
    latency = measured.part("latency")
    latency_ns = latency.duration_ns("median", NS_PER_S) or latency.duration_ns("mean", NS_PER_S)
    if latency_ns is None:
        latency.fail("median", "is missing")
    config = metadata.part("config")
    variant = config.text("variant")
    metrics = {f"{name}.mean": each.number("mean") for name, each in _objects(measured) if name != "latency"}
    return ForeignResult(
        place=fields.place,
        workload=model,
        strategy=known_strategy(variant) if variant and names_strategy(variant) else None,
        raw=dict(fields.data),
        stated=_facts(metadata, config),
        named={"task": Task.INFERENCE},
        parts={
            "summary": Summary(
                latency_ns=latency_ns,
                throughput_per_s=measured.part("tokens_per_second").number("mean"),
                metrics={name: value for name, value in metrics.items() if value is not None},
            )
        },
    )


def _objects(measured: Fields) -> list[tuple[str, Fields]]:
    return [
        (measured.storable(key, key), measured.part(key))
        for key, value in measured.data.items()
        if isinstance(value, dict)
    ]


def _of_config(fields: Fields, model: str) -> ForeignResult:
    config = fields.part("config")
    measures = fields.part("measures") if "measures" in fields.data else fields.part("measurements")
    seconds = measures.numbers("e2e_latency")
    if not seconds:
        measures.fail("e2e_latency", "has no entry")
    samples = [measures.whole("e2e_latency", each * NS_PER_S) for each in seconds]
    if not all(samples):
        measures.fail("e2e_latency", "must be more than 0")
    words = {key: config.data[key] for key in _WORDS if config.data.get(key)}
    described = ", ".join(f"{key}={word}" for key, word in sorted(words.items()))
    tokens, batch = config.count("num_tokens_to_generate"), config.count("batch_size") or None
    return ForeignResult(
        place=fields.place,
        workload=fields.storable("config", f"{model}[{described}]" if described else model),
        strategy=_strategy(config),
        raw={"config": dict(config.data), "e2e_latency": seconds},
        stated=_facts(fields.part("metadata"), config) | {"batch_size": batch},
        named={"task": Task.INFERENCE},
        shape={key: size for key in _SIZES if (size := config.count(key)) is not None},
        item="token" if tokens else None,
        items_per_iteration=float(tokens * (batch or 1)) if tokens else None,
        parts={
            "samples_ns": samples,
            "summary": Summary(latency_ns=round(median(samples)), n=len(samples)),
        },
    )


def _strategy(config: Fields) -> Strategy:
    part = config.part("compile_config") if isinstance(config.data.get("compile_config"), dict) else config
    mode = part.text("mode" if part is not config else "compile_mode")
    return EAGER if mode is None and part is config else strategy_called(mode or "default")


def _facts(metadata: Fields, config: Fields) -> dict[str, Any]:
    hardware = metadata.part("hardware_info")
    torch, commit = hardware.text("torch_version"), metadata.text("commit_id")
    gpu = hardware.text("gpu_name")
    return {
        **(torch_facts(torch) if torch else {}),
        "device": config.text("device") or ("cuda" if gpu and gpu.upper().startswith("NVIDIA") else None),
        "device_name": gpu,
        "device_memory_bytes": hardware.scaled("gpu_memory_total_gb", _BYTES_PER_GB),
        "cpu_count": hardware.count("cpu_count"),
        "python": hardware.text("python_version"),
        "dtype": config.text("dtype"),
        "measured_at": moment(metadata, "timestamp"),
        "packages": {"transformers": f"git {commit}"} if commit else None,
    }
