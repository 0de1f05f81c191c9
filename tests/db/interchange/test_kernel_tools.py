"""Tools that time kernels and functions: KernelBench, nvbench, torch's Compare, Bencher; MLPerf is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from torch.utils.benchmark import Compare, Measurement
from torch.utils.benchmark.utils.common import TaskSpec

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import RecordError
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.importing import import_paths
from compilewatch.db.metrics.cases import summarize_cases
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.trial import Status, Trial
from tests.db.interchange.reading import TOLD, read_told
from tests.db.interchange.tiny_files import TORCH_COMPARE, kernelbench, nvbench


def written(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def latencies(trials: list[Trial]) -> dict[tuple[str, str], int | None]:
    return {
        (trial.workload.name, trial.strategy.name): trial.summary.latency_ns if trial.summary else None
        for trial in trials
    }


def speedups(database: Database, *paths: Path, **told: Any) -> dict[tuple[str, str], float]:
    told = TOLD | {"strategy": None} | told
    assert import_paths(database, paths, options=ImportOptions(**told)).errors == ()
    cases = summarize_cases(trials_frame(database)).dropna(subset=["speedup"])
    cases = cases[cases["strategy_kind"] != "eager"]
    names = zip(cases["workload"], cases["strategy"], strict=True)
    return dict(zip(names, map(float, cases["speedup"]), strict=True))


@pytest.mark.parametrize(
    ("name", "strategy", "backend", "mode"),
    [
        ("", "eager", None, None),
        ("_compile_inductor_default", "default", "inductor", "default"),
        ("_compile_inductor_reduce-overhead", "reduce-overhead", "inductor", "reduce-overhead"),
        ("_compile_cudagraphs", "cudagraphs", "cudagraphs", None),
    ],
)
def test_the_name_of_kernelbench_files_tells_the_strategy(
    tmp_path: Path, name: str, strategy: str, backend: str | None, mode: str | None
) -> None:
    told = {"strategy": None, "device_name": None, "device": None}
    timed, failed = read_told(written(tmp_path, f"baseline_time_torch{name}.json", kernelbench()), **told)
    assert (timed.workload.name, timed.machine.device_name) == ("level1/1_Square", "NVIDIA L40S")
    assert timed.strategy.name == strategy
    assert (timed.strategy.backend, timed.strategy.mode) == (backend, mode)
    assert timed.summary is not None
    assert (timed.summary.latency_ns, timed.summary.n) == (2_500_000, 100)
    assert (failed.status, failed.workload.name) == (Status.FAILED, "level1/2_Standard")


def test_kernelbench_has_speedups(sqlite_database: Database, tmp_path: Path) -> None:
    eager = written(tmp_path, "baseline_time_torch.json", kernelbench(a=3.0))
    name = "baseline_time_torch_compile_inductor_default.json"
    found = speedups(sqlite_database, eager, written(tmp_path, name, kernelbench(a=2.0)), device_name=None)
    assert found == {("level1/a", "default"): 1.5}


def test_nvbench(tmp_path: Path) -> None:
    value = [{"name": "value", "type": "float64", "value": "2e-05"}]
    median = {"summaries": [{"tag": "nv/cold/time/gpu/median", "data": value}]}
    skipped = {"is_skipped": True, "skip_reason": "out of memory", "summaries": None}
    path = written(tmp_path, "copy.json", nvbench({}, median | {"axis_values": None}, skipped))
    mean, of_median = read_told(path, device_name=None)
    assert (mean.workload.name, mean.workload.shape) == ("copy[T=F32]", {"Elements": 65_536})
    assert mean.machine.device_name == "NVIDIA H100"
    assert mean.summary is not None
    assert of_median.summary is not None
    assert (mean.summary.latency_ns, mean.summary.n) == (25_000, 100)
    assert mean.summary.metrics == {"nv/cold/time/cpu/mean": 3.5e-5}
    assert (of_median.workload.name, of_median.summary.latency_ns) == ("copy", 20_000)


def test_a_table_of_compare(tmp_path: Path) -> None:
    trials = read_told(written(tmp_path, "compare.txt", TORCH_COMPARE), strategy=None)
    found = [
        (trial.workload.name, trial.machine.threads, trial.strategy.name, trial.summary.latency_ns)
        for trial in trials
        if trial.summary
    ]
    assert found == [
        ("add 8", 1, "eager", 1_500),
        ("add 8", 1, "compiled", 500),
        ("add 16", 1, "eager", 2_500),
        ("add 8", 4, "eager", 1_000),
        ("add 8", 4, "compiled", 250),
    ]


def test_what_torch_prints_comes_in(sqlite_database: Database, tmp_path: Path) -> None:
    def measured(description: str, seconds: float, sub_label: str) -> Measurement:
        task = TaskSpec("f(x)", "", label="matmul", sub_label=sub_label, description=description)
        return Measurement(1, [seconds, seconds * 1.5, seconds], task)

    compare = Compare([measured("eager", 4e-3, "n=8"), measured("torch.compile", 2e-3, "n=8")])
    compare.colorize()
    compare.highlight_warnings()
    found = speedups(sqlite_database, written(tmp_path, "compare.txt", str(compare)))
    assert found == {("matmul n=8", "compiled"): 2.0}


def test_a_description_that_is_no_strategy_is_asked_for_or_follows_the_name(tmp_path: Path) -> None:
    path = written(tmp_path, "compare.txt", TORCH_COMPARE.replace("compiled", "our path"))
    with pytest.raises(RecordError, match="our path is no word"):
        read_told(path, strategy=None)
    assert ("add 8", "ours") in latencies(read_told(path, strategy=None, words={"our path": "ours"}))
    assert ("add 8 our path", "eager") in latencies(read_told(path))
    cut = written(tmp_path, "cut.txt", TORCH_COMPARE.split("\n\n")[0])
    with pytest.raises(RecordError, match="ends inside a table"):
        read_told(cut, strategy=None)


def test_bencher(sqlite_database: Database, tmp_path: Path) -> None:
    measures = {
        "test_mlp/default": {"latency": {"value": 2e6, "lower_value": 1.9e6}, "file-size": {"value": 42.0}},
        "test_mlp/eager": {"latency": {"value": 4e6}},
        "tests::rate": {"throughput": {"value": 5.0}},
    }
    path = written(tmp_path, "bmf.json", json.dumps(measures))
    default, eager, rate = read_told(path)
    assert latencies([default, eager, rate]) == {
        ("test_mlp", "default"): 2_000_000,
        ("test_mlp", "eager"): 4_000_000,
        # 1 s / 5
        ("tests::rate", "eager"): 200_000_000,
    }
    assert default.summary is not None
    assert default.summary.metrics == {"file-size": 42.0}
    assert speedups(sqlite_database, path, strategy="eager") == {("test_mlp", "default"): 2.0}


def test_a_benchmark_called_by_a_word_that_is_explained(tmp_path: Path) -> None:
    path = written(tmp_path, "bmf.json", json.dumps({"mlp/turbo": {"latency": {"value": 2e6}}}))
    assert latencies(read_told(path)) == {("mlp/turbo", "eager"): 2_000_000}
    assert latencies(read_told(path, words={"turbo": "max-autotune"})) == {("mlp", "max-autotune"): 2_000_000}


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("t.py::test_f[eager]", ("t.py::test_f", "eager")),
        ("t.py::test_f[128-max-autotune-x]", ("t.py::test_f[128-x]", "max-autotune")),
        # They may tell anything.
        ("mlp/1", ("mlp/1", "default")),
        ("t.py::test_f[true]", ("t.py::test_f[true]", "default")),
    ],
)
def test_parameters_of_a_benchmark_may_tell_the_strategy(
    tmp_path: Path, name: str, told: tuple[str, str]
) -> None:
    path = written(tmp_path, "bmf.json", json.dumps({name: {"latency": {"value": 2e6}}}))
    assert latencies(read_told(path, strategy="default")) == {told: 2_000_000}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            b'[{"count": 3},\n {"name": "a", "averageMs": 0.1, "percentage": 1}]',
            "a profile of trtexec by layers",
        ),
        (b':::MLLOG {"key": "a", "value": 1, "time_ms": 2}\n:::MLLOG {"key": "b"}\n', "a log of MLPerf"),
        (b"\x80\x04\x95\x10torch.utils.benchmark", "a pickle, which could run code where it is opened"),
        (b"PAR1\x15\x00", "Parquet, which is not read"),
        (b"Compiler,torchbench,timm_models\ninductor,1.5x,1.4x\n", "looks like means over many models"),
    ],
)
def test_what_holds_no_result_is_called_what_it_is(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(RecordError, match=said):
        read_told(path)


def test_mlperf_is_called_what_it_is(tmp_path: Path) -> None:
    rule = "=" * 48
    text = f"{rule}\nMLPerf Results Summary\n{rule}\nScenario : Offline\nSamples per second: 33.7\n"
    with pytest.raises(RecordError, match="looks like the summary of an MLPerf run, which is not read"):
        read_told(written(tmp_path, "mlperf_log_summary.txt", text))
