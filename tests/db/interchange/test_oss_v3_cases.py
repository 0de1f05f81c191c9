"""What tells cases of OSS v3 records apart: sizes, short values, and what is refused or left out."""

import json
from pathlib import Path
from typing import Any

import pytest

from compilewatch.db.errors import RecordError
from compilewatch.db.records.trial import Trial
from tests.db.interchange.reading import read_told

LONG = "x" * 70


def record(model: Any = None, benchmark: Any = None, /, *, name: str = "vLLM", **more: Any) -> dict[str, Any]:
    return {
        "benchmark": {"name": name, "mode": "inference", "extra_info": benchmark},
        "model": {"name": "m", "backend": "inductor", "extra_info": model},
        "metric": {"name": "speedup", "benchmark_values": [1.5]},
        **more,
    }


def trials(folder: Path, *records: dict[str, Any]) -> list[Trial]:
    path = folder / "results.json"
    path.write_text(json.dumps(records))
    return read_told(path, format="oss-v3")


@pytest.mark.parametrize(
    ("model", "benchmark", "inputs", "name", "shape"),
    [
        ({"tp": 8}, None, None, "m", {"tp": 8}),
        (None, {"tp": "8"}, None, "m", {"tp": 8}),
        (None, {"args": {"tp": 8, "seed": 3}}, None, "m", {"args.tp": 8}),
        ({"tp": 8}, {"tp": 2}, None, "m", {"tp": 8, "benchmark.extra_info.tp": 2}),
        (None, {"dtype": "int4", "use_compile": True}, None, "m[dtype=int4, use_compile=true]", {}),
        (None, {"use_compile": "True", "sparsity": 0.5}, None, "m[sparsity=0.5, use_compile=true]", {}),
        (None, {"fast": False, "slow": "false", "kind": None, "way": ""}, None, "m", {}),
        (None, None, {"x": {"dtype": "i8", "extra_info": {"rows": "16"}}}, "m[x.dtype=i8]", {"x.rows": 16}),
        ({"revision": "abc"}, {"job_id": 7, "startTime": 1, "the_version": "2", "url": "u"}, None, "m", {}),
        (None, {"device": "cuda", "batch_size": 4, "is_dynamic": True, "arch": "H100"}, None, "m", {}),
        (None, {"description": "a loop", "config": LONG}, None, "m", {}),
        (None, {f"{key}{LONG[:50]}": LONG[:50] for key in "abc"}, None, "m", {}),
    ],
)  # fmt: skip
def test_settings_are_the_shape_and_behind_the_name(
    tmp_path: Path, model: Any, benchmark: Any, inputs: Any, name: str, shape: dict[str, int]
) -> None:
    (trial,) = trials(tmp_path, record(model, benchmark, inputs=inputs))
    assert (trial.workload.name, trial.workload.shape) == (name, shape)


def test_a_case_is_the_same_whatever_else_stands_in_the_file(tmp_path: Path) -> None:
    first, second = record(None, {"tp": 2}), record(None, {"tp": 8})
    (alone,) = trials(tmp_path, second)
    both = trials(tmp_path, first, second)
    assert len({trial.trial_id for trial in both}) == 2
    assert both[1] == alone


@pytest.mark.parametrize(
    ("other", "path"),
    [
        ({"config": LONG + "y"}, "benchmark.extra_info.config"),
        ({}, "benchmark.extra_info.config"),
        ({"config": LONG, "flags": ["a", "b"]}, "benchmark.extra_info.flags"),
    ],
)
def test_cases_that_no_name_can_tell_apart_are_refused(
    tmp_path: Path, other: dict[str, Any], path: str
) -> None:
    with pytest.raises(RecordError) as raised:
        trials(tmp_path, record(None, {"config": LONG}), record(None, other))
    assert raised.value.message.endswith(
        f"record 2.{path}: is not that of record 1, and too long for a name of their cases."
    )
    assert raised.value.next_step == "Write what differs into model.name."


def test_what_speaks_of_one_execution_makes_repeats_of_one_case(tmp_path: Path) -> None:
    first, second = trials(tmp_path, record(None, {"run_id": 1}), record(None, {"run_id": 2}, head_sha="b"))
    assert first.workload == second.workload
    assert first.trial_id != second.trial_id


def test_arguments_of_pytorchs_benchmark_are_told_by_its_file(tmp_path: Path) -> None:
    """Its `extra_info` has 130 of them; CI tells its runs apart by the compiler in the file's name."""
    name = "out/inductor_with_cudagraphs_huggingface_amp_inference_cuda_performance.csv"
    plain = record(None, {"repeat": 30, "threads": 4}, name="TorchInductor")
    named = record(None, {"repeat": 30, "threads": 4, "output": name}, name="TorchInductor")
    first, second = trials(tmp_path, plain, named)
    assert (first.workload, first.workload.shape) == (second.workload, {})
    assert (first.strategy.name, second.strategy.name) == ("inductor", "inductor_with_cudagraphs")


@pytest.mark.parametrize(("told", "dynamic"), [(True, True), ("false", False), (None, None)])
def test_dynamic_may_be_a_text(tmp_path: Path, told: object, dynamic: bool | None) -> None:
    (trial,) = trials(tmp_path, record(None, {"is_dynamic": told}))
    assert trial.strategy.dynamic is dynamic


def test_another_project_names_eager_and_engines_and_what_is_mapped(tmp_path: Path) -> None:
    """In PyTorch's own records eager is a backend of torch.compile."""
    words = ("onnxruntime", "PyTorch eager", "xnnpack", "TorchInductor")
    path = tmp_path / "results.json"
    told = {"model": {"name": "m"}, "metric": {"name": "time_ms", "benchmark_values": [1.5]}}

    def found(benchmark: str, **more: Any) -> list[str]:
        records = [
            told | {"benchmark": {"name": benchmark}, "model": {"name": "m", "backend": word}}
            for word in words
        ]
        path.write_text(json.dumps(records))
        return [trial.strategy.kind.value for trial in read_told(path, format="oss-v3", **more)]

    assert found("ExecuTorch") == ["export", "eager", "compile", "compile"]
    assert found("ExecuTorch", words={"xnnpack": "eager"}) == ["export", "eager", "eager", "compile"]
    words = ("eager",)
    assert found("pr_time_benchmarks") == ["compile"]
