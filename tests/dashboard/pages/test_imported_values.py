"""Sample files of every format imported by one command, and read off the API and the page: their numbers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from starlette.applications import Starlette

from dashboard.api.routes import routes
from dashboard.links.links import Link, Page
from dashboard.pages.trial import content as trial
from dashboard.read.snapshots import Snapshot
from db.units import MISSING
from runner.cli.app import app
from runner.cli.front import exit_code_of
from tests.dashboard.asking import ask
from tests.dashboard.conftest import DATABASE
from tests.dashboard.pages.page_numbers import tables
from tests.db.interchange.reading import SAMPLES, TIMM, needs_samples, needs_timm

TOLD = {
    "--torch": "2.13.0",
    "--device": "cuda",
    "--device-name": "NVIDIA H200",
    "--measured-at": "2026-11-20",
    "--dtype": "bfloat16",
    "--task": "inference",
}
DYNAMO = "dynamobench/inductor_huggingface_float32_"
DIFFUSERS = """
[csv_columns]
workload = "scenario"
strategy = "mode"
latency_s = "time_compile_s"
eager_latency_s = "time_plain_s"
"""


@dataclass(frozen=True)
class Sample:
    """A file, one result in it with the figures that the API must give, and what the page must show."""

    file: str
    workload: str
    strategy: str
    figures: dict[str, float | str | None]
    shown: dict[str, str]
    folder: Path = SAMPLES


# Read off the files: eager is speedup times abs_latency there, 0.717554 x 0.426825 ms = 0.306270 ms.
IN_SAMPLES = [
    Sample(
        f"{DYNAMO}inference_cpu_performance.csv",
        "Net",
        "inductor",
        {"latency_ns": 426_825, "control_latency_ns": 306_270, "until_steady_ns": 37_662_211_000},
        {"latency": "427 µs", "speedup": "0.718x", "peak": MISSING},
    ),
    Sample(
        f"{DYNAMO}training_cpu_accuracy.csv",
        "Net",
        "inductor",
        {"latency_ns": None, "numerics_status": "pass", "graph_breaks": 5, "until_steady_ns": 15_174_415_000},
        {"latency": MISSING, "status": "ok"},
    ),
    Sample(
        "dynamobench/failed/inductor_huggingface_float32_inference_cpu_performance.csv",
        "Branchy",
        "inductor",
        {"status": "failed", "latency_ns": None, "control_latency_ns": None},
        {"status": "failed", "latency": MISSING, "speedup": MISSING},
    ),
    Sample(
        f"{DYNAMO}inference_cpu_performance.json",
        "Net",
        "inductor",
        {"latency_ns": 426_825, "control_latency_ns": 306_270},
        {"latency": "427 µs", "speedup": "0.718x"},
    ),
    Sample("pytorch_oss_v3_add_loop_eager.json", "add_loop_eager", "eager backend", {"latency_ns": None}, {}),
    Sample(
        "pytest_benchmark.json",
        "test_b.py::test_mlp",
        "aot_eager",
        # medians of 7.34171999283717e-05 s and, eager, 4.053779998685059e-05 s
        {"latency_ns": 73_417, "control_latency_ns": 40_538},
        {"latency": "73.4 µs", "speedup": "0.552x"},
    ),
    Sample(
        "optimum_benchmark_report.json",
        "BAAI/bge-base-en-v1.5 forward",
        "py-txi",
        {"latency_ns": 11_300_766_841, "samples": 10},
        {"latency": "11.3 s"},
    ),
    Sample(
        "hf_summary_2024-09-04.json",
        "google/gemma-2b decode, cache_implementation=static",
        "compiled",
        {"latency_ns": 1_565_552_368, "control_latency_ns": 2_674_888_428},
        {"latency": "1.57 s", "speedup": "1.71x"},
    ),
    Sample(
        "diffusers_collated_results.csv",
        "black-forest-labs/FLUX.1-dev-bf16",
        "default",
        {"latency_ns": 374_000_000, "control_latency_ns": 493_000_000},
        {"latency": "374 ms", "speedup": "1.32x"},
    ),
]
IN_TIMM = Sample(
    "benchmark-infer-amp-nchw-pt291-cu128-4090-dynamo.csv",
    "test_vit",
    "default",
    {"latency_ns": 3_401_000, "control_latency_ns": 5_235_000, "batch_size": 1024},
    {"latency": "3.40 ms", "speedup": "1.54x"},
    TIMM,
)


@pytest.mark.parametrize(
    "sample",
    [
        *(pytest.param(sample, marks=needs_samples, id=sample.file) for sample in IN_SAMPLES),
        pytest.param(IN_TIMM, marks=needs_timm, id=IN_TIMM.file),
    ],
)
def test_the_numbers_of_a_file_are_those_that_are_shown(
    sample: Sample, sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(DATABASE, sqlite_url)
    (tmp_path / "compilewatch.toml").write_text(DIFFUSERS)
    told = [word for option in TOLD.items() for word in option]
    assert exit_code_of(app, ["import", str(sample.folder / sample.file), *told, "--db", sqlite_url]) == 0
    query = {"workload": sample.workload, "limit": 1000}
    rows = ask(Starlette(routes=routes()), "/api/v1/trials", query).json["rows"]
    (row,) = (row for row in rows if row["strategy"] == sample.strategy and row["source_kind"] == "imported")
    for name, expected in sample.figures.items():
        assert row[name] == (expected if not isinstance(expected, int) else pytest.approx(expected, abs=1))
    machine = row["machine_id"]
    link = Link(page=Page.TRIAL, machine=machine, workload=(sample.workload,))
    table = tables(trial.page(Snapshot.now(), link))["trial-table"]
    (shown,) = table[table["trial"] == row["trial_id"]].to_dict("records")
    assert {name: shown[name] for name in sample.shown} == sample.shown
    assert f"(imported, {row['source_name']})" in shown["workload"]
