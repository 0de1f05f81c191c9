"""`run --losses`: where a training leaves eager's, on every door, and what has no losses is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compilewatch.dashboard.links.links import Link, Page
from compilewatch.dashboard.pages.registry import CONTENTS
from compilewatch.db.cause.trial_words import losses_sentence
from compilewatch.db.engine.session import open_database
from compilewatch.db.records.evidence import LossPath
from compilewatch.db.store.trials import save_trials
from compilewatch.runner.cli.app import app
from compilewatch.runner.cli.front import exit_code_of
from tests.builders import make_numerics, make_trial, make_workload
from tests.dashboard.conftest import DATABASE
from tests.dashboard.pages.test_approved_pages import lines_of
from tests.runner.terminal import compilewatch, in_this_process

STAYS = LossPath(seeds=4, losses=[2.0, 1.5], control_losses=[2.0, 1.5], band=[1e-7, 2e-7])
LEAVES = LossPath(
    seeds=4,
    losses=[2.0, None],
    control_losses=[2.0, 1.5],
    band=[1e-7, 2e-7],
    left_at_step=2,
    left_by="the gradient of 0.weight",
    times_band=2312.0,
)
_LEFT = (
    "Leaves eager's at step 2 by the gradient of 0.weight, 2,300 times as far as other seeds; "
    "loss no number instead of 1.5 after 2 steps."
)


def test_both_outcomes_are_a_sentence() -> None:
    assert losses_sentence(STAYS) == "As eager's for 2 steps, within what 4 other seeds do."
    assert losses_sentence(LEAVES) == _LEFT


def test_it_stands_on_every_door(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path / 'stored.db'}"
    trials = [
        make_trial(
            workload=make_workload("mine", task="training"), numerics=make_numerics(training=path), seed=n
        )
        for n, path in enumerate((STAYS, LEAVES))
    ]
    with open_database(url, migrate=True) as database:
        save_trials(database, trials)

    def printed(*words: str) -> str:
        capsys.readouterr()
        assert exit_code_of(app, [*words, "--db", url]) == 0
        return " ".join(capsys.readouterr().out.split())

    assert losses_sentence(STAYS) in printed("show", trials[0].trial_id)
    assert _LEFT in printed("show", trials[1].trial_id)
    assert (
        json.loads(printed("show", trials[1].trial_id, "--json"))["numerics"]["training"]["left_at_step"] == 2
    )
    (row,) = json.loads(printed("list", "cases", "--preset", "scenario", "--json"))["rows"]
    assert "its training leaves eager's at step 2 by the gradient of 0.weight (1 of 2 trials)" in row["notes"]
    monkeypatch.setenv(DATABASE, url)
    page = CONTENTS[Page.TRIAL](Link(Page.TRIAL, trial=trials[1].trial_id))
    assert any(_LEFT in line for part in page.parts for line in lines_of(part))


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("-w", "encoder", "-s", "default", "--losses", "5"), "--losses is for a training that is compiled"),
        (("-w", "mlp-train", "-s", "eager", "--losses", "5"), "--losses is for a training that is compiled"),
        (("-w", "mlp-train", "--losses", "1"), "it must be at least 2"),
    ],
)
def test_what_has_no_losses_is_refused(tmp_path: Path, typed: tuple[Any, ...], said: str) -> None:
    done = in_this_process("run", *typed, "--device", "cpu", cwd=tmp_path)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())


def test_a_training_of_ones_own_is_followed(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import torch\nfrom torch import nn\n\n\ndef build():\n"
        "    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))\n"
        "    return model, torch.randn(8, 4), lambda output: output.square().mean()\n"
    )
    typed = ("run", "-w", "mine:build", "-s", "backend:aot_eager", "--trials", "1", "--losses", "7", "--json")
    done = compilewatch(*typed, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    listed = compilewatch("list", "trials", "--json", cwd=tmp_path)
    (trial,) = [each for each in json.loads(listed.stdout)["rows"] if each["strategy"] != "eager"]
    shown = compilewatch("show", trial["trial_id"], cwd=tmp_path)
    assert "As eager's for 7 steps, within what 4 other seeds do." in shown.stdout
