"""`gate`, `compare` and `run` beside imported results: the newest is what was measured last."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from compilewatch.db.engine.session import open_database
from compilewatch.db.interchange.files.options import ImportOptions
from compilewatch.db.interchange.importing import import_paths
from compilewatch.db.records.trial import Source, SourceKind, Task, Trial
from compilewatch.db.service.regressions import regressions_frame
from compilewatch.db.store.trials import save_trials
from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of
from tests.builders import make_history, make_trial, make_workload
from tests.regression_cases import RUN_0, RUN_1, stepping_history

BUILDS = ("2.12.0", "2.13.0")
TABLE = "workload,strategy,latency_ms,eager_latency_ms\nmlp,default,{},12\nbert-base,default,{},12\n"
FACTS = ImportOptions(
    device="cuda",
    device_name="NVIDIA H200",
    machine="gpu-box-3",
    dtype="bfloat16",
    task=Task.INFERENCE,
    suite="standard",
)


@pytest.fixture(autouse=True)
def _nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def bring(url: str, latency_ms: float, torch: str, day: str, cases: str = TABLE) -> None:
    """Import a table of both cases, or of others; a day may be yet to come, as for a clock that is slow."""
    table = Path(f"{torch}-{day}.csv")
    table.write_text(cases.format(latency_ms, latency_ms), encoding="utf-8")
    measured_at = datetime.fromisoformat(day).replace(tzinfo=UTC)
    with open_database(url) as database:
        report = import_paths(database, [table], options=replace(FACTS, torch=torch, measured_at=measured_at))
    assert report.errors == ()


def judged(capsys: pytest.CaptureFixture[str], url: str, *words: str) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = exit_code_of(app, [*words, "--json", "--db", url])
    return code, json.loads(capsys.readouterr().out)


JUDGED = (("gate",), ("compare", "previous", "latest"))


@pytest.mark.parametrize("words", JUDGED, ids=" ".join)
def test_a_later_import_leaves_the_newest_measured_ones_the_newest(
    stepped: str, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    # What is recorded of a run is no longer new when the same gate runs again.
    judged(capsys, stepped, *words)
    before = judged(capsys, stepped, *words)
    assert before[0] == 1
    bring(stepped, 5, "2.14.0", "2027-01-01")
    bring(stepped, 9, "2.14.1", "2027-01-02")
    assert judged(capsys, stepped, *words) == before


def test_a_gate_records_nothing_of_imports_beside_measured_runs(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_database(sqlite_url) as database:
        save_trials(database, stepping_history(1.0, builds=BUILDS[:1]))
    bring(sqlite_url, 5, "2.14.0", "2027-01-01")
    bring(sqlite_url, 9, "2.14.1", "2027-01-02")
    assert exit_code_of(app, ["gate", "--db", sqlite_url]) == 2
    assert "There is no run before this one." in capsys.readouterr().err
    assert exit_code_of(app, ["compare", "previous", "latest", "--db", sqlite_url]) == 2
    assert "Only one build was measured on machine " in capsys.readouterr().err
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
    stepped: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("compare", "previous", "latest")
    before = judged(capsys, stepped, *words)
    names = [f"model-{number}" for number in range(9)]
    elsewhere = make_history(workloads=names, builds=BUILDS, machines=("other-box",))
    with open_database(stepped) as database:
        save_trials(database, as_imported(elsewhere))
    assert judged(capsys, stepped, *words) == before
    named = judged(capsys, stepped, "compare", *(f"torch={torch}" for torch in BUILDS))[1]
    assert {row["workload"] for row in named["rows"]} > set(names), "a build that is named is all of it"


def test_where_nothing_was_measured_the_newest_are_imported(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_database(sqlite_url) as database:
        save_trials(database, as_imported(stepping_history(1.0, 1.4, builds=BUILDS)))
    code, document = judged(capsys, sqlite_url, "gate")
    assert (code, document["base"]["name"], document["head"]["name"]) == (1, f"imp-{RUN_0}", f"imp-{RUN_1}")
    code, document = judged(capsys, sqlite_url, "compare", "previous", "latest")
    assert [document[side]["components"]["torch"] for side in ("base", "head")] == list(BUILDS)
    assert code == 1


def test_a_gate_of_imports_alone_asks_for_imports_and_is_confirmed_by_them(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(*factors: float, options: tuple[str, ...] = ()) -> str:
        builds = (*BUILDS, BUILDS[1])[: len(factors)]
        with open_database(sqlite_url) as database:
            save_trials(database, as_imported(stepping_history(*factors, builds=builds)))
        capsys.readouterr()
        exit_code_of(app, ["gate", *options, "--db", sqlite_url])
        return capsys.readouterr().err

    again = "Import another result of the same build, then run the gate again."
    assert "Import an earlier result too, or name --against." in said(1.0)
    assert f"not confirmed yet: 2. {again}" in said(1.0, 1.4)
    for how in ("run", "queue"):
        refused = said(1.0, 1.4, options=("--confirm", how))
        assert f"Imported results cannot be measured again.\n  {again}" in refused
        assert "queued" not in refused
        assert "compilewatch builds" not in refused
    assert "Confirmed: 2." in said(1.0, 1.4, 1.4)


def test_an_import_that_is_named_is_compared(stepped: str, capsys: pytest.CaptureFixture[str]) -> None:
    with open_database(stepped) as database:
        save_trials(database, as_imported(stepping_history(1.0, 1.4, builds=BUILDS)))
    code, document = judged(capsys, stepped, "compare", f"imp-{RUN_0}", f"imp-{RUN_1}")
    assert code == 1
    assert len(document["rows"]) > 0


IMPORTED = {"source_kind": "imported", "source_name": "csv"}


def test_workloads_of_one_name_are_told_apart_in_break_even(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = [(8, "bfloat16"), (16, "bfloat16"), (16, "float32")]
    trials = [
        make_trial(
            workload=make_workload("mlp", batch_size=batch, dtype=dtype),
            strategy=strategy,
            run_id=f"R{number}",
        )
        for number, (batch, dtype) in enumerate(sizes)
        for strategy in ("eager", "default")
    ]
    with open_database(sqlite_url) as database:
        save_trials(database, [*trials, make_trial()])
    document = judged(capsys, sqlite_url, "break-even")[1]
    assert {row["batch_size"] for row in document["rows"] if row["workload"] == "mlp"} == {8, 16}
    assert exit_code_of(app, ["break-even", "--db", sqlite_url]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name in ("mlp b8 bfloat16", "mlp b16 bfloat16", "mlp b16 float32", "bert-base"):
        for strategy in ("eager", "default"):
            begin = f"{name} (ungated) 2.13.0 {strategy} "
            assert len([line for line in lines if f"{' '.join(line.split())} ".startswith(begin)]) == 1


def test_a_doubled_latency_of_one_trial_a_side_is_not_called_unchanged(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Equal graph breaks and numerics are decided, and say nothing of timings that nobody could judge."""
    for torch, speedup, latency_ms in (("2.8.0", 1.8, 10.0), ("2.9.0", 0.9, 20.0)):
        folder = Path(torch)
        folder.mkdir()
        name = "inductor_huggingface_float32_inference_cuda"
        header = "dev,name,batch_size,speedup,abs_latency,calls_captured,unique_graphs,graph_breaks"
        row = f"cuda,Bert,8,{speedup},{latency_ms},100,1,0"
        performance = folder / f"{name}_performance.csv"
        performance.write_text(f"{header}\n{row}\n", encoding="utf-8")
        accuracy = "dev,name,batch_size,accuracy\ncuda,Bert,8,pass\n"
        (folder / f"{name}_accuracy.csv").write_text(accuracy, encoding="utf-8")
        words = ["import", str(performance), "--torch", torch, "--device-name", "NVIDIA H200"]
        assert exit_code_of(app, [*words, "--measured-at", "2026-11-20", "--db", sqlite_url]) == 0
    code, found = judged(capsys, sqlite_url, "compare", "torch=2.8.0", "torch=2.9.0")
    assert (code, found["verdict"]) == (2, "inconclusive")
    assert {row["metric"] for row in found["rows"]} >= {"latency", "speedup", "graph_breaks", "numerics"}
    # Of one moment both: the newest is that of the newer torch.
    code, found = judged(capsys, sqlite_url, "compare", "previous", "latest")
    change = {row["metric"]: row["change"] for row in found["rows"]}["latency"]
    assert change == pytest.approx(1.0)


def test_the_library_that_moved_between_two_imports_is_named(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = ["--torch", "2.12.0", "--device-name", "AMD EPYC", "--strategy", "default"]
    for release, latency_ms, day in (("4.56.0", 1.0, "2026-10-01"), ("4.57.1", 1.5, "2026-10-02")):
        table = Path("inductor_huggingface_float32_inference_cpu_performance.csv")
        rows = [f"cpu,{name},8,2.0,{latency_ms * (1 + n / 500)}" for name in ("a", "b") for n in range(4)]
        table.write_text("\n".join(["dev,name,batch_size,speedup,abs_latency", *rows]) + "\n")
        words = ["import", str(table), *facts, "--measured-at", day, "--package", f"transformers={release}"]
        assert exit_code_of(app, [*words, "--db", sqlite_url]) == 0
    capsys.readouterr()
    exit_code_of(app, ["compare", "previous", "latest", "--db", sqlite_url])
    assert "Only transformers changed: 4.56.0 to 4.57.1." in capsys.readouterr().out
    exit_code_of(app, ["list", "runs", "--json", "--db", sqlite_url])
    newest_first = [row["run_id"] for row in json.loads(capsys.readouterr().out)["rows"]]
    for base, head in (
        ("previous", "latest"),
        (newest_first[1], newest_first[0]),
        ("transformers=4.56.0", "transformers=4.57.1"),
    ):
        exit_code_of(app, ["compare", base, head, "--json", "--db", sqlite_url])
        found = json.loads(capsys.readouterr().out)
        assert found["changed_components"] == ["transformers"]
        told = [found[side]["components"]["transformers"] for side in ("base", "head")]
        assert told == ["4.56.0", "4.57.1"]
