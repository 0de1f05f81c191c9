"""What docs/interchange.md says of every format: which figure becomes the latency, what tells cases apart.

Each field of a small file is changed in turn. Those that move the latency, and those that make another case,
are the ones that the table names, no more and no fewer.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from compilewatch.db.errors import CompilewatchError
from compilewatch.db.interchange.formats import Format
from compilewatch.db.metrics.trial_times import latencies_ns
from compilewatch.db.records.ids import strategy_identity, workload_identity
from tests.db.interchange.reading import read_told
from tests.db.interchange.tiny_files import (
    DYNAMO_NAME,
    TIMM_NAME,
    TINY,
    genai_perf,
    sglang,
    trtllm_bench,
)

PAGE = Path(__file__).parents[3] / "docs" / "interchange.md"
TITLE = "## The latency and the case of each format"
Files = dict[str, str]


class Said(NamedTuple):
    """A row of the table."""

    latency: str
    case: str

    @staticmethod
    def names(cell: str) -> list[str]:
        """The fields that a cell names; options are none, and formats are those of the row that is meant."""
        named = re.findall(r"`([^`]+)`", cell)
        return [name for name in named if not name.startswith("--") and name not in list(Format)]


@cache
def table() -> dict[Format, Said]:
    _, _, section = PAGE.read_text(encoding="utf-8").partition(TITLE)
    rows = re.findall(
        r"^\| `([a-z][a-z0-9-]+)` \| (.+?) \| (.+?) \|$", section.partition("\n## ")[0], re.MULTILINE
    )
    return {Format(name): Said(latency, case) for name, latency, case in rows}


def test_the_table_has_every_format() -> None:
    assert list(table()) == list(Format)


# What a file says: the latency and the case of each of its trials.

Told = tuple[list[float | None], list[tuple[str, str]]]


def told(folder: Path, files: Files, format: Format) -> Told:
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    trials = read_told(folder / next(iter(files)), format=format, strategy="default")
    cases = [(workload_identity(each.workload), strategy_identity(each.strategy)) for each in trials]
    return [latencies_ns(each)[0] for each in trials], cases


# Fields by their paths, and the same file with another value in one of them.


def leaves(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], object]]:
    """Every value with its path; a list of numbers or words is one."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from leaves(each, (*path, key))
    elif isinstance(value, list) and any(isinstance(each, dict | list) for each in value):
        for number, each in enumerate(value):
            yield from leaves(each, (*path, number))
    else:
        yield path, value


def others(value: object) -> list[object]:
    """Other values that a field may take, the likely ones first."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [2 * value]
    if isinstance(value, list):
        return [[others(each)[0] for each in value]] if value else []
    if value is None:
        return [3, "eager", True]
    text = str(value)
    with suppress(ValueError):
        number = 2 * float(text)
        return [f"{number:g}" if number.is_integer() else str(number)]
    words = ("eager", "reduce-overhead", "training", "float32", "cold", "compile", "fxgraph_cache_hit")
    return [f"{text}2", *words, json.dumps({"n": 8})]


def document_variants(text: str) -> Iterator[tuple[str, list[str]]]:
    try:
        documents, by_line = [json.loads(text)], False
    except ValueError:
        documents, by_line = [json.loads(line) for line in text.splitlines()], True
    fields: dict[str, list[tuple[int, tuple[Any, ...], object]]] = {}
    for number, document in enumerate(documents):
        for path, value in leaves(document):
            name = ".".join(str(part) for part in path if not isinstance(part, int))
            fields.setdefault(name, []).append((number, path, value))
    for name, places in fields.items():
        changed = []
        for turn in range(max(len(others(value)) for _, _, value in places)):
            copies = deepcopy(documents)
            for number, path, value in places:
                if values := others(value):
                    holder = copies[number]
                    for part in path[:-1]:
                        holder = holder[part]
                    holder[path[-1]] = values[min(turn, len(values) - 1)]
            changed.append("\n".join(map(json.dumps, copies)) if by_line else json.dumps(copies[0]))
        yield name, changed


def table_variants(text: str) -> Iterator[tuple[str, list[str]]]:
    header, *rows = csv.reader(io.StringIO(text))
    for place, name in enumerate(header):
        changed = []
        for turn in range(max(len(others(row[place])) for row in rows)):
            stream = io.StringIO()
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(header)
            for row in rows:
                values = others(row[place]) if row[place] else [row[place]]
                value = values[min(turn, len(values) - 1)]
                writer.writerow([*row[:place], value, *row[place + 1 :]])
            if stream.getvalue() not in changed:
                changed.append(stream.getvalue())
        yield name, changed


def variants(files: Files) -> Iterator[tuple[str, list[Files]]]:
    """Each field with files in which it has other values, in both halves of a pair alike."""
    fields: dict[str, list[Files]] = {}
    for name, text in files.items():
        of_file = table_variants if name.endswith(".csv") else document_variants
        for field, changed in of_file(text):
            known = fields.setdefault(field, [dict(files) for _ in changed])
            for version, text_ in zip(known, changed, strict=False):
                version[name] = text_
    yield from fields.items()


def moved(folder: Path, files: Files, format: Format) -> tuple[set[str], set[str]]:
    """The fields that move a latency, and those that make another case, or other ones."""
    latencies, cases = told(folder, files, format)
    moves: tuple[set[str], set[str]] = set(), set()
    for field, changed in variants(files):
        for version in changed:
            with suppress(CompilewatchError):
                now, other = told(folder, version, format)
                if other and other != cases:
                    moves[1].add(field)
                # With another case results come in another order, and what pairs them may be gone.
                elif other and now != latencies:
                    moves[0].add(field)
    return moves


def names(said: str, field: str) -> bool:
    """Whether the table's name is that of the field: its path, the end of it, or what holds it."""
    return fnmatchcase(field, said) or f".{field}".endswith((f".{said}", said)) or f".{said}." in f".{field}."


def served(**more: Any) -> Files:
    """A result of `vllm bench serve`, without the figures of None."""
    figures: dict[str, Any] = {
        "date": "20260901-010000", "model_id": "acme/L", "num_prompts": 200, "request_rate": 4.0,
        "max_concurrency": 8, "completed": 200, "total_input_tokens": 204_800, "total_output_tokens": 25_600,
        "request_throughput": 4.0, "output_throughput": 500.0, "median_ttft_ms": 55.0, "mean_ttft_ms": 60.0,
        "median_tpot_ms": 9.5, "mean_tpot_ms": 9.75, "median_e2el_ms": 1_300.0, "mean_e2el_ms": 1_400.0,
    }  # fmt: skip
    told = {key: value for key, value in (figures | more).items() if value is not None}
    return {"served.json": json.dumps(told)}


def _without(files: Files, *words: str) -> Files:
    """The same with the keys `words` of every object taken out."""

    def pruned(value: Any) -> Any:
        if isinstance(value, list):
            return [pruned(each) for each in value]
        if isinstance(value, dict):
            return {key: pruned(each) for key, each in value.items() if key not in words}
        return value

    return {name: json.dumps(pruned(json.loads(text))) for name, text in files.items()}


def _v3(benchmark: str, metric: str, **settings: Any) -> Files:
    info = {"args": settings, "use_compile": "True", "compile_mode": "default"}
    record = {
        "benchmark": {"name": benchmark, "mode": "inference", "dtype": "int8", "extra_info": info},
        "model": {"name": "m", "backend": "x", "extra_info": {"layers": 4}},
        "inputs": {"x": {"dtype": "i8", "extra_info": {"rows": 16}}},
        "metric": {"name": metric, "benchmark_values": [1.5]},
    }
    return {"v3.json": json.dumps(record)}


_ONE_BATCH = {"run_name": "default", "batch_size": 4, "input_len": 256, "output_len": 32}
_E2E = {"median_tpot_ms": float("nan")}
_TRTLLM_ENGINE = json.loads(trtllm_bench())["engine"] | {"quantization": "FP8", "kv_cache_dtype": "FP8"}
_OPTIMUM_CONFIG = json.loads(TINY[Format.OPTIMUM]["benchmark_config.json"])
_OPTIMUM_CONFIG["backend"] |= {"torch_dtype": "float16", "torch_compile_config": {"mode": "default"}}
_OPTIMUM = TINY[Format.OPTIMUM] | {"benchmark_config.json": json.dumps(_OPTIMUM_CONFIG)}

# Beside the tiny files those in which the other figures and settings of the table are.
MORE: dict[Format, tuple[Files, ...]] = {
    Format.TRIAL_CSV: (
        {
            "trials.csv": (
                "trial_id,series_id,record_version,workload_version,started_at,workload,task,dtype,batch_size,"
                "shape,item,items_per_iteration,strategy,strategy_kind,cache,scope,device,device_name,torch,"
                "status,latency_ns\n"
                'T,S,1,v,2026-09-01T00:00:00Z,a,inference,float16,8,"{""n"": 4}",image,8,default,compile,'
                "warm,full,cuda,NVIDIA H100,2.13.0,ok,1500000.0\n"
            )
        },
    ),
    Format.DYNAMO_CSV: (
        {
            DYNAMO_NAME.format("performance"): (
                "dev,name,batch_size,tag,speedup,abs_latency\ncuda,a,8,x,2,1.5\n"
            ),
        },
    ),
    Format.OSS_V3: (
        _v3("torchao", "speedup", tp=8),
        _v3("vLLM benchmark", "latency", tensor_parallel_size=2, quantization="fp8"),
    ),
    Format.TORCHBENCH: (
        {
            "metrics-20230420000000.json": json.dumps(
                {
                    "name": "torch-nightly",
                    "environ": {"pytorch_version": "2.1.0", "device": "NVIDIA A100"},
                    "metrics": {"test_eval[resnet50-cuda-eager]_latency": 12.5},
                }
            )
        },
    ),
    Format.PYTEST_BENCHMARK: (
        _without(TINY[Format.PYTEST_BENCHMARK], "data"),
        {
            "benchmark.json": json.dumps(
                {
                    **{"machine_info": {}, "commit_info": {}, "datetime": "2026-11-20T18:58:06+00:00"},
                    "benchmarks": [
                        {
                            "fullname": "t.py::test_m", "stats": {"median": 0.1, "rounds": 3},
                            "extra_info": {"mode": "default", "batch_size": 8, "dtype": "bfloat16"},
                        }
                    ],
                }
            )
        },
    ),
    Format.OPTIMUM: (
        _OPTIMUM,
        _without(TINY[Format.OPTIMUM], "torch_compile"),
        *(_without(_OPTIMUM, *keys) for keys in (("values",), ("values", "p50"))),
    ),
    Format.TIMM_CSV: (
        {
            TIMM_NAME.replace("infer", "train").format(""): (
                "model,train_img_size,train_step_time,train_batch_size\nm,224,237.96,1024\n"
            )
        },
    ),
    Format.VLLM_BENCH: (
        served(),
        served(request_rate="inf"),
        served(median_tpot_ms=None),
        served(median_tpot_ms=None, mean_tpot_ms=None),
        served(median_tpot_ms=None, mean_tpot_ms=None, median_e2el_ms=None),
        served(backend="tgi"),
        served(burstiness=0.5, run_number=0, enforce_eager=True, max_num_seqs=32),
        served(ramp_up_strategy="linear", ramp_up_start_rps=1, run_number=0, compilation_config={"mode": 3}),
        {"t.json": '{"elapsed_time": 2.0, "num_requests": 8, "tokens_per_second": 4000.0}'},
        {"l.json": '{"avg_latency": 1.2, "latencies": [], "percentiles": {"50": 1.15}}'},
        {"l.json": '{"avg_latency": 1.2, "latencies": []}'},
    ),
    Format.SGLANG: (
        {"s.jsonl": sglang(request_rate=4.0, server_info={"model_path": "acme/M"})},
        {"s.jsonl": sglang(request_rate=4.0, server_info={"model_path": "acme/M"}, **_E2E)},
        {"b.jsonl": json.dumps(_ONE_BATCH | {"total_latency": 0.5})},
        {"b.jsonl": json.dumps(_ONE_BATCH | {"latency": 0.5})},
    ),
    Format.GENAI_PERF: (
        {"g.json": genai_perf(input_config={"model": ["acme/L"], "concurrency": 8, "request_rate": 4})},
        _without({"g.json": genai_perf(input_config={"request_rate": 4})}, "inter_token_latency"),
    ),
    Format.TRTLLM_BENCH: (
        {"r.json": json.dumps(json.loads(trtllm_bench()) | {"engine": _TRTLLM_ENGINE})},
        _without({"r.json": trtllm_bench()}, "model"),
    ),
    Format.CSV: (
        {"t.csv": "workload,dtype,task,shape.n,throughput_per_s\na,float16,inference,8,80\n"},
        {"t.csv": "workload,eager_latency_us,batch_size\na,8,80\n"},
        {"t.csv": "workload,strategy,latency_ms,x_name,x_value\na,eager,8,n,4\n"},
    ),
}  # fmt: skip


# What is no field: the words of the table's case, and another name or key in its place.
_WORDS: dict[Format, dict[str, tuple[str, str]]] = {
    Format.TORCHBENCH: {
        "model": ("model=resnet50", "model=vgg"),
        "test": ("test=eval", "test=train"),
        "batch": ("bs=32", "bs=8"),
        "arguments": ("'inductor'", "'aot_eager'"),
    },
    Format.TRANSFORMERS_CI: {
        "model": ('"m"', '"n"'),
        "phase": ("decode.", "prefill."),
        "configuration": ("static", "dynamic"),
    },
    Format.OPTIMUM: {"target": ("forward", "prefill")},
    Format.PYTEST_BENCHMARK: {"test": ("test_m", "test_n")},
    Format.BENCHER: {
        "benchmark's name": ("mlp/", "cnn/"),
        "last part": ("/default", "/eager"),
    },
    Format.KERNELBENCH: {"level": ("level1", "level2"), "problem": ("1_Square", "1_Cube")},
    Format.VLLM_STARTUP: {"cold or warm": ("cold_", "hot_")},
    Format.TORCH_COMPARE: {
        "label": (" add ", " sub "),
        "row": ("  8  ", "  9  "),
        "column": (" compiled", "max-autotune"),
    },
}
_RENAMED = "the file's name"


@pytest.mark.parametrize("format", list(Format))
def test_the_table_names_what_moves_the_latency_and_what_makes_another_case(
    tmp_path: Path, format: Format
) -> None:
    of_text = format in (Format.TORCH_COMPARE, Format.TORCH_TRACE)
    samples = (TINY[format], *MORE.get(format, ()))
    found = [moved(tmp_path / "in", files, format) for files in samples if not of_text]
    fields = [set().union(*each) for each in zip(*found, strict=True)] or [set(), set()]
    for cell, moves in zip(table()[format], fields, strict=True):
        named = Said.names(cell)
        unnamed = [field for field in sorted(moves) if not any(names(said, field) for said in named)]
        unmoved = [said for said in named if not any(names(said, field) for field in moves)]
        assert (unnamed, unmoved) == ([], []), cell


@pytest.mark.parametrize(
    ("format", "word"), [(format, word) for format, words in _WORDS.items() for word in words]
)
def test_the_table_names_the_keys_that_make_another_case(tmp_path: Path, format: Format, word: str) -> None:
    assert word in table()[format].case
    _, cases = told(tmp_path / "in", TINY[format], format)
    old, new = _WORDS[format][word]
    changed = {name: text.replace(old, new) for name, text in TINY[format].items()}
    assert changed != TINY[format]
    assert told(tmp_path / "in", changed, format)[1] != cases


@pytest.mark.parametrize("format", list(Format))
def test_the_table_says_where_the_name_of_a_file_makes_the_case(tmp_path: Path, format: Format) -> None:
    def renamed(name: str) -> str:
        """The name of a person's own, with the ending by which a pair is found."""
        return re.sub(
            r".*?(?=(_report|_config|_accuracy|_performance|-dynamo)?\.[a-z]+$)", "my", name, count=1
        )

    differs = []
    for files in (TINY[format], *MORE.get(format, ())):
        _, cases = told(tmp_path / "in", files, format)
        other = {renamed(name): text for name, text in files.items()}
        differs.append(told(tmp_path / "in", other, format)[1] != cases)
    assert any(differs) == (_RENAMED in table()[format].case)


def test_the_cell_of_a_comparison_is_the_latency(tmp_path: Path) -> None:
    latencies, _ = told(tmp_path / "in", TINY[Format.TORCH_COMPARE], Format.TORCH_COMPARE)
    changed = {name: text.replace("1.5", "3.0") for name, text in TINY[Format.TORCH_COMPARE].items()}
    assert told(tmp_path / "in", changed, Format.TORCH_COMPARE)[0] == [3_000.0, *latencies[1:]]
    assert table()[Format.TORCH_COMPARE].latency == "the cell"


def test_logs_of_another_folder_are_another_job(tmp_path: Path) -> None:
    jobs = [told(tmp_path / job, TINY[Format.TORCH_TRACE], Format.TORCH_TRACE)[1] for job in ("a", "b")]
    assert jobs[0] != jobs[1]
    assert "by its folder" in table()[Format.TORCH_TRACE].case


@pytest.mark.parametrize("format", [Format.TORCH_TRACE, Format.VLLM_STARTUP])
def test_what_has_no_latency_says_so(tmp_path: Path, format: Format) -> None:
    latencies, _ = told(tmp_path / "in", TINY[format], format)
    assert set(latencies) == {None}
    assert table()[format].latency.startswith("none: ")
