"""Servers under load: a case for each load, what a server owes under it, and the tools that say so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compilewatch.db.columns.source_metrics import judged_metrics
from compilewatch.db.engine.session import Database
from compilewatch.db.errors import RecordError
from compilewatch.db.interchange.files.foreign_trials import ForeignResult
from compilewatch.db.interchange.files.opening import input_files
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.formats import READERS, Format
from compilewatch.db.interchange.importing import import_paths
from compilewatch.db.judge.compare.sides import Selection
from compilewatch.db.judge.results import Comparison
from compilewatch.db.queries.trials import trial_records, trials_frame
from compilewatch.db.records.trial import FailureKind, StrategyKind, Summary, Trial
from compilewatch.db.records.vocabulary import Verdict
from compilewatch.db.verdicts.gateway import compare
from compilewatch.runner.output.comparison_text import markdown
from tests.db.interchange.reading import TOLD, read_told
from tests.db.interchange.tiny_files import genai_perf, sglang, trtllm_bench


def served(rate: float | str, tpot_ms: float, **more: Any) -> dict[str, Any]:
    """A result in the tool's shape; 200 prompts of 1,024 tokens are answered with 128 each."""
    return {
        "date": "20260901-010000",
        "model_id": "acme/Llama-8B",
        "num_prompts": 200,
        "request_rate": rate,
        "max_concurrency": None,
        "completed": 200,
        "total_input_tokens": 204_800,
        "total_output_tokens": 25_600,
        "request_throughput": 4.0,
        "output_throughput": 500.0,
        "median_ttft_ms": 55.0,
        "median_tpot_ms": tpot_ms,
        **more,
    }


def write(folder: Path, *results: dict[str, Any]) -> Path:
    path = folder / "results.json"
    path.write_text("\n".join(map(json.dumps, results)), encoding="utf-8")
    return path


def test_under_a_fixed_rate_the_latency_is_the_time_per_output_token(tmp_path: Path) -> None:
    (before,) = read_told(write(tmp_path, served(4.0, 9.5)))
    (after,) = read_told(write(tmp_path, served(4.0, 19.0)))
    assert before.workload == after.workload
    assert before.summary is not None
    assert after.summary is not None
    assert (before.summary.latency_ns, after.summary.latency_ns) == (9_500_000, 19_000_000)
    assert before.summary.metrics["median_ttft_ms"] == 55.0


def test_at_an_unlimited_rate_it_is_the_time_per_token_of_all_requests(tmp_path: Path) -> None:
    (trial,) = read_told(write(tmp_path, served("inf", 44.0, output_throughput=4_000.0)))
    assert trial.summary is not None
    assert trial.summary.latency_ns == 250_000


@pytest.mark.parametrize(
    "other",
    [
        {"request_rate": 16.0},
        {"request_rate": "inf"},
        {"max_concurrency": 8},
        {"total_input_tokens": 1_638_400},
        {"total_output_tokens": 51_200},
    ],
)
def test_another_load_is_another_case(tmp_path: Path, other: dict[str, Any]) -> None:
    first, second = read_told(write(tmp_path, served(4.0, 9.5), served(4.0, 9.5) | other))
    assert first.workload != second.workload
    assert first.workload.shape == {"num_prompts": 200, "input_len": 1_024, "output_len": 128}


def test_appended_results_are_as_many_trials(tmp_path: Path) -> None:
    trials = read_told(write(tmp_path, *(served(float(rate), 8.0) for rate in (1, 4, 16))))
    assert [trial.workload.name for trial in trials] == [
        f"acme/Llama-8B serve, rate {rate}/s" for rate in (1, 4, 16)
    ]


def the(path: Path, **told: Any) -> tuple[Trial, Summary]:
    (trial,) = read_told(path, **told)
    assert trial.summary is not None
    return trial, trial.summary


def written(folder: Path, text: str, name: str = "result.json") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_without_times_of_tokens_it_is_that_of_a_request(tmp_path: Path) -> None:
    """Never the load that was offered."""
    result = served(4.0, 9.5, median_e2el_ms=1_271.0)
    del result["median_tpot_ms"]
    _, summary = the(write(tmp_path, result))
    assert summary.latency_ns == 1_271_000_000
    del result["median_e2el_ms"]
    _, summary = the(write(tmp_path, result))
    assert summary.latency_ns is None


def compared(database: Database, folder: Path, base: dict[str, Any], head: dict[str, Any]) -> Comparison:
    """Four results a side, a minute apart, whose rates and times scatter by less than a percent."""
    for side, figures in (("before", base), ("after", head)):
        folder.mkdir(exist_ok=True)
        paths = []
        for number, scatter in enumerate((1.0, 1.004, 0.997, 1.002)):
            day = "01" if side == "before" else "08"
            result = served(figures.get("rate", 4.0), 9.5)
            result |= {
                key: value * scatter if isinstance(value, float) else value
                for key, value in figures.items()
                if key != "rate"
            }
            result |= {"date": f"202609{day}-01{number:02}00"}
            paths.append(written(folder, json.dumps(result), f"{side}{number}.json"))
        told = ImportOptions(**TOLD | {"measured_at": None, "strategy": "default"}, label=side)
        assert import_paths(database, paths, options=told).errors == ()
    frame = trials_frame(database)
    runs = {side: tuple(sorted({*frame["run_id"][frame["label"] == side]})) for side in ("before", "after")}
    return compare(database, *(Selection(name=side, run_ids=ids) for side, ids in runs.items()))


def verdicts(comparison: Comparison) -> dict[str, Verdict]:
    return {row.metric.value.removeprefix("metrics."): row.verdict for row in comparison.rows}


def test_a_later_first_token_fails_a_comparison(sqlite_database: Database, tmp_path: Path) -> None:
    comparison = compared(
        sqlite_database,
        tmp_path,
        {"median_ttft_ms": 55.0, "p99_ttft_ms": 165.0, "request_goodput": 3.9, "median_tpot_ms": 9.5},
        {"median_ttft_ms": 110.0, "p99_ttft_ms": 165.0, "request_goodput": 1.9, "median_tpot_ms": 9.5},
    )
    found = verdicts(comparison)
    assert found["median_ttft_ms"] is found["request_goodput"] is Verdict.REGRESSED
    assert found["p99_ttft_ms"] is not Verdict.REGRESSED
    assert found["latency"] is not Verdict.REGRESSED
    assert "output_throughput" not in found
    assert comparison.verdict is Verdict.REGRESSED


def test_what_falls_to_zero_or_rises_from_it_fails_a_comparison(
    sqlite_database: Database, tmp_path: Path
) -> None:
    comparison = compared(
        sqlite_database,
        tmp_path,
        {"request_goodput": 3.9, "failed": 0, "completed": 200, "cudagraph_skips": 0},
        {"request_goodput": 0.0, "failed": 20, "cudagraph_skips": 5}
        | {"completed": 180, "total_input_tokens": 184_320, "total_output_tokens": 23_040},
    )
    found = verdicts(comparison)
    assert found["request_goodput"] is found["failed"] is found["completed"] is Verdict.REGRESSED
    assert found["cudagraph_skips"] is Verdict.REGRESSED
    assert comparison.verdict is Verdict.REGRESSED
    table = markdown(comparison)
    assert "| 3.90 requests/s | 0 requests/s | to 0 |" in table
    assert "| 0 | 20 | from 0 |" in table


def test_throughput_is_judged_at_an_unlimited_rate(sqlite_database: Database, tmp_path: Path) -> None:
    rate: dict[str, Any] = {"rate": "inf"}
    comparison = compared(
        sqlite_database,
        tmp_path,
        rate | {"output_throughput": 4_000.0},
        rate | {"output_throughput": 6_000.0},
    )
    found = verdicts(comparison)
    assert found["output_throughput"] is found["latency"] is Verdict.IMPROVED


def test_sglang_writes_a_line_for_each_load_and_its_unlimited_rate_as_infinity(tmp_path: Path) -> None:
    lines = "".join(sglang(max_concurrency=each, output_throughput=100.0 * each) for each in (1, 4))
    first, second = read_told(written(tmp_path, lines), workload="acme/L")
    assert [trial.workload.name for trial in (first, second)] == [
        f"acme/L sglang serve, unlimited rate, {each} at once, dataset random" for each in (1, 4)
    ]
    assert first.workload.shape["random_input_len"] == 1_024
    assert (first.source.name, first.summary and first.summary.latency_ns) == ("sglang", 10_000_000)
    trial, summary = the(written(tmp_path, sglang(request_rate=4.0, server_info={"model_path": "acme/M"})))
    assert trial.workload.name == "acme/M sglang serve, rate 4/s, 16 at once, dataset random"
    assert summary.latency_ns == 9_000_000
    assert summary.metrics["p99_e2e_latency_ms"] == 1_200.0


def test_recorded_requests_are_sent_at_a_rate_of_their_own(tmp_path: Path) -> None:
    trial, summary = the(written(tmp_path, sglang(request_rate="trace", dataset_name="mooncake")))
    assert "rate of a trace" in trial.workload.name
    assert summary.latency_ns == 9_000_000


def test_infinity_is_no_figure(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="max_concurrency"):
        read_told(written(tmp_path, sglang(max_concurrency=float("inf"))))


@pytest.mark.parametrize(
    "tpot", [{"median_tpot_ms": -12.5}, {"median_tpot_ms": 4e6}, {"median_tpot_ms": 2e3}]
)
def test_a_time_per_token_that_cannot_be_is_no_latency(tmp_path: Path, tpot: dict[str, float]) -> None:
    """Nor does that of a request stand in for it: of one case the latency is one figure."""
    result = sglang(request_rate=4.0, **tpot)
    _, summary = the(written(tmp_path, result))
    assert summary.latency_ns is None
    assert "median_tpot_ms" not in summary.metrics
    assert summary.metrics["median_e2e_latency_ms"] == 880.0
    options = ImportOptions(**TOLD)
    list(READERS[Format.SGLANG](*input_files(written(tmp_path, result)), options))
    assert f"{tmp_path / 'result.json'}, line 1: median_tpot_ms cannot be; left out." in options.notes


SERVED = served(4.0, 9.5, request_rate="inf", run_number=0)


def swept(folder: Path, **overrides: Any) -> Trial:
    """The trial of a combination of `vllm bench sweep serve`."""
    (trial,) = read_told(written(folder, json.dumps(SERVED | overrides, indent=4)), strategy=None)
    return trial


def test_what_a_sweep_overrides_tells_cases_apart(tmp_path: Path) -> None:
    eager = {"enforce_eager": True}
    first = swept(tmp_path, max_num_seqs=32, **eager)
    assert first.workload.name == "acme/Llama-8B serve, unlimited rate"
    assert first.workload.shape["max_num_seqs"] == 32
    assert first.strategy.kind is StrategyKind.EAGER
    assert first.summary is not None
    assert {"run_number", "max_num_seqs"}.isdisjoint(first.summary.metrics)
    assert swept(tmp_path, **{"max-num-seqs": 32}, **eager).workload == first.workload
    others = [
        swept(tmp_path, **override, **eager)
        for override in (
            {"max_num_seqs": 64},
            {"max_num_seqs": 32, "gpu_memory_utilization": 0.5},
            {"max_num_seqs": 32, "enable_prefix_caching": False},
            {"max_num_seqs": 32, "speculative_config": {"method": "mtp", "num_speculative_tokens": 2}},
            {"max_num_seqs": 32, "dtype": "float32"},
        )
    ]
    assert len({each.workload.model_dump_json() for each in (first, *others)}) == len(others) + 1
    assert others[-1].workload.dtype == "float32"
    compiled = swept(tmp_path, max_num_seqs=32, enforce_eager=False)
    assert (compiled.workload, compiled.strategy.name) == (first.workload, "compiled")
    without_graphs = swept(tmp_path, max_num_seqs=32, **{"compilation_config.cudagraph_mode": "NONE"})
    assert without_graphs.workload == first.workload
    assert without_graphs.strategy.name == "compiled+compilation_config.cudagraph_mode=NONE"
    uncompiled = swept(tmp_path, max_num_seqs=32, compilation_config={"mode": 0})
    assert uncompiled.strategy == first.strategy


def test_the_summary_of_a_sweep_says_what_its_runs_say(sqlite_database: Database, tmp_path: Path) -> None:
    folder = tmp_path / "SERVE--max_num_seqs=32"
    folder.mkdir()
    runs = [
        SERVED | {"date": f"20260901-0{each}0000", "run_number": each, "max_num_seqs": 32} for each in (0, 1)
    ]
    for number, run in enumerate(runs):
        written(folder, json.dumps(run, indent=4), f"run={number}.json")
    written(folder, json.dumps(runs, indent=4), "summary.json")
    table = "date,run_number,request_throughput,output_throughput\n20260901-000000,0,4.0,500.0\n"
    written(tmp_path, table, "summary.csv")
    told = ImportOptions(**TOLD | {"measured_at": None})
    report = import_paths(sqlite_database, [tmp_path], options=told)
    assert report.errors == ()
    assert (report.new, report.known) == (2, 2)
    notes = " ".join(note for file in report.files for note in file.notes)
    assert "is a sweep's summary, which says what each run=N.json beside it says" in notes
    assert "summary.csv: looks like the table of a sweep of vLLM" in notes
    with pytest.raises(RecordError, match="repeats the run=N\\.json in the folders"):
        read_told(tmp_path / "summary.csv")


def test_burstiness_and_a_ramp_are_other_loads(tmp_path: Path) -> None:
    usual, bursts, ramp = read_told(
        write(
            tmp_path,
            served("inf", 9.5, burstiness=1.0),
            served("inf", 9.5, burstiness=0.5),
            served("inf", 9.5, ramp_up_strategy="linear", ramp_up_start_rps=1, ramp_up_end_rps=8),
        )
    )
    assert usual.workload.name == "acme/Llama-8B serve, unlimited rate"
    assert bursts.workload.name == "acme/Llama-8B serve, unlimited rate, burstiness 0.5"
    assert "ramp_up_end_rps 8" in ramp.workload.name
    assert ramp.summary is not None
    assert ramp.summary.latency_ns == 9_500_000, "throughput is what was offered"
    assert "metrics.output_throughput" not in judged_metrics(ramp.summary.metrics)


def test_genai_perf_and_aiperf(tmp_path: Path) -> None:
    trial, summary = the(written(tmp_path, genai_perf()))
    assert trial.workload.name == "acme/L serve, unlimited rate, 8 at once"
    assert trial.workload.shape == {"input_len": 1_024, "output_len": 128}
    # 1 s / 1,500 tokens
    assert summary.latency_ns == 666_667
    assert {name: summary.metrics[name] for name in ("median_ttft_ms", "p99_tpot_ms", "median_e2el_ms")} == {
        "median_ttft_ms": 50.0,
        "p99_tpot_ms": 12.0,
        "median_e2el_ms": 800.0,
    }
    config = {
        "models": {"items": [{"name": "acme/M"}]},
        "phases": [{"name": "profiling", "concurrency": None, "request_rate": 4}],
        "endpoint": {"streaming": True},
        "dataset": {"isl": 2_048, "osl": 64},
    }
    goodput = {"unit": "requests/sec", "avg": 3.5}
    more = {"input_config": config, "start_time": "2026-09-01T10:00:00+00:00", "goodput": goodput}
    trial, summary = the(written(tmp_path, genai_perf(**more)), measured_at=None)
    assert trial.workload.name == "acme/M serve, rate 4/s"
    assert trial.workload.shape == {"input_len": 2_048, "output_len": 64}
    assert (trial.started_at.isoformat(), summary.latency_ns) == ("2026-09-01T10:00:00+00:00", 6_000_000)
    assert summary.metrics["request_goodput"] == 3.5


def test_the_first_aiperf_had_its_metrics_in_a_part_and_some_vllm_a_colon(tmp_path: Path) -> None:
    whole = json.loads(genai_perf())
    config = {"input_config": whole.pop("input_config")}
    trial, summary = the(written(tmp_path, json.dumps(config | {"records": whole})))
    assert (trial.workload.name, summary.latency_ns) == ("acme/L serve, unlimited rate, 8 at once", 666_667)
    _, summary = the(write(tmp_path, served(4.0, 9.5) | {"request_goodput:": 3.5}))
    assert summary.metrics["request_goodput"] == 3.5


def test_trtllm_bench(tmp_path: Path) -> None:
    trial, summary = the(written(tmp_path, trtllm_bench()), dtype=None, device_name=None)
    name = "acme/L serve, unlimited rate, 8 at once, decoding MTP"
    assert (trial.workload.name, trial.workload.dtype) == (name, "bfloat16")
    assert (trial.workload.shape["tp_size"], trial.workload.shape["ep_size"]) == (2, 1)
    assert trial.machine.device_name == "NVIDIA H100"
    assert trial.build.packages["tensorrt_llm"] == "1.0.0"
    # 1 s / 2,560 tokens
    assert (summary.latency_ns, summary.metrics["avg_request_latency_ms"]) == (390_625, 900.0)
    percentiles = {"request_latency_percentiles_ms": {"p50": 880.0, "p99": 1_100.0, "minimum": 1.0}}
    _, summary = the(written(tmp_path, trtllm_bench(**percentiles)))
    assert summary.metrics["median_e2el_ms"] == 880.0
    assert summary.metrics["p99_e2el_ms"] == 1_100.0


def test_trtexec(tmp_path: Path) -> None:
    times = [{"computeMs": time, "latencyMs": time + 0.5} for time in (1.5, 1.0, 2.0)]
    trial, summary = the(written(tmp_path, json.dumps(times), "resnet.json"), strategy=None)
    assert (trial.workload.name, trial.strategy.kind) == ("resnet", StrategyKind.EXPORT)
    assert trial.samples_ns == [2_000_000, 1_500_000, 2_500_000]
    assert (summary.latency_ns, summary.metrics) == (2_000_000, {"GPU compute time (ms)": 1.5})


def test_a_server_that_answered_nothing_failed(tmp_path: Path) -> None:
    """As vLLM writes it: every figure is 0, of times too."""
    nothing = {"completed": 0, "total_input_tokens": 0, "total_output_tokens": 0, "output_throughput": 0.0}
    (trial,) = read_told(write(tmp_path, served("inf", 0.0, median_ttft_ms=0.0, **nothing)))
    assert trial.failure is not None
    assert trial.failure.message == "None of 200 requests was completed."
    assert trial.summary is None


def test_a_quantized_engine_is_another_case(tmp_path: Path) -> None:
    report = json.loads(trtllm_bench())
    report["engine"] |= {"quantization": "FP8", "kv_cache_dtype": None}
    trial, _ = the(written(tmp_path, json.dumps(report)))
    assert trial.workload.name == "acme/L serve, unlimited rate, 8 at once, quantization FP8, decoding MTP"


# What other releases write, and what lies beside results.

REQUESTS = {"latencies": [1.6] * 200, "queue_times": [0.0] * 200}


@pytest.mark.parametrize(("rate", "latency_ns"), [(4.0, 9_500_000), ("inf", 2_000_000)])
def test_the_times_of_all_requests_are_not_those_of_a_batch(
    tmp_path: Path, rate: float | str, latency_ns: int
) -> None:
    """vLLM keeps them in every result of a server since it measures queues."""
    trial, summary = the(write(tmp_path, served(rate, 9.5, **REQUESTS)))
    assert " serve, " in trial.workload.name
    assert (summary.latency_ns, trial.samples_ns) == (latency_ns, [])
    assert summary.metrics["median_ttft_ms"] == 55.0


def test_a_server_of_embeddings_has_the_time_of_a_request(tmp_path: Path) -> None:
    result = served("inf", 0.0, median_e2el_ms=25.0, total_token_throughput=4_096.0)
    for key in ("output_throughput", "median_tpot_ms", "median_ttft_ms", "total_output_tokens"):
        del result[key]
    trial, summary = the(write(tmp_path, result))
    assert (trial.workload.name, summary.latency_ns) == ("acme/Llama-8B serve, unlimited rate", 25_000_000)


def test_numbers_may_be_text(tmp_path: Path) -> None:
    texts = {
        "request_rate": "4",
        "max_concurrency": "8",
        "median_tpot_ms": "9.5",
        "tensor_parallel_size": "2",
    }
    trial, summary = the(write(tmp_path, served(4.0, 9.5) | texts))
    assert trial.workload.name == "acme/Llama-8B serve, rate 4/s, 8 at once"
    assert trial.workload.shape["tensor_parallel_size"] == 2
    assert summary.latency_ns == 9_500_000
    with pytest.raises(RecordError, match="request_rate: must be a number, not 'fast'"):
        read_told(write(tmp_path, served("fast", 9.5)))


@pytest.mark.parametrize(
    ("tokens", "others"),
    [((25_520, 25_580), True), ((25_520, 25_480), True), ((25_600, 25_520), True), ((25_600, 25_601), True),
     ((25_520, 51_000), False), ((20_000, 25_600), False), ((20_000, 20_200), False)],
)  # fmt: skip
def test_means_of_lengths_that_differ_by_a_token_are_one_case(
    tmp_path: Path, tokens: tuple[int, int], others: bool
) -> None:
    """Of 200 answers: a whole number was asked for, any other is the mean of texts of many lengths."""
    first, second = read_told(
        write(tmp_path, *(served(4.0, 9.5, total_output_tokens=each) for each in tokens))
    )
    assert (first.workload == second.workload) is others


def test_another_server_is_another_case_and_a_label_names_the_run(tmp_path: Path) -> None:
    backends = ("openai", "vllm", "tgi", "tensorrt-llm")
    results = [served(4.0, 9.5, backend=each, label=f"of {each}", run_name="x") for each in backends]
    trials = read_told(write(tmp_path, *results))
    assert [each.workload.name.partition("/s")[2] for each in trials] == [
        "",
        "",
        ", backend tgi",
        ", backend tensorrt-llm",
    ]
    assert [each.label for each in trials] == [f"of {each}" for each in backends]


def test_latency_without_the_list_of_calls(tmp_path: Path) -> None:
    result = {"avg_latency": 1.2, "latencies": [], "percentiles": {"50": 1.15, "99": 1.5}}
    trial, summary = the(write(tmp_path, result), workload="acme/L")
    assert (trial.workload.name, summary.latency_ns) == ("acme/L latency", 1_150_000_000)


def test_failed_runs_of_a_sweep_are_failures_and_warm_ups_are_none(
    sqlite_database: Database, tmp_path: Path
) -> None:
    folder = tmp_path / "SERVE--max_num_seqs=32"
    folder.mkdir()
    run = SERVED | {"max_num_seqs": 32}
    written(folder, json.dumps(run), "run=0.json")
    broken = {"run_number": 1, "error_type": "RuntimeError", "error": "server died\nat once"}
    broken |= {"serve_overrides": {"max_num_seqs": 32}, "bench_overrides": {}}
    written(folder, json.dumps(broken), "run=1.failure.json")
    written(folder, json.dumps(run | {"run_number": -1, "num_prompts": 10}), "warmup.json")
    told = ImportOptions(**TOLD | {"measured_at": None})
    report = import_paths(sqlite_database, [folder], options=told)
    assert report.errors == ()
    assert (report.new, [file.failed_trials for file in report.files]) == (2, [0, 1, 0])
    first, second = trial_records(sqlite_database)
    assert (first.workload, first.run_id) == (second.workload, second.run_id)
    assert {each.failure and each.failure.message for each in (first, second)} == {
        None,
        "RuntimeError: server died at once",
    }
    with pytest.raises(RecordError, match="is a warm-up of a sweep"):
        read_told(folder / "warmup.json")
    (folder / "run=0.json").unlink()
    with pytest.raises(RecordError, match=r"no run=N\.json beside it says of which case"):
        read_told(folder / "run=1.failure.json")


ONE_BATCH = {
    "run_name": "before",
    "batch_size": 4,
    "input_len": 256,
    "output_len": 32,
    "prefill_latency": 0.02,
}


@pytest.mark.parametrize("key", ["total_latency", "latency"])
def test_one_batch_of_sglang(tmp_path: Path, key: str) -> None:
    lines = "".join(json.dumps(ONE_BATCH | {"batch_size": each, key: each / 8}) + "\n" for each in (4, 16))
    first, second = read_told(written(tmp_path, lines, "r.jsonl"), workload="acme/L")
    assert (first.source.name, first.workload.name) == ("sglang", "acme/L one batch")
    assert first.workload.shape == {"input_len": 256, "output_len": 32}
    assert [(each.workload.batch_size, each.label) for each in (first, second)] == [
        (4, "before"),
        (16, "before"),
    ]
    assert first.summary is not None
    assert second.summary is not None
    assert (first.summary.latency_ns, second.summary.latency_ns) == (500_000_000, 2_000_000_000)
    assert first.summary.metrics == {"prefill_latency": 0.02, key: 0.5}


def test_runs_by_their_names_in_one_file_are_apart(sqlite_database: Database, tmp_path: Path) -> None:
    """`bench_one_batch` appends to `result.jsonl` whatever `--run-name` it is told."""
    lines = [
        ONE_BATCH | {"run_name": name, "latency": 0.5} for name in ("before", "before", "after", "default")
    ]
    path = written(tmp_path, "".join(json.dumps(each) + "\n" for each in lines), "r.jsonl")
    options = ImportOptions(**TOLD, workload="acme/L")
    report = import_paths(sqlite_database, [path], options=options)
    assert (report.errors, report.new) == ((), 4)
    runs: dict[str, list[str | None]] = {}
    for trial in trial_records(sqlite_database):
        runs.setdefault(trial.run_id, []).append(trial.label)
    assert sorted(runs.values(), key=str) == [["after"], ["before", "before"], [None]]
    assert import_paths(sqlite_database, [path], options=options).known == 4


def test_an_answer_to_no_request_of_an_unknown_number(tmp_path: Path) -> None:
    (trial,) = read_told(written(tmp_path, sglang(completed=0)))
    assert trial.failure is not None
    assert trial.failure.message == "No request was completed."


PHASES = [
    {"name": "warmup", "concurrency": 1, "exclude_from_results": True},
    {"name": "profiling", "concurrency": 16},
]


def test_aiperf_has_phases_and_lengths_that_were_asked_for(tmp_path: Path) -> None:
    config = {"models": {"items": [{"name": "acme/L"}]}, "phases": PHASES}
    config |= {"datasets": [{"prompts": {"isl": {"mean": 1_000}, "osl": {"mean": 100}}}]}
    trial, summary = the(written(tmp_path, genai_perf(input_config=config)))
    assert trial.workload.name == "acme/L serve, unlimited rate, 16 at once"
    assert trial.workload.shape == {"input_len": 1_000, "output_len": 100}
    assert summary.latency_ns == 666_667


def test_a_cancelled_run_is_no_measurement_and_lost_requests_are_said(tmp_path: Path) -> None:
    path = written(tmp_path, genai_perf(was_cancelled=True))
    options = ImportOptions(**TOLD)
    (cancelled,) = READERS[Format.GENAI_PERF](*input_files(path), options)
    assert isinstance(cancelled, ForeignResult)
    assert cancelled.failure is not None
    assert (cancelled.failure.kind, cancelled.parts) == (FailureKind.CANCELLED, {})
    assert options.notes == [f"{path}: was cancelled before its end; none of its figures is taken."]
    for lost, format_ in (
        (genai_perf(error_request_count={"unit": "requests", "avg": 20.0}), Format.GENAI_PERF),
        (json.dumps(served(4.0, 9.5, failed=20)), Format.VLLM_BENCH),
    ):
        options = ImportOptions(**TOLD)
        list(READERS[format_](*input_files(written(tmp_path, lost)), options))
        (note,) = options.notes
        assert "its times leave out what failed or was cancelled: 20 requests." in note


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.json", '{"timeslices": [{"timeslice_index": 0, "request_throughput": {"avg": 1}, '
         '"request_latency": {"avg": 1}}]}', "a slice of time each of an aiperf run"),
        ("b.json", '{"metadata": {"aggregation_type": "confidence", "num_profile_runs": 3}, "metrics": {}}',
         "a sum over runs of aiperf"),
        ("c.jsonl", '{"metadata": {"request_start_ns": 1}}\n', "the requests of an aiperf run"),
        ("d.csv", "Metric,avg,min,max,p99\nRequest Latency (ms),1,1,1,1\n\nMetric,Value\nx,1\n",
         "the table of genai-perf or aiperf"),
        ("e.csv", "Timeslice,Metric,Unit,Stat,Value\n0,Request Latency,ms,avg,1\n",
         "the table of genai-perf or aiperf"),
        ("f.csv", "Endpoint,Type,Metric,avg\nx,gauge,y,1\n", "metrics of a server"),
    ],
)  # fmt: skip
def test_what_aiperf_writes_beside_a_result_is_passed_over(
    sqlite_database: Database, tmp_path: Path, name: str, text: str, said: str
) -> None:
    written(tmp_path, genai_perf(), "profile_export_aiperf.json")
    written(tmp_path, text, name)
    report = import_paths(sqlite_database, [tmp_path], options=ImportOptions(**TOLD))
    assert (report.errors, report.new) == ((), 1)
    notes = [note for file in report.files for note in file.notes if name in note]
    assert said in notes[0]
    assert notes[0].endswith("passed over.")


def test_numbers_of_a_report_may_be_text(tmp_path: Path) -> None:
    _, summary = the(written(tmp_path, trtllm_bench(system_output_throughput_tok_s="5120")))
    assert summary.latency_ns == 195_312


@pytest.mark.parametrize(
    ("means", "at_once"), [((7.97,), "8"), ((62.9, 60.1, 64.0), "64"), ((45.2,), "48"), ((0.99, 1.0), "1")]
)
def test_the_requests_at_once_are_told_by_their_mean(
    tmp_path: Path, means: tuple[float, ...], at_once: str
) -> None:
    for mean in means:
        report = json.loads(trtllm_bench())
        report["request_info"]["avg_num_concurrent_requests"] = mean
        trial, _ = the(written(tmp_path, json.dumps(report)))
        assert trial.workload.name == f"acme/L serve, unlimited rate, {at_once} at once, decoding MTP"


def test_units_of_genai_perf_may_be_words(tmp_path: Path) -> None:
    told = json.loads(genai_perf())
    told["inter_token_latency"] |= {"unit": "seconds", "p50": 0.006}
    told["time_to_first_token"] |= {"unit": "microseconds", "p50": 50_000.0}
    told["input_config"] = {"model": ["acme/L"], "request_rate": 4.0}
    _, summary = the(written(tmp_path, json.dumps(told)))
    assert (summary.latency_ns, summary.metrics["median_ttft_ms"]) == (6_000_000, 50.0)


def test_an_engine_may_choose_its_sizes(tmp_path: Path) -> None:
    report = json.loads(trtllm_bench())
    report["world_info"]["ep_size"] = -1
    trial, _ = the(written(tmp_path, json.dumps(report)))
    assert "ep_size" not in trial.workload.shape
