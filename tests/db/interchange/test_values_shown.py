"""What pages show of imported results is what stands in the files."""

import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from db.engine.session import Database
from db.interchange.files.options import ImportOptions
from db.interchange.read.importing import import_paths
from db.metrics.break_even import FIRST_LOOK
from db.metrics.cases import summarize_cases
from db.queries.trials import trials_frame
from tests.db.interchange.reading import ON_CPU, SAMPLES, TIMM, TOLD, needs_samples, needs_timm


def cases(database: Database, path: Path, **told: Any) -> pd.DataFrame:
    report = import_paths(database, [path], options=ImportOptions(**(TOLD | told)))
    assert report.errors == ()
    return summarize_cases(trials_frame(database)).set_index(["workload", "strategy"])


@needs_samples
def test_dynamo(sqlite_database: Database) -> None:
    name = "inductor_huggingface_float32_inference_cpu_performance.csv"
    shown = cases(sqlite_database, SAMPLES / "dynamobench" / name, **ON_CPU)
    assert shown.loc[("Net", "inductor"), "speedup"] == pytest.approx(0.717554, abs=1e-6)
    assert shown.loc[("Net", "inductor"), "latency_ns"] == 426_825
    assert shown.loc[("Net", "inductor"), "compile_cost_ns"] == 37_662_211_000
    assert shown.loc[("Branchy", "inductor"), "speedup"] == pytest.approx(0.499671, abs=3e-6)
    assert shown.loc[("Branchy", "inductor"), "graph_breaks"] == 3
    assert shown.loc[("Branchy", "inductor"), "break_even_reason"] == FIRST_LOOK


@needs_samples
def test_dynamo_failures(sqlite_database: Database) -> None:
    name = "inductor_huggingface_float32_inference_cpu_performance.csv"
    shown = cases(sqlite_database, SAMPLES / "dynamobench" / "failed" / name, **ON_CPU)
    assert list(shown["status"]) == ["failed", "failed"]
    assert shown["speedup"].isna().all()
    assert shown["latency_ns"].isna().all()


@needs_samples
def test_accuracy_alone_has_no_latency_to_show(sqlite_database: Database) -> None:
    name = "inductor_huggingface_float32_training_cpu_accuracy.csv"
    shown = cases(sqlite_database, SAMPLES / "dynamobench" / name, **ON_CPU)
    assert shown["latency_ns"].isna().all()
    assert list(shown["numerics_status"]) == ["pass"]


@needs_samples
def test_pytest_benchmark(sqlite_database: Database) -> None:
    shown = cases(sqlite_database, SAMPLES / "pytest_benchmark.json", device="cpu")
    compiled = shown.loc[("test_b.py::test_mlp", "aot_eager")]
    assert compiled["speedup"] == pytest.approx(4.053779998685059 / 7.34171999283717, rel=1e-4)


@needs_samples
def test_optimum(sqlite_database: Database) -> None:
    shown = cases(sqlite_database, SAMPLES / "optimum_benchmark_report.json")
    forward = shown.loc[("BAAI/bge-base-en-v1.5 forward", "py-txi")]
    assert forward["latency_ns"] == pytest.approx(11.300766840518918e9, abs=1)


@needs_samples
def test_transformers_ci(sqlite_database: Database) -> None:
    shown = cases(sqlite_database, SAMPLES / "hf_summary_2024-09-04.json")
    decode = shown.loc[("google/gemma-2b decode, cache_implementation=static", "compiled")]
    assert decode["speedup"] == pytest.approx(2.674888427734375 / 1.5655523681640626, rel=1e-6)


@needs_samples
def test_oss_v3(sqlite_database: Database, tmp_path: Path) -> None:
    name = "inductor_huggingface_float32_inference_cpu_performance.json"
    shown = cases(sqlite_database, Path(shutil.copy(SAMPLES / "dynamobench" / name, tmp_path)), **ON_CPU)
    assert shown.loc[("Net", "inductor"), "speedup"] == pytest.approx(0.717554, abs=2e-6)


@needs_timm
def test_timm(sqlite_database: Database) -> None:
    shown = cases(sqlite_database, TIMM / "benchmark-infer-amp-nchw-pt291-cu128-4090.csv", torch=None)
    resnet = shown.loc[("resnet50", "default")]
    resnet = resnet[resnet["shape"].map(lambda shape: shape == {"image_size": 224})]
    assert list(resnet["speedup"]) == [pytest.approx(237.959 / 127.355, rel=1e-6)]
    assert list(resnet["torch"]) == ["2.9.1"]
