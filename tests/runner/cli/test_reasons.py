"""Why a workload and a strategy are set up so: typed once, on every door, and no new series."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.pages.registry import CONTENTS
from compilewatch.db.engine.session import open_database
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trial_records
from compilewatch.db.records.ids import series_identity
from compilewatch.db.store.trials import save_trials
from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of
from compilewatch.runner.config.sources import load_settings
from compilewatch.runner.plan.plan import plan_run
from tests.builders import MS, START, make_trial
from tests.dashboard.asking import ask, whole_application
from tests.dashboard.conftest import DATABASE
from tests.dashboard.pages.test_approved_pages import lines_of

_CONFIGURATION = """
[[workload]]
name = "wave"
target = "mine:build"
reason = "what the search serves"

[[strategy]]
name = "narrow"
options = {{ max_fusion_size = 4 }}
reason = {reason}
"""


def _write(reason: str) -> None:
    Path("mine.py").write_text("import torch\n\n\ndef build():\n    return torch.sin, (torch.ones(8),)\n")
    Path("compilewatch.toml").write_text(_CONFIGURATION.format(reason=reason))


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The case of the configuration with two reasons after each other, on one machine."""
    monkeypatch.chdir(tmp_path)
    url = f"sqlite:///{tmp_path / 'stored.db'}"
    trials = []
    for seed, reason in enumerate(('"""first\nof two"""', '"spills above 4"')):
        _write(reason)
        plan = plan_run(load_settings(), workloads=["wave"], strategies=["eager", "narrow"], device="cpu")
        trials += [
            make_trial(
                workload=spec.workload.record(),
                strategy=spec.strategy,
                started_at=START + timedelta(days=seed),
                latency_ns=5 * MS,
                seed=seed,
            )
            for spec in plan.trials[:2]
        ]
    with open_database(url, migrate=True) as database:
        save_trials(database, trials)
        assert save_trials(database, trials) == (0, 4)
    return url


@pytest.fixture
def trials(stored: str) -> list[Any]:
    with open_database(stored, read_only=True) as database:
        return [*trial_records(database, Filters(strategies=("narrow",)))]


def test_each_trial_keeps_its_own_and_the_series_goes_on(trials: list[Any]) -> None:
    assert sorted(each.strategy.reason for each in trials) == ["first\nof two", "spills above 4"]
    assert {each.workload.reason for each in trials} == {"what the search serves"}
    assert len({series_identity(each) for each in trials}) == 1


def test_it_stands_beside_the_results(
    stored: str, trials: list[Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, newest = sorted(trials, key=lambda each: str(each.strategy.reason))

    def printed(*words: str) -> str:
        capsys.readouterr()
        assert exit_code_of(app, [*words, "--db", stored]) == 0
        return " ".join(capsys.readouterr().out.split())

    for preset in ("scenario", "throughput", "strategies"):
        (row,) = json.loads(printed("list", "cases", "-s", "narrow", "--preset", preset, "--json"))["rows"]
        assert row["notes"][-2:] == ["why wave: what the search serves", "why narrow: spills above 4"]
    assert "why narrow: first of two" in printed("show", first.trial_id)
    assert "spills above 4" in printed("list", "cases", "--columns", "strategy_reason")
    monkeypatch.setenv(DATABASE, stored)
    for link in (
        Link(Page.TRIAL, trial=newest.trial_id),
        *(Link(page, focus="wave") for page in (Page.MODES, Page.WORKLOAD, Page.COLD_START)),
    ):
        said = [line for part in CONTENTS[link.page](link).parts for line in lines_of(part)]
        assert any("hy narrow: spills above 4" in line for line in said), link.page
    with whole_application() as server:
        rows = json.loads(ask(server, "/api/v1/cases", {}).body)["rows"]
    assert {row["strategy_reason"] for row in rows} == {None, "spills above 4"}


@pytest.mark.parametrize(
    ("reason", "problem"),
    [
        ("7", "must be text in quotes, not 7"),
        ('""', "must be text that is not empty"),
        (f'"{"x" * 501}"', "500 characters"),
    ],
)
def test_what_is_no_reason_is_refused_in_a_sentence(
    reason: str,
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    _write(reason)
    assert exit_code_of(app, ["list", "strategies"]) == 2
    error = capsys.readouterr().err
    assert "reason" in error
    assert problem in error
