"""Any CSV by a mapping: units, eager rows, a diffusers table, mappings that do not fit."""

from pathlib import Path
from typing import Any

import pytest

from compilewatch.db.errors import RecordError
from compilewatch.db.records.trial import FailureKind, Status, Task
from tests.db.interchange.reading import of_each, read, read_told

DIFFUSERS = {
    "workload": "scenario",
    "strategy": "mode",
    "latency_s": "time_compile_s",
    "eager_latency_s": "time_plain_s",
    "peak_gb": "mem_compile_GB",
    "eager_peak_gb": "mem_plain_GB",
    "package.diffusers": "github_sha",
    "metric.flops": "flops_G",
}


def write(folder: Path, text: str) -> Path:
    path = folder / "table.csv"
    path.write_text(text)
    return path


INVENTED_DIFFUSERS = ("acme/Paint-bf16", (300, 400, 500), 1000.5, (10_250, 10_500), "c0ffee" * 6 + "c0ff")
PUBLIC_DIFFUSERS = (
    *("black-forest-labs/FLUX.1-dev-bf16", (374, 493, 512), 59523.04, (22_570, 22_640)),
    "152f7ca357c066c4af3d1a58cdf17662ef5a2f87",
)


@pytest.mark.parametrize(("samples", "says"), of_each(INVENTED_DIFFUSERS, PUBLIC_DIFFUSERS))
def test_a_diffusers_table_by_mapping(samples: Path, says: tuple[Any, ...]) -> None:
    name, times_ms, flops, peaks_mb, commit = says
    compiled_ns, eager_ns, quantized_ns = (1_000_000 * each for each in times_ms)
    trials = read_told(samples / "diffusers_collated_results.csv", columns=DIFFUSERS, dtype="bfloat16")
    assert len(trials) == 6
    flux, quantized = trials[0], trials[1]
    assert (flux.workload.name, flux.strategy.name) == (name, "default")
    assert (flux.summary.latency_ns, flux.summary.control_latency_ns) == (compiled_ns, eager_ns)
    assert flux.summary.metrics == {"flops": flops}
    peaks = tuple(1_000_000 * each for each in peaks_mb)
    assert (flux.memory.peak_bytes, flux.memory.control_peak_bytes) == peaks
    assert flux.build.packages == {"diffusers": commit}
    assert quantized.strategy.name == "eager"
    assert (quantized.summary.latency_ns, quantized.summary.metrics) == (quantized_ns, {})


def test_columns_named_like_our_fields_need_no_mapping(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "workload,strategy,task,dtype,batch_size,device,device_name,torch,cuda,measured_at,"
        "latency_us,speedup,samples,compile_ms,peak_mib,graph_breaks,shape.tokens\n"
        "m,reduce-overhead,training,float16,8,cuda,NVIDIA L4,2.12.0+cu126,12.6,2026-05-01,"
        "1500,2.0,30,2500,10,0,77\n",
    )
    (trial,) = read(path)
    assert trial.summary.model_dump(exclude={"metrics"}) == {
        "latency_ns": 1_500_000, "control_latency_ns": 3_000_000, "n": 30, "throughput_per_s": None,
    }  # fmt: skip
    assert (trial.cold_start.until_steady_ns, trial.cold_start.calls_until_steady) == (2_500_000_000, 0)
    assert trial.memory.peak_bytes == 10 * 2**20
    assert trial.compiler.graph_breaks == []
    assert (trial.strategy.mode, trial.strategy.backend) == ("reduce-overhead", "inductor")
    assert (trial.workload.task, trial.workload.batch_size, trial.workload.shape) == (
        Task.TRAINING,
        8,
        {"tokens": 77},
    )
    assert (trial.build.torch, trial.build.torch_variant, trial.build.cuda) == ("2.12.0", "cu126", "12.6")
    assert trial.started_at.isoformat() == "2026-05-01T00:00:00+00:00"


def test_failures_are_failures(tmp_path: Path) -> None:
    path = write(
        tmp_path, "workload,strategy,latency_ms,speedup,failure\na,default,,,out of memory\nb,default,3,0,\n"
    )
    first, second = read_told(path)
    assert [t.status for t in (first, second)] == [Status.FAILED, Status.FAILED]
    assert first.failure.message == "out of memory"
    assert second.summary is None


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        (
            {"workload": "name", "latency": "ms"},
            r"table\.csv: latency: is no field that a CSV can be mapped to",
        ),
        (
            {"workload": "name", "latency_ms": "time"},
            "time: is no column of this file, and latency_ms is mapped",
        ),
        ({"workload": "name"}, "no column is mapped to workload and to a latency"),
        ({}, "no column is mapped to workload and to a latency"),
    ],
)
def test_a_mapping_that_does_not_fit_is_explained(
    tmp_path: Path, columns: dict[str, str], problem: str
) -> None:
    with pytest.raises(RecordError, match=problem):
        read_told(write(tmp_path, "name,ms\nm,1\n"), columns=columns)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("m,1,2,,", "line 2: latency_ms: is there twice, also as latency_us"),
        ("m,,,,", "line 2: latency: is missing, and no failure is named"),
        ("m,1,,guessing,", "line 2: task: must be one of inference, training, function"),
        ("m,1,,,yesterday", "line 2: measured_at: is no date and time"),
        ("m,-1,,,", "line 2: latency_ms: must lie between 0"),
        ("m,0,,,", "line 2: latency_ms: must be more than 0"),
        ("m,,1e-9,,", "line 2: latency_us: must be more than 0"),
        ("m,1_000,,,", "line 2: latency_ms: must be a number, not '1_000'"),
    ],
)
def test_an_error_names_line_and_field(tmp_path: Path, row: str, problem: str) -> None:
    with pytest.raises(RecordError, match=problem):
        read_told(write(tmp_path, f"workload,latency_ms,latency_us,task,measured_at\n{row}\n"))


def test_an_eager_latency_of_0_is_refused_but_not_that_of_a_failure(tmp_path: Path) -> None:
    header = "workload,latency_ms,eager_latency_ms,failure\n"
    with pytest.raises(RecordError, match="line 2: eager_latency_ms: must be more than 0"):
        read_told(write(tmp_path, f"{header}m,1,0,\n"))
    (failed,) = read_told(write(tmp_path, f"{header}m,0,0,out of memory\n"))
    assert failed.failure is not None
    assert failed.summary is None


@pytest.mark.parametrize("separator", [";", "\t"])
@pytest.mark.parametrize("format", ["auto", "csv"])
def test_another_separator_comes_with_commas_in_numbers(tmp_path: Path, separator: str, format: str) -> None:
    path = write(tmp_path, separator.join(("workload", "latency_ms")) + f"\nm, large{separator}1,5\n")
    (trial,) = read_told(path, format=format)
    assert trial.workload.name == "m, large"
    assert trial.summary.latency_ns == 1_500_000


def test_a_column_named_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="line 1: 'latency_ms': is the name of two columns"):
        read_told(write(tmp_path, "workload,latency_ms,latency_ms\nm,1,2\n"))


def test_a_column_named_twice_that_tells_nothing_does_not_matter(tmp_path: Path) -> None:
    """As nvbench writes "Noise" behind each of its times."""
    table = "Benchmark,CPU Time (sec),Noise,GPU Time (sec),Noise\ncopy,3e-5,0.1,2.5e-5,0.05\n"
    mapping = {"workload": "Benchmark", "latency_s": "GPU Time (sec)"}
    (trial,) = read_told(write(tmp_path, table), columns=mapping)
    assert trial.summary is not None
    assert trial.summary.latency_ns == 25_000
    with pytest.raises(RecordError, match="'Noise': is the name of two columns"):
        read_told(write(tmp_path, table), columns=mapping | {"metric.noise": "Noise"})


@pytest.mark.parametrize(
    "header", ["Workload,Strategy,Latency (ms),Batch size", "WORKLOAD,STRATEGY,LATENCY_MS,batch-size"]
)
def test_our_names_may_be_written_in_other_ways(tmp_path: Path, header: str) -> None:
    (trial,) = read_told(write(tmp_path, f"{header}\nm,eager,12.5,8\n"))
    assert trial.summary is not None
    assert (trial.workload.name, trial.workload.batch_size) == ("m", 8)
    assert trial.summary.latency_ns == 12_500_000


def test_a_word_in_place_of_a_time_is_a_failure(tmp_path: Path) -> None:
    table = (
        "workload,strategy,latency_ms,eager_latency_ms\n"
        "a,default,OOM,4\nb,default,timed out,4\nc,default,Failed,4\nd,default,2,OOM\n"
        "e,default,,CUDA out of memory\nf,default,torch.OutOfMemoryError,4\n"
        "g,default,RuntimeError: it broke,4\n"
    )
    trials = {each.workload.name: each for each in read_told(write(tmp_path, table), strategy=None)}
    kinds = {name: each.failure and each.failure.kind for name, each in trials.items()}
    assert kinds == {
        "a": FailureKind.OUT_OF_MEMORY,
        "b": FailureKind.TIMEOUT,
        "c": FailureKind.CRASH,
        "d": None,
        "e": FailureKind.OUT_OF_MEMORY,
        "f": FailureKind.OUT_OF_MEMORY,
        "g": FailureKind.CRASH,
    }
    assert trials["a"].failure is not None
    assert trials["a"].failure.message == "The table says OOM in place of a time."
    assert (trials["a"].strategy.name, trials["e"].strategy.name) == ("default", "eager")
    summary = trials["d"].summary
    assert summary is not None
    assert (summary.latency_ns, summary.control_latency_ns) == (2_000_000, None)


def test_quoted_cells_may_hold_commas_and_line_breaks(tmp_path: Path) -> None:
    path = write(tmp_path, 'workload,latency_ms\n"a, b\nc",1\nd,oops\n')
    with pytest.raises(RecordError, match="line 4: latency_ms"):
        read_told(path)


@pytest.mark.parametrize(
    ("row", "peak", "control"),
    [
        ("a,,4.5,,2.5", 2_500_000_000, None),
        ("a,,4.5,3,2.5", 2_500_000_000, None),
        ("a,,4.5,3,", 3_000_000_000, None),
        ("a,1.5,4.5,3,2.5", 3_000_000_000, 2_500_000_000),
        ("a,1.5,4.5,,2.5", None, 2_500_000_000),
    ],
)
def test_the_memory_of_an_eager_row_is_its_own(
    tmp_path: Path, row: str, peak: int | None, control: int | None
) -> None:
    path = write(tmp_path, f"workload,latency_ms,eager_latency_ms,peak_gb,eager_peak_gb\n{row}\n")
    (trial,) = read_told(path)
    assert (trial.memory.peak_bytes, trial.memory.control_peak_bytes) == (peak, control)


def test_a_row_called_eager_takes_eager_memory_for_its_own(tmp_path: Path) -> None:
    path = write(tmp_path, "workload,strategy,eager_latency_ms,eager_peak_gb\na,eager,4.5,2.5\n")
    (trial,) = read_told(path)
    assert (trial.memory.peak_bytes, trial.memory.control_peak_bytes) == (2_500_000_000, None)
