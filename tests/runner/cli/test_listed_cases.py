"""`list cases` has stored cases with figures that are the same on every door, and the founding tables."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from compilewatch.dashboard.api.endpoints import ENDPOINTS
from compilewatch.db.engine.session import open_database
from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of


@pytest.fixture
def printed(
    stepped: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Any:
    monkeypatch.chdir(tmp_path)

    def list_cases(*options: str) -> str:
        assert exit_code_of(app, ["list", "cases", *options, "--db", stepped]) == 0
        return capsys.readouterr().out

    return list_cases


def test_the_api_has_the_columns_and_values_of_the_list(printed: Any, stepped: str) -> None:
    (endpoint,) = (each for each in ENDPOINTS if each.path == "/cases")
    listed = {row["case_id"]: row for row in json.loads(printed("--json"))["rows"]}
    with open_database(stepped) as database:
        rows = endpoint.answer(database, {"limit": 1000, "cursor": None}).rows
        assert set(endpoint.schema(database)["properties"]["rows"]["items"]["properties"]) == set(rows[0])
    assert {row["case_id"]: row for row in rows} == listed
    assert any(row["notes"] for row in rows)


def test_csv_has_the_rows_of_json(printed: Any) -> None:
    rows = json.loads(printed("--json"))["rows"]
    table = {row["case_id"]: row for row in csv.DictReader(io.StringIO(printed("--csv")))}
    assert len(rows) == len(table) > 2
    for row in rows:
        for name in ("latency_ns", "speedup", "compile_cost_ns", "throughput_per_s"):
            assert table[row["case_id"]][name] == ("" if row[name] is None else str(row[name]))


def test_chosen_strategies_are_rows_and_leave_the_figures_as_they_are(printed: Any) -> None:
    every = {row["case_id"]: row for row in json.loads(printed("--json"))["rows"]}
    chosen = json.loads(printed("--json", "-s", "default"))["rows"]
    assert {row["strategy"] for row in chosen} == {"default"}
    assert all(row == every[row["case_id"]] for row in chosen)


def test_strategies_of_the_api_are_rows_and_leave_the_figures_as_they_are(stepped: str) -> None:
    (endpoint,) = (each for each in ENDPOINTS if each.path == "/cases")
    with open_database(stepped) as database:
        whole = endpoint.answer(database, {"limit": 1000, "cursor": None}).rows
        chosen = endpoint.answer(database, {"limit": 1000, "cursor": None, "strategy": ("default",)}).rows
    assert chosen == [row for row in whole if row["strategy"] == "default"] != []


def test_the_page_of_the_api_goes_on_where_the_last_one_ended(stepped: str) -> None:
    (endpoint,) = (each for each in ENDPOINTS if each.path == "/cases")
    with open_database(stepped) as database:
        whole = endpoint.answer(database, {"limit": 1000, "cursor": None}).rows
        first = endpoint.answer(database, {"limit": 1, "cursor": None})
        rest = endpoint.answer(database, {"limit": 1000, "cursor": first.next_cursor})
    assert [*first.rows, *rest.rows] == whole


@pytest.mark.parametrize(
    ("preset", "said"), [("scaling", "`ranks = [1, 2]` of a [[workload]]"), ("regional", "default+regional")]
)
def test_an_empty_table_says_what_measures_its_rows(printed: Any, preset: str, said: str) -> None:
    assert said in " ".join(printed("--preset", preset, "-w", "mlp").split())


def test_columns_are_chosen_by_name(printed: Any) -> None:
    (row, *_) = json.loads(printed("--json", "--columns", "latency,dtype,notes"))["rows"]
    assert {"latency", "dtype", "notes", "case_id"} <= row.keys()
    assert "speedup" not in row
    assert printed("--columns", "dtype", "--markdown").startswith("| ")


@pytest.mark.parametrize("options", [["--columns", "bogus"], ["--preset", "scenario", "--columns", "dtype"]])
def test_what_is_no_column_and_two_choices_are_refused(options: list[str], stepped: str) -> None:
    assert exit_code_of(app, ["list", "cases", *options, "--db", stepped]) == 2
    assert exit_code_of(app, ["list", "runs", *options, "--db", stepped]) == 2


def test_forms_exclude_each_other(stepped: str) -> None:
    assert exit_code_of(app, ["list", "cases", "--json", "--csv", "--db", stepped]) == 2
