"""Results of several nights: folders by date, and files that do not say when they were measured."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from compilewatch.db.engine.session import Database
from compilewatch.db.interchange import process
from compilewatch.db.interchange.files.opening import named_date
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.importing import ImportReport, Writing, import_paths
from compilewatch.db.queries.trials import trial_records
from compilewatch.db.records.trial import Status, Task
from tests.db.interchange.reading import MEASURED_AT

NAME = "inductor_huggingface_amp_training_cuda_performance.csv"
# Of every night the same failure, and another time of the model that passes.
NIGHT = "dev,name,batch_size,speedup,abs_latency\ncuda,bart,4,0.0,0\ncuda,albert,8,1.5,{}\n"
NIGHTS = tuple(f"2026-03-0{day}" for day in range(1, 7))
FACTS = ImportOptions(torch="2.9.0", device_name="NVIDIA H100")
TOLD = replace(FACTS, measured_at=MEASURED_AT)


def nights(folder: Path, *names: str) -> Path:
    for number, name in enumerate(names):
        (folder / name).mkdir(parents=True)
        (folder / name / NAME).write_text(NIGHT.format(50 + number))
    return folder


def stored(database: Database) -> list[tuple[str, Status]]:
    """Day and status of every trial."""
    found = trial_records(database)
    return sorted((f"{trial.started_at:%Y-%m-%d}", trial.status) for trial in found)


def errors(report: ImportReport) -> list[str]:
    return [error.message for error in report.errors]


@pytest.mark.parametrize("options", [FACTS, TOLD], ids=["asked", "told"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_night_is_a_run_and_each_failure_a_trial(
    sqlite_database: Database, tmp_path: Path, options: ImportOptions, packed: bool
) -> None:
    path = nights(tmp_path / "nights", *NIGHTS)
    if packed:
        with zipfile.ZipFile(tmp_path / "nights.zip", "w") as archive:
            for night in NIGHTS:
                archive.write(path / night / NAME, f"{night}/{NAME}")
        path = tmp_path / "nights.zip"
    report = import_paths(sqlite_database, [path], options=options)
    assert (errors(report), report.new, report.known) == ([], 12, 0)
    expected = [(night, status) for night in NIGHTS for status in (Status.FAILED, Status.OK)]
    assert stored(sqlite_database) == expected
    assert len({trial.run_id for trial in trial_records(sqlite_database)}) == len(NIGHTS)
    again = import_paths(sqlite_database, [path], options=options)
    assert (errors(again), again.new, again.known) == ([], 0, 12)


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("apart", ["one command", "two commands", "archive"])
def test_files_of_one_moment_are_never_one_run_unsaid(
    sqlite_database: Database, tmp_path: Path, apart: str, dry_run: bool
) -> None:
    folder = nights(tmp_path / "in", "a", "b")
    first, second = folder / "a" / NAME, folder / "b" / NAME
    if apart == "archive":
        with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
            archive.write(first, f"a/{NAME}")
            archive.write(second, f"b/{NAME}")
        paths, brought = [tmp_path / "in.zip"], 0
    else:
        paths, brought = [first, second], 2
        if apart == "two commands":
            assert import_paths(sqlite_database, [first], options=TOLD).new == 2
            paths, brought = [second], 0
    report = import_paths(sqlite_database, paths, options=TOLD, dry_run=dry_run)
    (message,) = errors(report)
    assert "has other results of 1 case than" in message
    assert "--label" in report.errors[0].next_step
    assert ("--replace" in report.errors[0].next_step) == (apart == "two commands")
    assert report.new == brought
    # The way out that the sentence names.
    assert import_paths(sqlite_database, [second], options=replace(TOLD, label="b")).new == 2


def test_what_is_the_same_or_of_other_cases_is_one_run(sqlite_database: Database, tmp_path: Path) -> None:
    first, copy = (nights(tmp_path / name, "x") / "x" / NAME for name in ("a", "b"))
    other = tmp_path / NAME
    other.write_text(NIGHT.format(70).replace("albert", "vit").replace("bart", "t5"))
    report = import_paths(sqlite_database, [first, copy, other], options=TOLD)
    assert (errors(report), report.new, report.known) == ([], 4, 2)
    # Rows that were appended to a file that came in before are repeats of that run.
    first.write_text(NIGHT.format(50) + "cuda,albert,8,1.5,51\n")
    report = import_paths(sqlite_database, [first], options=TOLD)
    assert (errors(report), report.new, report.known) == ([], 1, 2)


def test_a_time_of_that_day_says_more_than_the_folder(sqlite_database: Database, tmp_path: Path) -> None:
    night = nights(tmp_path, "2026-03-01") / "2026-03-01" / NAME
    at = datetime(2026, 3, 1, 4, 30, tzinfo=UTC)
    assert import_paths(sqlite_database, [night], options=replace(FACTS, measured_at=at)).new == 2
    assert {trial.started_at for trial in trial_records(sqlite_database)} == {at}


def test_without_a_date_of_its_own_or_of_its_folder_the_moment_is_asked_for(
    sqlite_database: Database, tmp_path: Path
) -> None:
    report = import_paths(sqlite_database, [nights(tmp_path / "in", "x-2026-03-01", "b")], options=FACTS)
    assert len(errors(report)) == 2
    assert all("does not say when it was measured" in message for message in errors(report))


@pytest.mark.parametrize(
    ("folders", "many", "moment"),
    [
        (["2026-03-01"], 1, "2026-03-01 00:00:00"),
        (["20260301_0430"], 1, "2026-03-01 04:30:00"),
        (["nightly-2026-03-01"], 1, "2026-03-01 00:00:00"),
        (["day_060_01_03_26_performance_amp_3012"], 1, "2026-03-01 00:00:00"),
        (["01", "03", "2026"], 1, "2026-03-01 00:00:00"),
        (["huggingface", "2026-03-01"], 2, "2026-03-01 00:00:00"),
        (["huggingface", "2026-03-01"], 1, None),
        (["2026-03-01_h100"], 1, "2026-03-01 00:00:00"),
        (["20260301-0430-abc1234"], 1, "2026-03-01 04:30:00"),
        (["h100-2026-03-01"], 1, None),
        (["2.14.0.dev20260301"], 1, None),
        (["2026-03-01_vs_2026-03-02"], 1, None),
        (["01-03-2026"], 1, None),
        (["2026-02-30"], 1, None),
        (["2526-03-01"], 1, None),
        ([], 1, None),
    ],
)
def test_dates_of_folders(folders: list[str], many: int, moment: str | None) -> None:
    found = named_date("results.csv", folders, many)
    assert (None if found is None else f"{found:%Y-%m-%d %H:%M:%S}") == moment


@pytest.mark.parametrize(
    ("file", "moment"),
    [
        ("2026-03-01.csv", "2026-03-01 00:00:00"),
        ("results_2026-03-01.csv", "2026-03-01 00:00:00"),
        ("nightly-20260301_0430.json", "2026-03-01 04:30:00"),
        ("2026-03-01_vllm_llama.json", "2026-03-01 00:00:00"),
        # It is the model's.
        ("gpt-4o-2024-08-06.json", None),
        ("2026-03-01_vs_2026-03-02.csv", None),
        ("results_2026-13-01.csv", None),
    ],
)
def test_dates_of_files(file: str, moment: str | None) -> None:
    """A file's own name says more than that of its folder."""
    for folders, other in ((["2026-05-05"], "2026-05-05 00:00:00"), ([], None)):
        found = named_date(file, folders, 1)
        assert (None if found is None else f"{found:%Y-%m-%d %H:%M:%S}") == (moment or other)


def test_files_by_date_in_one_folder_are_as_many_runs(sqlite_database: Database, tmp_path: Path) -> None:
    for day in (1, 2):
        table = f"workload,strategy,latency_ms\nbert,eager,{10 + day}\n"
        (tmp_path / f"results_2026-03-0{day}.csv").write_text(table)
    options = replace(FACTS, device="cuda", dtype="float16", task=Task.INFERENCE)
    report = import_paths(sqlite_database, [tmp_path], options=options)
    assert (errors(report), report.new) == ([], 2)
    assert [day for day, _ in stored(sqlite_database)] == ["2026-03-01", "2026-03-02"]


def test_a_folder_brings_what_is_a_result(sqlite_database: Database, tmp_path: Path) -> None:
    folder = nights(tmp_path / "in", "2026-03-01", ".hidden")
    (folder / "README.md").write_text("# The nights, all of them\n")
    (folder / "2026-03-01" / "weights.bin").write_bytes(bytes(range(256)))
    (folder / "2026-03-01" / "latest").symlink_to(folder / "2026-03-01")
    report = import_paths(sqlite_database, [folder], options=FACTS)
    assert (errors(report), report.new) == ([], 2)
    passed = [note for file in report.files for note in file.notes if note.endswith("passed over.")]
    assert len(passed) == 2
    (tmp_path / "none").mkdir()
    (tmp_path / "prose").mkdir()
    (tmp_path / "prose" / "README.md").write_text("Nothing here.\n")
    report = import_paths(sqlite_database, [tmp_path / "none", tmp_path / "prose"], options=FACTS)
    assert [message.rpartition(": ")[2] for message in errors(report)] == [
        "holds no file.",
        "is in no format that is read.",
    ]


def test_a_file_of_a_folder_that_kills_its_reader_takes_no_other_with_it(
    sqlite_database: Database, tmp_path: Path
) -> None:
    folder = nights(tmp_path / "in", *NIGHTS[:2])
    deep = "[" * 4_000_000
    (folder / NIGHTS[0] / "a.json").write_text(
        '{"machine_info": {}, "commit_info": {}, "benchmarks": ' + deep
    )
    report = import_paths(sqlite_database, [folder], options=FACTS)
    assert len(errors(report)) == 1
    assert report.new == 4


def test_a_corrected_file_takes_the_place_of_the_first_and_of_no_other_of_its_command(
    sqlite_database: Database, tmp_path: Path
) -> None:
    folder = nights(tmp_path / "in", "a", "b")
    paths = [folder / name / NAME for name in ("a", "b")]
    assert import_paths(sqlite_database, paths[:1], options=TOLD).new == 2
    replaced = import_paths(sqlite_database, paths[1:], options=TOLD, writing=Writing.REPLACE)
    assert (errors(replaced), replaced.new, len(stored(sqlite_database))) == ([], 1, 2)
    both = import_paths(sqlite_database, paths, options=TOLD, writing=Writing.REPLACE)
    assert len(errors(both)) == 1


def test_one_process_reads_a_folder_whatever_is_refused_in_it(
    sqlite_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: set[int] = set()

    class Counted(process.ReadingProcess):
        def _begun(self) -> process.subprocess.Popen[bytes]:
            reader = super()._begun()
            begun.add(reader.pid)
            return reader

    monkeypatch.setattr("compilewatch.db.interchange.importing.ReadingProcess", Counted)
    folder = nights(tmp_path / "in", *NIGHTS)
    (folder / NIGHTS[1] / NAME).write_text(NIGHT.format("fast"))
    report = import_paths(sqlite_database, [folder], options=FACTS)
    assert (len(errors(report)), report.new, len(begun)) == (1, 10, 1)
