"""`list cases` has stored cases with figures that are the same on every door, and the founding tables."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from compilewatch.dashboard.api.endpoints import ENDPOINTS
from compilewatch.db.engine.session import Database, open_database
from compilewatch.db.store.trials import save_trials
from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of
from tests.builders import make_trial, make_workload


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


@pytest.mark.parametrize("asked", [{}, {"workload": ("ddp-r2", "m-bf16")}])
def test_what_a_case_is_set_against_is_there_whatever_is_asked_for(
    asked: dict[str, Any], database: Database
) -> None:
    """That of one rank and that in float32 are other workloads: on another page, or not asked for."""
    measured = {
        "ddp-r1": (1e6, {"ranks": 1, "items_per_iteration": 4.0}),
        "ddp-r2": (1.25e6, {"ranks": 2, "items_per_iteration": 8.0}),
        "m-bf16": (1e6, {"variant": "bf16", "dtype": "bfloat16"}),
        "m-float32": (2e6, {"variant": "float32"}),
    }
    save_trials(
        database,
        [
            make_trial(
                workload=make_workload(name, version="1", **more), trial_id=name, latency_ns=latency_ns
            )
            for name, (latency_ns, more) in measured.items()
        ],
    )
    (endpoint,) = (each for each in ENDPOINTS if each.path == "/cases")
    rows: dict[str, Any] = {}
    cursor = None
    while not rows or cursor is not None:
        page = endpoint.answer(database, {"limit": 1, "cursor": cursor, **asked})
        rows |= {row["workload"]: row for row in page.rows}
        cursor = page.next_cursor
    assert rows.keys() == set(asked.get("workload", measured))
    assert rows["ddp-r2"]["scaling_efficiency"] == pytest.approx(0.8, rel=0.01)
    assert rows["m-bf16"]["speed_over_float32"] == pytest.approx(2, rel=0.01)


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
