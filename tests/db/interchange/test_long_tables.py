"""Tables with a metric a row: the unit, the metric and the pass stand in columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilewatch.db.errors import RecordError
from tests.db.interchange.reading import read_told

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
