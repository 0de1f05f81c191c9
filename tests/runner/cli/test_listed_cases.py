"""`list cases` has stored cases with figures that are the same on every door, and the founding tables."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from compilewatch.dashboard.api.endpoints import ENDPOINTS
from compilewatch.db.columns.case import CASE_COLUMNS
from compilewatch.db.engine.session import open_database
from compilewatch.db.metrics.cases import summarize_cases
from compilewatch.db.queries.filters import Filters
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.verdicts.case_view import DOORS, Door, case_view, rows_of_door, with_peers
from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of
from compilewatch.runner.output.documents import run_document


@pytest.fixture
def printed(
    stepped: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Any:
    monkeypatch.chdir(tmp_path)

    def list_cases(*options: str) -> str:
        assert exit_code_of(app, ["list", "cases", *options, "--db", stepped]) == 0
        return capsys.readouterr().out

    return list_cases


def test_json_csv_the_api_and_run_have_the_same_figures(printed: Any, stepped: str) -> None:
    rows = {row["case_id"]: row for row in json.loads(printed("--json"))["rows"]}
    table = {row["case_id"]: row for row in csv.DictReader(io.StringIO(printed("--csv")))}
    (endpoint,) = (each for each in ENDPOINTS if each.path == "/cases")
    with open_database(stepped) as database:
        answer = endpoint.answer(database, {"limit": 1000, "cursor": None})
        cases = summarize_cases(trials_frame(database, Filters()))
    api = {row["case_id"]: row for row in answer.rows}
    of_run = run_document(["R"], None, [], cases, [], {}, {}, {})["rows"]
    alike = {(row["build_id"], row["workload"], row["strategy"]): row for row in of_run}
    assert rows.keys() == table.keys() == api.keys()
    assert len(rows) > 2
    for case_id, row in rows.items():
        of_same = alike[row["build_id"], row["workload"], row["strategy"]]
        for name in ("latency_ns", "speedup", "compile_cost_ns", "throughput_per_s"):
            assert row[name] == api[case_id][name] == of_same[name]
            assert table[case_id][name] == ("" if row[name] is None else str(row[name]))


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


def _case(strategy: str, speedup: tuple[float, float, float], cost_ns: float) -> dict[str, Any]:
    ends = dict(zip(("speedup", "speedup_low", "speedup_high"), speedup, strict=True))
    blank = dict.fromkeys(CASE_COLUMNS)
    of_trials = {"failed_trials": 0, "suspect_trials": 0, "wild_trials": 0, "first_look": False}
    named = {"strategy": strategy, "strategy_id": strategy, "strategy_kind": "compile", "workload": "mlp"}
    return {**blank, **of_trials, **named, **ends, "compile_cost_ns": cost_ns}


def test_a_strategy_is_set_against_default_with_the_interval_of_both() -> None:
    cases = [_case("default", (1.6, 1.5, 1.7), 10e9), _case("max-autotune", (2.0, 1.8, 2.25), 40e9)]
    rows = with_peers(cases, {"max-autotune": "mode max-autotune"}, lambda _: ())
    row = case_view(rows[1], DOORS[Door.STRATEGIES])
    assert row["changes"] == "mode max-autotune"
    # By hand: ln(2 / 1.8) = .10536 and ln(1.7 / 1.6) = .06062 below, ln(2.25 / 2) = .11778 and
    # ln(1.6 / 1.5) = .06454 above: 1.25 * exp(-.12156) and 1.25 * exp(.13430).
    assert row["speedup_over_default"] == pytest.approx(1.25)
    assert row["speedup_over_default_interval"] == pytest.approx([1.10693, 1.42968], rel=1e-4)
    assert case_view(rows[0], DOORS[Door.STRATEGIES])["speedup_over_default"] is None


def test_whole_and_regional_compilation_stand_in_one_row() -> None:
    cases = [_case("default", (1.6, 1.5, 1.7), 40e9), _case("default+regional", (1.5, 1.4, 1.6), 10e9)]
    (row,) = rows_of_door(with_peers(cases, {}, lambda _: ()), Door.REGIONAL)
    values = case_view(row, DOORS[Door.REGIONAL])
    assert (values["whole_compile_cost_ns"], values["compile_cost_ns"]) == (40e9, 10e9)
    assert values["compile_cost_change"] == pytest.approx(-0.75)
    assert (values["whole_speedup"], values["speedup"]) == (1.6, 1.5)
