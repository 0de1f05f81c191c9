"""TorchBench userbenchmark metrics: both key grammars, failures as text, the moment in the name."""

import json
from pathlib import Path
from typing import Any

import pytest

from compilewatch.db.errors import RecordError
from compilewatch.db.records.trial import Status, Task
from tests.db.interchange.reading import by_name, read

NAME = "metrics-20260801123456.json"
ENVIRON = {
    "pytorch_git_version": "c0ffee",
    "pytorch_version": "2.13.0+cu130",
    "device": "NVIDIA A100-SXM4-40GB",
}
BASE = "model=resnet50, test=eval, device=cuda, bs=32, extra_args=[], metric="
COMPILED = "model=resnet50, test=eval, device=cuda, bs=32, extra_args=['--torchdynamo', 'inductor'], metric="


def write(folder: Path, metrics: dict[str, Any], environ: dict[str, Any] = ENVIRON, name: str = NAME) -> Path:
    path = folder / name
    path.write_text(json.dumps({"name": "test_bench", "environ": environ, "metrics": metrics}))
    return path


def test_test_bench_keys(tmp_path: Path) -> None:
    metrics = {
        BASE + "latencies": 12.5, BASE + "cpu_peak_mem": 1.5, BASE + "gpu_peak_mem": 2.25,
        COMPILED + "latencies": 8.25, COMPILED + "cpu_peak_mem": 1.75, COMPILED + "gpu_peak_mem": 2.0,
    }  # fmt: skip
    trials = by_name(read(write(tmp_path, metrics), dtype="float32"))
    eager, compiled = trials["resnet50", "eager"], trials["resnet50", "inductor"]
    assert eager.summary.latency_ns == 12_500_000
    assert (eager.memory.peak_bytes, eager.memory.peak_rss_bytes) == (2_250_000_000, 1_500_000_000)
    assert (eager.workload.batch_size, eager.workload.task, eager.suite) == (32, Task.INFERENCE, "test_bench")
    assert (eager.build.torch, eager.build.cuda, eager.build.torch_git) == ("2.13.0", "13.0", "c0ffee")
    assert eager.machine.device_name == "NVIDIA A100-SXM4-40GB"
    assert eager.started_at.isoformat() == "2026-08-01T12:34:56+00:00"
    assert compiled.strategy.backend == "inductor"
    assert compiled.workload == eager.workload


def test_nightly_keys_and_scores(tmp_path: Path) -> None:
    metrics = {
        "test_train[timm_regnet-cuda-eager]_latency": 101.5,
        "test_train[timm_regnet-cuda-eager]_gmem": 3.5,
        "v3_score": 1003.2,
    }
    (trial,) = read(write(tmp_path, metrics), dtype="float32")
    assert (trial.workload.name, trial.workload.task, trial.strategy.name) == (
        "timm_regnet",
        Task.TRAINING,
        "eager",
    )
    assert trial.summary.latency_ns == 101_500_000
    assert (trial.memory.peak_bytes, trial.memory.peak_rss_bytes) == (3_500_000_000, None)


def test_text_is_a_failure_with_its_message(tmp_path: Path) -> None:
    (trial,) = read(write(tmp_path, {BASE + "latencies": "CUDA error: device-side assert"}), dtype="float32")
    assert (trial.status, trial.summary) == (Status.FAILED, None)
    assert "device-side assert" in trial.failure.message


def test_other_arguments_make_another_strategy(tmp_path: Path) -> None:
    key = "model=m, test=eval, device=cpu, bs=None, extra_args=['--channels-last'], metric=latencies"
    (trial,) = read(write(tmp_path, {key: 1.0}), dtype="float32", device_name="AMD EPYC")
    assert (trial.strategy.name, trial.workload.batch_size) == ("eager+--channels-last", None)


def test_older_files_ask_for_torch(tmp_path: Path) -> None:
    path = write(tmp_path, {BASE + "latencies": 1.0}, {"pytorch_git_version": "c0ffee"}, "metrics.json")
    with pytest.raises(
        RecordError, match=r"the torch version, the GPU .*, when it was measured and the dtype"
    ):
        read(path)


def test_keys_of_no_grammar_are_named(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"metrics\.something: is in no known TorchBench grammar"):
        read(write(tmp_path, {"something": 1.0}))
