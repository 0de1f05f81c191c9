"""`vllm bench startup`: every start is a cold start of a job, cold and warm ones apart."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import RecordError
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.formats import Format
from compilewatch.db.interchange.importing import import_paths
from compilewatch.db.queries.case_parts import newest_job_trials
from compilewatch.db.queries.trials import trial_records
from compilewatch.db.records.trial import CacheState, SourceKind, StrategyKind, Task
from tests.db.interchange.reading import MEASURED_AT, read
from tests.db.interchange.tiny_files import vllm_startup

FACTS = {"torch": "2.11.0", "device": "cuda", "device_name": "NVIDIA H200", "measured_at": MEASURED_AT}
S = 1_000_000_000


def written(folder: Path, text: str) -> Path:
    path = folder / "llama-8b.json"
    path.write_text(text)
    return path


def test_each_start_is_a_trial_with_its_time_and_compile_cost(tmp_path: Path) -> None:
    trials = read(written(tmp_path, vllm_startup()), **FACTS)
    starts = [
        (each.strategy.name, each.cold_start.total_ns / S, each.cold_start.until_steady_ns / S)
        for each in trials
        if each.cold_start and each.cold_start.total_ns and each.cold_start.until_steady_ns
    ]
    assert starts == [
        ("compiled+cold", 31.5, 12.5),
        ("compiled+cold", 30.25, 12.25),
        ("compiled+cold", 32.0, 13.0),
        ("compiled+warm", 14.0, 1.75),
        ("compiled+warm", 13.5, 1.5),
    ]
    first, *_, last = trials
    assert (first.source.kind, first.source.name) == (SourceKind.IMPORTED, "job")
    assert (first.workload.name, first.workload.task, first.workload.dtype) == (
        "llama-8b",
        Task.INFERENCE,
        "unknown",
    )
    assert (first.strategy.kind, first.strategy.cache, last.strategy.cache) == (
        StrategyKind.COMPILE,
        CacheState.COLD,
        CacheState.WARM,
    )
    assert len({each.run_id for each in trials}) == 1
    assert len({each.trial_id for each in trials}) == 5
    named = read(tmp_path / "llama-8b.json", job="chat", dtype="bfloat16", **FACTS)
    assert {(each.workload.name, each.workload.dtype) for each in named} == {("chat", "bfloat16")}


def test_compiling_the_encoder_is_part_of_the_cost_and_a_start_without_any_has_none(tmp_path: Path) -> None:
    text = vllm_startup(
        cold_encoder_compilation=[2.0, 2.0, 2.0],
        warm_compilation=[0.0, 0.0],
        warm_encoder_compilation=[0.5, 0.0],
    )
    costs = [
        each.cold_start.until_steady_ns for each in read(written(tmp_path, text), **FACTS) if each.cold_start
    ]
    assert costs == [14_500_000_000, 14_250_000_000, 15_000_000_000, 500_000_000, None]


@pytest.mark.parametrize(
    ("times", "sentence"),
    [
        ({"cold_compilation": [0.0] * 3, "warm_compilation": [0.0] * 2}, "holds no compilation"),
        ({"cold_startup": [30.0]}, "cold_startup_times: must have as many entries as cold_compilation_times"),
        ({"warm_encoder_compilation": [1.0]}, "warm_encoder_compilation_times: must have as many entries"),
        ({"warm_startup": [0.0, 1.0]}, "must be more than 0"),
        ({"cold_compilation": [-1.0, 1.0, 1.0]}, "cold_compilation_times"),
    ],
)
def test_what_vllm_does_not_write_is_refused(
    tmp_path: Path, times: dict[str, list[float]], sentence: str
) -> None:
    with pytest.raises(RecordError, match=sentence):
        read(written(tmp_path, vllm_startup(**times)), **FACTS)


def test_it_names_what_the_file_does_not_say(tmp_path: Path) -> None:
    with pytest.raises(RecordError) as refused:
        read(written(tmp_path, vllm_startup()))
    assert "--torch" in refused.value.next_step
    assert "--measured-at" in refused.value.next_step


def test_a_second_import_adds_nothing_and_the_starts_are_in_production(
    sqlite_database: Database, tmp_path: Path
) -> None:
    path = written(tmp_path, vllm_startup(cold_startup=[30.0] * 3, cold_compilation=[12.0] * 3))
    (report,) = import_paths(sqlite_database, [path], options=ImportOptions(**FACTS)).files
    assert (report.formats, report.new, report.error) == ((Format.VLLM_STARTUP,), 5, None), "equal starts too"
    assert import_paths(sqlite_database, [path], options=ImportOptions(**FACTS)).known == 5
    assert len(newest_job_trials(sqlite_database, 10)) == 5


def test_a_start_without_a_time_is_left_out_and_no_other_takes_its_place(
    sqlite_database: Database, tmp_path: Path
) -> None:
    path = tmp_path / "llama.json"
    path.write_text(
        '{"cold_startup_times": [10.0, null, 30.0], "cold_compilation_times": [null, 7.0, 9.0],'
        ' "warm_startup_times": [5.0], "warm_compilation_times": [1.0]}'
    )
    report = import_paths(sqlite_database, [path], options=ImportOptions(**FACTS))
    assert report.files[0].notes == (f"{path}: 1 cold start without a time left out.",)
    costs = {
        trial.cold_start.total_ns: trial.cold_start.until_steady_ns
        for trial in trial_records(sqlite_database)
        if trial.cold_start
    }
    assert costs == {10 * 10**9: None, 30 * 10**9: 9 * 10**9, 5 * 10**9: 10**9}


def test_a_combination_of_a_sweep_is_a_job_of_its_own(tmp_path: Path) -> None:
    whole = json.loads(vllm_startup())
    jobs = set()
    for value in (32, 64):
        folder = tmp_path / f"SERVE--max_num_seqs={value}"
        folder.mkdir()
        runs = [whole | {"run_number": 0, "max_num_seqs": value}]
        for name, content in (("run=0.json", runs[0]), ("summary.json", runs)):
            (folder / name).write_text(json.dumps(content, indent=4))
            trials = read(folder / name, **FACTS)
            assert len(trials) == 5
            jobs |= {trial.workload.name for trial in trials}
    assert jobs == {"SERVE--max_num_seqs=32", "SERVE--max_num_seqs=64"}
