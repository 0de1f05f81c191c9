"""The way out: a corrected file in place of the earlier one, and a wrong import taken out again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compilewatch.db.engine.session import Database
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.importing import FileReport, Writing, import_paths
from compilewatch.db.queries.trials import trial_records
from compilewatch.db.service.integrity import find_damage
from compilewatch.db.store.trials import save_trials
from tests.builders import make_trial
from tests.db.interchange.reading import TOLD

Latencies = dict[tuple[str, str], list[int | None]]


def table(folder: Path, *rows: tuple[str, str, float], name: str = "t.csv") -> Path:
    lines = ["workload,strategy,latency_ms", *(",".join(map(str, row)) for row in rows)]
    (folder / name).write_text("\n".join(lines))
    return folder / name


def imported(
    database: Database, *paths: Path, writing: Writing = Writing.ADD, dry_run: bool = False, **told: Any
) -> tuple[FileReport, ...]:
    options = ImportOptions(**TOLD | {"strategy": None} | told)
    return import_paths(database, paths, options=options, writing=writing, dry_run=dry_run).files


def counts(report: FileReport) -> tuple[int, int, int]:
    assert report.error is None
    return report.new, report.known, report.removed


def stored(database: Database) -> Latencies:
    found: Latencies = {}
    for trial in trial_records(database):
        latency = trial.summary.latency_ns if trial.summary else None
        found.setdefault((trial.workload.name, trial.strategy.name), []).append(latency)
    return {case: sorted(each, key=str) for case, each in found.items()}


BEFORE = (("a", "eager", 10), ("a", "default", 50), ("b", "default", 7))


def test_a_corrected_row_takes_the_place_of_the_wrong_one(sqlite_database: Database, tmp_path: Path) -> None:
    imported(sqlite_database, table(tmp_path, *BEFORE))
    corrected = table(tmp_path, ("a", "eager", 10), ("a", "default", 5))
    (tried,) = imported(sqlite_database, corrected, writing=Writing.REPLACE, dry_run=True)
    assert counts(tried) == (1, 1, 1)
    assert stored(sqlite_database)["a", "default"] == [50_000_000]
    (report,) = imported(sqlite_database, corrected, writing=Writing.REPLACE)
    assert counts(report) == (1, 1, 1)
    assert stored(sqlite_database) == {
        ("a", "eager"): [10_000_000],
        ("a", "default"): [5_000_000],
        ("b", "default"): [7_000_000],
    }
    (again,) = imported(sqlite_database, corrected, writing=Writing.REPLACE)
    assert counts(again) == (0, 2, 0)
    assert find_damage(sqlite_database) == []


def test_files_of_one_command_do_not_replace_each_other(sqlite_database: Database, tmp_path: Path) -> None:
    """Three results of one case, which one moment was named for: the first comes in, the others are named."""
    paths = [table(tmp_path, ("a", "default", 5 + each), name=f"{each}.csv") for each in range(3)]
    for _ in range(2):
        first, *others = imported(sqlite_database, *paths, writing=Writing.REPLACE)
        assert first.error is None
        assert ["one moment" in each.error.message for each in others if each.error] == [True, True]
        assert stored(sqlite_database) == {("a", "default"): [5_000_000]}


@pytest.mark.parametrize("other", [{"label": "mine"}, {"torch": "2.12.0"}])
def test_another_run_stays(sqlite_database: Database, tmp_path: Path, other: dict[str, Any]) -> None:
    imported(sqlite_database, table(tmp_path, *BEFORE), **other)
    (report,) = imported(sqlite_database, table(tmp_path, ("a", "default", 5)), writing=Writing.REPLACE)
    assert counts(report) == (1, 0, 0)
    assert stored(sqlite_database)["a", "default"] == [5_000_000, 50_000_000]


def test_a_reading_by_another_option_replaces_the_first(sqlite_database: Database, tmp_path: Path) -> None:
    path = tmp_path / "times.json"
    path.write_text('[{"computeMs": 1.5, "latencyMs": 2.0}]')
    imported(sqlite_database, path)
    named = {"latency": "GPU compute time (ms)"}
    (refused,) = imported(sqlite_database, path, **named)
    assert refused.error is not None
    assert "--replace" in refused.error.next_step
    (report,) = imported(sqlite_database, path, writing=Writing.REPLACE, **named)
    assert counts(report) == (1, 0, 1)
    assert stored(sqlite_database) == {("times", "tensorrt"): [1_500_000]}


def test_what_the_same_files_brought_is_taken_out(sqlite_database: Database, tmp_path: Path) -> None:
    wrong, right = table(tmp_path, *BEFORE), table(tmp_path, ("c", "eager", 3), name="u.csv")
    imported(sqlite_database, wrong, right)
    (tried,) = imported(sqlite_database, wrong, writing=Writing.REMOVE, dry_run=True)
    assert counts(tried) == (0, 0, 3)
    assert len(stored(sqlite_database)) == 4
    (report,) = imported(sqlite_database, wrong, writing=Writing.REMOVE)
    assert counts(report) == (0, 0, 3)
    assert stored(sqlite_database) == {("c", "eager"): [3_000_000]}
    (again,) = imported(sqlite_database, wrong, writing=Writing.REMOVE)
    assert counts(again) == (0, 0, 0)
    assert find_damage(sqlite_database) == []


def test_what_was_measured_here_is_never_taken_out(sqlite_database: Database, tmp_path: Path) -> None:
    trial = make_trial()
    save_trials(sqlite_database, [trial])
    (tmp_path / "t.jsonl").write_text(trial.to_json())
    for writing in (Writing.REMOVE, Writing.REPLACE):
        (report,) = imported(sqlite_database, tmp_path / "t.jsonl", writing=writing)
        assert report.removed == 0
    assert [each.trial_id for each in trial_records(sqlite_database)] == [trial.trial_id]
