"""`gate`, `compare` and `run` beside imported results: the newest is what was measured last."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event

from db.queries.regressions import regressions_frame
from db.queries.sides import resolve_side
from db.records import Source, SourceKind, Trial
from db.session import open_database
from db.store import save_trials
from runner.cli.app import app
from runner.cli.front import exit_code_of
from tests.builders import make_history
from tests.regression_cases import RUN_0, RUN_1, stepping_history

BUILDS = ("2.12.0", "2.13.0")
TABLE = "workload,strategy,latency_ms,eager_latency_ms\nmlp,default,{},12\nbert-base,default,{},12\n"
FACTS = (
    *("--device", "cuda", "--device-name", "NVIDIA H200", "--machine", "gpu-box-3", "--dtype", "bfloat16"),
    *("--task", "inference", "--suite", "standard"),
)


@pytest.fixture(autouse=True)
def _nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def measured(sqlite_url: str) -> str:
    with open_database(sqlite_url) as database:
        save_trials(database, stepping_history(1.0, 1.1, builds=BUILDS))
    return sqlite_url


def bring(url: str, latency_ms: float, torch: str, day: str) -> None:
    """Import a table of both cases as it is done by hand."""
    table = Path(f"{torch}-{day}.csv")
    table.write_text(TABLE.format(latency_ms, latency_ms), encoding="utf-8")
    words = ["import", str(table), "--torch", torch, "--measured-at", day, *FACTS, "--db", url]
    assert exit_code_of(app, words) == 0


def judged(capsys: pytest.CaptureFixture[str], url: str, *words: str) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = exit_code_of(app, [*words, "--json", "--db", url])
    return code, json.loads(capsys.readouterr().out)


JUDGED = (("gate",), ("compare", "previous", "latest"))


@pytest.mark.parametrize("words", JUDGED, ids=" ".join)
def test_a_later_import_leaves_the_newest_measured_ones_the_newest(
    measured: str, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    # What is recorded of a run is no longer new when the same gate runs again.
    judged(capsys, measured, *words)
    before = judged(capsys, measured, *words)
    assert before[0] == 1
    for latency_ms, torch, day in ((5, "2.14.0", "2027-01-01"), (9, "2.14.1", "2027-01-02")):
        bring(measured, latency_ms, torch, day)
        assert judged(capsys, measured, *words) == before


def test_a_gate_records_nothing_of_imports_beside_measured_runs(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_database(sqlite_url) as database:
        save_trials(database, stepping_history(1.0, builds=BUILDS[:1]))
    bring(sqlite_url, 5, "2.14.0", "2027-01-01")
    bring(sqlite_url, 9, "2.14.1", "2027-01-02")
    assert exit_code_of(app, ["gate", "--db", sqlite_url]) == 2
    assert "There is no run before the newest one." in capsys.readouterr().err
    assert exit_code_of(app, ["compare", "previous", "latest", "--db", sqlite_url]) == 2
    assert "Only one build was measured." in capsys.readouterr().err
    with open_database(sqlite_url) as database:
        assert regressions_frame(database, revised=True).empty


def as_imported(trials: list[Trial]) -> list[Trial]:
    """The same results as another tool's."""
    source = Source(kind=SourceKind.IMPORTED, name="csv")
    return [
        trial.model_copy(
            update={"source": source, "run_id": f"imp-{trial.run_id}", "trial_id": f"imp-{trial.trial_id}"}
        )
        for trial in trials
    ]


def test_imports_of_a_measured_build_are_no_part_of_latest_and_previous(
    measured: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("compare", "previous", "latest")
    before = judged(capsys, measured, *words)
    names = [f"model-{number}" for number in range(9)]
    elsewhere = make_history(workloads=names, builds=BUILDS, machines=("other-box",))
    with open_database(measured) as database:
        save_trials(database, as_imported(elsewhere))
    assert judged(capsys, measured, *words) == before
    named = judged(capsys, measured, "compare", *(f"torch={torch}" for torch in BUILDS))[1]
    assert {row["workload"] for row in named["rows"]} > set(names), "a build that is named is all of it"


def test_where_nothing_was_measured_the_newest_are_imported(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_database(sqlite_url) as database:
        save_trials(database, as_imported(stepping_history(1.0, 1.1, builds=BUILDS)))
    code, document = judged(capsys, sqlite_url, "gate")
    assert (code, document["base"]["name"], document["head"]["name"]) == (1, f"imp-{RUN_0}", f"imp-{RUN_1}")
    code, document = judged(capsys, sqlite_url, "compare", "previous", "latest")
    assert [document[side]["components"]["torch"] for side in ("base", "head")] == list(BUILDS)
    assert code == 1


def test_an_import_that_is_named_is_compared(measured: str, capsys: pytest.CaptureFixture[str]) -> None:
    with open_database(measured) as database:
        save_trials(database, as_imported(stepping_history(1.0, 1.2, builds=BUILDS)))
    code, document = judged(capsys, measured, "compare", f"imp-{RUN_0}", f"imp-{RUN_1}")
    assert code == 1
    assert len(document["rows"]) > 0


def test_a_side_is_found_without_a_look_at_all_trials(measured: str) -> None:
    """On the tables of runs; of trials only one of a run, by the index."""
    with open_database(measured) as database:
        statements: list[tuple[str, Any]] = []

        def note(_connection: Any, _cursor: Any, text: str, values: Any, *_: Any) -> None:
            statements.append((text, values))

        event.listen(Engine, "before_cursor_execute", note)
        try:
            resolve_side("latest", database)
        finally:
            event.remove(Engine, "before_cursor_execute", note)
        with database.read() as connection:
            plans = [
                str(row[-1])
                for text, values in statements
                if text.startswith("SELECT")
                for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", values)
            ]
    assert any("run_part" in step for step in plans)
    assert not [step for step in plans if step.startswith("SCAN trial")]
