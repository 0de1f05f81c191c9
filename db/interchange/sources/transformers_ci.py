"""transformers CI benchmark summaries: `summary.json` by model, and `summaries.json` as a list.

Shape: the datasets hf-internal-testing/benchmark_results and benchmark_results_merge_event, written by
transformers' benchmark/benchmark.py over optimum-benchmark. Latencies are means in seconds. GPU and torch
version are not in the file; the date is in its name, or is its folder's.

A trial per phase. Not taken: samples, compile cost. To name: torch, GPU and dtype; the moment unless a name
has the day.
"""

from __future__ import annotations

from collections.abc import Iterator

from compilewatch.db.interchange.files.fields import NS_PER_S, Fields, Place, as_fields, load_json
from compilewatch.db.interchange.files.foreign_trials import ForeignResult, compiled, with_controls
from compilewatch.db.interchange.files.opening import InputFile
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.records.strategies import EAGER
from compilewatch.db.records.trial import Strategy, Summary, Task

_LATENCY = ".latency.mean"
_COMPILE = "backend.torch_compile"
_Entry = tuple[str, str, str, Fields]


def read(file: InputFile, _: ImportOptions) -> Iterator[ForeignResult]:
    """One trial per model, phase (prefill, decode, per_token) and configuration.

    Settings other than `backend.torch_compile` are part of the workload, so that only runs with the same
    cache implementation are each other's control. Raises RecordError naming file and field.
    """
    results = [_result(entry, phase) for entry in _entries(file) for phase in _phases(entry[3])]
    yield from with_controls([((result.workload, result.raw["commit"]), result) for result in results])


def _entries(file: InputFile) -> Iterator[_Entry]:
    """(model, configuration, commit, metrics) of either shape."""
    place = Place(file.shown)
    document = load_json(file.document(), place)
    if isinstance(document, list):
        for index, entry in enumerate(document):
            fields = as_fields(place, entry, f"entry {index}")
            config, model = fields.text("config", 1000) or "", fields.required_text("model")
            yield model, config, fields.required_text("commit"), fields.part("metrics")
        return
    for model, configurations in as_fields(place, document).parts():
        for config, commits in configurations.parts():
            for commit, entry in commits.parts():
                yield model, config, commit, entry.part("metrics")


def _phases(metrics: Fields) -> list[str]:
    phases = [key.removesuffix(_LATENCY) for key in metrics.data if key.endswith(_LATENCY)]
    if not phases:
        metrics.fail(_LATENCY, "no phase has a latency")
    return phases


def _result(entry: _Entry, phase: str) -> ForeignResult:
    model, config, commit, metrics = entry
    settings = dict(part.partition("=")[::2] for part in config.split(",") if part)
    strategy = _strategy(metrics, settings.pop(_COMPILE, None))
    described = ", ".join(
        f"{key.removeprefix('backend.')}={value}" for key, value in sorted(settings.items())
    )
    workload = metrics.storable("config", f"{model} {phase}" + (f", {described}" if described else ""))
    summary = Summary(
        latency_ns=metrics.duration_ns(phase + _LATENCY, NS_PER_S),
        throughput_per_s=metrics.number(f"{phase}.throughput.value"),
    )
    return ForeignResult(
        place=metrics.place,
        workload=workload,
        strategy=strategy,
        raw={"commit": commit, "config": config, "phase": phase, "metrics": dict(metrics.data)},
        stated={"packages": {"transformers": f"git {commit}"}},
        named={"task": Task.INFERENCE},
        parts={"summary": summary},
    )


def _strategy(metrics: Fields, torch_compile: str | None) -> Strategy:
    if torch_compile not in ("True", "False", "true", "false"):
        metrics.fail(_COMPILE, "must be True or False in the configuration's name")
    return compiled("compiled") if torch_compile in ("True", "true") else EAGER
