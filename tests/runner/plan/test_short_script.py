"""A script of a few lines that needs torch alone, from this host's definition of a workload."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from compilewatch.db.errors import CompilewatchError
from compilewatch.runner.catalog.builtin import WORKLOADS
from compilewatch.runner.config.settings import Settings
from compilewatch.runner.config.sources import load_settings
from compilewatch.runner.plan.interpreter import recorded_environment
from compilewatch.runner.plan.selection import known_workloads
from compilewatch.runner.process.script_run import MOST_LINES, NotShortError, short_script
from tests.runner.plan.test_reproduce import PINNED, _trial

SHORT = {
    "cnn",
    "elementwise",
    "elementwise-4096",
    "mlp-train",
    "lstm-cell",
    "mlp-4096",
    "custom-op",
    "dropout-train",
}


def test_what_is_short_names_all_it_uses_and_what_is_not_says_why(tmp_path: Path) -> None:
    made = set()
    for workload in WORKLOADS:
        try:
            text = short_script(_trial(workload), Settings())
        except NotShortError:
            continue
        made.add(workload)
        assert len(text.splitlines()) <= MOST_LINES
        imports = [
            node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        names = {
            name.partition(".")[0]
            for node in imports
            for name in (
                [str(node.module)] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]
            )
        }
        assert names <= {"torch", *sys.stdlib_module_names}
        (tmp_path / f"{workload}.py").write_text(text, encoding="utf-8")
    assert made == SHORT
    rules = ["--isolated", "--select", "F811,F821", "--target-version", "py310"]
    checked = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--no-cache", *rules, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("strategy", ["default+regional", "packaged"])
def test_what_is_no_single_call_of_compile_has_none(strategy: str) -> None:
    with pytest.raises(CompilewatchError, match=r"is more than one call of torch\.compile\."):
        short_script(_trial("mlp-train", strategy), Settings())


def test_a_record_from_elsewhere_is_refused_as_by_every_script() -> None:
    trial = _trial(settings=PINNED | {"environment": {"CXX": "/tmp/foreign"}})
    with pytest.raises(CompilewatchError, match="CXX"):
        short_script(trial, Settings())


OWN = '''
"""My model."""
import torch
from torch import nn

def unused():
    pass

class Model(nn.Module):
    """Two lines."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)  # a comment

    def forward(self, x, *, scale=1.0):
        return self.layer(x).tanh() * scale

def build(batch_size=4):
    return Model(), {INPUTS}
'''


@pytest.mark.parametrize(
    ("inputs", "task"),
    [
        pytest.param("(torch.ones(batch_size, 8),)", "inference", marks=pytest.mark.slow),
        pytest.param('{"x": torch.ones(batch_size, 8), "scale": 2.0}', "inference", marks=pytest.mark.slow),
        ("torch.ones(batch_size, 8), lambda out: out.square().mean()", "training"),
    ],
)
def test_a_script_of_ones_own_model_runs_where_only_torch_is(
    inputs: str, task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under Dynamo alone, which takes seconds: what Inductor makes of it is measured elsewhere."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "compilewatch.toml").write_text(
        f'[[workload]]\nname = "mine"\ntarget = "mine:build"\ntask = "{task}"\nbatch_size = 2\n'
    )
    (tmp_path / "mine.py").write_text(OWN.replace("{INPUTS}", inputs))
    settings = load_settings()
    trial = _trial(strategy="backend:eager", settings=PINNED | {"environment": recorded_environment({})})
    trial = trial.model_copy(update={"workload": known_workloads(settings)["mine"].record()})
    text = short_script(trial, settings)
    assert "Two lines" not in text
    assert "build(batch_size=2)" in text
    (tmp_path / "elsewhere").mkdir()
    script = tmp_path / "elsewhere" / "issue.py"
    script.write_text(text)
    ran = subprocess.run(
        [sys.executable, "-I", str(script)], capture_output=True, text=True, check=False, timeout=240
    )
    assert re.search(r"^torch \S+: eager \S+ ms, compiled \S+ ms, speedup \S+x$", ran.stdout, re.M), (
        ran.stderr
    )
