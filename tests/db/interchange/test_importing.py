"""Import into a database: all or nothing per file, twice adds nothing, a rehearsal stores nothing."""

import json
import zipfile
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from compilewatch.db.engine.session import Database
from compilewatch.db.errors import ConflictError, RecordError
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.formats import Format
from compilewatch.db.interchange.importing import import_paths
from compilewatch.db.queries.data_version import data_version
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trial_record, trial_records, trials_frame
from compilewatch.db.records.trial import Trial
from compilewatch.db.verdicts.sides import resolve_side
from tests.builders import make_trial
from tests.db.interchange.reading import MEASURED_AT, TOLD, of_each, read

OPTIONS = ImportOptions(**TOLD)
NAMES = "inductor_torchbench_amp_training_cuda_{}.csv"


def stored(database: Database) -> list[Trial]:
    return list(trial_records(database, Filters()))


def write_jsonl(path: Path, trials: list[Trial]) -> Path:
    path.write_text("".join(f"{trial.to_json()}\n" for trial in trials), encoding="utf-8")
    return path


def write_pair(folder: Path) -> tuple[Path, Path]:
    performance, accuracy = folder / NAMES.format("performance"), folder / NAMES.format("accuracy")
    performance.write_text("dev,name,batch_size,speedup,abs_latency\ncuda,a,8,2.0,1.5\ncuda,b,8,1.5,3.0\n")
    accuracy.write_text("dev,name,batch_size,accuracy\ncuda,a,4,pass\ncuda,c,4,fail_to_run\n")
    return performance, accuracy


def test_a_file_with_an_error_adds_nothing_and_others_come_in(database: Database, tmp_path: Path) -> None:
    good = write_jsonl(tmp_path / "good.jsonl", [make_trial()])
    bad = write_jsonl(tmp_path / "bad.jsonl", [make_trial() for _ in range(1100)])
    bad.write_text(bad.read_text() + "{}\n")
    version = data_version(database)
    report = import_paths(database, [bad, good])
    assert ["line 1101: " in error.message for error in report.errors] == [True]
    assert [file.new for file in report.files] == [0, 1]
    assert [trial.to_json() for trial in stored(database)] == [good.read_text().strip()]
    assert data_version(database) == version + 1


@pytest.mark.usefixtures("today")
def test_what_is_left_of_a_refused_file_is_not_of_the_next(sqlite_database: Database, tmp_path: Path) -> None:
    """Its first trial is refused by the store, while the process still reads the others."""
    future = datetime(2200, 1, 1, tzinfo=UTC)
    trials = [make_trial(started_at=future, ended_at=future), *(make_trial() for _ in range(1500))]
    bad, good = (
        write_jsonl(tmp_path / "bad.jsonl", trials),
        write_jsonl(tmp_path / "good.jsonl", [make_trial()]),
    )
    report = import_paths(sqlite_database, [bad, good])
    assert [file.new for file in report.files] == [0, 1]
    assert "which is not yet" in report.errors[0].message


def test_a_rehearsal_counts_and_stores_nothing(sqlite_database: Database, tmp_path: Path) -> None:
    known = make_trial()
    import_paths(sqlite_database, [write_jsonl(tmp_path / "known.jsonl", [known])])
    version = data_version(sqlite_database)
    path = write_jsonl(tmp_path / "more.jsonl", [known, *(make_trial() for _ in range(7))])
    report = import_paths(sqlite_database, [path], dry_run=True)
    assert (report.new, report.known, len(report.files[0].first)) == (7, 1, 5)
    assert report.files[0].first[0] == known
    assert (stored(sqlite_database), data_version(sqlite_database)) == ([known], version)
    assert import_paths(sqlite_database, [path]).new == 7


def test_either_file_of_a_pair_brings_both_once(sqlite_database: Database, tmp_path: Path) -> None:
    performance, accuracy = write_pair(tmp_path)
    report = import_paths(sqlite_database, [performance, accuracy], options=OPTIONS)
    assert [(file.new, file.known, file.failed_trials) for file in report.files] == [(3, 0, 1), (0, 3, 1)]
    frame = trials_frame(sqlite_database).set_index("workload")
    assert frame.loc["a", "latency_ns"] == 1_500_000
    assert frame.loc["a", "control_latency_ns"] == 3_000_000
    assert frame.loc["a", "numerics_status"] == "pass"
    assert frame.loc["c", "status"] == "failed"
    assert set(frame["source_kind"]) == {"imported"}
    assert set(frame["source_name"]) == {"dynamo-csv"}


def test_half_a_pair_first_and_the_pair_later_is_a_conflict_not_a_second_count(
    sqlite_database: Database, tmp_path: Path
) -> None:
    performance, accuracy = write_pair(tmp_path)
    text = accuracy.read_text()
    accuracy.unlink()
    assert import_paths(sqlite_database, [performance], options=OPTIONS).new == 2
    accuracy.write_text(text)
    report = import_paths(sqlite_database, [performance], options=OPTIONS)
    assert isinstance(report.errors[0], ConflictError)
    said = report.errors[0].message
    assert said.startswith(f"{performance}: a with inductor was imported before, with different content in ")
    assert "numerics" in said
    assert "half of the pair" in report.errors[0].next_step
    assert "Give --replace" in report.errors[0].next_step
    assert len(stored(sqlite_database)) == 2


def test_an_archive_is_all_or_nothing(sqlite_database: Database, tmp_path: Path) -> None:
    performance, accuracy = write_pair(tmp_path)
    path = tmp_path / "results.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(performance, performance.name)
        archive.write(accuracy, accuracy.name)
    report = import_paths(sqlite_database, [path], options=OPTIONS)
    assert (report.new, report.files[0].formats) == (3, (Format.DYNAMO_CSV,))
    assert len(stored(sqlite_database)) == 3
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("zzz_performance.csv", "name,speedup,abs_latency\nm,2,oops\n")
    report = import_paths(sqlite_database, [path], options=ImportOptions(**(TOLD | {"torch": "2.12.0"})))
    assert "zzz_performance.csv, line 2: abs_latency" in report.errors[0].message
    assert len(stored(sqlite_database)) == 3


def test_what_is_no_result_in_an_archive_is_passed_over(sqlite_database: Database, tmp_path: Path) -> None:
    path = tmp_path / "results.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in write_pair(tmp_path):
            archive.write(file, file.name)
            archive.writestr(file.name.replace(".csv", "_graph_breaks.csv"), "model,reason\nm,print\n")
        archive.writestr("README.md", "Results, of one night")
        archive.writestr("zzz.json", "{}")
    report = import_paths(sqlite_database, [path], options=OPTIONS)
    passed_over = [note for note in report.files[0].notes if note.endswith("passed over.")]
    assert (report.errors, report.new, len(passed_over)) == ((), 3, 4)


def test_a_name_that_is_twice_in_an_archive_is_refused(sqlite_database: Database, tmp_path: Path) -> None:
    path = tmp_path / "twice.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.jsonl", make_trial().to_json() + "\n")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("a.jsonl", make_trial().to_json() + "\n")
    report = import_paths(sqlite_database, [path])
    assert report.new == 0
    assert "a.jsonl: is there 2 times" in report.errors[0].message


def test_other_facts_told_make_other_trials(sqlite_database: Database, tmp_path: Path) -> None:
    performance, _ = write_pair(tmp_path)
    import_paths(sqlite_database, [performance], options=OPTIONS)
    report = import_paths(
        sqlite_database, [performance], options=ImportOptions(**(TOLD | {"torch": "2.12.0"}))
    )
    assert (report.new, report.known) == (3, 0)


@pytest.mark.parametrize(
    ("first", "second", "said", "option"),
    [
        ({}, {"machine": "box"}, "with machine imported.", "--machine"),
        ({"machine": "gpu-1"}, {"machine": "box"}, "with machine gpu-1.", "--machine"),
        ({"label": "a", "machine": "gpu-1"}, {"label": "a"}, "with machine gpu-1.", "--machine"),
    ],
)
def test_a_renamed_machine_is_no_new_result(
    sqlite_database: Database,
    tmp_path: Path,
    first: dict[str, str],
    second: dict[str, str],
    said: str,
    option: str,
) -> None:
    performance, _ = write_pair(tmp_path)
    import_paths(sqlite_database, [performance], options=ImportOptions(**TOLD, **first))
    report = import_paths(sqlite_database, [performance], options=ImportOptions(**TOLD, **second))
    (error,) = report.errors
    assert isinstance(error, ConflictError)
    assert error.message == f"{performance}: a with inductor was imported before, {said}"
    assert f"Give {option} as before, or leave it." in error.next_step
    assert len(stored(sqlite_database)) == 3


@pytest.mark.parametrize("content", ["", "\n\n", "[]", "{}", "hello", '{"a": 1}'])
def test_files_of_no_format_are_refused(sqlite_database: Database, tmp_path: Path, content: str) -> None:
    (tmp_path / "x").write_text(content)
    report = import_paths(sqlite_database, [tmp_path / "x"], options=OPTIONS)
    assert isinstance(report.errors[0], RecordError)
    assert stored(sqlite_database) == []


def test_a_file_without_results_is_refused(sqlite_database: Database, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("dev,name,batch_size,speedup,abs_latency\n")
    report = import_paths(sqlite_database, [tmp_path / "x.csv"], options=OPTIONS)
    assert "holds no result" in report.errors[0].message


def test_an_unknown_format_names_the_known_ones(sqlite_database: Database, tmp_path: Path) -> None:
    report = import_paths(sqlite_database, [tmp_path / "x"], format="excel")
    assert "auto, trial, trial-csv, dynamo-csv" in report.errors[0].next_step


def test_the_report_is_one_json_document(sqlite_database: Database, tmp_path: Path) -> None:
    report = import_paths(
        sqlite_database, [*write_pair(tmp_path), tmp_path / "missing"], options=OPTIONS, dry_run=True
    )
    document = json.loads(json.dumps(report.as_json()))
    assert document["schema"] == "compilewatch.import/1"
    assert [file["new"] for file in document["files"]] == [3, 0, 0], (
        "the second of a pair adds nothing to the first"
    )
    assert document["files"][0]["first"][0]["workload"]["name"] == "a"
    assert "cannot be read" in document["files"][2]["error"]


@pytest.mark.parametrize(("samples", "_"), of_each(None, None))
def test_every_sample_comes_in_by_one_call_and_is_stored_as_read(
    database: Database, samples: Path, _: None
) -> None:
    names = (
        "dynamobench/**/*.*",
        "hf_*",
        "optimum_benchmark_*",
        "pytest_benchmark.json",
        "pytorch_oss_v3_[!m]*",
    )
    paths = sorted(path for name in names for path in samples.glob(name))
    # Other results of the same cases, of a run that failed: of one moment they come in by a label alone.
    failed = [path for path in paths if path.parent.name == "failed"]
    report = import_paths(database, [path for path in paths if path not in failed], options=OPTIONS)
    again = import_paths(database, failed, options=OPTIONS)
    assert [type(error) for error in again.errors] == [RecordError] * len(failed)
    labelled = import_paths(database, failed, options=replace(OPTIONS, label="failed"))
    assert (report.errors, labelled.errors) == ((), ())
    # Rows of dynamo's CSV 2 + 1 + 2 + 1, which its JSON repeats, transformers 9, optimum's pair 1,
    # pytest-benchmark 2, the v3 database 1 + 1 + 1 + 3, of which 2 stand in two files.
    assert report.new + labelled.new == len(stored(database)) == 22
    for trial in stored(database):
        assert trial_record(database, trial.trial_id) == trial
        assert trial.started_at >= MEASURED_AT or trial.source.name == "transformers-ci"


# Options that say something else than the file.

TELLING = {
    "torch": ("2.9.0", "2.8.0"),
    "cuda": ("12.8", "12.6"),
    "driver": ("570", "580"),
    "python": ("3.11", "3.12"),
    "device": ("cuda", "cpu"),
    "device_name": ("NVIDIA H100", "NVIDIA A100"),
    "machine": ("box", "other"),
    "dtype": ("float16", "float32"),
    "task": ("inference", "training"),
    "strategy": ("default", "eager"),
    "batch_size": (8, 4),
    "suite": ("nightly", "weekly"),
    "package.timm": ("1.0.9", "1.0.20"),
    "workload": ("m", "w"),
    "measured_at": (MEASURED_AT.isoformat(), datetime(2025, 1, 1, tzinfo=UTC)),
}


def test_a_file_wins_over_each_option_and_that_is_said(sqlite_database: Database, tmp_path: Path) -> None:
    path = tmp_path / "known.csv"
    cells = [str(of_file) for of_file, _ in TELLING.values()]
    path.write_text(f"{','.join(TELLING)},latency_ms\n{','.join(cells)},1.5\n")
    (before,) = read(path)
    told = {name: other for name, (_, other) in TELLING.items() if name != "package.timm"}
    options = ImportOptions(**told, packages={"timm": "1.0.20"}, pair_key="k", job="j")
    report = import_paths(sqlite_database, [path], options=options)
    assert stored(sqlite_database) == [before]
    notes = report.files[0].notes
    for option in (*(f"--{name.replace('_', '-')} " for name in told), "--package timm="):
        (said,) = [note for note in notes if f"; {option}" in note]
        assert said.endswith(" is not used for it.")
    assert {note for note in notes if "is csv" in note} == {
        f"{path}: is csv, for which --{name} is not used." for name in ("pair-key", "job")
    }


def test_a_record_of_our_own_needs_no_option_and_says_which_were_told(
    sqlite_database: Database, tmp_path: Path
) -> None:
    path = write_jsonl(tmp_path / "t.jsonl", [make_trial()])
    report = import_paths(sqlite_database, [path], options=ImportOptions(torch="2.8.0", label="x"))
    assert report.files[0].notes == (f"{path}: says everything itself; not used for it: --torch, --label.",)


def test_results_of_two_labels_are_two_runs(sqlite_database: Database, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for label, latency in (("before", 1.5), ("after", 2.5), ("after", 2.5)):
        path.write_text(f"workload,latency_ms\nsame,1\nm,{latency}\n")
        import_paths(sqlite_database, [path], options=ImportOptions(**TOLD, label=label))
    trials = stored(sqlite_database)
    assert len({trial.run_id for trial in trials}) == 2
    assert Counter(trial.label for trial in trials) == {"before": 2, "after": 2}
    before, after = (resolve_side(label, sqlite_database) for label in ("before", "after"))
    assert len({*before.run_ids, *after.run_ids}) == 2
