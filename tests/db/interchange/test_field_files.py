"""Result files that people have, each with the right result; see the README beside them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from compilewatch.db.columns.source_metrics import judged_metrics
from compilewatch.db.engine.session import Database
from compilewatch.db.errors import RecordError
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.importing import import_paths
from compilewatch.db.judge.compare.sides import Selection
from compilewatch.db.metrics.cases import summarize_cases
from compilewatch.db.queries.trials import trial_records, trials_frame
from compilewatch.db.records.trial import StrategyKind, Task, Trial
from compilewatch.db.records.vocabulary import Verdict
from compilewatch.db.verdicts.gateway import compare
from tests.db.interchange.reading import INVENTED, MEASURED_AT, SHARED, of_each, read

FILES = SHARED / "field" / "files"
FACTS: dict[str, Any] = {
    "torch": "2.9.0",
    "device": "cuda",
    "device_name": "NVIDIA H100",
    "measured_at": MEASURED_AT,
    "dtype": "bfloat16",
    "task": "inference",
}


@pytest.fixture(params=[INVENTED, *([FILES] if FILES.is_dir() else [])], ids=lambda folder: folder.name)
def files(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


def trials(path: Path, **told: Any) -> list[Trial]:
    return read(path, **FACTS | told)


def speedups(database: Database, files: Path, *names: str, **told: Any) -> dict[tuple[str, str], float]:
    """Speedups of compiled cases by workload with its batch, and strategy."""
    paths = [path for name in names for path in sorted(files.glob(name))]
    report = import_paths(database, paths, options=ImportOptions(**FACTS | told))
    assert report.errors == ()
    cases = summarize_cases(trials_frame(database))
    compiled = cases[cases["strategy_kind"] != "eager"].dropna(subset=["speedup"])
    names_ = compiled["workload"] + " " + compiled["batch_size"].astype(str)
    return dict(zip(zip(names_, compiled["strategy"], strict=True), compiled["speedup"], strict=True))


def test_another_engine_is_no_control(sqlite_database: Database, files: Path) -> None:
    found = speedups(
        sqlite_database, files, "optimum_onnxruntime/*report.json", "optimum_compiled/*report.json"
    )
    assert found == {}
    found = speedups(sqlite_database, files, "optimum_eager/*report.json")
    assert {strategy: round(value, 2) for (_, strategy), value in found.items()} == {
        "default": 1.25,
        "onnxruntime": 2.0,
    }


def test_another_layout_is_no_control(sqlite_database: Database, files: Path) -> None:
    nchw = speedups(sqlite_database, files, "timm_nchw_nhwc_rtx4090/*nchw*.csv")
    assert speedups(sqlite_database, files, "timm_nchw_nhwc_rtx4090/*nhwc*.csv") == nchw
    assert not any(name.startswith("tiny_vit_21m_512") for name, _ in nchw)


def test_other_arguments_are_no_control(sqlite_database: Database, files: Path) -> None:
    found = speedups(sqlite_database, files, "torchbench_test_bench/*", dtype="float32")
    assert {strategy: round(value, 6) for (_, strategy), value in found.items()} == {"inductor": 2.0}


def test_vllm_is_eager_or_compiled(sqlite_database: Database, files: Path) -> None:
    found = speedups(sqlite_database, files, "vllm_latency_*.pytorch.json")
    assert [(name.partition(" ")[2], strategy) for name, strategy in found] == [("latency 8", "compiled")]
    assert {trial.strategy.kind for trial in trial_records(sqlite_database)} == {
        StrategyKind.EAGER,
        StrategyKind.COMPILE,
    }


def test_no_option_relabels_what_a_file_knows(files: Path) -> None:
    told = {"device_name": "NVIDIA RTX PRO 6000 Max-Q", "device": None, "torch": None, "dtype": None}
    *gpus, cpu = sorted((files / "timm_mixed_gpus").iterdir())
    assert [read(path, **FACTS | told)[0].machine.device_name for path in gpus] == [
        "NVIDIA GeForce RTX 5090",
        "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
        "NVIDIA GeForce RTX 4090",
    ]
    with pytest.raises(RecordError, match="its name says i7_12700h") as raised:
        read(cpu, **FACTS | told)
    assert "NVIDIA" not in raised.value.next_step
    (trial,) = trials(files / "inductor_torchbench_training.csv")
    assert (trial.workload.task, trial.strategy.name) == (Task.TRAINING, "inductor")
    (first, *_) = trials(
        files / "cpu_inductor_freezing_huggingface_inference.csv", device=None, device_name="EPYC"
    )
    assert (first.machine.device, first.suite, first.strategy.name) == (
        "cpu",
        "huggingface",
        "inductor_freezing",
    )
    (first, *_) = trials(files / "benchmark-infer-amp_bf16-nchw-pt291-cu130-pro6000maxq-dynamo.csv")
    assert (first.workload.dtype, first.build.torch) == ("amp_bf16", "2.9.1")


def test_a_column_of_torch_says_which_build_it_was(files: Path) -> None:
    (trial,) = trials(files / "csv_torch_with_cuda_variant.csv", torch=None)
    (told,) = trials(files / "csv_torch_with_cuda_variant.csv", torch="2.9.1+cu128")
    assert trial.build == told.build
    assert (trial.build.torch, trial.build.cuda) == ("2.9.1", "12.8")


@pytest.mark.parametrize(
    ("name", "count", "notes"),
    [
        ("dynamo_csv_and_json_of_one_run.zip", 3, 2),
        ("dynamo_output_folder.zip", 3, 4),
        ("torchbench_cpu/metrics-20230420000000.json", 3, 0),
        ("pytest_benchmark_one_test_without_compile_param.json", 4, 1),
        ("pytest_benchmark_unknown_mode_word.json", 2, 1),
        ("torchao_microbenchmark_results.json", 2, 0),
        ("utf16_performance.csv", 2, 0),
    ],
)
def test_results_come_in_once(
    sqlite_database: Database, files: Path, name: str, count: int, notes: int
) -> None:
    told = FACTS | {"device": None, "device_name": "AMD EPYC", "torch": None}
    strategy = "default" if "utf16" in name else None
    needed = {"device": "cpu"} if "pytest" in name else {}
    torch = None if "unknown_mode" in name else "2.9.0"
    options = ImportOptions(**told | needed | {"strategy": strategy, "torch": torch})
    report = import_paths(sqlite_database, [files / name], options=options)
    assert report.errors == ()
    assert report.new == count
    said = ("is not used for it", "as it or its folder is called")
    left_out = [note for note in report.files[0].notes if not any(each in note for each in said)]
    assert len(left_out) == notes


@pytest.mark.parametrize(
    "name", ["android_v2.json", "add_loop_inductor_gpu.json", "xpu_inductor_timm_models_inference.csv"]
)
def test_what_is_not_read_is_said_so(files: Path, name: str) -> None:
    with pytest.raises(RecordError, match=r"looks like .* not read\.") as raised:
        trials(files / name)
    assert "--format" not in raised.value.next_step


@pytest.mark.parametrize(
    ("name", "called", "next_step"),
    [
        ("gbench_invented.json", "JSON of google-benchmark", "--benchmark_format=csv"),
        ("hyperfine.json", "JSON of hyperfine", "--export-csv"),
        ("asv_invented.json", "a result of asv", "a row for each result"),
        ("benchmark_v2_README_shape.json", "a result of transformers benchmark_v2", "a row for each result"),
        ("github_action_benchmark_data.js", "the data of github-action-benchmark", "a row for each result"),
    ],
)
def test_tools_that_know_no_eager_are_named_and_come_in_as_csv(
    name: str, called: str, next_step: str
) -> None:
    with pytest.raises(RecordError, match=f"{name}: looks like {called}, which is not read") as raised:
        trials(INVENTED / name)
    assert next_step in raised.value.next_step
    assert "--column" in raised.value.next_step


def test_data_in_one_line_is_no_csv(tmp_path: Path) -> None:
    path = tmp_path / "data.js"
    path.write_text('window.BENCHMARK_DATA = {"lastUpdate": 1, "entries": {}}', encoding="utf-8")
    with pytest.raises(RecordError, match="the data of github-action-benchmark"):
        trials(path)


def test_csv_of_hyperfine_and_google_benchmark_comes_in_as_the_refusal_says(tmp_path: Path) -> None:
    commands, functions = tmp_path / "hyperfine.csv", tmp_path / "gbench.csv"
    commands.write_text(
        "command,mean,stddev,median,user,system,min,max,parameter_mode\n"
        "python infer.py eager,2.51,0.04,2.5,2.5,0.1,2.4,2.6,eager\n"
        "python infer.py default,1.27,0.04,1.25,1.2,0.1,1.2,1.3,default\n",
        encoding="utf-8",
    )
    functions.write_text(
        "name,iterations,real_time,cpu_time,time_unit,bytes_per_second,items_per_second,label,"
        'error_occurred,error_message\n"BM_add",1000,2.5,2.5,us,,,,,\n',
        encoding="utf-8",
    )
    columns = {"latency_s": "median", "strategy": "parameter_mode"}
    eager, default = trials(commands, workload="infer", columns=columns)
    assert [(trial.workload.name, trial.strategy.name) for trial in (eager, default)] == [
        ("infer", "eager"),
        ("infer", "default"),
    ]
    columns = {"workload": "name", "latency_ns": "real_time"}
    (added,) = trials(functions, columns=columns, strategy="default")
    found = [trial.summary.latency_ns for trial in (eager, default, added) if trial.summary]
    assert found == [2_500_000_000, 1_250_000_000, 2_500]


@pytest.mark.parametrize(
    ("files", "results"),
    of_each(
        {
            "vllm_bench_latency.json": (1, 1_250_000_000),
            "vllm_bench_throughput.json": (1, 250_000),
            "vllm_bench_serve.json": (1, 500_000),
        },
        {
            "vllm_bench_latency.json": (1, 1_216_000_000),
            "vllm_bench_throughput.json": (1, 150_002),
            "vllm_bench_serve.json": (1, 502_513),
        },
        FILES,
    ),
)
def test_vllms_own_benchmarks(files: Path, results: dict[str, tuple[int, int]]) -> None:
    for name, (count, first_ns) in results.items():
        found = trials(files / name, strategy="eager")
        assert len(found) == count, name
        assert found[0].summary is not None
        assert found[0].summary.latency_ns == first_ns, name


def test_one_workload_for_a_table_without_such_a_column(files: Path) -> None:
    told = {"workload": "mine", "columns": {"strategy": "mode"}}
    found = trials(files / "no_model.csv", **told)
    assert {(trial.workload.name, trial.workload.batch_size) for trial in found} == {("mine", 1), ("mine", 8)}


def test_a_start_cut_off_in_its_first_compilation_has_no_cost(files: Path) -> None:
    (path,) = (files / "torch_trace_cut_in_first_compile").iterdir()
    with pytest.raises(RecordError, match="ends before anything was compiled to its end"):
        read(path, **FACTS)


def test_two_tables_in_one_file_are_refused(files: Path) -> None:
    with pytest.raises(RecordError, match="line 4"):
        trials(files / "two_tables.csv", columns={"workload": "model"})


def told_by(path: Path) -> list[dict[str, Any]]:
    """The results of a server as they stand in its file, one a line or all of it."""
    text = path.read_text(encoding="utf-8")
    try:
        return [json.loads(text)]
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line]


@pytest.mark.parametrize("pattern", ["vllm_rates/*.json", "vllm_fixed_load/*.json", "sglang/*.jsonl"])
def test_every_load_has_a_case_and_what_its_server_owes(files: Path, pattern: str) -> None:
    for path in sorted(files.glob(pattern)):
        told = told_by(path)
        found = trials(path, strategy="default", workload=None)
        assert len(found) == len(told)
        assert len({trial.workload.name for trial in found}) == len(told)
        for trial, raw in zip(found, told, strict=True):
            fixed = isinstance(raw["request_rate"], float) and math.isfinite(raw["request_rate"])
            owed_ns = raw["median_tpot_ms"] * 1e6 if fixed else 1e9 / raw["output_throughput"]
            assert trial.summary is not None
            assert trial.summary.latency_ns == round(owed_ns), path.name
            lengths = [raw[f"total_{each}_tokens"] / raw["completed"] for each in ("input", "output")]
            shape = trial.workload.shape
            assert [
                shape.get(f"{each}_len", shape.get(f"random_{each}_len")) for each in ("input", "output")
            ] == lengths
            judged = judged_metrics(trial.summary.metrics)
            wanted = {f"{of}_{what}_ms" for of in ("median", "p99") for what in ("ttft", "tpot")}
            assert {f"metrics.{name}" for name in wanted} <= set(judged)
            assert ("metrics.output_throughput" in judged) is not fixed


def test_a_server_that_answers_later_has_regressed(sqlite_database: Database, files: Path) -> None:
    """The same offered load: TPOT 9.5 to 19 ms, TTFT 55 to 110 ms."""
    for side in ("before", "after"):
        options = ImportOptions(**FACTS | {"strategy": "default"}, label=side)
        paths = sorted((files / "vllm_fixed_load").glob(f"{side}*.json"))
        assert import_paths(sqlite_database, paths, options=options).errors == ()
    frame = trials_frame(sqlite_database)
    sides = {side: tuple({*frame["run_id"][frame["label"] == side]}) for side in ("before", "after")}
    compared = compare(sqlite_database, *(Selection(name=side, run_ids=ids) for side, ids in sides.items()))
    changes = {row.metric.value: row.change for row in compared.rows if row.moved == "slower"}
    assert changes["metrics.median_ttft_ms"] == pytest.approx(1.0, abs=0.01)
    assert changes["metrics.p99_ttft_ms"] == pytest.approx(1.0, abs=0.01)
    assert changes["metrics.median_tpot_ms"] == pytest.approx(1.0, abs=0.05)
    assert changes["latency"] == pytest.approx(changes["metrics.median_tpot_ms"], rel=1e-6)
    assert compared.verdict is Verdict.REGRESSED


def test_further_tools_by_hand(files: Path) -> None:
    (genai,) = trials(files / "profile_export_genai_perf.json", strategy="default")
    (trtllm,) = trials(files / "trtllm_bench.json", strategy="default")
    default, eager = trials(files / "bmf.json")
    (phone,) = trials(files / "v3_executorch.json", latency="avg_inference_latency(ms)")
    found = [trial.summary.latency_ns for trial in (genai, trtllm, default, eager, phone) if trial.summary]
    # 1 s / 1,500 tokens, 1 s / 2,560 tokens, 2 and 4 ms in ns, the mean of 12.5 and 12.7 ms
    assert found == [666_667, 390_625, 2_000_000, 4_000_000, 12_600_000]
    assert genai.workload.name == "acme/L serve, unlimited rate, 8 at once"
    assert [trial.strategy.name for trial in (default, eager)] == ["default", "eager"]
    assert trtllm.workload.dtype == "bfloat16"
