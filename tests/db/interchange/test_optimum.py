"""optimum-benchmark: a pair, compiled backends, and a partner that is missing."""

import json
from pathlib import Path
from typing import Any

import pytest

from compilewatch.db.errors import RecordError
from compilewatch.db.records.trial import StrategyKind
from tests.db.interchange.reading import MEASURED_AT, of_each, read, read_told

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


# Model, p50 and first sample, how many, samples a second, load, CPU, memory, versions.
INVENTED_PAIR = (
    *("acme/embed", (10_125_000_000, 10_000_000_000, 4), 64 / 10.0625, 12_500_000_000, "Acme CPU @ 2.00GHz"),
    *(
        32_000_500_000,
        "3.10.1",
        {"optimum_benchmark": "0.5.0", "transformers": "4.45.0", "accelerate": "1.0.0"},
    ),
)
PUBLIC_PAIR = (
    *("BAAI/bge-base-en-v1.5", (11_300_766_841, 11_477_741_527, 10), 5.648934083819028, 15_598_862_323),
    *("Intel(R) Xeon(R) Platinum 8259CL CPU @ 2.50GHz", 33_164_890_112, "3.10.14"),
    {"optimum_benchmark": "0.5.0.dev0", "transformers": "4.45.2", "accelerate": "1.0.0"},
)


@pytest.mark.parametrize(("samples", "says"), of_each(INVENTED_PAIR, PUBLIC_PAIR))
@pytest.mark.parametrize("name", ["optimum_benchmark_report.json", "optimum_benchmark_config.json"])
def test_a_pair_reads_as_it_says_from_either_file(name: str, samples: Path, says: tuple[Any, ...]) -> None:
    model, (p50_ns, first_ns, count), rate, load_ns, cpu, ram, python, packages = says
    (trial,) = read(samples / name, **ASKED)
    assert trial.workload.name == f"{model} forward"
    assert trial.workload.batch_size == 64
    assert trial.workload.shape == {"num_choices": 2, "sequence_length": 128}
    assert (trial.summary.latency_ns, trial.summary.n) == (p50_ns, count)
    assert trial.summary.throughput_per_s == rate
    assert (trial.samples_ns[0], len(trial.samples_ns)) == (first_ns, count)
    assert trial.cold_start.build_model_ns == load_ns
    assert (trial.strategy.name, trial.strategy.kind) == ("py-txi", StrategyKind.EXPORT)
    # The config says cpu.
    assert (trial.machine.device_name, trial.machine.ram_bytes) == (cpu, ram)
    assert (trial.build.python, trial.build.packages) == (python, packages)


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


def test_both_in_one_file(tmp_path: Path) -> None:
    """As `Benchmark.save_json` writes them; beside the pair it is the same result."""
    report = write(tmp_path, {"forward": {"latency": latency(0.25, 0.5)}})
    parts = {
        each: json.loads((tmp_path / f"benchmark_{each}.json").read_text()) for each in ("report", "config")
    }
    (tmp_path / "benchmark.json").write_text(json.dumps(parts))
    (trial,) = read_told(tmp_path / "benchmark.json")
    assert [trial] == read_told(report)


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
