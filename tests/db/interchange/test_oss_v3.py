"""PyTorch OSS benchmark database v3: files of every layout, metrics, and what a group is."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from compilewatch.db.errors import RecordError
from compilewatch.db.interchange.files.opening import input_files
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.formats import READERS, Format
from compilewatch.db.records.trial import FailureKind, NumericsStatus, Status, Task
from tests.db.interchange.reading import MEASURED_AT, TOLD, by_name, of_each, read, read_told

ASKED: dict[str, Any] = {"torch": "2.13.0", "device_name": "AMD EPYC", "measured_at": MEASURED_AT}


def record(metric: str, /, *values: float, **changes: Any) -> dict[str, Any]:
    return {
        "benchmark": {
            "name": "TorchInductor",
            "mode": "training",
            "dtype": "amp",
            "extra_info": {"device": "cuda"},
        },
        "model": {"name": "m", "type": "OSS model", "backend": "inductor", "origins": ["torchbench"]},
        "metric": {"name": metric, "benchmark_values": list(values)},
        **changes,
    }


def write(folder: Path, text: str) -> Path:
    path = folder / "results.json"
    path.write_text(text)
    return path


def alone(path: Path, folder: Path) -> Path:
    """A copy without the files that lie beside it."""
    return Path(shutil.copy(path, folder))


@pytest.mark.parametrize(
    ("samples", "net_says"), of_each((500_000, 400_000, 452_500_000), (426_825, 306_270, 498_241_540))
)
def test_a_dynamo_file_agrees_with_its_csv(
    tmp_path: Path, samples: Path, net_says: tuple[int, int, int]
) -> None:
    name = "inductor_huggingface_float32_inference_cpu_performance.json"
    trials = by_name(read(alone(samples / "dynamobench" / name, tmp_path), **ASKED))
    net, branchy = trials["Net", "inductor"], trials["Branchy", "inductor"]
    latency, control, peak = net_says
    assert (net.summary.latency_ns, net.summary.control_latency_ns) == (latency, control)
    assert net.memory.peak_rss_bytes == pytest.approx(peak, abs=10)
    assert (net.workload.task, net.workload.dtype, net.suite) == (Task.INFERENCE, "float32", "huggingface")
    assert net.strategy.dynamic is False
    assert branchy.compiler.graph_breaks is not None
    assert [event.count for event in branchy.compiler.graph_breaks] == [3]


@pytest.mark.parametrize(("samples", "cost_ns"), of_each(15_500_000_000, 15_174_415_215))
def test_a_text_metric(tmp_path: Path, samples: Path, cost_ns: int) -> None:
    name = "inductor_huggingface_float32_training_cpu_accuracy.json"
    (trial,) = read(alone(samples / "dynamobench" / name, tmp_path), **ASKED)
    assert trial.numerics.status is NumericsStatus.PASS
    assert trial.cold_start.until_steady_ns == cost_ns
    assert trial.workload.batch_size == 1


@pytest.mark.parametrize(
    ("samples", "says"),
    of_each(
        ((3_000_000_001, 5_000_000_002, 40_000_000_003), 300.25),
        ((3_086_359_081, 5_712_213_247, 40_859_830_085), 333.2014794921875),
    ),
)
def test_files_of_every_layout(samples: Path, says: tuple[tuple[int, int, int], float]) -> None:
    counts, peak = says
    names = ("add_loop_eager", "add_loop_eager_dynamic", "add_loop_inductor_dynamic_gpu")
    each = {
        name: {"compile_time_instruction_count": float(count)}
        for name, count in zip(names, counts, strict=True)
    }
    expected: dict[str, dict[str, dict[str, float]]] = {
        "add_loop_eager": {names[0]: each[names[0]]},
        "add_loop_inductor_dynamic_gpu": {names[2]: each[names[2]]},
        "do_not_overwrite_runners_info": {"edsr": {"peak_inference_mem_usage(mb)": peak}},
        "json-each-row": each,
    }
    for name, metrics in expected.items():
        trials = read_told(samples / f"pytorch_oss_v3_{name}.json")
        assert {t.workload.name: t.summary.metrics for t in trials if t.summary} == metrics
        assert all(t.summary and t.summary.latency_ns is None for t in trials)


@pytest.mark.parametrize(("samples", "_"), of_each(None, None))
def test_invalid_records_are_refused_by_number(samples: Path, _: None) -> None:
    with pytest.raises(RecordError, match=r"record 1\.metric: is missing"):
        read_told(samples / "pytorch_oss_v3_mock.json", format="oss-v3")


@pytest.mark.parametrize("layout", ["list", "lines", "lists in lines", "pretty"])
def test_layouts_are_equal(tmp_path: Path, layout: str) -> None:
    records = [record("speedup", 2.0), record("abs_latency", 1.5)]
    text = {
        "list": json.dumps(records),
        "lines": "\n".join(json.dumps(entry) for entry in records) + "\n",
        "lists in lines": "\n".join(json.dumps([entry]) for entry in records),
        "pretty": json.dumps(records, indent=2),
    }[layout]
    (trial,) = read_told(write(tmp_path, text))
    assert (trial.summary.latency_ns, trial.summary.control_latency_ns) == (1_500_000, 3_000_000)


def test_one_object_is_a_file(tmp_path: Path) -> None:
    (trial,) = read_told(write(tmp_path, json.dumps(record("abs_latency", 1.0, 2.0))))
    assert trial.summary.latency_ns == 1_500_000  # the mean, as PyTorch's dashboard takes it


def test_records_that_differ_in_anything_but_the_metric_are_different_results(tmp_path: Path) -> None:
    text = json.dumps([record("abs_latency", 1.0), record("abs_latency", 2.0, head_sha="abc")])
    assert len({trial.trial_id for trial in read_told(write(tmp_path, text))}) == 2


def test_a_metric_told_twice_for_one_result_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, json.dumps([record("abs_latency", 1.0), record("abs_latency", 2.0)]))
    with pytest.raises(RecordError, match="abs_latency is reported twice"):
        read_told(path)


def test_speedup_zero_and_failing_accuracy_are_failures(tmp_path: Path) -> None:
    failed = record("accuracy")
    failed["metric"] = {"name": "accuracy", "extra_info": {"benchmark_values": ["OOM"]}}
    zero = record("speedup", 0.0, head_sha="b")
    first, second = read_told(write(tmp_path, json.dumps([failed, zero])))
    assert first.failure.kind is FailureKind.OUT_OF_MEMORY
    assert (second.status, second.summary) == (Status.FAILED, None)


def test_unknown_benchmarks_keep_their_metrics_without_a_guess_at_units(tmp_path: Path) -> None:
    other = record("abs_latency", 1.5) | {"benchmark": {"name": "other", "mode": "inference", "dtype": "fp8"}}
    (trial,) = read_told(write(tmp_path, json.dumps(other)))
    assert (trial.summary.latency_ns, trial.summary.metrics) == (None, {"abs_latency": 1.5})


def test_runner_metadata_and_dependencies_are_used(tmp_path: Path) -> None:
    full = record(
        "abs_latency", 1.5,
        timestamp=1_770_000_000, repo="pytorch/pytorch", head_sha="c0ffee",
        runners=[{"name": "linux.aws.h100", "gpu_info": "NVIDIA H100", "gpu_count": 1,
                  "cpu_info": "x86_64", "cpu_count": 24}],
        dependencies={"pytorch": {"version": "2.14.0.dev20260801+cu130"}},
    )  # fmt: skip
    (trial,) = read(write(tmp_path, json.dumps(full)))
    assert trial.machine.model_dump(exclude_none=True) == {
        "name": "linux.aws.h100", "device": "cuda", "device_name": "NVIDIA H100", "device_count": 1,
        "cpu_name": "x86_64", "cpu_count": 24,
    }  # fmt: skip
    assert (trial.build.torch, trial.build.cuda, trial.build.torch_git) == (
        "2.14.0.dev20260801",
        "13.0",
        "c0ffee",
    )
    assert trial.started_at.isoformat() == "2026-02-02T02:40:00+00:00"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"metric": "x"}, r"record 1\.metric: must be an object"),
        ({"metric": {"benchmark_values": [1]}}, r"record 1\.metric\.name: is missing"),
        ({"metric": {"name": "speedup"}}, r"record 1\.metric\.benchmark_values: speedup has no value"),
        ({"metric": {"name": "speedup", "benchmark_values": ["a"]}}, r"must be a number, not 'a'"),
        ({"model": []}, r"record 1\.model: must be an object"),
        ({"runners": {}}, None),
        ({"runners": {"a": 1}}, r"record 1\.runners: must be a list"),
        ({"timestamp": 1e300}, r"record 1\.timestamp: is no date and time"),
    ],
)
def test_an_error_names_record_and_field(
    tmp_path: Path, changes: dict[str, Any], problem: str | None
) -> None:
    path = write(tmp_path, json.dumps(record("abs_latency", 1.0, **changes)))
    if problem is None:
        assert len(read_told(path, format="oss-v3")) == 1
        return
    with pytest.raises(RecordError, match=problem):
        read_told(path, format="oss-v3")


def test_whole_numbers_may_be_text_as_clickhouse_writes_them(tmp_path: Path) -> None:
    quoted = record("abs_latency", timestamp="1772330400")
    quoted["metric"]["benchmark_values"] = ["2.5"]
    (trial,) = read_told(write(tmp_path, json.dumps(quoted)))
    assert trial.started_at.isoformat() == "2026-03-01T02:00:00+00:00"
    assert trial.summary.latency_ns == 2_500_000


def test_a_metric_that_was_not_measured_is_left_out(tmp_path: Path) -> None:
    text = json.dumps([record("abs_latency", 2.5), record("dynamo_peak_mem", float("nan"))])
    path = write(tmp_path, text)
    (trial,) = read_told(path)
    assert (trial.summary.latency_ns, trial.memory) == (2_500_000, None)
    options = ImportOptions(**TOLD)
    list(READERS[Format.OSS_V3](*input_files(path), options))
    assert f"{path}, line 1: record 2.metric: dynamo_peak_mem was not measured; left out." in options.notes


def test_a_bad_line_is_named_by_its_number(tmp_path: Path) -> None:
    path = write(tmp_path, json.dumps(record("abs_latency", 1.0)) + "\n{broken\n")
    with pytest.raises(RecordError, match="line 2: the document: is not JSON"):
        read_told(path)
