"""optimum-benchmark: the real pair, compiled backends, and a partner that is missing."""

import json
from pathlib import Path
from typing import Any

import pytest

from compilewatch.db.errors import RecordError
from compilewatch.db.records.trial import StrategyKind
from tests.db.interchange.reading import MEASURED_AT, SAMPLES, needs_samples, read, read_told

ASKED: dict[str, Any] = {"torch": "2.4.1", "dtype": "float32", "measured_at": MEASURED_AT}


def latency(*values: float) -> dict[str, Any]:
    return {
        "unit": "s",
        "values": list(values),
        "count": len(values),
        "mean": sum(values) / len(values),
        "p50": values[0],
    }


def write(folder: Path, report: object, **backend: Any) -> Path:
    config = {
        "name": "bench",
        "backend": {
            "name": "pytorch",
            "model": "gpt2",
            "device": "cuda",
            "torch_dtype": "float16",
            **backend,
        },
        "scenario": {"name": "inference", "input_shapes": {"batch_size": 2, "sequence_length": 16}},
        "launcher": {"name": "process"},
        "environment": {
            "cpu": " AMD EPYC",
            "gpu": ["NVIDIA A10G"],
            "gpu_count": 1,
            "transformers_version": "5.1.0",
        },
    }
    (folder / "benchmark_config.json").write_text(json.dumps(config))
    path = folder / "benchmark_report.json"
    path.write_text(json.dumps(report))
    return path


@needs_samples
@pytest.mark.parametrize("name", ["optimum_benchmark_report.json", "optimum_benchmark_config.json"])
def test_real_pair_reads_as_it_says_from_either_file(name: str) -> None:
    (trial,) = read(SAMPLES / name, **ASKED)
    assert trial.workload.name == "BAAI/bge-base-en-v1.5 forward"
    assert trial.workload.batch_size == 64
    assert trial.workload.shape == {"num_choices": 2, "sequence_length": 128}
    assert trial.summary.latency_ns == 11_300_766_841  # p50 11.300766840518918 s
    assert (trial.summary.n, trial.summary.throughput_per_s) == (10, 5.648934083819028)
    assert trial.samples_ns[0] == 11_477_741_527
    assert len(trial.samples_ns) == 10
    assert trial.cold_start.build_model_ns == 15_598_862_323
    assert (trial.strategy.name, trial.strategy.kind) == ("py-txi", StrategyKind.EXPORT)
    assert (
        trial.machine.device_name == "Intel(R) Xeon(R) Platinum 8259CL CPU @ 2.50GHz"
    )  # the config says cpu
    assert trial.machine.ram_bytes == 33_164_890_112
    assert (trial.build.python, trial.build.packages) == (
        "3.10.14",
        {"optimum_benchmark": "0.5.0.dev0", "transformers": "4.45.2", "accelerate": "1.0.0"},
    )


def test_targets_memory_and_compilation(tmp_path: Path) -> None:
    memory = {"unit": "MB", "max_ram": 900.5, "max_allocated": 512.25, "max_reserved": 600.0}
    report = {
        "load": {"latency": latency(2.5)},
        "prefill": {
            "latency": latency(0.25, 0.5),
            "memory": memory,
            "throughput": {"unit": "tokens/s", "value": 64.0},
        },
        "decode": {"latency": latency(1.5)},
    }
    path = write(
        tmp_path,
        report,
        torch_compile=True,
        torch_compile_config={"mode": "reduce-overhead", "backend": "inductor"},
    )
    prefill, decode = read(path, torch="2.13.0", measured_at=MEASURED_AT)
    assert (prefill.workload.name, decode.workload.name) == ("gpt2 prefill", "gpt2 decode")
    assert prefill.samples_ns == [250_000_000, 500_000_000]
    assert prefill.memory.model_dump(exclude_none=True) == {
        "peak_bytes": 512_250_000,
        "peak_reserved_bytes": 600_000_000,
        "peak_rss_bytes": 900_500_000,
    }
    assert (prefill.strategy.name, prefill.strategy.kind) == ("reduce-overhead", StrategyKind.COMPILE)
    assert (prefill.workload.item, prefill.workload.dtype) == ("token", "float16")
    assert prefill.machine.device_name == "NVIDIA A10G"


@pytest.mark.parametrize(("switch", "name"), [(False, "eager"), (True, "compiled")])
def test_torch_compile_without_a_mode(tmp_path: Path, switch: bool, name: str) -> None:
    (trial,) = read_told(write(tmp_path, {"forward": {"latency": latency(1.0)}}, torch_compile=switch))
    assert (trial.strategy.name, trial.strategy.mode) == (name, None)


def test_a_missing_partner_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, {"forward": {"latency": latency(1.0)}})
    (tmp_path / "benchmark_config.json").unlink()
    with pytest.raises(RecordError, match="config is not beside it") as raised:
        read_told(path)
    assert "benchmark_config.json" in raised.value.next_step


def test_another_unit_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, {"forward": {"latency": latency(1.0) | {"unit": "ms"}}})
    with pytest.raises(RecordError, match=r"forward\.latency\.unit: must be s"):
        read_told(path)


@pytest.mark.parametrize("field", ["p50", "mean"])
def test_a_latency_of_0_is_refused(tmp_path: Path, field: str) -> None:
    path = write(tmp_path, {"forward": {"latency": {"unit": "s", "values": [], field: 0}}})
    with pytest.raises(RecordError, match=rf"forward\.latency\.{field}: must be more than 0"):
        read_told(path)
