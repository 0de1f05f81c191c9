"""Recordings of jobs: cold start by phase, steps until steady, ranks as one run, half-written files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compilewatch.db.cause.notes import ranks_sentence
from compilewatch.db.cause.trial_words import NOT_SPLIT, loop_text
from compilewatch.db.engine.session import Database
from compilewatch.db.errors import RecordError
from compilewatch.db.interchange.importing import import_paths
from compilewatch.db.queries.records import ranks_of
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trial_records
from compilewatch.db.records.trial import CacheState, Task
from tests.db.interchange.reading import read
from tests.db.interchange.trace_logs import recorded_event, whole_recording

S = 1_000_000_000


def written(folder: Path, **recordings: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in recordings.items():
        (folder / f"compilewatch_job_{name}.jsonl").write_text(text)
    return folder


def test_a_recording_is_a_cold_start_with_samples(tmp_path: Path) -> None:
    (trial,) = read(written(tmp_path, ranker=whole_recording()))
    start = trial.cold_start
    # By hand: 10 s before the compilation, 8 s of it, which ends with the first step.
    assert (start.total_ns, start.interpreter_ns, start.import_torch_ns) == (18 * S, S // 2, 2 * S)
    assert start.phases_ns.model_dump(exclude_none=True) == {"dynamo": 8 * S}
    assert (start.until_steady_ns, start.calls_until_steady) == (8 * S, 0)
    assert start.process_tree_cpu_ns == 9 * S
    assert trial.summary.metrics["steps_until_steady"] == 2
    assert trial.summary.latency_ns == pytest.approx(S / 10, rel=1e-6)
    assert len(trial.samples_ns) == 19
    assert (trial.workload.name, trial.workload.task) == ("ranker", Task.TRAINING)
    assert (trial.machine.name, trial.machine.device_name) == ("gpu-box-3", "H200")
    assert trial.strategy.cache is CacheState.COLD


def test_ranks_of_a_launch_are_one_run(sqlite_database: Database, tmp_path: Path) -> None:
    ranks = {f"ranker_{rank}": whole_recording(rank=rank, begin_s=rank / 10) for rank in range(4)}
    report = import_paths(sqlite_database, [written(tmp_path / "jobs", **ranks)])
    assert (report.new, report.errors) == (4, ())
    assert len({trial.run_id for trial in trial_records(sqlite_database, Filters())}) == 1
    assert import_paths(sqlite_database, [tmp_path / "jobs"]).known == 4


def test_the_rank_that_compiled_again_is_named_with_the_step(
    sqlite_database: Database, tmp_path: Path
) -> None:
    # By hand: the first step ends at 18 s, the second at 19 s.
    ranks = {"a": whole_recording(rank=0), "b": whole_recording(rank=1, again_s=18.5)}
    import_paths(sqlite_database, [written(tmp_path / "jobs", **ranks)])
    for trial in trial_records(sqlite_database, Filters()):
        assert ranks_sentence(ranks_of(sqlite_database, trial)) == (
            "Rank 1 compiled 2 times, rank 0 once: "
            "the first difference is size 0 of args[0] (8, then 12) at step 2."
        )


def test_a_line_that_was_not_finished_is_left_out_with_a_sentence(
    sqlite_database: Database, tmp_path: Path
) -> None:
    whole = whole_recording()
    path = written(tmp_path, ranker=whole[: whole.index('"ended"')])
    report = import_paths(sqlite_database, [path])
    assert (report.new, report.errors) == (1, ())
    assert report.files[0].notes[0].endswith("ends inside a record, which was left out.")


def test_a_job_that_died_while_it_compiled_has_no_first_step(tmp_path: Path) -> None:
    lines = whole_recording().splitlines()[:4]
    (trial,) = read(written(tmp_path, x="\n".join(lines)))
    assert trial.cold_start.total_ns is None
    assert trial.samples_ns == []


@pytest.mark.parametrize("line", ["[]", '{"steps_ns": [true]}', '{"trace": 7}', '{"new": 1}'])
def test_damage_before_the_end_names_the_line(tmp_path: Path, line: str) -> None:
    lines = whole_recording().splitlines()
    path = written(tmp_path, x="\n".join([*lines[:2], line, *lines[2:]]))
    with pytest.raises(RecordError, match="line 3: "):
        read(path)


def test_steps_told_by_hand_replace_those_of_the_optimizer(tmp_path: Path) -> None:
    text = whole_recording().replace('"ended": true', '"by_hand": true, "steps_ns": [1795000100000000000]')
    (trial,) = read(written(tmp_path, x=text))
    assert trial.cold_start.total_ns == 100 * S
    assert trial.workload.task is Task.FUNCTION


def test_compilations_after_the_steady_step_are_no_cold_start(tmp_path: Path) -> None:
    later = [recorded_event("entire_frame_compile", kind, at_s) for kind, at_s in (("B", 60), ("E", 70))]
    lines = whole_recording().splitlines()
    more = "\n".join([*lines[:-1], *(str(each).replace("'", '"') for each in later), lines[-1]])
    (trial,) = read(written(tmp_path, x=more))
    assert trial.cold_start.until_steady_ns == 8 * S


def with_waits(recording: str, began_s: float, *waits_s: float) -> str:
    """`recording` whose loop asks for its first batch then, and whose steps wait so long each."""
    lines = [json.loads(line) for line in recording.splitlines()]
    waits = iter(waits_s)
    for line in lines:
        if "steps_ns" in line:
            line["loop_began_ns"] = line_began = lines[0]["process_began_ns"] + round(began_s * S)
            assert line_began < line["steps_ns"][0]
            line["waits_ns"] = [round(next(waits) * S) for _ in line["steps_ns"]]
    return "\n".join(json.dumps(line) for line in lines) + "\n"


def test_a_loop_is_split_into_data_compiling_and_steps(tmp_path: Path) -> None:
    """By hand: asked for at 9 s, compiled from 10 to 18 s, 21 steps of which the last 19 take 0.1 s each."""
    recording = whole_recording()
    steps = sum(len(json.loads(line).get("steps_ns", [])) for line in recording.splitlines())
    waits = [1.0, *[0.04] * (steps - 1)]
    (trial,) = read(written(tmp_path, ranker=with_waits(recording, 9, *waits)))
    figures = trial.summary.metrics
    moments = [ns for line in recording.splitlines() for ns in json.loads(line).get("steps_ns", [])]
    began_ns = json.loads(recording.splitlines()[0])["process_began_ns"]
    assert figures["loop_s"] == pytest.approx((moments[-1] - began_ns) / S - 9)
    assert figures["loop_data_s"] == pytest.approx(sum(waits))
    assert figures["loop_compile_s"] == pytest.approx(8)
    assert figures["steady_data_share"] == pytest.approx(0.4, rel=1e-3)
    text = loop_text(trial.summary)
    assert text is not None
    assert "8.00 s compiling" in text
    assert text.endswith("waits for data 40.0 % of the time: at most 2.50x by faster steps")


def test_a_loop_whose_batches_are_not_noted_is_told_how(tmp_path: Path) -> None:
    (trial,) = read(written(tmp_path, ranker=whole_recording()))
    assert "loop_s" not in trial.summary.metrics
    assert loop_text(trial.summary) == NOT_SPLIT


def test_waits_that_are_not_those_of_the_steps_are_refused(tmp_path: Path) -> None:
    recording = with_waits(whole_recording(), 9, *[0.1] * 50)
    broken = recording.replace('"waits_ns": [100000000, ', '"waits_ns": [', 1)
    assert broken != recording
    with pytest.raises(RecordError, match="waits_ns"):
        read(written(tmp_path, ranker=broken))
