"""PyTorch OSS benchmark database v3 JSON: one record per metric, as an object, a list, or one per line.

Shape: pytorch/test-infra clickhouse_db_schema/benchmark.oss_ci_benchmark_v3/schema.sql and its loader
.github/scripts/upload_benchmark_results.py. Only `metric` is required. Records that agree in everything
but `metric` are one result, of a case that its settings tell apart. The metric names of PyTorch
`benchmarks/dynamo` have the meaning they have there; every other metric is kept under its name. Our own
export is written for PyTorch's database and not read back.

Whole numbers of `extra_info` and `inputs` are sizes of the workload's shape, other values follow its name:
`m[quantization=int4]`. Keys about an execution or the code are none (`id`, `time`, `version`, `commit`,
`url`, `path`, `seed`, `duration`, `description`). Where results of one case differ in lists or long texts,
the file is refused. Not taken: samples, how a backend was reached, what a dynamo CSV beside it says already.
To name: what the records lack.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from compilewatch.db.errors import RecordError, one_line
from compilewatch.db.interchange.files.fields import Fields, json_documents, moment
from compilewatch.db.interchange.files.foreign_trials import (
    ForeignResult,
    known_strategy,
    strategy_called,
    strategy_named,
    to_trial,
    torch_facts,
)
from compilewatch.db.interchange.files.opening import InputFile
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.sources import dynamo_csv, vllm_bench
from compilewatch.db.records.fields import INT64_MAX
from compilewatch.db.records.ids import recorded_build_identity, series_identity
from compilewatch.db.records.trial import Strategy, StrategyKind, Summary, Task, Trial

_LONGEST_VALUE = 60
_LONGEST_NAME = 200
# What is read into other fields, and what runners tell already.
_READ = {
    *("device", "batch_size", "dynamic_shapes", "is_dynamic", "inductor_compile_mode", "compile_mode"),
    *("torch_compile_mode", "app_type", "arch"),
}
_NO_SETTINGS = {
    *("id", "ids", "uuid", "job", "workflow", "attempt", "url", "link", "pid"),
    *("host", "hostname", "port", "user"),
    *("time", "times", "timestamp", "date", "datetime", "started", "finished"),
    *("duration", "elapsed", "latency", "seconds", "throughput"),
    *("version", "versions", "commit", "sha", "hash", "branch", "revision", "git", "repo"),
    *("path", "file", "filename", "dir", "directory", "folder", "log"),
    *("description", "comment", "note", "notes", "author", "authors", "title", "label", "tag"),
    *("seed", "repeat", "repeats", "iterations", "warmup", "rounds", "timeout"),
}  # fmt: skip
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}")
_UNSET = {"", "false", "none", "null", "[]"}


class Settings(NamedTuple):
    """`shape` for the workload, `words` for its name; `unmapped` are values that fit neither, as JSON."""

    shape: dict[str, int]
    words: dict[str, str]
    unmapped: dict[str, str]

    def named(self, name: str) -> str:
        """`name` with the words in brackets behind it."""
        described = ", ".join(f"{key}={word}" for key, word in sorted(self.words.items()))
        return f"{name}[{described}]" if described else name


def settings_of(record: Fields, name: str, *, of_benchmark: bool = True) -> Settings:
    """The settings of a record of another tool, whose workload is called `name`.

    `of_benchmark` is false where `benchmark.extra_info` holds none. Words that do not fit behind the name
    are unmapped. Raises RecordError for a key or word that no database stores.
    """
    inputs = {
        called: {**each.data, **each.part("extra_info").data, "extra_info": None}
        for called, each in record.part("inputs").parts()
    }
    described = ("model", "benchmark") if of_benchmark else ("model",)
    parts = {f"{part}.extra_info": record.part(part).part("extra_info").data for part in described}
    settings, paths = Settings({}, {}, {}), dict[str, str]()
    for origin, values in {**parts, "inputs": inputs}.items():
        for key, value in _leaves(values):
            if key in _READ and origin.startswith("benchmark"):
                continue
            text = value.strip() if isinstance(value, str) else json.dumps(value)
            path = f"{origin}.{key}"
            called = path if key in paths else record.storable(path, key)
            paths[called] = path
            if text.lower() in _UNSET:
                continue
            if _WHOLE.fullmatch(text) and abs(int(text)) <= INT64_MAX:
                settings.shape[called] = int(text)
            elif isinstance(value, list) or len(text) > _LONGEST_VALUE:
                settings.unmapped[path] = text
            else:
                settings.words[called] = "true" if text == "True" else record.storable(path, text)
    if len(settings.named(name)) <= _LONGEST_NAME:
        return settings
    words = {paths[key]: json.dumps(word) for key, word in settings.words.items()}
    return Settings(settings.shape, {}, settings.unmapped | words)


def _leaves(values: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, object]]:
    """Every value by its path, but for those whose names say that they are no settings."""
    for key, value in values.items():
        if _NO_SETTINGS.isdisjoint(word.lower() for word in _WORDS.findall(key)):
            if isinstance(value, dict):
                yield from _leaves(value, f"{path}{key}.")
            else:
                yield f"{path}{key}", value


SOURCE = "oss-v3"

# benchmark.name of pytorch/pytorch benchmarks/dynamo (`output_json` in common.py) and of our export.
DYNAMO_BENCHMARK = "TorchInductor"
OWN_BENCHMARK = "compilewatch"
_OF_PYTORCH = (DYNAMO_BENCHMARK, "pr_time_benchmarks")
"""Where the backend is one of torch.compile, which has one called eager."""
_MODE_KEYS = ("inductor_compile_mode", "compile_mode", "torch_compile_mode")
_SOFTWARE = ("cuda", "driver", "triton", "python")
_MODES = {**{task.value: task for task in Task}, "eval": Task.INFERENCE, "train": Task.TRAINING}


def read(file: InputFile, options: ImportOptions) -> Iterator[Trial]:
    """One trial per group of records that agree in everything but the metric.

    Memory grows with the number of results, not with what each record repeats. Raises RecordError naming
    file, line or record, and field; also where results would share a case though their settings differ.
    `benchmarks/dynamo` writes a CSV of the same results: where it lies beside, that is read.
    """
    if (table := _table_beside(file)) is not None:
        options.note(f"{file.shown}: says what {table.name} beside it says, which is read.")
        yield from (to_trial(each, "dynamo-csv", options) for each in dynamo_csv.read(table, options))
        return
    groups: dict[str, _Group] = {}
    for fields in json_documents(file):
        metric = fields.part("metric")
        if not metric.data:
            fields.fail("metric", "is missing")
        rest = {key: value for key, value in fields.data.items() if key != "metric"}
        key = json.dumps(rest, sort_keys=True)
        groups.setdefault(key, _Group(Fields(fields.place, rest, fields.path))).add(metric, options)
    yield from _distinct_settings(groups.values(), options)


def _table_beside(file: InputFile) -> InputFile | None:
    """The CSV that the same run of `benchmarks/dynamo` wrote, which names itself in each record."""
    if not dynamo_csv.file_name_facts(file.name.removesuffix(".json") + ".csv"):
        return None
    return file.sibling(file.name.removesuffix(".json") + ".csv")


def _distinct_settings(groups: Iterable[_Group], options: ImportOptions) -> Iterator[Trial]:
    first: dict[tuple[str, ...], _Group] = {}
    for group in groups:
        if group.fields.part("benchmark").text("name") == OWN_BENCHMARK:
            raise RecordError(
                f"{group.fields.place}: is our own export for PyTorch's database, which is not read back.",
                "Export JSON lines, which come back whole: `compilewatch export --format jsonl`.",
            )
        trial = to_trial(group.result(options), SOURCE, options)
        other = first.setdefault((series_identity(trial), recorded_build_identity(trial.build)), group)
        mine, theirs = group.settings.unmapped, other.settings.unmapped
        differing = sorted(key for key in {*mine, *theirs} if mine.get(key) != theirs.get(key))
        if differing:
            raise group.fields.place.error(
                group.fields.name_of(differing[0]),
                f"is not that of {other.fields.path}, and too long for a name of their cases",
                "Write what differs into model.name.",
            )
        yield trial


class _Group:
    """The metrics of one result; `fields` is what its records have in common."""

    def __init__(self, fields: Fields) -> None:
        self.fields = fields
        self.texts: dict[str, str] = {}
        self.lists: dict[str, list[float]] = {}

    def add(self, metric: Fields, options: ImportOptions) -> None:
        """Takes one metric in; several values are averaged, as PyTorch's dashboard does."""
        name = metric.required_text("name")
        if name in self.lists or name in self.texts:
            metric.fail("name", f"{name} is reported twice for the same result")
        stated = metric.numbers_in_place("benchmark_values")
        values = [value for value in stated if value is not None]
        texts = metric.part("extra_info").data.get("benchmark_values")
        if values:
            self.lists[name] = values
        elif isinstance(texts, list) and texts and all(isinstance(text, str) for text in texts):
            self.texts[name] = metric.storable("extra_info.benchmark_values", texts[0])
        elif stated:
            options.note(f"{metric.place}: {metric.path}: {one_line(name)} was not measured; left out.")
        else:
            metric.fail("benchmark_values", f"{name} has no value")

    @property
    def values(self) -> dict[str, float]:
        """The mean of each metric."""
        return {name: sum(values) / len(values) for name, values in self.lists.items()}

    @property
    def of_vllm(self) -> Fields | None:
        """The arguments of vLLM's own benchmark, if it is one."""
        if self.fields.part("benchmark").text("name") != vllm_bench.V3_BENCHMARK:
            return None
        return self.fields.part("benchmark").part("extra_info").part("args")

    def result(self, options: ImportOptions) -> ForeignResult:
        """What its metrics say together, of vLLM's own benchmark as `vllm_bench` reads them."""
        facts, arguments = _facts(self.fields, options), self.of_vllm
        result = ForeignResult(
            place=self.fields.place,
            workload=self.settings.named(self._name),
            strategy=None,
            raw={"values": self.values, "texts": self.texts},
            stated=facts,
            shape=self.settings.shape,
        )
        if arguments is None:
            result.strategy = _strategy(self.fields, options)
            result.parts, result.failure = self._outcome(str(facts["device"] or options.device))
            return result
        name = self.settings.named(f"{self._name} {vllm_bench.kind_of(self.lists)}")
        result.workload = self.fields.storable("model.name", name)
        result.strategy = vllm_bench.strategy_of(arguments)
        result.raw = {"values": self.lists, "texts": self.texts}
        result.stated = facts | {
            "dtype": vllm_bench.dtype_of(arguments),
            "batch_size": arguments.count("batch_size") or None,
        }
        result.named = {"task": Task.INFERENCE}
        result.parts = vllm_bench.parts(self.fields, self.lists, arguments, options)
        return result

    @cached_property
    def settings(self) -> Settings:
        """What tells its case apart from others of the model."""
        benchmark = self.fields.part("benchmark").text("name")
        if (arguments := self.of_vllm) is not None:
            return Settings(*vllm_bench.settings(arguments), {})
        return settings_of(self.fields, self._name, of_benchmark=benchmark != DYNAMO_BENCHMARK)

    @property
    def _name(self) -> str:
        return self.fields.part("model").text("name") or self.fields.part("benchmark").required_text("name")

    def _outcome(self, device: str) -> tuple[dict[str, Any], Any]:
        name = self.fields.part("benchmark").text("name")
        if name == DYNAMO_BENCHMARK:
            row = Fields(self.fields.place, self.values, f"{self.fields.path}.metric")
            return dynamo_csv.outcome(row, self.texts.get("accuracy"), device)
        n = max(map(len, self.lists.values()), default=None)
        return {"summary": Summary(metrics=self.values, n=n)}, None


def _strategy(fields: Fields, options: ImportOptions) -> Strategy:
    """The backend by its name; v3 does not say how a model reached it, and PyTorch's own all compile."""
    benchmark, model = fields.part("benchmark"), fields.part("model")
    info = benchmark.part("extra_info")
    word = model.text("backend") or "compiled"
    facts: dict[str, Any] = {}
    dynamic = str(info.data.get("dynamic_shapes", info.data.get("is_dynamic"))).lower()
    if dynamic in ("true", "false"):
        facts["dynamic"] = dynamic == "true"
    mode = next((info.data[key] for key in _MODE_KEYS if info.data.get(key)), None)
    if isinstance(mode, str) and mode:
        facts["mode"] = info.storable("compile_mode", mode)
        if word == "compiled":
            word = facts["mode"]
    compiler = None
    if benchmark.text("name") == DYNAMO_BENCHMARK:
        # The label by which PyTorch's CI tells runs of its benchmark apart, in the name of the file beside.
        output = PurePosixPath(str(info.data.get("output")))
        compiler = dynamo_csv.file_name_facts(output.name).get("compiler")
    chosen = None if benchmark.text("name") in _OF_PYTORCH else strategy_named(word, fields.place, options)
    if chosen is not None and (chosen.kind is not StrategyKind.COMPILE or known_strategy(word) is None):
        return chosen
    strategy = dynamo_csv.strategy_of(compiler) if compiler else strategy_called(word)
    return strategy.model_copy(update=facts)


def _facts(fields: Fields, options: ImportOptions) -> dict[str, Any]:
    benchmark = fields.part("benchmark")
    info = benchmark.part("extra_info")
    runners = fields.objects("runners") if fields.data.get("runners") else iter(())
    runner = next(runners, Fields(fields.place, {}))
    dependency = fields.part("dependencies").part("pytorch")
    torch, software = dependency.text("version"), dependency.part("extra_info")
    device = info.text("device") if isinstance(info.data.get("device"), str) else None
    on_cpu = (device or options.device) == "cpu"
    return {
        **(torch_facts(torch) if torch else {}),
        **software.words(_SOFTWARE),
        "torch_git": fields.text("head_sha") if fields.text("repo") == "pytorch/pytorch" else None,
        "task": _MODES.get(benchmark.text("mode") or ""),
        "dtype": benchmark.text("dtype"),
        "batch_size": info.count("batch_size") or None,
        "device": device,
        "device_name": runner.text("cpu_info") if on_cpu else runner.text("gpu_info") or info.text("arch"),
        "device_count": None if on_cpu else runner.count("gpu_count"),
        **runner.facts({"machine": "name", "cpu_name": "cpu_info", "cpu_count": "cpu_count"}),
        "measured_at": moment(fields, "timestamp"),
        "suite": _suite(fields.part("model")),
    }


def _suite(model: Fields) -> str | None:
    origins = model.data.get("origins")
    first = origins[0] if isinstance(origins, list) and origins else None
    return model.storable("origins", first) if isinstance(first, str) else None
