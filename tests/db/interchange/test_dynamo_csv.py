"""PyTorch benchmarks/dynamo CSV: values read off real files by hand, failures, pairs, growing columns."""

from pathlib import Path

import pytest

from compilewatch.db.errors import RecordError
from compilewatch.db.records.trial import FailureKind, NumericsStatus, SourceKind, Status, Task, Trial
from tests.db.interchange.reading import TOLD, by_name, of_each, read, read_told

NAME = "inductor_torchbench_amp_training_cuda_performance.csv"
LONG = (
    "dev,name,batch_size,speedup,abs_latency,compilation_latency,compression_ratio,eager_peak_mem,"
    "dynamo_peak_mem,calls_captured,unique_graphs,graph_breaks,unique_graph_breaks\n"
)
ASKED = {key: TOLD[key] for key in ("torch", "device_name", "measured_at")}
ASKED_ON_CPU = ASKED | {"device_name": "AMD EPYC 9654"}


def write(folder: Path, text: str, name: str = NAME) -> Path:
    path = folder / name
    path.write_text(text)
    return path


# Of speedup 0.8 and 0.5 ms, 20.25 s, 40.5 and 45.25, which are percent x total / 10^9.
INVENTED_NET = (500_000, 400_000, 20_250_000_000, 405_000_000, 452_500_000, 0.875)
# Of 0.717554 and 0.426825 ms, 37.662211 s, 44.141773 and 49.824154.
PUBLIC_NET = (426_825, 306_270, 37_662_211_000, 441_417_730, 498_241_540, 0.882105)


@pytest.mark.parametrize(("samples", "says"), of_each(INVENTED_NET, PUBLIC_NET))
def test_a_performance_file_reads_as_it_says(samples: Path, says: tuple[float, ...]) -> None:
    path = samples / "dynamobench" / "inductor_huggingface_float32_inference_cpu_performance.csv"
    latency, control, cost, control_peak, peak, compression = says
    trials = by_name(read(path, **(ASKED | {"device_name": "AMD EPYC"})))
    assert set(trials) == {("Net", "inductor"), ("Branchy", "inductor")}
    net, branchy = trials["Net", "inductor"], trials["Branchy", "inductor"]
    assert (net.summary.latency_ns, net.summary.control_latency_ns) == (latency, control)
    assert (net.cold_start.until_steady_ns, net.cold_start.calls_until_steady) == (cost, 0)
    assert (net.memory.control_peak_bytes, net.memory.peak_rss_bytes) == (control_peak, peak)
    assert net.memory.peak_bytes is None
    assert (net.compiler.ops_captured, net.compiler.graphs, net.compiler.graph_breaks) == (3, 1, [])
    assert net.workload.model_dump(include={"task", "dtype", "batch_size"}) == {
        "task": Task.INFERENCE,
        "dtype": "float32",
        "batch_size": None,
    }
    assert (net.machine.device, net.machine.device_name, net.suite) == ("cpu", "AMD EPYC", "huggingface")
    assert branchy.compiler.graph_breaks is not None
    assert [event.count for event in branchy.compiler.graph_breaks] == [3]
    assert branchy.summary.metrics["unique_graph_breaks"] == 2
    assert branchy.summary.metrics["compression_ratio"] == compression


@pytest.mark.parametrize(("samples", "cost_ns"), of_each(15_500_000_000, 15_174_415_000))
def test_an_accuracy_file_without_its_partner_has_no_latency(samples: Path, cost_ns: int) -> None:
    path = samples / "dynamobench" / "inductor_huggingface_float32_training_cpu_accuracy.csv"
    (trial,) = read(path, **ASKED_ON_CPU)
    assert (trial.status, trial.workload.task, trial.workload.batch_size) == (Status.OK, Task.TRAINING, 1)
    assert trial.numerics.status is NumericsStatus.PASS
    assert trial.summary.latency_ns is None
    assert trial.cold_start.until_steady_ns == cost_ns
    assert trial.compiler.graph_breaks is not None
    assert [event.count for event in trial.compiler.graph_breaks] == [5]


@pytest.mark.parametrize(("samples", "_"), of_each(None, None))
def test_failure_rows_are_failures_not_zeros(samples: Path, _: None) -> None:
    folder = samples / "dynamobench" / "failed"
    slow = read(folder / "inductor_huggingface_float32_inference_cpu_performance.csv", **ASKED_ON_CPU)
    assert [(trial.workload.name, trial.status, trial.summary) for trial in slow] == [
        ("Net", Status.FAILED, None),
        ("Branchy", Status.FAILED, None),
    ]
    (wrong,) = read(folder / "inductor_huggingface_float32_training_cpu_accuracy.csv", **ASKED_ON_CPU)
    assert "fail_to_run" in wrong.failure.message


def test_a_failed_row_among_good_ones_is_no_zero(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        LONG
        + "cuda,good,8,2.000000,1.500000,10.0,1.25,4.0,3.2,10,1,0,0\n"
        + "cuda,bad,0,0.000000,0.000000,0,0,0,0,0,0,0,0\n",
    )
    good, bad = read(path, **ASKED)
    assert (good.summary.latency_ns, good.summary.control_latency_ns) == (1_500_000, 3_000_000)
    assert good.memory.peak_with_compile_bytes == 3_200_000_000
    assert good.memory.control_peak_bytes == 4_000_000_000
    assert good.workload.batch_size == 8
    assert good.source.kind is SourceKind.IMPORTED
    assert (bad.status, bad.summary, bad.memory, bad.workload.batch_size) == (Status.FAILED, None, None, None)


def test_columns_are_found_by_name_in_any_order_and_new_ones_are_kept(tmp_path: Path) -> None:
    path = write(
        tmp_path, "name,fallbacks_to_eager,abs_latency,dev,speedup,batch_size\nm,4,2.0,cuda,1.5,16\n"
    )
    (trial,) = read(path, **ASKED)
    assert trial.summary.latency_ns == 2_000_000
    assert trial.summary.metrics == {"fallbacks_to_eager": 4.0}


ACCURACY = "dev,name,batch_size,accuracy\n"


@pytest.mark.parametrize(
    ("text", "status", "kind", "numerics"),
    [
        ("pass", Status.OK, None, NumericsStatus.PASS),
        ("pass_due_to_skip", Status.OK, None, NumericsStatus.NOT_CHECKED),
        ("eager_variation", Status.OK, None, NumericsStatus.EAGER_TWO_RUNS_DIFFER),
        ("fail_accuracy", Status.FAILED, FailureKind.WRONG_RESULT, NumericsStatus.FAIL),
        ("OOM", Status.FAILED, FailureKind.OUT_OF_MEMORY, NumericsStatus.NOT_CHECKED),
        ("timeout", Status.FAILED, FailureKind.TIMEOUT, NumericsStatus.NOT_CHECKED),
        ("fail_to_run", Status.FAILED, FailureKind.CRASH, NumericsStatus.NOT_CHECKED),
        ("infra_error", Status.FAILED, FailureKind.CRASH, NumericsStatus.NOT_CHECKED),
    ],
)
def test_accuracy_words(
    tmp_path: Path, text: str, status: Status, kind: FailureKind | None, numerics: NumericsStatus
) -> None:
    path = write(tmp_path, f"{ACCURACY}cuda,m,4,{text}\n", NAME.replace("performance", "accuracy"))
    (trial,) = read(path, **ASKED)
    assert trial.status is status
    assert (trial.failure.kind if trial.failure else None) is kind
    assert trial.numerics.status is numerics


def test_a_model_that_fails_its_accuracy_run_failed(tmp_path: Path) -> None:
    performance = write(tmp_path, LONG + "cuda,m,8,2.0,1.5,10.0,1.25,4.0,3.2,10,1,0,0\n")
    accuracy = write(
        tmp_path,
        f"{ACCURACY}cuda,m,4,fail_accuracy\ncuda,only,4,pass\n",
        NAME.replace("performance", "accuracy"),
    )
    pair = read(performance, **ASKED)
    assert pair == read(accuracy, **ASKED)
    assert [trial.workload.name for trial in pair] == ["m", "only"]
    assert pair[0].failure.kind is FailureKind.WRONG_RESULT
    assert pair[0].summary.latency_ns == 1_500_000


def test_expected_accuracy_lists_of_ci_are_read_by_header(tmp_path: Path) -> None:
    path = write(
        tmp_path, "name,accuracy,graph_breaks\nBERT,pass,0\nT5,fail_to_run,5\n", "inductor_huggingface.csv"
    )
    bert, t5 = read_told(path)
    assert bert.compiler.graph_breaks == []
    assert t5.status is Status.FAILED
    assert (bert.strategy.name, bert.suite) == ("inductor", "huggingface")


@pytest.mark.parametrize(
    ("name", "strategy", "suite", "dtype"),
    [
        (
            "inductor_with_cudagraphs_timm_models_amp_training_cuda_performance.csv",
            "inductor_with_cudagraphs",
            "timm_models",
            "amp",
        ),
        (
            "aot_inductor_huggingface_bfloat16_training_cuda_performance.csv",
            "aot_inductor",
            "huggingface",
            "bfloat16",
        ),
        (
            "inductor_dynamic_torchbench_amp_bf16_training_cuda_performance.csv",
            "inductor_dynamic",
            "torchbench",
            "amp_bf16",
        ),
    ],
)
def test_dimensions_come_from_the_file_name(
    tmp_path: Path, name: str, strategy: str, suite: str, dtype: str
) -> None:
    (trial,) = read(
        write(tmp_path, "dev,name,batch_size,speedup,abs_latency\ncuda,m,8,2.0,1.5\n", name), **ASKED
    )
    assert (trial.strategy.name, trial.suite, trial.workload.dtype) == (strategy, suite, dtype)
    assert trial.strategy.cache == "unknown"
    assert trial.strategy.dynamic is (True if "dynamic" in name else None)


def test_what_the_file_does_not_say_is_asked_for_all_at_once(tmp_path: Path) -> None:
    with pytest.raises(RecordError) as raised:
        read(write(tmp_path, "dev,name,batch_size,speedup,abs_latency\ncuda,m,8,2.0,1.5\n", "results.csv"))
    assert raised.value.message.endswith(
        "does not say the torch version, the GPU (or CPU), when it was measured, the dtype, the task and "
        "whether it was compiled."
    )
    assert "--torch" in raised.value.next_step
    assert "--measured-at" in raised.value.next_step


SHORT = "dev,name,batch_size,speedup,abs_latency\ncuda,m,8,2.0,1.5\n"


@pytest.mark.parametrize("name", ["perf2.csv", "expected (1).csv", "results_torchbench.csv"])
def test_whether_it_was_compiled_is_asked_under_another_name(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, SHORT, name)
    with pytest.raises(RecordError, match=r"does not say whether it was compiled\.") as raised:
        read_told(path, strategy=None)
    assert raised.value.next_step == "Name it with --strategy eager."
    told = read_told(path, strategy="max-autotune")
    assert [trial.strategy.name for trial in told] == ["max-autotune"]
    assert told == read_told(write(tmp_path, SHORT, "other.csv"), strategy="max-autotune")


@pytest.mark.parametrize("name", [NAME, "aot_eager_huggingface_training.csv"])
def test_a_browsers_copy_is_known_by_its_name(tmp_path: Path, name: str) -> None:
    trials = read_told(write(tmp_path, SHORT, name))
    assert trials == read_told(write(tmp_path, SHORT, name.replace(".csv", " (1).csv")))
    assert trials[0].strategy.name in ("inductor", "aot_eager")


@pytest.mark.parametrize("copy", ["", " (1)"])
def test_a_copy_finds_its_partner(tmp_path: Path, copy: str) -> None:
    name = NAME.replace("performance.csv", f"accuracy{copy}.csv")
    write(tmp_path, "dev,name,batch_size,accuracy\ncuda,m,8,fail_accuracy\n", name)
    (trial,) = read(write(tmp_path, SHORT, NAME.replace(".csv", " (1).csv")), **ASKED)
    assert trial.failure.kind is FailureKind.WRONG_RESULT


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ("cuda,m,8,fast,1.5", "speedup"),
        ("cuda,m,8,2.0,-1.5", "abs_latency"),
        ("cuda,m,8,2.0,1e300", "abs_latency"),
        ("cuda,m,8.5,2.0,1.5", "batch_size"),
        ("cuda,,8,2.0,1.5", "name"),
        ("cuda,m,8,inf,1.5", "speedup"),
        ("cuda,m,8,2.0", "the row"),
    ],
)
def test_a_bad_cell_names_file_line_and_field(tmp_path: Path, row: str, field: str) -> None:
    path = write(tmp_path, f"dev,name,batch_size,speedup,abs_latency\ncuda,ok,8,2.0,1.5\n{row}\n")
    with pytest.raises(RecordError) as raised:
        read(path, **ASKED)
    assert raised.value.message.startswith(f"{path}, line 3: {field}: ")


def test_the_positional_compilation_metrics_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "name,speedup,abs_latency\nm,1,1\n", "x_compilation_metrics.csv")
    with pytest.raises(RecordError, match="do not hold for every row"):
        read(path, **ASKED)


PERFORMANCE = "dev,name,batch_size,speedup,abs_latency\n"


def pair(folder: Path, performance: str, accuracy: str, *, tag: bool = False) -> list[Trial]:
    """The trials of a pair of files, in the order in which they are read."""
    heads = [
        head.replace("batch_size", "batch_size,tag") if tag else head for head in (PERFORMANCE, ACCURACY)
    ]
    write(folder, heads[1] + accuracy, NAME.replace("performance", "accuracy"))
    return read(write(folder, heads[0] + performance), **ASKED)


def verdicts(trials: list[Trial]) -> list[tuple[int | None, bool, NumericsStatus | None]]:
    """(batch size, whether there is a latency, verdict) of each."""
    return [
        (
            trial.workload.batch_size,
            bool(trial.summary and trial.summary.latency_ns),
            trial.numerics.status if trial.numerics else None,
        )
        for trial in trials
    ]


PASS, FAIL = NumericsStatus.PASS, NumericsStatus.FAIL


def test_verdicts_of_several_batch_sizes_land_on_their_rows(tmp_path: Path) -> None:
    trials = pair(tmp_path, "cuda,m,1,2.0,1.5\ncuda,m,8,3.0,2.5\n", "cuda,m,8,fail_accuracy\ncuda,m,1,pass\n")
    assert verdicts(trials) == [(1, True, PASS), (8, True, FAIL)]
    assert [trial.status for trial in trials] == [Status.OK, Status.FAILED]


def test_a_verdict_of_another_batch_size_is_a_trial_where_batches_tell_rows_apart(tmp_path: Path) -> None:
    trials = pair(tmp_path, "cuda,m,1,2.0,1.5\ncuda,m,8,3.0,2.5\n", "cuda,m,4,fail_accuracy\n")
    assert verdicts(trials) == [(1, True, None), (8, True, None), (4, False, FAIL)]
    trials = pair(tmp_path, "cuda,m,8,3.0,2.5\n", "cuda,m,4,fail_accuracy\ncuda,m,8,pass\n")
    assert verdicts(trials) == [(8, True, PASS), (4, False, FAIL)]


def test_a_verdict_holds_for_every_repeat_of_its_row(tmp_path: Path) -> None:
    trials = pair(tmp_path, "cuda,m,8,2.0,1.5\ncuda,m,8,2.1,1.4\n", "cuda,m,4,fail_accuracy\n")
    assert verdicts(trials) == [(8, True, FAIL), (8, True, FAIL)]


def test_accuracy_rows_alone_are_all_kept(tmp_path: Path) -> None:
    name = NAME.replace("performance", "accuracy")
    path = write(tmp_path, f"{ACCURACY}cuda,m,1,pass\ncuda,m,8,fail_accuracy\ncuda,m,8,pass\n", name)
    trials = read(path, **ASKED)
    assert verdicts(trials) == [(1, False, PASS), (8, False, FAIL), (8, False, PASS)]
    assert len({trial.trial_id for trial in trials}) == 3


def test_two_verdicts_on_one_row_are_refused_where_they_differ(tmp_path: Path) -> None:
    same = pair(tmp_path, "cuda,m,8,2.0,1.5\n", "cuda,m,8,pass\ncuda,m,8,pass\n")
    assert verdicts(same) == [(8, True, PASS)]
    with pytest.raises(RecordError) as raised:
        pair(tmp_path, "cuda,m,8,2.0,1.5\n", "cuda,m,8,pass\ncuda,m,8,fail_accuracy\n")
    accuracy = tmp_path / NAME.replace("performance", "accuracy")
    assert raised.value.message == (
        f"{accuracy}, line 3: accuracy: is fail_accuracy here and pass on line 2, of one row."
    )


def test_tags_tell_rows_apart_and_are_kept(tmp_path: Path) -> None:
    trials = pair(
        tmp_path,
        "cuda,m,8,old,2.0,1.5\ncuda,m,8,new,3.0,2.5\n",
        "cuda,m,4,new,fail_accuracy\ncuda,m,4,old,pass\n",
        tag=True,
    )
    assert verdicts(trials) == [(8, True, PASS), (8, True, FAIL)]
    assert [trial.label for trial in trials] == ["old", "new"]


def test_a_label_that_is_told_outranks_the_tag(tmp_path: Path) -> None:
    path = write(tmp_path, "dev,name,batch_size,tag,speedup,abs_latency\ncuda,m,8,t,2.0,1.5\n")
    (trial,) = read(path, **ASKED, label="mine")
    assert trial.label == "mine"


def test_only_columns_that_both_files_have_join_them(tmp_path: Path) -> None:
    write(tmp_path, "name,accuracy\nm,fail_accuracy\n", NAME.replace("performance", "accuracy"))
    trials = read(write(tmp_path, PERFORMANCE + "cuda,m,1,2.0,1.5\ncuda,m,8,2.0,1.5\n"), **ASKED)
    assert verdicts(trials) == [(1, True, FAIL), (8, True, FAIL)]


def test_a_failed_row_without_batch_size_tells_no_rows_apart(tmp_path: Path) -> None:
    trials = pair(tmp_path, "cuda,m,8,2.0,1.5\ncuda,m,0,0.000000,0.000000\n", "cuda,m,4,fail_accuracy\n")
    assert verdicts(trials) == [(8, True, FAIL), (None, False, FAIL)]


def test_a_partner_without_its_column_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, "dev,name\ncuda,m\n", NAME.replace("performance", "accuracy"))
    with pytest.raises(RecordError, match="line 2: accuracy: is missing"):
        read(write(tmp_path, PERFORMANCE + "cuda,m,1,2.0,1.5\n"), **ASKED)


def test_a_failed_row_in_a_file_with_tags_has_none(tmp_path: Path) -> None:
    """The tool writes such a row without a tag and pads it at its end."""
    path = write(tmp_path, "dev,name,batch_size,tag,speedup,abs_latency\ncuda,m,0,0.000000,0.000000,0\n")
    (trial,) = read(path, **ASKED)
    assert (trial.status, trial.label) == (Status.FAILED, None)
