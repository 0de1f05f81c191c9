"""optimum-benchmark: `benchmark_report.json` with the `benchmark_config.json` beside it, or both in one
`benchmark.json`.

Shape: huggingface/optimum-benchmark, optimum_benchmark/trackers/{latency,memory}.py. Latency values are
seconds per call, memory MB (10^6 bytes). The report says what came out, the config of what; neither says
the torch version.

A trial per target with every value; an engine that is not torch is one of its own, and no control. Not taken:
compile cost, the mode unless configured. To name: torch and moment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from compilewatch.db.errors import RecordError
from compilewatch.db.interchange.files.fields import BYTES_PER_MB, NS_PER_S, Fields, json_document
from compilewatch.db.interchange.files.foreign_trials import ForeignResult, compiled, engine
from compilewatch.db.interchange.files.opening import InputFile
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import ColdStart, Memory, Strategy, Summary, Task

_LOAD = "load"
_FACTS = {
    "device": "backend.device",
    "cpu_name": "environment.cpu",
    "cpu_count": "environment.cpu_count",
    "threads": "backend.intra_op_num_threads",
    "python": "environment.python_version",
    "os": "environment.platform",
    "suite": "name",
}
_TASKS = {"inference": Task.INFERENCE, "training": Task.TRAINING}


def read(file: InputFile, _: ImportOptions) -> Iterator[ForeignResult]:
    """One trial per measured target (forward, prefill, decode, ...); loading goes into each cold start.

    Either file of the pair stands for both. Raises RecordError, also when the partner is missing.
    """
    both = json_document(file)
    if {"report", "config"} <= both.data.keys():
        report, config = both.part("report"), both.part("config")
    else:
        report, config = map(json_document, _pair(file))
    load_ns = report.part(_LOAD).part("latency").scaled("mean", NS_PER_S)
    for target, measured in report.parts():
        if target != _LOAD and measured.part("latency").data:
            yield _result(target, measured, config, load_ns)


def _pair(file: InputFile) -> tuple[InputFile, InputFile]:
    own, other = ("report", "config") if "report" in file.name else ("config", "report")
    name = other.join(file.name.rsplit(own, 1))
    partner = file.sibling(name) if name != file.name else None
    if partner is None:
        raise RecordError(
            f"{file.shown}: the benchmark's {other} is not beside it.",
            f"Put {name if name != file.name else 'benchmark_config.json'} into the same folder or archive.",
        )
    return (file, partner) if own == "report" else (partner, file)


def _result(target: str, measured: Fields, config: Fields, load_ns: int | None) -> ForeignResult:
    backend, scenario = config.part("backend"), config.part("scenario")
    inputs = scenario.part("input_shapes")
    batch = inputs.count("batch_size") or None
    throughput = measured.part("throughput")
    item = (throughput.text("unit") or "").removesuffix("/s").removesuffix("s") or None
    return ForeignResult(
        place=measured.place,
        workload=backend.storable("model", f"{backend.required_text('model')} {target}"),
        strategy=_strategy(backend),
        raw={"target": target, "measured": dict(measured.data), "config": dict(config.data)},
        stated={**_facts(config), "task": _TASKS.get(scenario.text("name") or ""), "batch_size": batch},
        shape=inputs.sizes(key for key in inputs.data if key != "batch_size"),
        item=item,
        parts={
            **_latency(measured.part("latency"), throughput),
            "memory": _memory(measured.part("memory")),
            "cold_start": None if load_ns is None else ColdStart(build_model_ns=load_ns),
        },
    )


def _latency(latency: Fields, throughput: Fields) -> dict[str, Any]:
    if latency.text("unit") not in (None, "s"):
        latency.fail("unit", "must be s")
    samples = [latency.whole("values", seconds * NS_PER_S) for seconds in latency.numbers("values")]
    summary = Summary(
        latency_ns=latency.duration_ns("p50", NS_PER_S) or latency.duration_ns("mean", NS_PER_S),
        n=latency.count("count"),
        throughput_per_s=throughput.number("value"),
    )
    return {"samples_ns": samples, "summary": summary}


def _memory(memory: Fields) -> Memory | None:
    if not memory.data:
        return None
    if memory.text("unit") not in (None, "MB"):
        memory.fail("unit", "must be MB")
    return Memory(
        peak_bytes=memory.scaled("max_allocated", BYTES_PER_MB),
        peak_reserved_bytes=memory.scaled("max_reserved", BYTES_PER_MB),
        peak_rss_bytes=memory.scaled("max_ram", BYTES_PER_MB),
    )


def _strategy(backend: Fields) -> Strategy:
    """`torch_compile` true is compiled, with the mode where its config names one.

    A backend without that switch (onnxruntime, openvino, ...) is an engine of its own, and no control of any.
    """
    name = backend.required_text("name")
    if backend.flag("torch_compile"):
        settings = backend.part("torch_compile_config")
        mode = settings.text("mode")
        return compiled(mode or "compiled", mode=mode, backend=settings.text("backend"))
    return EAGER if name == "pytorch" else engine(name)


def _facts(config: Fields) -> dict[str, Any]:
    backend, environment = config.part("backend"), config.part("environment")
    device = backend.text("device")
    gpus = environment.data.get("gpu") or []
    first = gpus[0] if isinstance(gpus, list) and gpus else None
    gpu = Fields(environment.place, {"gpu": first}, environment.path).text("gpu")
    facts = config.facts(_FACTS)
    versions = [key for key in environment.data if re.fullmatch(r"(?!python_)[a-z_]+_version", key)]
    return facts | {
        "device_name": facts["cpu_name"] if device == "cpu" else gpu,
        "device_count": environment.count("gpu_count") if device == "cuda" else None,
        "ram_bytes": environment.scaled("cpu_ram_mb", BYTES_PER_MB),
        "dtype": backend.text("dtype") or backend.text("torch_dtype"),
        "packages": {key.removesuffix("_version"): text for key, text in environment.words(versions).items()},
    }
