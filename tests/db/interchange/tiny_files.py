"""A small valid file (or pair) of every format, as its tool writes it."""

from __future__ import annotations

import json
from statistics import mean
from typing import Any

from compilewatch.db.interchange.formats import Format
from tests.builders import make_imported, make_trial
from tests.db.interchange.trace_logs import whole_log, whole_recording

DYNAMO_NAME = "inductor_torchbench_amp_training_cuda_{}.csv"
TIMM_NAME = "benchmark-infer-amp-nchw-pt291-cu128-4090{}.csv"
TIMM_HEADER = "model,infer_img_size,infer_samples_per_sec,infer_step_time,infer_batch_size\n"


def _oss_v3() -> str:
    def record(metric: dict[str, Any]) -> dict[str, Any]:
        return {
            "timestamp": 1_770_000_000,
            "runners": [{"name": "runner", "gpu_info": "NVIDIA H100", "gpu_count": 1}],
            "benchmark": {
                "name": "TorchInductor", "mode": "training", "dtype": "amp",
                "extra_info": {"device": "cuda", "batch_size": 8, "dynamic_shapes": False},
            },
            "model": {"name": "m", "type": "OSS model", "backend": "inductor", "origins": ["torchbench"]},
            "dependencies": {"pytorch": {"version": "2.13.0+cu130"}},
            "metric": metric,
        }  # fmt: skip

    metrics = [
        {"name": "speedup", "benchmark_values": [1.5]},
        {"name": "abs_latency", "benchmark_values": [2.25]},
        {"name": "dynamo_peak_mem", "benchmark_values": [3.5]},
        {"name": "accuracy", "extra_info": {"benchmark_values": ["pass"]}},
    ]
    return "".join(json.dumps(record(metric)) + "\n" for metric in metrics)


def _torchbench() -> str:
    base = "model=resnet50, test=eval, device=cuda, bs=32, extra_args=['--torchdynamo', 'inductor'], metric="
    return json.dumps(
        {
            "name": "test_bench",
            "environ": {"pytorch_version": "2.13.0+cu130", "device": "NVIDIA A100"},
            "metrics": {base + "latencies": 12.5, base + "cpu_peak_mem": 1.5, base + "gpu_peak_mem": 2.25},
        },
        indent=4,
    )


def _pytest_benchmark() -> str:
    def benchmark(mode: str, median: float) -> dict[str, Any]:
        return {
            "name": f"test_m[{mode}]", "fullname": f"test_b.py::test_m[{mode}]",
            "params": {"mode": mode, "n": 4},
            "extra_info": {"torch": "2.13.0+cpu", "dtype": "float32"},
            "stats": {"median": median, "rounds": 3, "data": [median, median, 2 * median]},
        }  # fmt: skip

    return json.dumps(
        {
            "machine_info": {"node": "vm", "system": "Linux", "cpu": {"brand_raw": "AMD EPYC", "count": 2}},
            "commit_info": {"id": "abc"},
            "benchmarks": [benchmark("eager", 4e-3), benchmark("default", 2e-3)],
            "datetime": "2026-11-20T18:58:06.776938+00:00",
        }
    )


def vllm_startup(**times: list[float]) -> str:
    """As vLLM writes it: of each phase and figure average, list and percentiles."""
    times = {
        "cold_startup": [31.5, 30.25, 32.0],
        "cold_compilation": [12.5, 12.25, 13.0],
        "warm_startup": [14.0, 13.5],
        "warm_compilation": [1.75, 1.5],
    } | times
    written: dict[str, Any] = {}
    for key, values in times.items():
        written |= {
            f"avg_{key}_time": mean(values),
            f"{key}_times": values,
            f"{key}_percentiles": {str(each): max(values) for each in (10, 25, 50, 75, 90, 99)},
        }
    return json.dumps(written, indent=4)


def _optimum() -> dict[str, str]:
    latency = {"unit": "s", "values": [0.25, 0.5], "count": 2, "mean": 0.375, "p50": 0.375}
    memory = {"unit": "MB", "max_ram": 900.5, "max_allocated": 512.25}
    report = {"load": {"latency": latency}, "forward": {"latency": latency, "memory": memory}}
    config = {
        "name": "bench",
        "backend": {"name": "pytorch", "model": "gpt2", "device": "cuda", "torch_compile": True},
        "scenario": {"name": "inference", "input_shapes": {"batch_size": 2, "sequence_length": 16}},
        "launcher": {"name": "process"},
        "environment": {"gpu": ["NVIDIA A10G"], "gpu_count": 1, "transformers_version": "5.1.0"},
    }
    return {"benchmark_report.json": json.dumps(report), "benchmark_config.json": json.dumps(config)}


def _transformers_ci() -> str:
    metrics = {"metrics": {"decode.latency.mean": 2.5, "decode.throughput.value": 50.0}}
    settings = "backend.cache_implementation=static,backend.torch_compile="
    return json.dumps({"m": {f"{settings}{flag}": {"c0ffee": metrics} for flag in (False, True)}})


def _statistics(unit: str, typical: float) -> dict[str, Any]:
    return {"unit": unit, "avg": 1.1 * typical, "p50": typical, "p99": 2 * typical, "std": 1.0, "count": 20}


def genai_perf(**more: Any) -> str:
    """As genai-perf and aiperf write it: 8 requests at once, 1,024 tokens are answered with 128 each."""
    written = {
        "time_to_first_token": _statistics("ms", 50.0),
        "inter_token_latency": _statistics("ms", 6.0),
        "request_latency": _statistics("ms", 800.0),
        "request_throughput": {"unit": "requests/sec", "avg": 12.0},
        "output_token_throughput": {"unit": "tokens/sec", "avg": 1_500.0},
        "input_sequence_length": {"unit": "tokens", "avg": 1_024.0},
        "output_sequence_length": {"unit": "tokens", "avg": 127.6},
        "input_config": {"model": ["acme/L"], "concurrency": 8, "request_rate": None},
    }
    return json.dumps(written | more)


def trtllm_bench(**performance: Any) -> str:
    """A report of trtllm-bench without streaming."""
    return json.dumps(
        {
            "engine": {"model": "acme/L", "version": "1.0.0", "backend": "Pytorch", "dtype": "bfloat16"},
            "machine": {"name": "NVIDIA H100", "memory.total": 79.1},
            "world_info": {
                **{"tp_size": 2, "pp_size": 1, "ep_size": 1, "issue_rate": 1e9},
                **{"max_batch_size": 64, "max_num_tokens": 8_192},
            },
            "decoding_stats": {"mode": "MTP"},
            "request_info": {
                **{"num_requests": 100, "avg_num_concurrent_requests": 7.9},
                **{"avg_input_length": 128.0, "avg_output_length": 128.0},
            },
            "performance": {
                "total_latency_ms": 5_000.0,
                "avg_request_latency_ms": 900.0,
                "request_throughput_req_s": 20.0,
                "system_output_throughput_tok_s": 2_560.0,
            }
            | performance,
        },
        indent=4,
    )


def sglang(**more: Any) -> str:
    """A line of sglang's `bench_serving`: NaN and Infinity as Python writes them."""
    written: dict[str, Any] = {
        "backend": "sglang", "dataset_name": "random", "request_rate": float("inf"), "max_concurrency": 16,
        "random_input_len": 1_024, "random_output_len": 128, "duration": 100.0, "completed": 200,
        "total_input_tokens": 204_800, "total_output_tokens": 25_600, "request_throughput": 11.7,
        "input_throughput": 12_000.0, "output_throughput": 1_500.0, "median_e2e_latency_ms": 880.0,
        "p99_e2e_latency_ms": 1_200.0, "median_ttft_ms": 60.0, "p99_ttft_ms": 120.0, "median_tpot_ms": 9.0,
        "p99_tpot_ms": 18.0, "std_tpot_ms": 0.1, "request_goodput": 3.5, "accept_length": None,
    }  # fmt: skip
    return json.dumps(written | more) + "\n"


def nvbench(*states: dict[str, Any]) -> str:
    """As `--json` writes it: values of whole numbers as text."""

    def value(tag: str, number: float | str) -> dict[str, Any]:
        return {"tag": tag, "name": "x", "data": [{"name": "value", "type": "float64", "value": number}]}

    state = {
        "name": "Device=0 T=F32", "device": 0, "is_skipped": False,
        "axis_values": [
            {"name": "T", "type": "type", "value": "F32"},
            {"name": "Elements", "type": "int64", "value": "65536"},
        ],
        "summaries": [
            value("nv/cold/sample_size", "100"),
            value("nv/cold/time/gpu/mean", 2.5e-5),
            value("nv/cold/time/cpu/mean", 3.5e-5),
        ],
    }  # fmt: skip
    device = {"id": 0, "name": "NVIDIA H100", "sm_version": 900, "ptx_version": 900}
    benchmark = {"name": "copy", "devices": [0], "states": [state | each for each in (states or ({},))]}
    return json.dumps({"meta": {}, "devices": [device], "benchmarks": [benchmark]})


def kernelbench(**means: float | None) -> str:
    """Of each problem of level 1 its mean in ms; null is one whose timing failed."""

    def times(mean: float) -> dict[str, Any]:
        facts = {"num_trials": 100, "hardware": "NVIDIA L40S", "device": "cuda:0"}
        return {"mean": mean, "std": 0.01, "min": 0.9 * mean, "max": 1.1 * mean, **facts}

    means = means or {"1_Square": 2.5, "2_Standard": None}
    problems = {f"{name}.py": None if mean is None else times(mean) for name, mean in means.items()}
    return json.dumps({"level1": problems})


TORCH_COMPARE = """\
[------------ add -------------]
            |  eager  |  compiled
1 threads: --------------------
      8     |    1.5  |     0.5 (! 12%)
      16    |    2.5  |
4 threads: --------------------
      8     |    1.0  |     0.25

Times are in microseconds (us).
(! XX%) Measurement has high variance, where XX is the IQR / median * 100.
"""


# The first file of each is the one to import; the others are its partners.
TINY: dict[Format, dict[str, str]] = {
    Format.TRIAL: {"trials.jsonl": f"{make_trial().to_json()}\n{make_imported().to_json()}\n"},
    Format.TRIAL_CSV: {
        "trials.csv": (
            "trial_id,series_id,record_version,workload_version,started_at,workload,task,dtype,batch_size,shape,"
            "strategy,strategy_kind,cache,device,device_name,torch,packages,status,latency_ns,metrics\n"
            'T1,S,1,v,2026-09-01T00:00:00Z,a,inference,float16,8,"{""n"": 4}",default,compile,cold,cuda,'
            'NVIDIA H100,2.13.0,"{""timm"": ""1.0""}",ok,1500000.0,"{""x"": 1.5}"\n'
            "T2,S,1,v,2026-09-01T00:00:00Z,a,inference,float16,8,{},eager,eager,none,cuda,"
            "NVIDIA H100,2.13.0,{},failed,,\n"
        )
    },
    Format.DYNAMO_CSV: {
        DYNAMO_NAME.format("performance"): (
            "dev,name,batch_size,speedup,abs_latency,compilation_latency,dynamo_peak_mem,graph_breaks\n"
            "cuda,a,8,2.0,1.5,10.25,3.5,1\ncuda,b,0,0.0,0.0,0,0,0\n"
        ),
        DYNAMO_NAME.format("accuracy"): "dev,name,batch_size,accuracy\ncuda,a,4,pass\ncuda,c,4,fail_to_run\n",
    },
    Format.OSS_V3: {"results.json": _oss_v3()},
    Format.TORCHBENCH: {"metrics-20260801123456.json": _torchbench()},
    Format.PYTEST_BENCHMARK: {"benchmark.json": _pytest_benchmark()},
    Format.OPTIMUM: _optimum(),
    Format.TIMM_CSV: {
        TIMM_NAME.format("-dynamo"): f"{TIMM_HEADER}m,224,8040.2,127.36,1024\n",
        TIMM_NAME.format(""): f"{TIMM_HEADER}m,224,4303.1,237.96,1024\n",
    },
    Format.TRANSFORMERS_CI: {"summary_2024-09-04.json": _transformers_ci()},
    Format.TORCH_TRACE: {"dedicated_log_torch_trace_x1.log": whole_log()},
    Format.JOB_RECORDING: {"compilewatch_job_ranker_1.jsonl": whole_recording()},
    Format.VLLM_STARTUP: {"startup.json": vllm_startup()},
    Format.VLLM_BENCH: {
        "llama.json": '{"avg_latency": 1.2, "latencies": [1.25, 1.0, 1.5], "percentiles": {"50": 1.25}}'
    },
    Format.SGLANG: {"sglang.jsonl": sglang() + sglang(max_concurrency=4, output_throughput=390.0)},
    Format.GENAI_PERF: {"profile_export_genai_perf.json": genai_perf()},
    Format.TRTLLM_BENCH: {"report.json": trtllm_bench()},
    Format.TRTEXEC: {
        "times.json": json.dumps(
            [
                {
                    "startEnqMs": 0.1 * each,
                    "inMs": 0.25,
                    "computeMs": time,
                    "outMs": 0.25,
                    "latencyMs": time + 0.5,
                }
                for each, time in enumerate((1.5, 1.0, 2.0))
            ]
        )
    },
    Format.BENCHER: {
        "bmf.json": json.dumps(
            {
                "mlp/default": {"latency": {"value": 2e6, "lower_value": 1.9e6}},
                "n": {"throughput": {"value": 4}},
            }
        )
    },
    Format.KERNELBENCH: {"baseline_time_torch.json": kernelbench()},
    Format.NVBENCH: {"copy.json": nvbench()},
    Format.TORCH_COMPARE: {"compare.txt": TORCH_COMPARE},
    Format.CSV: {
        "table.csv": (
            "workload,strategy,latency_ms,eager_latency_ms,compile_s,peak_gb,batch_size\n"
            "a,default,1.5,3.0,12.5,2.25,8\nb,,nan,4.5 (4.6),,,\n"
        )
    },
}
