"""`compilewatch geomean` as it is typed: the mean of one build, what it is over, who was left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compilewatch.db.engine.session import open_database
from compilewatch.db.store.trials import save_trials
from tests.builders import make_history
from tests.runner.terminal import in_this_process


@pytest.fixture
def url(sqlite_url: str) -> str:
    with open_database(sqlite_url) as database:
        save_trials(
            database, make_history(builds=("2.12.0", "2.13.0"), failures=[("bert-base", "default", 1)])
        )
    return sqlite_url


def _document(url: str, folder: Path, *words: str) -> dict[str, Any]:
    told = in_this_process(*words, "--json", "--db", url, cwd=folder)
    assert told.stderr == ""
    found: dict[str, Any] = json.loads(told.stdout)
    return found


def test_the_mean_of_a_build_is_that_of_a_comparison_over_its_own_set(url: str, tmp_path: Path) -> None:
    comparison = _document(url, tmp_path, "compare", "torch=2.12.0", "torch=2.13.0")
    compared, (base,) = comparison["geomean"], comparison["base"]["build_ids"]
    (newest,) = _document(url, tmp_path, "geomean")["rows"]
    (older,) = _document(url, tmp_path, "geomean", "--build", base)["rows"]
    assert (older["torch"], older["speedup"]) == ("2.12.0", pytest.approx(compared["naive_base"]))
    assert (newest["torch"], newest["speedup"]) == ("2.13.0", pytest.approx(compared["naive_head"]))
    assert (older["cases"], older["left_out"]) == (2, [])
    assert newest["cases"] == 1
    assert newest["left_out"] == [{"workload": "bert-base", "reason": "failed: out of memory"}]


def test_strategies_are_set_against_each_other_over_the_workloads_that_passed_with_all(
    sqlite_url: str, tmp_path: Path
) -> None:
    with open_database(sqlite_url) as database:
        strategies = ("eager", "default", "max-autotune")
        history = make_history(
            strategies=strategies, builds=("2.13.0",), failures=[("bert-base", "max-autotune", 0)]
        )
        save_trials(database, history)
    default, autotuned = _document(sqlite_url, tmp_path, "geomean")["rows"]
    assert (default["strategy"], default["cases"], default["matched_cases"]) == ("default", 2, 1)
    assert (autotuned["cases"], autotuned["matched_cases"]) == (1, 1)
    assert autotuned["speedup"] == autotuned["matched_speedup"] != default["matched_speedup"]
    ((low, high), mean) = (default["matched_interval"], default["matched_speedup"])
    assert low < mean < high
    assert [each["strategy"] for each in default["matched_left_out"]] == ["max-autotune"]
    printed = in_this_process("geomean", "--db", sqlite_url, cwd=tmp_path).stdout
    assert "matched set [95 %]" in printed
    assert "own set [95 %]" in printed
    (alone,) = _document(sqlite_url, tmp_path, "geomean", "--strategy", "default")["rows"]
    assert (alone["matched_cases"], alone["matched_speedup"]) == (2, default["speedup"])
    assert (
        "own set" not in in_this_process("geomean", "-s", "default", "--db", sqlite_url, cwd=tmp_path).stdout
    )


def test_without_a_compiled_case_the_next_step_is_said(sqlite_url: str, tmp_path: Path) -> None:
    with open_database(sqlite_url) as database:
        save_trials(database, make_history(strategies=("eager",)))
    told = in_this_process("geomean", "--db", sqlite_url, cwd=tmp_path)
    assert told.returncode == 2
    assert told.stderr.startswith("compilewatch: No compiled case is stored.")
