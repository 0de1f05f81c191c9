"""Foreign files are read in a process of their own: in bounded memory and time, and linear in their size."""

from __future__ import annotations

import gzip
import json
import re
import threading
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from db.engine.session import Database
from db.errors import CompilewatchError, RecordError
from db.interchange.files.opening import MAX_DOCUMENT_BYTES
from db.interchange.files.options import ImportOptions
from db.interchange.read import process
from db.interchange.read.formats import Format
from db.interchange.read.importing import import_paths, import_uploads
from db.units import plural
from tests.builders import make_trial
from tests.db.interchange.reading import TOLD, read
from tests.db.interchange.tiny_files import DYNAMO_NAME, TIMM_NAME, TINY, vllm_startup
from tests.db.interchange.trace_logs import artifact, event, whole_log

OPTIONS = ImportOptions(**TOLD)


def peak_bytes(pid: int) -> int:
    """The most that a process had resident."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) * 1024


class Watched(process.ReadingProcess):
    """Notes the most memory that any process of its kind took."""

    peak = 0

    def _begun(self) -> process.subprocess.Popen[bytes]:
        begun = super()._begun()

        def watch() -> None:
            while begun.poll() is None:
                try:
                    Watched.peak = max(Watched.peak, peak_bytes(begun.pid))
                except (OSError, AssertionError):
                    return
                time.sleep(0.01)

        threading.Thread(target=watch, daemon=True).start()
        return begun


def bombs(folder: Path) -> dict[str, Path]:
    """The worst of every format within the limits of size, a few hundred kB packed."""
    lists = b"[" + b"[],[[]],{}," * 2_500_000 + b"0]"
    tabs = b"".join([artifact("dynamo_graph_break_reason", "").encode(), b"\t\n" * 8_000_000])
    texts = {
        "oss.json": b'[{"metric": {"name": "a", "benchmark_values": ' + lists + b"}}]",
        "pytest.json": b'{"machine_info": {}, "commit_info": {}, "benchmarks": ' + lists + b"}",
        "table.csv": b"workload,latency_ms\n" + b'"' + b"x" * 2**24,
        "dynamo.csv": b"name,speedup,abs_latency\n" + b"," * 2**24,
        "data.js": b"window.BENCHMARK_DATA = " + lists,
        "dedicated_log_torch_trace_b.log": tabs,
    }
    for name, text in texts.items():
        (folder / f"{name}.gz").write_bytes(gzip.compress(text, 1))
    return {name: folder / f"{name}.gz" for name in texts}


@pytest.mark.slow
def test_no_small_file_takes_more_memory_than_is_allowed(
    sqlite_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("db.interchange.read.importing.ReadingProcess", Watched)
    good = tmp_path / "good.jsonl"
    good.write_text(make_trial().to_json() + "\n")
    report = import_paths(sqlite_database, [*bombs(tmp_path).values(), good], options=OPTIONS)
    assert report.new == 1, "the file after them comes in"
    assert len(report.errors) == len(report.files) - 1
    assert any("over 512 MiB of memory" in error.message for error in report.errors)
    assert 0 < Watched.peak <= process.MEMORY_BYTES
    print(f"\nmost memory of a reading process: {Watched.peak / 2**20:.0f} MiB")


def test_a_file_that_takes_too_long_is_refused_and_the_next_one_comes_in(
    sqlite_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "CPU_S", 1)
    slow = tmp_path / "dedicated_log_torch_trace_a.log.gz"
    slow.write_bytes(gzip.compress(artifact("torch_version", "{}").encode() + b"\tx\n" * 20_000_000, 1))
    good = tmp_path / "good.jsonl"
    good.write_text(make_trial().to_json() + "\n")
    report = import_paths(sqlite_database, [slow, good], options=OPTIONS)
    assert "processor time" in report.errors[0].message
    assert report.new == 1


@pytest.mark.parametrize(
    ("name", "head", "empty"),
    [
        ("a.csv", b"workload,latency_ms\nm,1\n", b"\n"),
        ("b.csv", b"name;speedup;abs_latency\n", b" ; ;\n"),
        ("c.json", TINY[Format.OSS_V3]["results.json"].encode(), b"\n"),
        ("d.jsonl", make_trial().to_json().encode() + b"\n", b"\n"),
        ("dedicated_log_torch_trace_a.log", whole_log().encode(), b"\t\n"),
    ],
)
def test_empty_lines_end_soon(tmp_path: Path, name: str, head: bytes, empty: bytes) -> None:
    path = tmp_path / f"{name}.gz"
    path.write_bytes(gzip.compress(head + empty * 20_000_000, 1))
    begun = time.process_time()
    with pytest.raises(RecordError, match="most lines until there are empty"):
        read(path, **TOLD)
    assert time.process_time() - begun < 10, "20 million of them took that and more"


def test_an_upload_is_read_there_too(sqlite_database: Database) -> None:
    uploads = {name: text.encode() for name, text in TINY[Format.DYNAMO_CSV].items()}
    report = import_uploads(sqlite_database, uploads, options=OPTIONS)
    assert (report.errors, report.new, report.known) == ((), 3, 3)


def test_it_is_told_no_secret(
    sqlite_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMPILEWATCH_DATABASE_URL", "postgresql://u:secret@h/d")
    with process.ReadingProcess() as reading:
        begun = reading._begun()
        environment = Path(f"/proc/{begun.pid}/environ").read_bytes()
    assert b"secret" not in environment


def test_a_module_beside_the_files_is_not_imported(
    sqlite_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "csv.py").write_text("raise SystemExit(3)\n")
    (tmp_path / "db.py").write_text("raise SystemExit(3)\n")
    (tmp_path / "good.jsonl").write_text(make_trial().to_json() + "\n")
    monkeypatch.chdir(tmp_path)
    assert import_paths(sqlite_database, [Path("good.jsonl")]).new == 1


def log(count: int) -> str:
    breaks = artifact("dynamo_graph_break_reason", "Graph break " * count)
    opened = "".join(event("entire_frame_compile", "B", number / 1e6) for number in range(count))
    ended = "".join(event("x", "E", 1 + number / 1e6) for number in range(count))
    return whole_log() + breaks + opened + ended


def data_js(count: int) -> str:
    benches = [{"name": "t[" + "-" * 900 + "]", "value": 1, "unit": "s"}] * (count // 10)
    return "window.BENCHMARK_DATA = " + json.dumps({"entries": {"a": [{"date": 10**12, "benches": benches}]}})


def repeated(format: Format, key: str, count: int, unique: str | None = None) -> str:
    """A tiny file whose list under `key` has its first entry `count` times."""
    (text,) = TINY[format].values()
    document = json.loads(text)
    first = document[key][0]
    entries = [
        first | ({unique: f"{first[unique]}{number}"} if unique else {}) for number in range(count + 1)
    ]
    return json.dumps(document | {key: entries})


def summary() -> dict[str, Any]:
    (text,) = TINY[Format.TRANSFORMERS_CI].values()
    found: dict[str, Any] = json.loads(text)
    return found


def long_lists(key: str, count: int) -> str:
    (text,) = TINY[Format.TRANSFORMERS_BENCHMARK].values()
    document = json.loads(text)
    for entry in document.values():
        entry["measures"][key] = [2.5] * count
    return json.dumps(document)


def asv(count: int) -> str:
    (text,) = TINY[Format.ASV].values()
    document = json.loads(text)
    document["results"]["suite.time_add"] = [[0.5] * count, [list(map(str, range(count)))], 1, 10**12]
    return json.dumps(document)


def long_report(count: int) -> str:
    document = json.loads(TINY[Format.OPTIMUM]["benchmark_report.json"])
    document["forward"]["latency"]["values"] = [0.5] * count
    return json.dumps(document)


# Of every format a file of `count` parts of the worst kind that is known.
GROWING: dict[Format, tuple[str, Callable[[int], str]]] = {
    Format.TRIAL: ("a.jsonl", lambda count: (make_trial().to_json() + "\n") * (1 + count // 100)),
    Format.DYNAMO_CSV: (
        DYNAMO_NAME.format("performance"),
        lambda count: "dev,name,batch_size,speedup,abs_latency\n" + "cuda,a,8,2.0,1.5\n" * (count // 8),
    ),
    Format.OSS_V3: ("a.json", lambda count: TINY[Format.OSS_V3]["results.json"] + "\n" * count * 20),
    Format.TORCHBENCH: (
        "metrics-20260801123456.json",
        lambda count: json.dumps(
            {"environ": {}, "metrics": {f"model={', test=a, device=b, bs=1, extra_args=[' * count}": 1.0}}
        ),
    ),
    Format.TIMM_CSV: (
        TIMM_NAME.format(""),
        lambda count: "model,infer_step_time,infer_batch_size\n"
        + "".join(f"m{number},2.5,8\n" for number in range(count // 8)),
    ),
    Format.TORCH_TRACE: ("dedicated_log_torch_trace_a.log", log),
    Format.JOB_RECORDING: (
        "compilewatch_job_a.jsonl",
        lambda count: TINY[Format.JOB_RECORDING]["compilewatch_job_ranker_1.jsonl"]
        + json.dumps({"steps_ns": [10**18 + number for number in range(count)]})
        + "\n",
    ),
    Format.CSV: (
        "a.csv",
        lambda count: f"workload,latency_ms\na,{'(' * min(count, 120_000)}\n" + "a,1.5\n" * 2,
    ),
    Format.HYPERFINE: (
        "a.json",
        lambda count: json.dumps(
            {"results": [{"command": "x" * 100, "mean": 1, "median": 1, "times": [1.0] * count}]}
        ),
    ),
    Format.GITHUB_ACTION_BENCHMARK: ("data.js", data_js),
    Format.PYTEST_BENCHMARK: (
        "a.json",
        lambda count: repeated(Format.PYTEST_BENCHMARK, "benchmarks", count // 100, unique="fullname"),
    ),
    Format.GOOGLE_BENCHMARK: (
        "a.json",
        lambda count: repeated(Format.GOOGLE_BENCHMARK, "benchmarks", count // 10),
    ),
    Format.TRANSFORMERS_CI: (
        "summary_2024-09-04.json",
        lambda count: json.dumps(
            {f"m{number}": model for number in range(count // 20) for model in summary().values()}
        ),
    ),
    Format.TRANSFORMERS_BENCHMARK: ("llama_benchmark_1.json", lambda count: long_lists("e2e_latency", count)),
    Format.ASV: ("a.json", lambda count: asv(count // 4)),
    Format.OPTIMUM: ("benchmark_report.json", lambda count: long_report(count)),
    Format.VLLM_BENCH: (
        "a.json",
        lambda count: json.dumps({"avg_latency": 1.0, "latencies": [1.0] * count, "percentiles": {}}),
    ),
    Format.VLLM_STARTUP: (
        "a.json",
        lambda count: vllm_startup(
            cold_startup=[30.0] * (count // 20), cold_compilation=[10.0] * (count // 20)
        ),
    ),
}  # fmt: skip
START = 2_000
MOST_RESULTS = 5_000
"""Of files of rows: what comes after them takes no more memory."""


def beside(path: Path, format: Format) -> None:
    """What the tool of `format` writes beside `path`."""
    for other, content in TINY[format].items():
        (path.parent / other).write_text(content)


@pytest.mark.slow
@pytest.mark.parametrize("format", GROWING)
def test_the_longest_file_of_each_format_takes_no_more_memory_than_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: Format
) -> None:
    monkeypatch.setattr(Watched, "peak", 0)
    name, made = GROWING[format]
    count = START
    while count < 8_000_000 and len(text := made(count)) < MAX_DOCUMENT_BYTES // 2:
        count *= 2
    beside(tmp_path / name, format)
    (tmp_path / name).write_text(text)
    results, refused = 0, ""
    with Watched() as reading:
        try:
            found = reading.trials(str(tmp_path / name), {}, format, OPTIONS, process.Read())
            results = sum(1 for _ in islice(found, MOST_RESULTS))
        except CompilewatchError as error:
            refused = f", {error.message.removeprefix(f'{tmp_path / name}')[:80]}"
        assert 0 < Watched.peak <= process.MEMORY_BYTES
    said = f"{plural(results, 'result')}{refused}"
    print(f"\n{format}: {len(text) / 2**20:.1f} MiB, {said}: {Watched.peak / 2**20:.0f} MiB of memory")
    assert results or refused
