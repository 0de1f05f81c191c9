"""A GPU's gated times at every command: an upgrade on which only the host moved, and what is refused."""

from __future__ import annotations

import csv
import json
from datetime import timedelta

import pytest

from db.engine.session import open_database
from db.store.trials import save_trials
from runner.cli.app import app
from runner.cli.front import exit_code_of
from tests.builders import START, make_gated_history, make_history

HISTORY = make_gated_history()
UPGRADE = ["compare", "torch=2.11.0", "torch=2.13.0"]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    found = f"sqlite:///{tmp_path_factory.mktemp('gated') / 'gated.db'}"
    older = make_history(workloads=("bert-base",), builds=("2.10.0",), start=START - timedelta(days=9))
    with open_database(found, migrate=True) as database:
        save_trials(database, [*older, *HISTORY])
    return found


def told(url: str, command: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    found = exit_code_of(app, [*command, "--db", url])
    captured = capsys.readouterr()
    assert found == code, captured.err + captured.out
    return captured.out, captured.err


def test_compare_says_that_the_host_moved_and_the_device_did_not(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out, _ = told(url, UPGRADE, 1, capsys)
    assert "The device did not move in any of" in " ".join(out.split())
    document = json.loads(told(url, [*UPGRADE, "--json"], 1, capsys)[0])
    rows = {
        row["metric"]: row
        for row in document["rows"]
        if (row["case"]["workload"], row["case"]["strategy"]) == ("bert-base", "default")
    }
    assert (rows["device_time"]["verdict"], rows["issue_time"]["verdict"]) == ("unchanged", "regressed")
    assert (rows["latency"]["bound"], rows["latency"]["cause"]) == ("host", "host")
    assert ", the host did (+1" in rows["latency"]["reason"]
    bounds = {row["case"]["workload"]: row["bound"] for row in document["rows"]}
    assert (bounds["gpt2"], bounds["mlp"]) == ("host", "device")


def test_a_gate_names_the_host_and_no_gated_case_is_called_ungated(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out, err = told(url, ["gate"], 1, capsys)
    (line,) = (each for each in out.splitlines() if each.startswith("bert-base / default: latency "))
    assert ", host issue time +1" in line
    assert "The device did not move in any of" in err
    assert "ungated" not in (out + err).lower()


def test_a_recorded_regression_says_how_its_case_was_timed(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told(url, ["gate"], 1, capsys)
    assert "gated, host-bound" in " ".join(told(url, ["list", "regressions"], 0, capsys)[0].split())
    rows = json.loads(told(url, ["list", "regressions", "--json"], 0, capsys)[0])["rows"]
    assert {(row["workload"], row["timing_method"], row["bound"]) for row in rows} == {
        ("bert-base", "gated", "host")
    }


def test_ungated_and_gated_times_are_refused_with_the_reason(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out, err = told(url, ["compare", "torch=2.10.0", "torch=2.13.0"], 2, capsys)
    assert "differs in timing method (ungated against gated)" in " ".join((out + err).split())


@pytest.mark.parametrize("metric", ["device_time", "issue_time", "wall_pipelined", "latency"])
def test_the_history_of_each_clock_has_both_builds(
    url: str, metric: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["history", "--workload", "bert-base", "--strategy", "default", "--metric", metric, "--json"]
    exit_code_of(app, [*command, "--db", url])
    assert json.loads(capsys.readouterr().out)["metric"] == metric


def test_a_trial_shows_its_times_its_gate_and_its_error(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    trial = next(each for each in HISTORY if each.workload.name == "gpt2" and each.strategy.name == "default")
    out = " ".join(told(url, ["show", trial.trial_id], 0, capsys)[0].split())
    for said in (
        "timing gated",
        "bound host-bound",
        "Verified samples 11 of 12 (91.7 %)",
        "pass, relative error 0.38 %, 3.8 x eager's, about one bf16 step",
    ):
        assert said in out


def test_exports_carry_the_method(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    only = ["--run", HISTORY[0].run_id]
    rows = [*csv.DictReader(told(url, ["export", "--format", "csv", *only], 0, capsys)[0].splitlines())]
    assert {row["timing_method"] for row in rows} == {"gated"}
    lines = told(url, ["export", "--format", "oss-v3", *only], 0, capsys)[0].splitlines()
    metrics = [json.loads(line)["metric"] for line in lines]
    latencies = [metric["extra_info"] for metric in metrics if metric["name"] == "abs_latency"]
    assert latencies == [{"timing_method": "gated"}] * len(rows)
    assert "ungated" not in told(url, ["export", "--format", "markdown", *only], 0, capsys)[0]
    documents = told(url, ["export", *only], 0, capsys)[0].splitlines()
    assert {json.loads(line)["timing"]["side"]["method"] for line in documents} == {"gated"}
