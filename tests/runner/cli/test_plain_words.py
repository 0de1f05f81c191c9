"""What people read in a terminal names fields and kinds in words; the documents keep the identifiers."""

from __future__ import annotations

from datetime import timedelta

import pytest
from rich.console import Console

from db.engine.session import Database, open_database
from db.judge.compare.upgrade import compare_builds
from db.judge.history.series import judge_series
from db.metrics.cases import summarize_cases
from db.metrics.trend import series_points
from db.queries.filters import Filters
from db.queries.trials import trials_frame
from db.records.vocabulary import Metric
from db.store.trials import save_trial, save_trials
from runner.cli.app import app
from runner.cli.front import exit_code_of
from runner.output.comparison_text import comparison_table
from runner.output.history_text import HistoryReport, history_sentences, history_table
from runner.output.progress import LineProgress, TimeLeft
from runner.plan.durations import Durations
from tests.builders import MS, START, make_build, make_history, make_trial

NIGHTS = 24


def printed(capsys: pytest.CaptureFixture[str], table: object) -> str:
    Console(width=300).print(table)
    return capsys.readouterr().out


def test_a_history_and_all_changes_of_a_machine(sqlite_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    builds = [make_build(torch_variant="cpu" if night < NIGHTS // 2 else "cu130") for night in range(NIGHTS)]
    trials = make_history(
        workloads=("mlp",),
        builds=builds,
        trials_per_case=2,
        latency_ns=lambda _workload, strategy, run: (
            12 * MS if strategy == "eager" else 8 * MS * (1.1 if run >= NIGHTS // 2 else 1)
        ),
    )
    with open_database(sqlite_url) as database:
        save_trials(database, trials)
    exit_code_of(app, ["history", "-w", "mlp", "-s", "default", "--metric", "latency", "--db", sqlite_url])
    told = capsys.readouterr().out
    assert "with the change of torch variant." in told
    assert "torch variant changed" in told
    exit_code_of(app, ["history", "--db", sqlite_url])
    assert "torch variant changed with it." in capsys.readouterr().out


def test_what_makes_it_another_series(sqlite_database: Database, capsys: pytest.CaptureFixture[str]) -> None:
    save_trials(sqlite_database, make_history(workloads=("mlp",), strategies=("default",)))
    points = series_points(trials_frame(sqlite_database, Filters()))
    points["workload_version"] = ["v1", "v1", "v2"]
    told = HistoryReport(judge_series(points, Metric.LATENCY), (), (), (), ())
    assert list(history_sentences(told))[-1] == (
        "From point 3 on it is another series: workload version changed."
    )
    assert "workload version changed" in printed(capsys, history_table(points, told))


def test_a_failure(sqlite_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    trial = make_trial(failure="out_of_memory", started_at=START, ended_at=START + timedelta(seconds=7))
    with LineProgress(1, TimeLeft([("bert-base", "default")], Durations({}))) as progress:
        progress.trial_finished(trial)
    assert "failed (out of memory) after" in capsys.readouterr().err
    with open_database(sqlite_url) as database:
        save_trial(database, trial)
    assert exit_code_of(app, ["show", trial.trial_id, "--db", sqlite_url]) == 0
    assert "out of memory: " in capsys.readouterr().out


def test_the_phases_of_a_first_call(sqlite_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    trial = make_trial()
    with open_database(sqlite_url) as database:
        save_trial(database, trial)
    exit_code_of(app, ["show", trial.trial_id, "--db", sqlite_url])
    assert "  aot autograd " in capsys.readouterr().out


def test_the_pass_set_of_a_comparison(sqlite_database: Database, capsys: pytest.CaptureFixture[str]) -> None:
    trials = make_history(workloads=("mlp",), builds=("2.12.0", "2.13.0"), failures=[("mlp", "default", 1)])
    save_trials(sqlite_database, trials)
    frame = trials_frame(sqlite_database, Filters())
    base, head = summarize_cases(frame).sort_values("torch")["build_id"].unique()
    comparison = compare_builds(frame, base, head)
    text = printed(capsys, comparison_table(comparison.rows, comparison.policy))
    assert "out of memory" in text
    assert "out_of_memory" not in text
