"""timm result files: pairs, the control only where batch and image size agree, names of files."""

import statistics
from pathlib import Path

import pytest

from compilewatch.db.errors import RecordError
from compilewatch.db.records.trial import Task
from tests.db.interchange.reading import MEASURED_AT, TIMM, TOLD, of_each, read, read_told

EAGER = "benchmark-infer-amp-nchw-pt291-cu128-4090.csv"
DYNAMO = "benchmark-infer-amp-nchw-pt291-cu128-4090-dynamo.csv"
HEADER = "model,infer_img_size,infer_samples_per_sec,infer_step_time,infer_batch_size,param_count\n"


def pair(folder: Path, eager: str, dynamo: str) -> tuple[Path, Path]:
    for name, rows in ((EAGER, eager), (DYNAMO, dynamo)):
        (folder / name).write_text(HEADER + rows)
    return folder / EAGER, folder / DYNAMO


@pytest.mark.parametrize(
    ("results", "says"), of_each((125_000_000, 250_000_000, 1000), (127_355_000, 237_959_000, 1024), TIMM)
)
def test_resnet50_on_the_rtx_4090(results: Path, says: tuple[int, int, int]) -> None:
    trials = read(results / DYNAMO, measured_at=MEASURED_AT)
    (compiled,) = (
        t
        for t in trials
        if (t.workload.name, t.strategy.name) == ("resnet50", "default")
        and t.workload.shape == {"image_size": 224}
    )
    times = (compiled.summary.latency_ns, compiled.summary.control_latency_ns)
    assert (*times, compiled.workload.batch_size) == says
    assert compiled.machine.device_name == "NVIDIA GeForce RTX 4090"
    assert (compiled.build.torch, compiled.build.torch_variant, compiled.build.cuda) == (
        "2.9.1",
        "cu128",
        "12.8",
    )


# Few of the older release, many of the newer, and the geometric mean of these: sqrt(2 x 1.25).
@pytest.mark.parametrize(("results", "says"), of_each((1, 2, 1.581), (99, 1200, 1.616), TIMM))
def test_files_of_two_releases_differ_in_batch_and_so_have_few_controls(
    results: Path, says: tuple[int, int, float]
) -> None:
    most, fewest, mean = says
    counts = {}
    for release, name in (("2.4.0", "benchmark-infer-amp-nchw-pt240-cu124-rtx4090.csv"), ("2.9.1", EAGER)):
        trials = read(results / name, measured_at=MEASURED_AT)
        compiled = [t for t in trials if t.strategy.name == "default" and t.summary]
        assert {t.build.torch for t in trials} == {release}
        assert {t.machine.device_name for t in trials} == {"NVIDIA GeForce RTX 4090"}
        counts[release] = [
            t.summary.control_latency_ns / t.summary.latency_ns
            for t in compiled
            if t.summary and t.summary.control_latency_ns and t.summary.latency_ns
        ]
    assert len(counts["2.4.0"]) <= most
    assert len(counts["2.9.1"]) >= fewest
    assert statistics.geometric_mean(counts["2.9.1"]) == pytest.approx(mean, abs=0.005)


def test_a_pair_is_read_whole_from_either_file(tmp_path: Path) -> None:
    eager, dynamo = pair(
        tmp_path, "resnet50,224,4303.1,237.96,1024,25.56\n", "resnet50,224,8040.2,127.36,1024,25.56\n"
    )
    both = read(eager, measured_at=MEASURED_AT)
    assert both == read(dynamo, measured_at=MEASURED_AT)
    plain, compiled = both
    assert (plain.strategy.name, compiled.strategy.name) == ("eager", "default")
    assert compiled.summary.model_dump() == {
        "latency_ns": 127_360_000,
        "control_latency_ns": 237_960_000,
        "n": None,
        "throughput_per_s": 8040.2,
        "metrics": {"param_count": 25.56},
    }
    assert compiled.workload.task is Task.INFERENCE
    assert (compiled.workload.item, compiled.workload.items_per_iteration) == ("image", 1024)
    assert (compiled.workload.dtype, compiled.workload.shape) == ("amp", {"image_size": 224})


def test_there_is_no_control_across_batch_sizes(tmp_path: Path) -> None:
    _, dynamo = pair(tmp_path, "m,224,1,10.0,1024,1\n", "m,224,1,2.0,256,1\n")
    plain, compiled = read(dynamo, measured_at=MEASURED_AT)
    assert compiled.summary.control_latency_ns is None
    assert plain.workload != compiled.workload


def test_of_repeated_rows_the_first_counts(tmp_path: Path) -> None:
    eager, _ = pair(tmp_path, "m,224,1,10.0,64,1\nm,224,1,99.0,64,1\n", "")
    (trial,) = read(eager, measured_at=MEASURED_AT)
    assert trial.summary.latency_ns == 10_000_000


@pytest.mark.parametrize(
    ("name", "torch", "cuda", "gpu", "strategy"),
    [
        (
            "benchmark-infer-amp-nchw-pt2100-cu128-5090.csv",
            "2.10.0",
            "12.8",
            "NVIDIA GeForce RTX 5090",
            "eager",
        ),
        (
            "benchmark-infer-amp-nhwc-pt113-cu117-rtx3090.csv",
            "1.13",
            "11.7",
            "NVIDIA GeForce RTX 3090",
            "eager+channels-last",
        ),
        (
            "benchmark-infer-amp-nhwc-pt210-cu121-rtx3090-dynamo.csv",
            "2.1.0",
            "12.1",
            "NVIDIA GeForce RTX 3090",
            "default+channels-last",
        ),
    ],
)
def test_the_file_name_says_the_stack(
    tmp_path: Path, name: str, torch: str, cuda: str, gpu: str, strategy: str
) -> None:
    path = tmp_path / name
    path.write_text(HEADER + "m,224,1,10.0,64,1\n")
    (trial,) = read(path, measured_at=MEASURED_AT)
    assert (trial.build.torch, trial.build.cuda, trial.machine.device_name) == (torch, cuda, gpu)
    assert trial.strategy.name == strategy


def test_an_unknown_gpu_in_the_name_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "benchmark-infer-amp-nchw-pt291-cu128-mystery.csv"
    path.write_text(HEADER + "m,224,1,10.0,64,1\n")
    with pytest.raises(RecordError, match=r"does not say the GPU \(or CPU\)\."):
        read(path, measured_at=MEASURED_AT)


def test_training_files_have_their_own_columns(tmp_path: Path) -> None:
    path = tmp_path / "renamed.csv"
    path.write_text("model,train_samples_per_sec,train_step_time,train_batch_size\nm,640.5,99.5,64\n")
    (trial,) = read_told(path, task=Task.TRAINING)
    assert (trial.summary.latency_ns, trial.workload.task, trial.workload.shape) == (
        99_500_000,
        Task.TRAINING,
        {},
    )


def test_a_file_of_both_has_inference_and_training(tmp_path: Path) -> None:
    """As `--bench both` writes it."""
    path = tmp_path / "benchmark.csv"
    path.write_text(
        "model,infer_step_time,infer_batch_size,infer_img_size,train_step_time,train_batch_size,train_img_size\n"
        "m,256.0,256,224,853.3,128,192\n"
    )
    inference, training = read_told(path, task=None)
    assert (inference.workload.task, training.workload.task) == (Task.INFERENCE, Task.TRAINING)
    assert (inference.workload.batch_size, training.workload.batch_size) == (256, 128)
    assert inference.summary is not None
    assert training.summary is not None
    assert (inference.summary.latency_ns, training.summary.latency_ns) == (256_000_000, 853_300_000)


@pytest.mark.parametrize(("time", "problem"), [("", "is missing"), ("0.0", "must be more than 0")])
def test_a_row_without_step_time_is_an_error(tmp_path: Path, time: str, problem: str) -> None:
    path = tmp_path / EAGER
    path.write_text(HEADER + f"m,224,1,{time},64,1\n")
    with pytest.raises(RecordError, match=f"line 2: step_time: {problem}"):
        read(path, measured_at=MEASURED_AT)


OTHER = "my-results.csv"


def other(folder: Path, name: str = OTHER) -> Path:
    (folder / name).write_text(HEADER + "m,224,1,10.0,64,1\n")
    return folder / name


def test_whether_it_was_compiled_is_asked_for_where_no_name_says_it(tmp_path: Path) -> None:
    told = TOLD | {"strategy": None}
    with pytest.raises(RecordError) as raised:
        read(other(tmp_path), **told)
    assert raised.value.message == f"{tmp_path / OTHER}: does not say whether it was compiled."
    assert raised.value.next_step == "Name it with --strategy eager."


@pytest.mark.parametrize(
    ("strategy", "backend", "mode"),
    [("eager", None, None), ("default", "inductor", "default"), ("max-autotune", "inductor", "max-autotune")],
)
def test_what_is_told_of_a_file_is_its_strategy(
    tmp_path: Path, strategy: str, backend: str | None, mode: str | None
) -> None:
    (trial,) = read_told(other(tmp_path), strategy=strategy)
    assert (trial.strategy.name, trial.strategy.backend, trial.strategy.mode) == (strategy, backend, mode)


def test_a_pair_under_other_names_tells_itself(tmp_path: Path) -> None:
    other(tmp_path)
    other(tmp_path, "my-results-dynamo.csv")
    for name in (OTHER, "my-results-dynamo.csv"):
        trials = read_told(tmp_path / name, strategy=None)
        assert [trial.strategy.name for trial in trials] == ["eager", "default"]


@pytest.mark.parametrize(("name", "strategy"), [(EAGER, "eager"), (DYNAMO, "default")])
def test_the_name_that_timm_gives_outranks_what_is_told(tmp_path: Path, name: str, strategy: str) -> None:
    (trial,) = read_told(other(tmp_path, name), strategy="max-autotune")
    assert trial.strategy.name == strategy


@pytest.mark.parametrize(
    "name",
    ["my-pt291-cu130.csv", "timm_pt291-cu130_h100.csv", EAGER.replace("cu128-4090", "cu130-4090-run2")],
)
def test_a_renamed_file_still_says_the_release(tmp_path: Path, name: str) -> None:
    (trial,) = read_told(other(tmp_path, name), torch=None, device=None)
    assert (trial.build.torch, trial.build.torch_variant, trial.build.cuda) == ("2.9.1", "cu130", "13.0")


@pytest.mark.parametrize("name", ["opt2910-cu130.csv", "pt291.csv", "pt291-cu1300.csv"])
def test_digits_of_another_name_are_no_release(tmp_path: Path, name: str) -> None:
    with pytest.raises(RecordError, match="does not say the torch version"):
        read(other(tmp_path, name), measured_at=MEASURED_AT)
