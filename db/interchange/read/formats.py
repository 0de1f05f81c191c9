"""The formats that can be read, by the names that `import --format` takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum

from compilewatch.db.interchange.files import trial_csv, trial_jsonl
from compilewatch.db.interchange.files.foreign_trials import ForeignResult, to_trial
from compilewatch.db.interchange.files.opening import InputFile
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.sources import (
    dynamo_csv,
    generic_csv,
    kernels,
    optimum,
    oss_v3,
    pytest_benchmark,
    serving,
    timm_csv,
    torchbench,
    transformers_ci,
    vllm_bench,
    vllm_startup,
)
from compilewatch.db.interchange.traces import job_recording, job_trials, torch_trace
from compilewatch.db.records.trial import Trial


def made_trials(
    results: Iterable[Trial | ForeignResult], source: str, options: ImportOptions
) -> Iterator[Trial]:
    """Trials as they are, and those of foreign results. Raises RecordError as `to_trial` does."""
    return (each if isinstance(each, Trial) else to_trial(each, source, options) for each in results)


AUTO = "auto"
Reader = Callable[[InputFile, ImportOptions], Iterator[Trial] | Iterator[ForeignResult]]
"""What a file holds; of a result that is no trial yet the format is the source."""


class Format(StrEnum):
    """Every value but `trial` and those of jobs is also the `source.name` of what it brings in."""

    TRIAL = "trial"
    TRIAL_CSV = "trial-csv"
    DYNAMO_CSV = "dynamo-csv"
    OSS_V3 = "oss-v3"
    TORCHBENCH = "torchbench"
    PYTEST_BENCHMARK = "pytest-benchmark"
    OPTIMUM = "optimum"
    TIMM_CSV = "timm-csv"
    TRANSFORMERS_CI = "transformers-ci"
    TORCH_TRACE = "torch-trace"
    JOB_RECORDING = "job-recording"
    VLLM_STARTUP = "vllm-startup"
    VLLM_BENCH = "vllm-bench"
    SGLANG = "sglang"
    GENAI_PERF = "genai-perf"
    TRTLLM_BENCH = "trtllm-bench"
    TRTEXEC = "trtexec"
    BENCHER = "bencher"
    KERNELBENCH = "kernelbench"
    NVBENCH = "nvbench"
    TORCH_COMPARE = "torch-compare"
    CSV = "csv"


JOB_READERS: dict[Format, Callable[[InputFile, ImportOptions], job_trials.JobProcess]] = {
    Format.TORCH_TRACE: torch_trace.read_process,
    Format.JOB_RECORDING: job_recording.read_process,
}
"""The formats whose files are processes of a job: which belong together follows from all of them."""


READERS: dict[Format, Reader] = {
    Format.TRIAL: trial_jsonl.read,
    Format.TRIAL_CSV: trial_csv.read,
    Format.DYNAMO_CSV: dynamo_csv.read,
    Format.OSS_V3: oss_v3.read,
    Format.TORCHBENCH: torchbench.read,
    Format.PYTEST_BENCHMARK: pytest_benchmark.read,
    Format.OPTIMUM: optimum.read,
    Format.TIMM_CSV: timm_csv.read,
    Format.TRANSFORMERS_CI: transformers_ci.read,
    Format.VLLM_STARTUP: vllm_startup.read,
    Format.VLLM_BENCH: vllm_bench.read,
    Format.SGLANG: vllm_bench.read,
    Format.GENAI_PERF: serving.read_genai_perf,
    Format.TRTLLM_BENCH: serving.read_trtllm,
    Format.TRTEXEC: kernels.read_trtexec,
    Format.BENCHER: kernels.read_bencher,
    Format.KERNELBENCH: kernels.read_kernelbench,
    Format.NVBENCH: kernels.read_nvbench,
    Format.TORCH_COMPARE: kernels.read_compare,
    Format.CSV: generic_csv.read,
}


JSON_MARKS: tuple[tuple[Format, tuple[str, ...]], ...] = (
    (Format.TRIAL, ("schema", "trial_id")),
    (Format.JOB_RECORDING, ("schema", "job", "recording_began_ns")),
    (Format.VLLM_STARTUP, ("cold_startup_times", "warm_startup_times")),
    (Format.PYTEST_BENCHMARK, ("machine_info", "commit_info")),
    (Format.TORCHBENCH, ("environ", "metrics")),
    (Format.OPTIMUM, ("scenario", "launcher")),
    (Format.OPTIMUM, ("latency", "values", "unit")),
    (Format.OSS_V3, ("metric", "benchmark_values")),
    (Format.VLLM_BENCH, ("avg_latency", "latencies")),
    (Format.VLLM_BENCH, ("elapsed_time", "num_requests", "tokens_per_second")),
    (Format.SGLANG, ("request_throughput", "output_throughput", "median_e2e_latency_ms")),
    (Format.SGLANG, ("run_name", "batch_size", "input_len", "output_len")),
    (Format.VLLM_BENCH, ("request_throughput", "output_throughput")),
    (Format.GENAI_PERF, ("request_throughput", "request_latency", "avg")),
    (Format.VLLM_BENCH, ("request_throughput", "total_token_throughput")),
    (Format.VLLM_BENCH, ("error_type", "error", "serve_overrides")),
    (Format.TRTLLM_BENCH, ("world_info", "request_info", "performance")),
    (Format.TRTEXEC, ("computeMs", "latencyMs")),
    (Format.NVBENCH, ("devices", "sm_version", "ptx_version")),
    (Format.KERNELBENCH, ("mean", "num_trials", "hardware")),
)
"""Keys that all stand within the first 64 KiB of a JSON file of that format, in this order of trial."""
