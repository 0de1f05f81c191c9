"""A metric of the file as the latency: `--latency METRIC`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compilewatch.db.errors import RecordError
from tests.builders import make_imported
from tests.db.interchange.reading import read, read_told
from tests.runner.terminal import in_this_process

LATENCY = "avg_inference_latency(ms)"


def records(folder: Path, name: str = "v3.json", **metrics: list[float]) -> Path:
    """Metrics of one result, a record each, as ExecuTorch's benchmark uploads them."""

    def record(metric: str, values: list[float]) -> dict[str, Any]:
        return {
            "benchmark": {"name": "ExecuTorch", "mode": "inference", "dtype": "fp32"},
            "model": {"name": "mv3", "type": "OSS model", "backend": "xnnpack"},
            "metric": {"name": metric, "benchmark_values": values, "target_value": 0},
            "runners": [{"name": "Galaxy S22", "type": "Android 13", "total_mem_in_gb": 8}],
            "dependencies": {"pytorch": {"repo": "pytorch/pytorch", "version": "2.9.0"}},
            "timestamp": 1_767_225_600,
        }

    path = folder / name
    path.write_text(json.dumps([record(*each) for each in metrics.items()]), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("named", "latency_ns", "per_s"),
    [
        # the mean of 12.5 and 12.7 ms
        (LATENCY, 12_600_000, None),
        # 1 s / 80
        ("token_per_sec", 12_500_000, 80.0),
        ("loaded=us", 3_000, None),
        ("loaded=/s", 333_333_333, 3.0),
    ],
)
def test_a_metric_becomes_the_latency_in_its_unit(
    tmp_path: Path, named: str, latency_ns: int, per_s: float | None
) -> None:
    path = records(tmp_path, **{LATENCY: [12.5, 12.7], "token_per_sec": [80.0], "loaded": [3.0]})
    (without,) = read_told(path)
    (trial,) = read_told(path, latency=named)
    assert without.summary is not None
    assert trial.summary is not None
    assert without.summary.latency_ns is None
    assert (trial.summary.latency_ns, trial.summary.throughput_per_s) == (latency_ns, per_s)
    assert trial.summary.metrics == without.summary.metrics
    assert trial.trial_id == without.trial_id


@pytest.mark.parametrize(
    ("named", "message", "next_step"),
    [
        ("nope", "no result states nope", f"Named are {LATENCY}, loaded"),
        ("loaded", "loaded: its name tells no unit of time", '--latency "loaded=ms"'),
        (LATENCY, "must be more than 0", ""),
        (f"{LATENCY}=s", "is in ms by its name, and --latency says s", "Name the metric without a unit"),
        ("peak (MB)=ms", "is in mb by its name", "or another one"),
    ],
)
def test_a_metric_that_is_no_latency_is_refused(
    tmp_path: Path, named: str, message: str, next_step: str
) -> None:
    path = records(tmp_path, **{LATENCY: [0.0], "loaded": [3.0], "peak (MB)": [1.0]})
    with pytest.raises(RecordError, match=message) as raised:
        read_told(path, latency=named)
    assert next_step in raised.value.next_step


@pytest.mark.parametrize(
    "name", ["inverse throughput (ms)", "throughput_ms_per_token", "decode [ms/token]", "ms per token"]
)
def test_a_time_of_one_item_is_no_rate(tmp_path: Path, name: str) -> None:
    (trial,) = read_told(records(tmp_path, **{name: [20.0]}), latency=name)
    assert trial.summary is not None
    assert (trial.summary.latency_ns, trial.summary.throughput_per_s) == (20_000_000, None)


def test_samples_of_another_figure_do_not_outrank_it(tmp_path: Path) -> None:
    path = tmp_path / "times.json"
    path.write_text('[{"computeMs": 1.5, "latencyMs": 2.0}, {"computeMs": 1.5, "latencyMs": 2.0}]')
    (trial,) = read_told(path, latency="GPU compute time (ms)")
    assert trial.summary is not None
    assert (trial.summary.latency_ns, trial.samples_ns) == (1_500_000, [])


def test_a_record_of_our_own_has_its_latency_already(tmp_path: Path) -> None:
    trial = make_imported()
    (tmp_path / "t.jsonl").write_text(trial.to_json())
    with pytest.raises(RecordError, match="no result states"):
        read(tmp_path / "t.jsonl", latency=LATENCY)


FACTS = [
    *("--torch", "2.9.0", "--device", "cpu", "--device-name", "Galaxy S22", "--task", "inference"),
    *("--dtype", "fp32"),
]


def test_a_file_is_compared_by_a_metric_of_its_own(tmp_path: Path) -> None:
    for side, factor in (("before", 1.0), ("after", 2.0)):
        for number, scatter in enumerate((1.0, 1.004, 0.998)):
            name = f"{side}{number}.json"
            records(tmp_path, name, **{LATENCY: [12.5 * factor * scatter], "token_per_sec": [80.0 / factor]})
            words = ["import", name, "--label", side, "--latency", LATENCY, *FACTS]
            assert in_this_process(*words, cwd=tmp_path).returncode == 0
    compared = in_this_process("compare", "before", "after", cwd=tmp_path)
    assert compared.returncode == 1, compared.stderr
    assert "1 slower" in compared.stdout


def test_cases_without_a_figure_are_on_both_sides_all_the_same(tmp_path: Path) -> None:
    for side in ("before", "after"):
        words = ["import", records(tmp_path, f"{side}.json", loads=[3.0]).name, "--label", side, *FACTS]
        assert in_this_process(*words, cwd=tmp_path).returncode == 0
    compared = in_this_process("compare", "before", "after", cwd=tmp_path)
    assert compared.returncode == 2
    assert "1 case on both sides, without a figure to compare." in compared.stderr
    assert "No case" not in compared.stderr
