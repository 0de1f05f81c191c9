"""How much of a step ran compiled and how busy the GPU was: stored, shown, and what is said of both."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from compilewatch.db.engine.session import open_database
from compilewatch.db.store.trials import save_trials
from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of
from tests.builders import MS, make_device_state, make_trial
from tests.record_parts import make_compiler_facts

SKIPPED = ["skipping cudagraphs due to mutated inputs (1 instances)", "non gpu ops"]


@pytest.fixture
def printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Two eager cases, busy and idle, and their compiled ones, of which only the idle one's is faster."""
    monkeypatch.chdir(tmp_path)
    url = f"sqlite:///{tmp_path / 'stored.db'}"
    trials = []
    for workload, busy, latency_ms in (("idle", 43.0, 6), ("busy", 96.0, 12)):
        eager = {"workload": workload, "strategy": "eager", "latency_ns": 12 * MS}
        trials += [make_trial(**eager, device_state=make_device_state(utilization_percent=busy))]
        for share in (1.0, 0.75, 0.875):
            facts = make_compiler_facts(
                compiled_share=share, recompile_limit_hit=share < 0.8, cudagraph_skips=SKIPPED
            )
            trials.append(
                make_trial(workload=workload, latency_ns=latency_ms * MS, compiler=facts, seed=int(share * 8))
            )
    with open_database(url, migrate=True) as database:
        save_trials(database, trials)

    def printed(*words: str) -> str:
        capsys.readouterr()
        assert exit_code_of(app, [*words, "--db", url]) == 0
        return capsys.readouterr().out

    printed.trials = trials  # type: ignore[attr-defined]
    return printed


def test_a_case_has_its_worst_trial(printed: Any) -> None:
    rows = csv.DictReader(io.StringIO(printed("list", "cases", "--csv", "-s", "default")))
    for row in rows:
        assert float(row["compiled_share"]) == 0.75
        assert (row["recompile_limit_hit"], row["cudagraph_skips"]) == ("1", "2")


def test_show_says_what_ran_compiled_and_what_was_refused(printed: Any) -> None:
    eager, _, limited, *_ = printed.trials
    text = " ".join(printed("show", limited.trial_id).split())
    assert "ran compiled 75.0 % of eager's operators" in text
    assert "recompile limit hit" in text
    assert all(reason in text for reason in SKIPPED)
    assert "43.0 %, below 70 %: compiling is likely to pay" in " ".join(
        printed("show", eager.trial_id).split()
    )


def test_how_often_idle_gpus_gain_is_counted(printed: Any) -> None:
    text = " ".join(printed("list", "cases", "--columns", "gpu_utilization,speedup").split())
    assert "pay in 1 of 1 eager cases, from there on in 0 of 1." in text
    assert "pay in" not in printed("list", "cases", "--columns", "speedup")
