"""A GPU's gated times at every command: an upgrade on which only the host moved, and what is refused."""

from __future__ import annotations

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


def test_ungated_and_gated_times_are_refused_with_the_reason(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out, err = told(url, ["compare", "torch=2.10.0", "torch=2.13.0"], 2, capsys)
    assert "differs in timing method (ungated against gated)" in " ".join((out + err).split())
