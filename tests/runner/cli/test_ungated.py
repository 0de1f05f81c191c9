"""The first records of a GPU at every command: imported whole, judged, exported, and called ungated."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from compilewatch.db.engine.session import open_database
from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of

H100 = Path(__file__).parents[3] / "docs" / "measured" / "h100"
FILES = ["profiles.jsonl", "smoke-5-trials.jsonl", "standard-part.jsonl", "upgrade-2.11-2.13.jsonl"]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    found = f"sqlite:///{tmp_path_factory.mktemp('h100') / 'h100.db'}"
    open_database(found, migrate=True).close()
    assert exit_code_of(app, ["import", *(str(H100 / name) for name in FILES), "--db", found]) == 0
    return found


def test_a_plain_gate_passes_over_a_run_that_only_took_profiles(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The newest run has no suite and none before it; the upgrade's two runs can be compared."""
    assert exit_code_of(app, ["gate", "--json", "--db", url]) == 2
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    sides = [document[side]["run_ids"] for side in ("base", "head")]
    assert sides == [["01M830657VCXFD7CPGZT9778M4"], ["01M830657VCXFD7CPGZT9778M5"]]
    assert document["rows"]
    assert exit_code_of(app, ["gate", "--db", url]) == 2
    assert "Ungated: these times hold" in capsys.readouterr().err


def test_an_export_names_the_method_of_each_trial(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(app, ["export", "--format", "csv", "--db", url]) == 0
    rows = [*csv.DictReader(capsys.readouterr().out.splitlines())]
    assert len(rows) == 110
    assert {row["timing_method"] for row in rows if row["latency_ns"]} == {"ungated"}
    assert {row["timing_method"] for row in rows if not row["latency_ns"]} == {""}


def test_the_upgrade_reads_as_the_page_of_docs_says(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing decided: the processes of one side differ by half."""
    assert exit_code_of(app, ["compare", "torch=2.11.0", "torch=2.13.0", "--json", "--db", url]) == 2
    document = json.loads(capsys.readouterr().out)
    latencies = [row for row in document["rows"] if row["metric"] == "latency"]
    assert {row["verdict"] for row in latencies} == {"inconclusive"}
    assert {row["case"]["timing_method"] for row in latencies} == {"ungated"}
    assert len(latencies) == 5
