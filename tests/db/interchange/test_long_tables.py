"""Tables with a metric a row: the unit, the metric and the pass stand in columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import RecordError
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.importing import import_paths
from tests.db.interchange.reading import TOLD, read_told

TABLE = """kernel,provider,kernel_operation_mode,metric_name,metric_unit,x_value,y_value_50
rms_norm,acme,forward,speed,ms,1024,0.50
rms_norm,acme,backward,speed,us,1024,1500
rms_norm,acme,full,memory,MB,1024,900.0
"""
COLUMNS = {"workload": "kernel", "latency_ms": "y_value_50"}


def test_a_unit_is_read_and_each_pass_is_a_case(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text(TABLE)
    found = read_told(path, columns=COLUMNS, where={"metric_name": "speed"})
    latencies = {trial.workload.name: trial.summary.latency_ns for trial in found if trial.summary}
    assert latencies == {"rms_norm forward": 500_000, "rms_norm backward": 1_500_000}


@pytest.mark.parametrize(
    ("told", "says", "next_step"),
    [
        ({}, "line 4: metric_name: is memory here and speed above", "--where"),
        ({"where": {"metric_name": "memory"}}, "line 4: metric_unit: MB is no unit of latency", "--where"),
        ({"where": {"metric": "speed"}}, "metric: is no column of this file", "metric_name"),
        ({"where": {"metric_name": "energy"}}, "", ""),
    ],
)
def test_several_metrics_and_another_quantity_are_refused(
    tmp_path: Path, told: dict[str, dict[str, str]], says: str, next_step: str
) -> None:
    path = tmp_path / "long.csv"
    path.write_text(TABLE)
    if not says:
        assert read_told(path, columns=COLUMNS, **told) == []
        return
    with pytest.raises(RecordError, match=says) as raised:
        read_told(path, columns=COLUMNS, **told)
    assert next_step in raised.value.next_step


def test_every_x_is_a_case_and_nothing_that_tells_is_called_unused(
    tmp_path: Path, sqlite_database: Database
) -> None:
    """As triton's benchmarks and Liger's write a sweep: what the axis is, and where on it."""
    path = tmp_path / "long.csv"
    head = (
        "kernel,kernel_operation_mode,metric_name,metric_unit,x_name,x_value,y_value_50,y_value_80,version\n"
    )
    cells = ["T,1024,0.5", "T,2048.0,1", "beta,0.5,2", "beta,wide,3", ",8,4", ",,5"]
    path.write_text(head + "".join(f"k,full,speed,ms,{each},9,1.0\n" for each in cells))
    columns = {"workload": "kernel", "latency_ms": "y_value_50"}
    found = read_told(path, columns=columns)
    assert [(trial.workload.name, trial.workload.shape) for trial in found] == [
        ("k full", {"T": 1024}),
        ("k full", {"T": 2048}),
        ("k full beta=0.5", {}),
        ("k full beta=wide", {}),
        ("k full", {"x": 8}),
        ("k full", {}),
    ]
    options = ImportOptions(**TOLD | {"columns": columns})
    (file,) = import_paths(sqlite_database, [path], options=options, dry_run=True).files
    assert list(file.unused) == ["y_value_80", "version"]
    mapped = read_told(path, columns=columns | {"shape.n": "x_value"}, where={"x_value": "8"})
    assert [trial.workload.shape for trial in mapped] == [{"n": 8}]


@pytest.mark.parametrize(
    ("field", "unit", "says"),
    [
        ("throughput_per_s", "tokens/s", None),
        ("throughput_per_s", "ms", "ms is no unit of throughput"),
        ("throughput_per_s", "GB/s", "GB/s is no unit of throughput"),
        ("latency_ms", "milliseconds", None),
        ("latency_ms", "msec", None),
        ("latency_us", "Millisecond", None),
        ("latency_ms", "TFLOPS", "TFLOPS is no unit of latency"),
    ],
)
def test_a_unit_is_one_of_what_its_column_is(tmp_path: Path, field: str, unit: str, says: str | None) -> None:
    path = tmp_path / "long.csv"
    path.write_text(f"kernel,unit,value\nk,{unit},4\n")
    columns = {"workload": "kernel", field: "value"}
    if says is None:
        (trial,) = read_told(path, columns=columns)
        assert trial.summary.latency_ns == (250_000_000 if field == "throughput_per_s" else 4_000_000)
        return
    with pytest.raises(RecordError, match=says):
        read_told(path, columns=columns)
    path.write_text(f"workload,{field}\nk,4 {unit}\n")
    with pytest.raises(RecordError, match="must be a number"):
        read_told(path)
