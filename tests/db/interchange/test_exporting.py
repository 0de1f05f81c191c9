"""Export: what goes out says what is stored, in every format, and streams."""

import csv
import io
import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import polars
import pytest

from compilewatch.db.cells import escaped_text
from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.errors import CompilewatchError
from compilewatch.db.interchange.exporting import ExportFormat, export
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.flat import KINDS
from compilewatch.db.interchange.importing import import_paths
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import COLUMNS, trial_records, trials_frame
from compilewatch.db.records.trial import Build, Code, SourceKind, Status, Summary, Trial
from compilewatch.db.store.trials import save_trials
from tests.builders import MS, START, make_imported, make_trial, make_workload

OLDEST = START - timedelta(days=1)
CODE = Code(commit="c0ffee" * 6 + "c0ff", dirty=True, source_hash="5eed" * 4)
ALL = Filters()
# Columns that frames and files have both.
SHARED = [name for name in COLUMNS if name in KINDS]


def trials() -> list[Trial]:
    return [
        make_trial(started_at=OLDEST, latency_ns=8 * MS, control_latency_ns=12 * MS, spread=0),
        make_trial(strategy="eager", label="night | <run>", build=Build(torch="2.13.0"), code=CODE),
        make_trial(failure="out_of_memory"),
        make_imported(summary=Summary(metrics={"compile_time_instruction_count": 3086359081})),
        make_imported(workload=make_workload("=cmd|calc", batch_size=None, shape={})),
    ]


@pytest.fixture
def filled(database: Database) -> Database:
    save_trials(database, trials())
    return database


def exported(database: Database, format: str, filters: Filters = ALL) -> bytes:
    output = io.BytesIO()
    count = export(database, filters, format=format, output=output)
    assert count == sum(1 for _ in trial_records(database, filters))
    return output.getvalue()


# What a row of our own CSV says of its trial, by the names that frames have too.
OWN_NAMES = (
    *("workload", "task", "batch_size", "shape", "dtype", "items_per_iteration", "strategy", "strategy_kind"),
    *("cache", "scope", "machine", "device", "device_name", "threads", "torch", "torch_variant", "cuda"),
    *("driver", "triton", "python", "os", "packages", "label", "suite", "started_at", "status"),
    *("failure_kind", "failure_message", "latency_ns", "control_latency_ns", "peak_bytes", "graphs"),
    *("ops_captured", "numerics_status", "code_commit", "code_dirty", "code_hash"),
)


def test_our_own_csv_comes_back_by_its_own_names(filled: Database, tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_bytes(exported(filled, "csv"))
    with open_database(f"sqlite:///{tmp_path}/copy.db", migrate=True) as copy:
        report = import_paths(copy, [path])
        assert (report.errors, report.new) == ((), len(trials()))
        ours, theirs = (
            trials_frame(each).sort_values(["started_at", "strategy", "workload", "failure_kind", "suite"])
            for each in (filled, copy)
        )
        for name in OWN_NAMES:
            mine, back = (frame[name].tolist() for frame in (ours, theirs))
            assert [str(each) for each in back] == [str(each) for each in mine], name
        (counted,) = (each for each in trial_records(copy) if each.summary and each.summary.metrics)
        assert counted.summary is not None
        assert counted.summary.metrics == {"compile_time_instruction_count": 3086359081.0}
        assert import_paths(copy, [path]).known == len(trials())


def test_jsonl_comes_back_without_loss(filled: Database, tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(exported(filled, "jsonl"))
    with open_database(f"sqlite:///{tmp_path}/copy.db", migrate=True) as copy:
        assert import_paths(copy, [path]).new == 5
        assert list(trial_records(copy, Filters())) == list(trial_records(filled, Filters()))
        assert exported(copy, "jsonl") == path.read_bytes()


def test_csv_holds_what_the_queries_say(filled: Database) -> None:
    frame = trials_frame(filled)
    rows = list(csv.DictReader(io.StringIO(exported(filled, "csv").decode())))
    assert list(rows[0]) == list(KINDS)
    for row, (_, expected) in zip(rows, frame.iterrows(), strict=True):
        for name in SHARED:
            assert agrees(row[name], expected[name]), (name, row[name], expected[name])
    assert rows[0]["speedup"] == "1.5"
    assert rows[0]["started_at"] == "2026-11-19T18:00:00Z"


def agrees(cell: str, value: Any) -> bool:
    if isinstance(value, dict):
        return json.loads(cell) == value
    if pd.isna(value):
        return not cell
    if isinstance(value, pd.Timestamp):
        return pd.Timestamp(cell) == value
    if isinstance(value, float):
        return float(cell) == value
    return cell.removeprefix("'") == str(value)


def test_a_csv_cell_is_no_formula(filled: Database) -> None:
    rows = csv.DictReader(io.StringIO(exported(filled, "csv").decode()))
    assert "'=cmd|calc" in {row["workload"] for row in rows}


def test_parquet_opens_in_polars(filled: Database) -> None:
    """Typed, with null where nothing is known: never NaN, 0 or an empty text."""
    frame = polars.read_parquet(io.BytesIO(exported(filled, "parquet")))
    stored = list(trial_records(filled, Filters()))
    assert frame.columns[: len(KINDS)] == list(KINDS)
    assert frame["trial_id"].to_list() == [trial.trial_id for trial in stored]
    assert frame.schema["started_at"] == polars.Datetime("us", "UTC")
    assert frame.schema["samples_ns"] == polars.List(polars.Int64)
    assert frame["samples_ns"].to_list() == [trial.samples_ns for trial in stored]
    floats = [name for name, kind in frame.schema.items() if kind == polars.Float64]
    assert floats
    assert not any(frame[name].is_nan().any() for name in floats)
    for column, known in (
        ("failure_kind", [trial.failure is not None for trial in stored]),
        ("graph_breaks", [trial.compiler is not None for trial in stored]),
        ("batch_size", [trial.workload.batch_size is not None for trial in stored]),
        ("latency_p99_ns", [trial.samples_ns != [] for trial in stored]),
    ):
        assert frame[column].is_not_null().to_list() == known, column
    expected = trials_frame(filled)["latency_ns"]
    assert frame["latency_ns"].to_list() == [None if pd.isna(value) else value for value in expected]


def test_parquet_goes_into_a_pipe(filled: Database) -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as stream:
        export(filled, Filters(), format="parquet", output=stream)
    with os.fdopen(reading, "rb") as stream:
        assert len(pd.read_parquet(io.BytesIO(stream.read()))) == 5


def test_markdown_is_a_table_that_stays_one(filled: Database) -> None:
    lines = exported(filled, "markdown").decode().splitlines()
    assert len(lines) == 7
    assert {line.replace("\\|", "").count("|") for line in lines} == {13}
    assert "| 8.00 ms (ungated) | 1.50x |" in lines[2]
    assert any("=cmd\\|calc" in line for line in lines)
    assert any("out_of_memory" in line for line in lines)
    assert any("imported (dynamo-csv)" in line for line in lines)


def test_filters_choose_what_goes_out(filled: Database) -> None:
    for filters, count in (
        (Filters(sources=(SourceKind.IMPORTED,)), 2),
        (Filters(statuses=(Status.FAILED,)), 1),
        (Filters(strategies=("eager",)), 1),
        (Filters(until=OLDEST), 1),
    ):
        assert len(exported(filled, "jsonl", filters).splitlines()) == count


@pytest.mark.parametrize("format", list(ExportFormat))
def test_nothing_is_a_valid_file(sqlite_database: Database, format: str) -> None:
    data = exported(sqlite_database, format)
    if format == "parquet":
        assert pd.read_parquet(io.BytesIO(data)).empty
    else:
        assert len(data.splitlines()) == {"csv": 1, "markdown": 2, "dynamo-expected": 4}.get(format, 0)


def test_where_it_cannot_be_written_and_what_is_no_format(filled: Database, tmp_path: Path) -> None:
    with pytest.raises(CompilewatchError, match="cannot be written"):
        export(filled, Filters(), format="csv", output=tmp_path / "no" / "folder" / "x.csv")
    with pytest.raises(CompilewatchError, match="xlsx: is no format") as raised:
        export(filled, Filters(), format="xlsx", output=io.BytesIO())
    assert "jsonl, csv, parquet, oss-v3, markdown" in raised.value.next_step


# The columns of benchmark.oss_ci_benchmark_v3 in pytorch/test-infra's schema.sql.
TEXTS = {"extra_info": {str: str}}
RUNNER = {
    "name": str, "type": str, "cpu_info": str, "cpu_count": int, "mem_info": str, "avail_mem_in_gb": int,
    "gpu_info": str, "gpu_count": int, "gpu_mem_info": str, "avail_gpu_mem_in_gb": int, **TEXTS,
}  # fmt: skip
SCHEMA: dict[str, Any] = {
    "timestamp": int, "schema_version": str, "name": str, "repo": str, "head_branch": str, "head_sha": str,
    "workflow_id": int, "run_attempt": int, "job_id": int,
    "runners": [RUNNER],
    "benchmark": {"name": str, "mode": str, "dtype": str, **TEXTS},
    "model": {"name": str, "type": str, "backend": str, "origins": [str], **TEXTS},
    "inputs": {str: {"dtype": str, **TEXTS}},
    "dependencies": {str: {"repo": str, "branch": str, "sha": str, "version": str, **TEXTS}},
    "metric": {"name": str, "benchmark_values": [float], "target_value": float, **TEXTS},
}  # fmt: skip


def check_shape(value: Any, shape: Any, path: str) -> None:
    """`value` fits the column's type; no key that the table lacks, integers are unsigned."""
    if isinstance(shape, list):
        assert isinstance(value, list), path
        for item in value:
            check_shape(item, shape[0], f"{path}[]")
    elif isinstance(shape, dict):
        assert isinstance(value, dict), path
        for key, item in value.items():
            assert key in shape or str in shape, f"{path}.{key}"
            check_shape(item, shape.get(key, shape.get(str)), f"{path}.{key}")
    elif shape is float:
        assert isinstance(value, int | float), path
        assert abs(value) < 3.4e38, path
    else:
        assert type(value) is shape, path
        assert shape is str or value >= 0, path


def read_as_the_uploader_does(data: bytes) -> list[dict[str, Any]]:
    """As read_benchmark_results of upload_benchmark_results.py reads one object per line."""
    records = [json.loads(line) for line in data.splitlines()]
    assert all(isinstance(record, dict) and "metric" in record for record in records)
    return records


def test_oss_v3_has_the_shape_that_pytorch_reads(filled: Database) -> None:
    records = read_as_the_uploader_does(exported(filled, "oss-v3"))
    for record in records:
        text = record["metric"].get("extra_info", {}).pop("benchmark_values", None)
        assert text is None or record["metric"]["name"] == "accuracy"
        check_shape(record, SCHEMA, "record")
    timed = {
        (record["metric"]["name"], record["metric"]["extra_info"].get("timing_method"))
        for record in records
        if record["timestamp"] == int(OLDEST.timestamp())
    }
    assert {("abs_latency", "ungated"), ("speedup", "ungated"), ("graph_breaks", None)} <= timed
    figures = {
        record["metric"]["name"]: record["metric"]["benchmark_values"]
        for record in records
        if record["timestamp"] == int(OLDEST.timestamp()) and "benchmark_values" in record["metric"]
    }
    assert figures["abs_latency"] == [8.0]
    assert figures["speedup"] == [1.5]
    assert all(values != [0] for name, values in figures.items() if name in ("speedup", "abs_latency"))


def test_oss_v3_keeps_every_figure_of_a_cpu_result_of_pytorch(tmp_path: Path) -> None:
    """The figures of shared/data/samples/dynamobench, whose peaks are hundredths of a GB."""
    path = tmp_path / "inductor_huggingface_float32_inference_cpu_performance.csv"
    path.write_text(
        "dev,name,batch_size,speedup,abs_latency,compilation_latency,compression_ratio,eager_peak_mem,"
        "dynamo_peak_mem,calls_captured,unique_graphs,graph_breaks\n"
        "cpu,Net,1,0.717554,0.426825,37.662211,0.885951,44.141773,49.824154,3,1,0\n"
    )
    told = ImportOptions(torch="2.13.0", device_name="AMD EPYC", measured_at=OLDEST)
    with open_database(f"sqlite:///{tmp_path}/cpu.db", migrate=True) as database:
        assert import_paths(database, [path], options=told).new == 1
        records = read_as_the_uploader_does(exported(database, "oss-v3"))
    figures = {record["metric"]["name"]: record["metric"]["benchmark_values"][0] for record in records}
    assert figures == {
        "abs_latency": 0.426825,
        "speedup": pytest.approx(0.717554, abs=1e-6),
        "compilation_latency": 37.662211,
        "compression_ratio": 0.885951,
        "eager_peak_mem": 0.44141773,
        "dynamo_peak_mem": 0.49824154,
        "unique_graphs": 1,
        "graph_breaks": 0,
    }


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("![i](http://evil.example/p.png)", r"\!\[i\](http:\u200b//evil.example/p.png)"),
        ("@everyone, see www.evil.example", "@\u200beveryone, see www\u200b.evil.example"),
        ("&lt;b> <b>\n| x |\x1b[0m", r"\&lt;b\> \<b\> \| x \| \[0m"),
        ("bert-base 1.5x (+3 %)", "bert-base 1.5x (+3 %)"),
    ],
)
def test_no_name_is_markup_in_markdown(text: str, shown: str, sqlite_database: Database) -> None:
    """Where a pull request shows it, it would load an image, lead elsewhere or call people."""
    assert escaped_text(text) == shown.replace(r"\u200b", "\u200b")
    save_trials(sqlite_database, [make_trial(workload=make_workload(text))])
    assert escaped_text(text) in exported(sqlite_database, "markdown").decode()


def test_what_goes_out_to_pytorchs_database_is_not_read_back(filled: Database, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_bytes(exported(filled, "oss-v3"))
    (report,) = import_paths(filled, [path]).files
    assert report.new == 0
    assert report.error is not None
    assert "--format jsonl" in report.error.next_step
