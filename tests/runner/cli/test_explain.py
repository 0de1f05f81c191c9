"""`compilewatch explain` on a model of one's own, through a real process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compilewatch.runner.device.lock import device_lock
from compilewatch.runner.process import supervise
from tests.runner.terminal import in_this_process

MODEL = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        x = self.linear(x)
        if x.sum() > 0:
            x = x + 1
        return torch.linalg.inv(x)

def build():
    return Model(), (torch.randn(8, 8),)
"""


@pytest.fixture
def own_models(tmp_path: Path) -> Path:
    (tmp_path / "own_models.py").write_text(MODEL, encoding="utf-8")
    return tmp_path


def test_breaks_what_helps_and_what_is_left_to_aten_while_another_run_has_the_device(
    own_models: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    locks = tmp_path_factory.mktemp("locks")
    monkeypatch.setattr(supervise, "default_lock_dir", lambda: locks)
    with device_lock("cpu", locks):
        told = in_this_process("explain", "own_models:build", "--json", cwd=own_models)
    assert told.returncode == 0, told.stderr
    explained = json.loads(told.stdout)
    (broken,) = explained["compiler"]["graph_breaks"]
    assert broken["location"] == "own_models.py:11"
    assert (
        "own_models.py:11: Use `torch.cond` to express dynamic control flow."
        in explained["compiler"]["break_hints"]
    )
    assert [frame["location"] for frame in explained["frames"]] == ["own_models.py:9", "own_models.py:11"]
    assert explained["fallbacks"] == {"aten.linalg_inv_ex": 1}
    assert all(frame["guards"] > 0 for frame in explained["frames"])
    assert not list(own_models.glob("**/*.db"))


def test_a_name_typed_wrongly_is_said_at_once(own_models: Path) -> None:
    told = in_this_process("explain", "own_models:biuld", cwd=own_models)
    assert (told.returncode, "Did you mean own_models:build?" in told.stderr) == (2, True)
