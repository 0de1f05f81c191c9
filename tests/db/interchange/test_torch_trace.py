"""TORCH_TRACE logs: compile events, phases, breaks, recompilations, caches and guards of any job."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import RecordError
from compilewatch.db.interchange.importing import import_paths
from compilewatch.db.interchange.sources.compile_log import phase_of
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trial_records
from compilewatch.db.records.trial import CacheState, CompilerEvent, Task
from compilewatch.runner.worker import cold_start
from tests.db.interchange.reading import read
from tests.db.interchange.trace_logs import MISMATCH, artifact, event, metrics, record, whole_log
from tests.runner.measuring import FAST_COMPILE

NAME = "dedicated_log_torch_trace_{}.log"
S = 1_000_000_000


def written(folder: Path, **logs: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in logs.items():
        (folder / NAME.format(name)).write_text(text)
    return folder


def test_a_log_becomes_a_cold_start_with_its_compile_facts(tmp_path: Path) -> None:
    (trial,) = read(written(tmp_path / "ranker-train", a1b2=whole_log()))
    assert (trial.source.kind.value, trial.source.name) == ("imported", "job")
    assert (trial.workload.name, trial.workload.version) == ("ranker-train", "imported-job")
    assert (trial.strategy.name, trial.strategy.cache) == ("compiled+cold", CacheState.COLD)
    assert (trial.build.torch, trial.build.cuda, trial.build.triton) == ("2.13.0", "13.0", "3.6.0")
    assert (trial.build.python, trial.machine.device) == ("3.11.7", "cuda")
    start, facts = trial.cold_start, trial.compiler
    # By hand: dynamo has second 0, second 9 and the two of the second compilation.
    assert start.phases_ns.model_dump(exclude_none=True) == {
        "dynamo": 4 * S,
        "aot_autograd": 2 * S,
        "inductor": 1 * S,
        "kernel_compile": 5 * S,
    }
    assert (start.until_steady_ns, start.calls_until_steady) == (12 * S, 0)
    assert facts.graph_breaks == [
        CompilerEvent(
            reason="Failed to trace builtin operator: Dynamo does not know how to trace `print`",
            location="model.py:31",
        )
    ]
    assert facts.recompiles == [CompilerEvent(reason=MISMATCH, location="model.py:12")]
    assert (facts.cache.fx_graph_misses, facts.cache.aot_autograd_misses) == (1, 1)
    assert trial.summary.metrics == {"compilations": 2.0, "guards": 40.0, "guard_latency_us": 160.0}


def test_options_tell_what_no_log_says(tmp_path: Path) -> None:
    folder = written(tmp_path / "2026-11-20", x=whole_log())
    (trial,) = read(folder, job="ranker", device_name="NVIDIA H200", dtype="bfloat16", task=Task.TRAINING)
    assert (trial.workload.name, trial.workload.task, trial.workload.dtype) == (
        "ranker",
        Task.TRAINING,
        "bfloat16",
    )
    assert trial.machine.device_name == "NVIDIA H200"


def test_the_version_is_asked_of_releases_that_do_not_write_it(tmp_path: Path) -> None:
    old = event("entire_frame_compile", "B", 0) + event("entire_frame_compile", "E", 1) + metrics()
    folder = written(tmp_path / "job", x=old)
    with pytest.raises(RecordError, match="does not say the torch version and the kind of device"):
        read(folder)
    (trial,) = read(folder, torch="2.6.0", device="cuda")
    assert trial.build.torch == "2.6.0"


def test_ranks_of_one_execution_are_one_run_and_the_next_execution_is_another(tmp_path: Path) -> None:
    later = {f"rank_{rank}_new": whole_log(rank=rank, begin_s=3600 + rank) for rank in (0, 1)}
    first = {f"rank_{rank}_old": whole_log(rank=rank, begin_s=rank) for rank in (0, 1)}
    trials = read(written(tmp_path / "ddp", **later, **first))
    runs = {trial.run_id: [] for trial in trials}
    for trial in trials:
        runs[trial.run_id].append((trial.started_at, trial.summary.metrics["rank"]))
    assert len(runs) == 2
    for members in runs.values():
        assert [rank for _, rank in members] == [0.0, 1.0]
        assert len({moment for moment, _ in members}) == 1


def test_logs_without_ranks_are_runs_of_their_own(tmp_path: Path) -> None:
    trials = read(written(tmp_path / "job", a=whole_log(), b=whole_log(begin_s=60)))
    assert len({trial.run_id for trial in trials}) == 2


def test_a_hit_at_first_is_a_warm_start(tmp_path: Path) -> None:
    parts = [event("entire_frame_compile", "B", 0), event("fx_graph_cache_hit", "i", 0.1)]
    parts += [event("fx_graph_cache_miss", "i", 0.2), event("entire_frame_compile", "E", 1), metrics()]
    (trial,) = read(written(tmp_path / "job", a="".join(parts)), torch="2.9.0", device="cuda")
    assert (trial.strategy.name, trial.strategy.cache) == ("compiled+warm", CacheState.WARM)


def test_a_log_that_ends_inside_a_record_brings_what_is_before_it(
    sqlite_database: Database, tmp_path: Path
) -> None:
    text = whole_log()
    folder = written(tmp_path / "job", x=text[: text.rindex("guard_latency_us") + 5])
    report = import_paths(sqlite_database, [folder])
    assert (report.new, report.errors) == (1, ())
    (note,) = report.files[0].notes
    assert note.endswith("ends inside a record, which was left out.")
    (trial,) = trial_records(sqlite_database, Filters())
    assert trial.compiler.graphs == 1


def test_a_start_that_never_finished_compiling_has_no_compile_cost(tmp_path: Path) -> None:
    begun = event("entire_frame_compile", "B", 0) + event("backend_compile", "B", 2)
    with pytest.raises(RecordError, match="ends before anything was compiled to its end"):
        read(written(tmp_path / "job", x=begun), torch="2.9.0", device="cpu")
    (trial,) = read(written(tmp_path / "again", x=whole_log() + begun), torch="2.9.0", device="cpu")
    assert trial.cold_start.until_steady_ns is None
    assert trial.cold_start.phases_ns is not None


def test_damage_inside_refuses_the_folder_with_file_and_line(
    sqlite_database: Database, tmp_path: Path
) -> None:
    damaged = whole_log().replace("Explanation: Dynamo", "Explanation: Dynam0")
    folder = written(tmp_path / "job", good=whole_log(), bad=damaged)
    report = import_paths(sqlite_database, [folder])
    assert report.new == 0
    (error,) = report.errors
    assert "dedicated_log_torch_trace_bad.log, line " in error.message
    assert error.message.endswith("has_payload: is the checksum of another payload.")


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"compilation_metrics": {}, "frame_compile_id": "b"}, "frame_compile_id"),
        ({"str": [1]}, "str"),
        ({"describe_tensor": {"device": []}}, "describe_tensor.device"),
        ({"chromium_event": {"name": "a", "ph": "B", "ts": "soon"}}, "chromium_event.ts"),
    ],
)
def test_what_torch_does_not_write_is_said_with_line_and_field(
    tmp_path: Path, wrong: dict[str, Any], field: str
) -> None:
    line = 1 + whole_log().count("\n")
    with pytest.raises(RecordError, match=rf", line {line}: {re.escape(field)}: "):
        read(written(tmp_path / "job", bad=whole_log() + record(wrong)))


def test_a_compressed_log_and_logs_of_idle_processes(tmp_path: Path) -> None:
    folder = written(tmp_path / "job", idle=artifact("torch_version", '{"pytorch_version": "2.13.0"}'))
    (folder / (NAME.format("x") + ".gz")).write_bytes(gzip.compress(whole_log().encode()))
    assert len(read(folder)) == 1
    with pytest.raises(RecordError, match="holds no compilation"):
        read(folder / NAME.format("idle"))


def test_phases_are_those_of_the_measured_process() -> None:
    names = [*cold_start._PHASE_OF, "entire_backward_compile", "CachingAutotuner.benchmark_all_configs", "gc"]
    names += ["CUDAGraphTreeManager.x", "select_algorithm_autotune", "build_guards"]
    assert [phase_of(name) for name in names] == [cold_start.phase_of(name) for name in names]


PROGRAM = """
import torch
def step(x):
    y = torch.sin(x) * 2
    print("said")
    return y
compiled = torch.compile(step)
for size in (8, 8, 16):
    compiled(torch.randn(size, 4))
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_real_program_traced_by_this_torch(sqlite_database: Database, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = os.environ | {
        "TORCH_TRACE": str(tmp_path / "traced"),
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"),
        **FAST_COMPILE,
    }
    subprocess.run([sys.executable, str(program)], env=environment, check=True, capture_output=True)
    report = import_paths(sqlite_database, [tmp_path / "traced"])
    assert report.errors == ()
    (trial,) = trial_records(sqlite_database, Filters())
    facts, start = trial.compiler, trial.cold_start
    assert {each.location for each in facts.graph_breaks or []} == {"program.py:5"}
    assert any("size mismatch" in each.reason for each in facts.recompiles or [])
    assert facts.cache.fx_graph_misses
    assert (trial.strategy.cache, trial.machine.device) == (CacheState.COLD, "cpu")
    assert start.phases_ns.dynamo
    assert start.phases_ns.kernel_compile
    assert start.until_steady_ns == sum(start.phases_ns.model_dump(exclude_none=True).values())
