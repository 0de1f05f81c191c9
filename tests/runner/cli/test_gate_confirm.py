"""Confirm before alarm, for real: two environments, fresh processes that take turns, and what a gate says."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from compilewatch.db.engine.session import open_database
from compilewatch.db.judge.sequence import occasions
from compilewatch.db.queries.selection import Filters
from compilewatch.db.queries.trials import trials_frame
from compilewatch.db.records.people import TriageState
from compilewatch.db.service.regressions import regressions_frame, standing_regressions
from compilewatch.db.service.requests import queue
from tests.runner.second_environment import make_environment
from tests.runner.terminal import compilewatch

CONFIG = """
[run]
trials = 3
samples = 10
canaries = false

[[workload]]
name = "pause"
target = "mine:pause"

[[build]]
name = "old"
python = "{old}"

[[build]]
name = "new"
python = "{new}"

[policy.confirm]
fresh_trials = 4
"""
MINE = """
import importlib.util
import time
from pathlib import Path

import torch

SLOWER = importlib.util.find_spec("slower") is not None and Path(__file__).with_name("slow").exists()

def pause():
    # asleep, so that a machine busy with other things measures the same
    def step(x):
        time.sleep(0.03 if SLOWER else 0.02)
        return x + 1
    return step, (torch.ones(4),)
"""

pytestmark = pytest.mark.slow


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Both builds measured once, three trials each in turns; the new one is half as slow again."""
    new = make_environment(tmp_path / "new", timm="9.9.9", slower="")
    (tmp_path / "compilewatch.toml").write_text(CONFIG.format(old=sys.executable, new=new))
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "slow").touch()
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    finished = compilewatch("run", "-w", "pause", "-s", "eager", cwd=tmp_path)
    assert finished.returncode == 0, finished.stderr
    return tmp_path


def url(project: Path) -> str:
    return f"sqlite:///{project / 'compilewatch.db'}"


def states(project: Path) -> list[TriageState]:
    with open_database(url(project)) as database:
        return [found.state for found in standing_regressions(database)]


def test_a_suspicion_that_fresh_trials_show_again_is_confirmed(project: Path) -> None:
    assert states(project) == [TriageState.NEW]
    finished = compilewatch("gate", "--confirm", "run", "--json", cwd=project)
    assert finished.returncode == 1, finished.stderr
    document: dict[str, Any] = json.loads(finished.stdout)
    (confirmation,) = document["confirmations"]
    assert (confirmation["outcome"], confirmation["metric"]) == ("confirmed", "latency")
    assert confirmation["row"]["trials"] == [4, 4]
    assert confirmation["row"]["design"] == "interleaved"
    assert document["recorded"] == {"confirmed": 1}
    assert states(project) == [TriageState.CONFIRMED]
    with open_database(url(project)) as database:
        trials = trials_frame(database, Filters())
    assert trials.groupby("build_id")["trial_id"].count().tolist() == [7, 7]
    assert len(set(occasions(trials).tolist())) == 2, "each time both builds took turns"


def test_a_suspicion_that_fresh_trials_do_not_show_is_noise_and_fails_no_gate(project: Path) -> None:
    (project / "slow").unlink()
    finished = compilewatch("gate", "--confirm", "run", cwd=project)
    assert "Not reproduced: pause / eager, latency: 4 and 4 fresh trials do not show it" in finished.stderr
    assert finished.returncode != 1
    assert finished.stdout.splitlines()[0].startswith("Verdict: ")
    assert "--confirm run" not in finished.stdout + finished.stderr
    assert states(project) == []
    with open_database(url(project)) as database:
        recorded = regressions_frame(database, revised=True)
    assert recorded["cause"].tolist()[0] == "noise"


def test_where_the_base_is_gone_the_gate_says_so_and_the_verdict_stays_suspected(project: Path) -> None:
    told = project / "new" / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    (told / "timm-9.9.9.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: timm\nVersion: 10\n"
    )
    finished = compilewatch("gate", "--confirm", "run", cwd=project)
    assert "cannot be measured again on this host: here it has timm " in finished.stderr
    assert finished.returncode == 1
    assert states(project) == [TriageState.NEW]
    queued = compilewatch("gate", "--confirm", "queue", "--budget", "8", cwd=project)
    assert "Confirmation of 1 case queued as confirm-" in queued.stderr
    with open_database(url(project)) as database:
        (request,) = queue(database)
    assert request.spec.budget_trials == 8
    assert [stack.packages.get("timm") for stack in request.spec.stacks][1] == "9.9.9"
