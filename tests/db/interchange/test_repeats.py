"""Equal rows of one file are repeats: each is a trial, and the same file twice still adds nothing."""

import json
import zipfile
from pathlib import Path

import pytest

from compilewatch.db.engine.session import Database
from compilewatch.db.interchange import reading
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.formats import Format
from compilewatch.db.interchange.importing import import_paths
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trial_records
from tests.db.interchange.reading import TOLD, read_told
from tests.db.interchange.tiny_files import TINY

OPTIONS = ImportOptions(**TOLD)
DYNAMO = "inductor_torchbench_amp_training_cuda_performance.csv"
# The ids that these rows have had since the first release that imports.
FIRST_A = "imp-9807a549bba78c27c4f0c7b76dfdedaa"
FIRST_B = "imp-9235b0ec48a160076596e3ab643b2c38"


def table(folder: Path, *rows: str, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_text("workload,strategy,latency_ms\n" + "".join(f"{row}\n" for row in rows))
    return path


def ids(path: Path) -> list[str]:
    return [trial.trial_id for trial in read_told(path)]


def test_equal_rows_are_trials_of_their_own(sqlite_database: Database, tmp_path: Path) -> None:
    path = table(tmp_path, "a,default,1.5", "a,default,1.5", "b,default,2", "a,default,1.5", "a,default,1.25")
    report = import_paths(sqlite_database, [path], options=OPTIONS)
    assert (report.new, report.known) == (5, 0)
    again = import_paths(sqlite_database, [path], options=OPTIONS)
    assert (again.new, again.known) == (0, 5)
    kept = [
        trial.summary for trial in trial_records(sqlite_database, Filters()) if trial.workload.name == "a"
    ]
    assert sorted(summary.latency_ns or 0 for summary in kept if summary) == [1_250_000, *[1_500_000] * 3]


def test_the_first_of_equal_rows_keeps_the_id_it_always_had(tmp_path: Path) -> None:
    first = ids(table(tmp_path, "a,default,1.5", "b,default,2"))
    assert first == [FIRST_A, FIRST_B]
    more = ids(table(tmp_path, "b,default,2", "a,default,1.5", "a,default,1.5", "b,default,2"))
    assert more[:2] == [FIRST_B, FIRST_A]
    assert len(set(more)) == 4


def test_a_repeat_added_to_a_known_file_is_one_new_trial(sqlite_database: Database, tmp_path: Path) -> None:
    import_paths(sqlite_database, [table(tmp_path, "a,default,1.5", "a,default,1.5")], options=OPTIONS)
    more = table(tmp_path, "a,default,1.5", "a,default,1.5", "a,default,1.5")
    report = import_paths(sqlite_database, [more], options=OPTIONS)
    assert (report.new, report.known) == (1, 2)


def test_a_file_packed_twice_is_no_repeat(sqlite_database: Database, tmp_path: Path) -> None:
    path = table(tmp_path, "a,default,1.5", "a,default,1.5")
    packed = tmp_path / "both.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.write(path, "one/table.csv")
        archive.write(path, "two/table.csv")
    report = import_paths(sqlite_database, [packed], options=OPTIONS)
    assert (report.new, report.known) == (2, 2)


def test_repeats_of_a_performance_file_are_trials_of_their_own(
    sqlite_database: Database, tmp_path: Path
) -> None:
    row = "cuda,m,8,2.0,1.5\n"
    (tmp_path / DYNAMO).write_text(f"dev,name,batch_size,speedup,abs_latency\n{row}{row}{row}")
    report = import_paths(sqlite_database, [tmp_path / DYNAMO], options=OPTIONS)
    assert (report.new, report.known) == (3, 0)


def test_equal_benchmarks_and_jobs_with_equal_figures_are_repeats(tmp_path: Path) -> None:
    document = json.loads(TINY[Format.PYTEST_BENCHMARK]["benchmark.json"])
    document["benchmarks"] += document["benchmarks"][1:]
    (tmp_path / "benchmark.json").write_text(json.dumps(document))
    assert len(set(ids(tmp_path / "benchmark.json"))) == 3

    lines = TINY[Format.OSS_V3]["results.json"].splitlines()
    jobs = [json.dumps(json.loads(line) | {"job_id": job}) for job in (1, 2) for line in lines]
    (tmp_path / "results.json").write_text("\n".join(jobs))
    assert len(set(ids(tmp_path / "results.json"))) == 2


def test_counting_goes_to_a_file_where_it_outgrows_its_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_CACHE_KIB", 16)
    path = table(tmp_path, *(f"w{number % 1000},default,1.5" for number in range(2000)))
    assert len(set(ids(path))) == 2000
