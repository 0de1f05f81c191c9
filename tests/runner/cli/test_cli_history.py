"""`compilewatch history` in process: a series, its changes, its targets, and what the exit code means."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from compilewatch.db.columns.metrics import HISTORY_METRICS
from compilewatch.db.engine.session import open_database
from compilewatch.db.queries.facets import machines
from compilewatch.db.records.trial import Source, SourceKind
from compilewatch.db.store.trials import save_trials
from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import EXIT_DEFECT, exit_code_of
from tests.builders import (
    MS,
    START,
    make_compiler_facts,
    make_history,
    make_imported,
    make_machine,
    make_workload,
)

RUNS = 24
CASE = ("-w", "mlp", "-s", "default")


@pytest.fixture(autouse=True)
def _nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def fill(url: str, factor: Callable[[int], float], *, runs: int = RUNS, **more: Any) -> None:
    """`runs` nightly runs; `factor` says how much slower the compiled case is in each."""

    def latency_ns(_workload: str, strategy: str, run: int) -> float:
        return 12 * MS if strategy == "eager" else 8 * MS * factor(run)

    given = {"workloads": ("mlp",), "builds": ("2.12.0",) * (runs // 2) + ("2.13.0",) * (runs - runs // 2)}
    history = make_history(**(given | more), latency_ns=latency_ns, trials_per_case=2)
    with open_database(url) as database:
        save_trials(database, history)


def history(url: str, *arguments: str) -> int:
    return exit_code_of(app, ["history", *arguments, "--db", url])


def document(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_step_up_in_latency_is_a_regression_with_its_build(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(sqlite_url, lambda run: 1.08 if run >= RUNS // 2 else 1.0)
    assert history(sqlite_url, *CASE, "--metric", "latency", "--json") == 1
    found = document(capsys)
    assert found["schema"] == "compilewatch.history/1"
    assert (found["workload"], found["strategy"], found["unit"]) == ("mlp", "default", "ns")
    assert found["machine"]["name"] == "gpu-box-3"
    assert len(found["points"]) == RUNS
    assert [point["torch"] for point in found["points"]] == ["2.12.0"] * 12 + ["2.13.0"] * 12
    assert found["points"][0]["value"] == pytest.approx(8 * MS, rel=0.02)
    (event,) = found["events"]
    assert (event["index"], event["verdict"], event["changed_components"]) == (12, "regressed", ["torch"])
    assert event["change"] == pytest.approx(0.08, abs=0.01)
    assert event["run_id"] == found["points"][12]["run_id"]
    assert found["policy"]["history"]["minimum_segment"] == 5
    assert any("Latency rose by" in sentence for sentence in found["sentences"])
    assert history(sqlite_url, *CASE, "--metric", "latency") == 1
    (marked,) = [line for line in capsys.readouterr().out.splitlines() if "✗ regressed" in line]
    for part in ("2026-12-02", "2.13.0", "torch changed"):
        assert part in marked


def test_too_few_runs_show_the_points_and_exit_2(sqlite_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    fill(sqlite_url, lambda _run: 1.0, runs=6)
    assert history(sqlite_url, *CASE) == 2
    captured = capsys.readouterr()
    assert captured.out.count("2.13.0") == 3
    assert captured.err.splitlines()[0] == (
        "compilewatch: Cannot tell: 6 runs under one set of conditions, 10 needed."
    )


def test_long_histories_show_the_newest_runs_and_every_change(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(sqlite_url, lambda run: 1.1 if run >= 12 else 1.0, runs=50)
    assert history(sqlite_url, *CASE, "--metric", "latency") == 1
    out = capsys.readouterr().out
    assert "10 older runs not shown; --json has them all." in out
    assert "✗ regressed" in out


def test_a_target_is_forecast_where_a_trend_leads_to_it(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(sqlite_url, lambda run: math.exp(0.0007 * run), runs=40)
    Path("compilewatch.toml").write_text(
        '[[target]]\nworkload = "mlp"\nspeedup = 1.44\n[[target]]\nworkload = "bert-*"\nspeedup = 9\n'
    )
    history(sqlite_url, *CASE, "--json")
    (target,) = document(capsys)["targets"]
    assert (target["quantity"], target["limit"], target["at_least"]) == ("speedup", 1.44, True)
    assert target["forecast"]["reason"]


def test_another_machine_is_named_and_can_be_chosen(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(sqlite_url, lambda _run: 1.0, runs=12)
    slow = make_machine("laptop", device_name="NVIDIA T4")
    fill(sqlite_url, lambda _run: 2.0, runs=10, machines=(slow,), seed=1)
    assert history(sqlite_url, *CASE, "--json") == 0
    found = document(capsys)
    assert found["machine"]["name"] == "gpu-box-3"
    assert "1 more machine measured it too; name one with --machine." in found["sentences"]
    with open_database(sqlite_url) as database:
        ids = dict(machines(database)[["machine", "machine_id"]].itertuples(index=False, name=None))
    assert history(sqlite_url, *CASE, "--machine", ids["laptop"], "--json") == 0
    assert document(capsys)["points"][0]["value"] == pytest.approx(0.75, rel=0.02)
    assert history(sqlite_url, *CASE, "--machine", "none-such") == 2
    assert ids["laptop"] in capsys.readouterr().err


def imported(
    url: str, machine: str = "gpu-box-3", device: str = "NVIDIA H200", *, runs: int, source: str = "csv"
) -> None:
    """The case as `source` gives it: a longer history than the measured one where `runs` says so."""
    trials = [
        make_imported(
            workload=make_workload("mlp", version=f"imported-{source}"),
            machine=make_machine(machine, device_name=device),
            source=Source(kind=SourceKind.IMPORTED, name=source),
            run_id=f"{source}-{machine}-{number}",
            trial_id=f"{source}-{machine}-{number}",
            started_at=START + timedelta(days=100 + number),
        )
        for number in range(runs)
    ]
    with open_database(url) as database:
        save_trials(database, trials)


def test_a_measured_series_comes_before_a_longer_imported_one(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(sqlite_url, lambda _run: 1.0, runs=12)
    imported(sqlite_url, "their-box", "NVIDIA H100", runs=30)
    imported(sqlite_url, runs=20)
    assert history(sqlite_url, *CASE, "--json") == 0
    found = document(capsys)
    assert (found["machine"]["name"], found["source_kind"]) == ("gpu-box-3", "measured")
    assert len(found["points"]) == 12
    assert "Imported results of 1 more machine left out; name one with --machine." in found["sentences"]
    assert "20 imported points under this name left out." in found["sentences"]
    assert not [sentence for sentence in found["sentences"] if "measured it too" in sentence]
    with open_database(sqlite_url) as database:
        ids = dict(machines(database)[["machine", "machine_id"]].itertuples(index=False, name=None))
    history(sqlite_url, *CASE, "--machine", ids["gpu-box-3"], "--json")
    assert document(capsys)["source_kind"] == "measured"
    history(sqlite_url, *CASE, "--machine", ids["their-box"], "--json")
    found = document(capsys)
    assert (found["source_kind"], len(found["points"])) == ("imported", 30)


@pytest.fixture(scope="module")
def four_runs(_sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = shutil.copy(_sqlite_template, tmp_path_factory.mktemp("four") / "runs.db")
    fill(f"sqlite:///{path}", lambda _run: 1.0, runs=4)
    return f"sqlite:///{path}"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-w", "mlpp", "-s", "default"), ("No workload 'mlpp' is stored.", "Did you mean mlp?")),
        (("-w", "mlpp"), ("No workload 'mlpp' is stored.", "Did you mean mlp?")),
        (("-s", "defualt"), ("No strategy 'defualt' is stored.", "Did you mean default?")),
        (("--machine", "none-such"), ("No machine 'none-such' is stored.", "(gpu-box-3).")),
        (("-w", "mlp", "-s", "default", "--reference", "x"), ("No build 'x' is stored.", "Stored: ")),
        (("-w", "mlp", "-s", "defualt"), ("never measured with 'defualt'", "Did you mean default?")),
        (("-w", "mlp", "-s", "none-such"), ("never measured with", "Measured with: default, eager.")),
        (("-w", "mlp", "-s", "eager", "--metric", "break_even"), ("eager and has no break-even", "latency")),
        (("-w", "mlp", "-s", "default", "--metric", "numerics"), ("numerics", "--help")),
    ],
)
def test_what_has_no_history_is_one_sentence(
    four_runs: str, arguments: tuple[str, ...], words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert history(four_runs, *arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    for word in words:
        assert word in captured.err


def test_a_break_even_that_is_never_is_called_so(sqlite_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    fill(sqlite_url, lambda run: 2.0 if run == 5 else 1.0, runs=12)
    history(sqlite_url, *CASE, "--metric", "break_even", "--json")
    values = [point["value"] for point in document(capsys)["points"]]
    assert values[5] == "never"
    assert values[4] == pytest.approx(1500, rel=0.1)


def test_without_a_case_everything_that_changed_is_told_together(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(sqlite_url, lambda run: 1.08 if run >= RUNS // 2 else 1.0, workloads=("mlp", "bert-base"))
    assert history(sqlite_url, "--json") == 1
    found = document(capsys)
    assert found["schema"] == "compilewatch.changes/1"
    (group,) = [each for each in found["groups"] if each["verdict"] == "regressed"]
    assert {(event["workload"], event["metric"]) for event in group["events"]} >= {
        ("mlp", "latency"),
        ("bert-base", "latency"),
    }
    assert (group["cause"], group["changed_components"]) == ("compiler", ["torch"])
    assert history(sqlite_url) == 1
    out = capsys.readouterr().out
    assert "2 series regressed in" in out
    assert "torch changed with it." in out
    assert history(sqlite_url, "-w", "nope") == 2


def test_a_count_that_changed_is_told_exactly(sqlite_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    trials = make_history(workloads=("mlp",), builds=("2.12.0", "2.13.0"), trials_per_case=1)
    broken = make_compiler_facts(graph_breaks=[])
    changed = [
        trial.model_copy(update={"compiler": broken}) if trial.compiler and "0000" in trial.run_id else trial
        for trial in trials
    ]
    with open_database(sqlite_url) as database:
        save_trials(database, changed)
    history(sqlite_url, *CASE, "--json")
    (event,) = document(capsys)["exact_events"]
    assert (event["metric"], event["verdict"], event["p_value"]) == ("graph_breaks", "regressed", None)


def test_releases_that_took_turns_are_told_one_after_the_other(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    torches = ("2.9.1", "2.11.0", "2.12.1")
    slow = {"2.12.1": 1.1}
    trials = []
    for number, torch in enumerate(torches):
        factor = slow.get(torch, 1.0)
        mine = make_history(
            workloads=("mlp", "bert-base"),
            builds=(torch,),
            latency_ns=lambda _w, s, _r, factor=factor: 12 * MS if s == "eager" else 8 * MS * factor,
            trials_per_case=4,
            seed=number,
        )
        for place, trial in enumerate(mine):
            at = START + timedelta(minutes=3 * place + number)
            end = at + timedelta(seconds=50)
            trials.append(trial.model_copy(update={"started_at": at, "ended_at": end}))
    with open_database(sqlite_url) as database:
        save_trials(database, trials)
    assert history(sqlite_url, *CASE, "--metric", "latency", "--json") == 1
    found = document(capsys)
    assert [point["torch"] for point in found["points"]] == list(torches)
    assert [(step["head_torch"], step["row"]["verdict"]) for step in found["releases"]] == [
        ("2.11.0", "unchanged"),
        ("2.12.1", "regressed"),
    ]
    assert any(each.startswith("torch 2.11.0 to 2.12.1: regressed (+") for each in found["sentences"])
    assert found["sentences"][1].endswith(" 1 change.")
    assert found["events"] == []
    assert history(sqlite_url, "--json") == 1
    of_machine = [event for group in document(capsys)["groups"] for event in group["events"]]
    mine = [
        (e["build_id"], e["change"]) for e in of_machine if (e["workload"], e["metric"]) == ("mlp", "latency")
    ]
    assert mine == [(step["head_build"], step["row"]["change"]) for step in found["releases"][1:]]
    assert history(sqlite_url, *CASE, "--metric", "latency") == 1
    assert "✗ regressed +" in capsys.readouterr().out


def test_an_edited_workload_is_judged_across_its_versions_only_where_asked(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for first, version, slower in ((0, "before", 1.0), (RUNS, "edited", 1.3)):
        runs = make_history(
            workloads=("mlp",),
            builds=("2.13.0",) * RUNS,
            latency_ns=lambda _w, strategy, _r, ms=8 * slower: (12 if strategy == "eager" else ms) * MS,
            trials_per_case=2,
            start=START + timedelta(days=first),
            seed=first + 1,
        )
        with open_database(sqlite_url) as database:
            save_trials(
                database,
                [
                    trial.model_copy(
                        update={"workload": trial.workload.model_copy(update={"version": version})}
                    )
                    for trial in runs
                ],
            )
    history(sqlite_url, *CASE, "--metric", "latency", "--json")
    apart = document(capsys)
    assert [cut["index"] for cut in apart["cuts"]] == [RUNS]
    assert (apart["events"], apart["version_steps"]) == ([], [])
    assert history(sqlite_url, *CASE, "--metric", "latency", "--across-versions", "--json") == 1
    across = document(capsys)
    assert (across["cuts"], across["version_steps"]) == ([], [RUNS])
    (event,) = across["events"]
    assert event["index"] == RUNS
    assert event["change"] == pytest.approx(0.3, abs=0.02)


def test_a_run_and_all_runs_of_a_build_are_told_apart(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both are right, and each is called what it is."""
    with open_database(sqlite_url) as database:
        save_trials(database, make_history(workloads=("mlp",), builds=("2.13.0", "2.13.0")))
    history(sqlite_url, *CASE, "--metric", "break_even", "--json")
    of_runs = json.loads(capsys.readouterr().out)
    assert exit_code_of(app, ["break-even", *CASE, "--json", "--db", sqlite_url]) == 0
    of_build = document(capsys)
    assert (of_runs["trials_of"], of_build["trials_of"]) == ("run", "build")
    (row,) = (row for row in of_build["rows"] if row["strategy"] == "default")
    values = [point["value"] for point in of_runs["points"]]
    assert min(values) < row["break_even_steps"] < max(values)
    history(sqlite_url, *CASE, "--metric", "break_even")
    assert "run by run" in capsys.readouterr().out
    assert exit_code_of(app, ["break-even", *CASE, "--db", sqlite_url]) == 0
    assert "all its runs" in capsys.readouterr().out


@pytest.mark.parametrize("metric", HISTORY_METRICS)
def test_whatever_has_a_history_is_followed_or_said_to_be_unknown(
    metric: str, stepped: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = exit_code_of(app, ["history", "-w", "mlp", "-s", "default", "--metric", metric, "--db", stepped])
    assert code != EXIT_DEFECT, capsys.readouterr().err
